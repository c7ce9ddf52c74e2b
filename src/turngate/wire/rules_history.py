"""What a request may not change against one that the provider accepted before in the same conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.prefix import MARKS
from turngate.wire.rule import Asked, Finding, HistoryCheck, Rule, content_blocks
from turngate.wire.view import Wire, blocks

if TYPE_CHECKING:
    from turngate.wire.scan import Path

_THINKING = "platform.claude.com/docs, Preserved thinking"

RULES: Final[Mapping[Wire, tuple[Rule, ...]]] = {
    "anthropic": (
        Rule(
            "thinking-modified",
            "signed thinking goes back as it came",
            "anthropic-sdk-python, types/thinking_block_param.py",
        ),
        Rule(
            "thinking-order",
            "thinking blocks keep their order",
            "anthropic-sdk-python, types/thinking_block_param.py",
        ),
        Rule(
            "thinking-prefix",
            "nothing before a signed thinking block changes, unless the request asks for drop_block",
            _THINKING + '; the API\'s refusal: "bound to a different conversation"',
        ),
        Rule(
            "user-lost",
            "a conversation that had a user message keeps one",
            "the list a window must keep valid",
        ),
    ),
    "chat": (
        Rule(
            "reasoning-lost",
            "reasoning fields of a turn with tool calls go back with it",
            "api-docs.deepseek.com, Thinking mode, tool calls; openrouter.ai/docs, Preserving reasoning; "
            "ai.google.dev, Thought signatures in OpenAI compatibility",
        ),
        Rule(
            "user-lost",
            "a conversation that had a user message keeps one",
            "the list a window must keep valid",
        ),
    ),
}

_REASONING: Final = ("reasoning_content", "reasoning_details", "extra_content", "reasoning")


def _signed(asked: Asked) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """Thinking blocks with the value that identifies each: signature, or the opaque data."""
    for path, message in asked.each():
        for where, block in content_blocks(message, path):
            if block.get("type") in {"thinking", "redacted_thinking"}:
                seal = block.get("signature") or block.get("data")
                if isinstance(seal, str) and seal:
                    yield seal, where, block


def _thinking_modified(sent: Asked, asked: Asked) -> Iterator[Finding]:
    before = {seal: block for seal, _, block in _signed(sent)}
    texts = {block.get("thinking"): seal for seal, block in before.items() if block.get("thinking")}
    for seal, where, block in _signed(asked):
        text = block.get("thinking")
        if seal in before and before[seal].get("thinking") != text:
            yield Finding(
                "thinking-modified", (*where, "thinking"), "the text under this signature was another"
            )
        elif texts.get(text, seal) != seal and seal not in before:
            yield Finding(
                "thinking-modified", (*where, "signature"), "the signature of this text was another"
            )


def _thinking_order(sent: Asked, asked: Asked) -> Iterator[Finding]:
    rank = {seal: i for i, (seal, _, _) in enumerate(_signed(sent))}
    highest = -1
    for seal, where, _ in _signed(asked):
        if rank.get(seal, highest) < highest:
            yield Finding("thinking-order", where, "this block came earlier before")
        highest = max(highest, rank.get(seal, highest))


def _thinking_prefix(sent: Asked, asked: Asked) -> Iterator[Finding]:
    if _drops_blocks(asked.request):
        return
    same = _same_messages(sent, asked)
    before = _places(sent)
    for seal, where in _places(asked).items():
        if seal in before and not _same_place(sent, asked, before[seal], where, same):
            detail = "what stands before this block is not what it was signed with"
            yield Finding("thinking-prefix", where, detail)
            return


def _same_messages(sent: Asked, asked: Asked) -> int:
    """How many messages from the first on are equal; -1 if tools or system already differ."""
    if any(
        _unmarked(sent.request.get(key)) != _unmarked(asked.request.get(key)) for key in ("tools", "system")
    ):
        return -1
    pairs = zip(sent.messages, asked.messages, strict=False)
    equal = takewhile(lambda pair: _plain(pair[0]) == _plain(pair[1]), pairs)
    return sum(1 for _ in equal)


def _same_place(sent: Asked, asked: Asked, before: Path, now: Path, same: int) -> bool:
    """Whether a block stands where it stood, with everything before it equal."""
    index, _, block = now[-3:]
    if before[-3:] != now[-3:] or int(index) > same:
        return False
    heads = [_unmarked(list(a.messages[int(index)]["content"][: int(block)])) for a in (sent, asked)]
    return bool(heads[0] == heads[1])


def _places(asked: Asked) -> dict[str, Path]:
    """Each seal with the first place it stands at."""
    places: dict[str, Path] = {}
    for seal, where, _ in _signed(asked):
        places.setdefault(seal, where)
    return places


def _drops_blocks(request: Mapping[str, Any]) -> bool:
    value: Any = request
    for key in ("thinking", "block_binding", "prefix_mismatch_behavior"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return bool(value == "drop_block")


def _plain(message: Mapping[str, Any]) -> Any:
    """A message without cache marks; a lone text block, made to carry one, as the string it stands for."""
    clean = _unmarked(message)
    content = clean.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Mapping):
        block = content[0]
        if block.keys() == {"type", "text"} and block["type"] == "text":
            return clean | {"content": block["text"]}
    return clean


def _unmarked(value: Any, depth: int = 4) -> Any:
    """``value`` without cache marks; marks stand no deeper than a block inside a tool result."""
    if not depth or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {
            k: _unmarked(v, depth - 1) if k == "content" else v for k, v in value.items() if k not in MARKS
        }
    return [_unmarked(v, depth) for v in value] if isinstance(value, list | tuple) else value


def _reasoning_lost(sent: Asked, asked: Asked) -> Iterator[Finding]:
    before = {_call_ids(message): message for message in sent.messages if _call_ids(message)}
    for path, message in asked.each():
        earlier = before.get(_call_ids(message), {})
        for key in _REASONING:
            if key in earlier and message.get(key) != earlier[key]:
                yield Finding("reasoning-lost", (*path, key), f"{key} is not what was sent before")


def _call_ids(message: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(call.get("id") for _, call in blocks(message.get("tool_calls")))


def _user_lost(sent: Asked, asked: Asked) -> Iterator[Finding]:
    had = any(message["role"] == "user" for message in sent.messages)
    if had and not any(message["role"] == "user" for message in asked.messages):
        yield Finding("user-lost", asked.base, "no user message is left")


CHECKS: Final[Mapping[Wire, tuple[HistoryCheck, ...]]] = {
    "anthropic": (_thinking_modified, _thinking_order, _thinking_prefix, _user_lost),
    "chat": (_reasoning_lost, _user_lost),
}
