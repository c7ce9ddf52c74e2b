"""What Anthropic Messages demands inside a message: content, thinking, cache marks, compaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.rule import Asked, Check, Finding, Rule, content_blocks
from turngate.wire.view import blocks, string

if TYPE_CHECKING:
    from turngate.wire.scan import Path

_TYPES = "anthropic-sdk-python, types/{}"
_REPLY = 'the API\'s refusal: "{}"'
_THINKING = "platform.claude.com/docs, Extended thinking, Preserving thinking blocks; "
_CACHE = "platform.claude.com/docs, Prompt caching; "

BLOCK_RULES: Final = (
    Rule(
        "content-missing",
        "content is a non-empty string or array; only the last assistant message may be empty",
        _REPLY.format(
            "all messages must have non-empty content except for the optional final assistant message"
        ),
    ),
    Rule(
        "text-empty",
        "a text block holds more than white space",
        _REPLY.format("text content blocks must be non-empty")
        + "; "
        + _REPLY.format("text content blocks must contain non-whitespace text"),
    ),
    Rule("block-shape", "a content block has a type", _REPLY.format("content.0.type: Field required")),
    Rule(
        "block-role",
        "calls and thinking stand in assistant messages, results in user messages",
        _REPLY.format("`tool_use` blocks can only be in `assistant` messages")
        + "; the same of `tool_result` and `user`",
    ),
    Rule(
        "error-result-content",
        "a result marked as error holds text only",
        _REPLY.format("all content must be type `text` if `is_error` is true"),
    ),
    Rule(
        "last-trailing-space",
        "a prefilled last assistant message does not end in white space",
        _REPLY.format("final assistant content cannot end with trailing whitespace"),
    ),
    Rule(
        "thinking-first",
        "an assistant message that thinks begins with thinking",
        _THINKING
        + _REPLY.format(
            "If an assistant message contains any thinking blocks, the first block must be thinking or "
            "redacted_thinking"
        ),
    ),
    Rule(
        "thinking-last",
        "an assistant message does not end with thinking",
        _REPLY.format("The final block in an assistant message cannot be `thinking`"),
    ),
    Rule(
        "thinking-signature",
        "thinking carries its signature, redacted thinking its data",
        _TYPES.format("thinking_block_param.py"),
    ),
    Rule(
        "thinking-missing",
        "with manual thinking on, the turn whose tools were just answered has its thinking",
        _THINKING
        + _REPLY.format(
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block"
        ),
    ),
    Rule(
        "thinking-disabled",
        "with thinking off, the last assistant message holds none",
        _REPLY.format(
            "When thinking is disabled, an `assistant` message in the final position cannot contain "
            "`thinking`"
        ),
    ),
    Rule(
        "cache-marks",
        "at most 4 cache marks",
        _CACHE + _REPLY.format("A maximum of 4 blocks with cache_control may be provided. Found 5."),
    ),
    Rule(
        "cache-ttl-order",
        "1-hour marks come before 5-minute marks",
        _CACHE
        + _REPLY.format("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"),
    ),
    Rule(
        "cache-block",
        "thinking and empty text carry no cache mark",
        _CACHE
        + "what cannot be cached; "
        + _REPLY.format("cache_control cannot be set for empty text blocks"),
    ),
    Rule(
        "clear-at",
        "clear_at stands on system messages only",
        _TYPES.format("beta/beta_system_message_param.py"),
    ),
    Rule(
        "compaction-content",
        "a compaction block's content is null or not empty",
        _TYPES.format("beta/beta_compaction_block_param.py"),
    ),
    Rule(
        "compaction-place",
        "a signed compaction block is the first block of the conversation",
        _TYPES.format("compaction_block_misplaced_error.py"),
    ),
    Rule(
        "compaction-single",
        "there is one signed compaction block with content",
        _TYPES.format("compaction_block_ambiguous_error.py"),
    ),
)

THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_SEAL: Final = {"thinking": "signature", "redacted_thinking": "data"}
_ROLE_OF: Final = {
    "tool_use": "assistant",
    "server_tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}
_MAX_MARKS: Final = 4


def _content(asked: Asked) -> Iterator[Finding]:
    end = len(asked.messages) - 1
    for index, (path, message) in enumerate(asked.each()):
        content, where = message.get("content"), (*path, "content")
        optional = message["role"] == "system" and content is None and bool(message.get("output_config"))
        if content in ("", []):
            if index != end or message["role"] != "assistant":
                yield Finding("content-missing", where, f"an empty {message['role']} message")
        elif not isinstance(content, str | list | tuple):
            if not optional:
                yield Finding("content-missing", where, "neither a string nor an array")
        elif isinstance(content, str) and not content.strip():
            yield Finding("text-empty", where, "only white space")


def _texts(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        for where, block in content_blocks(message, path):
            yield from _block(where, block, message["role"])
            if block.get("type") == "tool_result":
                yield from _result_content(where, block)


def _block(where: Path, block: Mapping[str, Any], role: str) -> Iterator[Finding]:
    kind = block.get("type")
    if not isinstance(kind, str):
        yield Finding("block-shape", where, "the block has no type")
    elif kind == "text" and not string(block.get("text")).strip():
        yield Finding("text-empty", (*where, "text"), "an empty text block")
    elif _ROLE_OF.get(kind, role) != role:
        yield Finding("block-role", where, f"a {kind} block in a {role} message")


def _result_content(where: Path, result: Mapping[str, Any]) -> Iterator[Finding]:
    for index, block in blocks(result.get("content")):
        kind, place = block.get("type"), (*where, "content", index)
        if kind == "text" and not string(block.get("text")):
            yield Finding("text-empty", (*place, "text"), "an empty text block")
        if kind != "text" and result.get("is_error") is True:
            yield Finding("error-result-content", place, f"a {kind!r} block in a failed result")


def _last(asked: Asked) -> Iterator[Finding]:
    if not asked.messages or asked.messages[-1]["role"] != "assistant":
        return
    path: Path = (*asked.base, len(asked.messages) - 1, "content")
    content = asked.messages[-1].get("content")
    ending = content
    if isinstance(content, list | tuple) and content:
        block = content[-1]
        ending = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
    if isinstance(ending, str) and ending.strip() and ending != ending.rstrip():
        yield Finding("last-trailing-space", path, "the last message ends in white space")


def _thinking(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        found = [(where, b) for where, b in content_blocks(message, path) if b.get("type") != "compaction"]
        thinks = [b.get("type") in THINKING for _, b in found]
        if message["role"] != "assistant" or True not in thinks:
            continue
        if not thinks[0]:
            yield Finding("thinking-first", found[0][0], "thinking follows, but does not begin the message")
        if thinks[-1]:
            yield Finding("thinking-last", found[-1][0], "the message ends with thinking")
        for where, block in found:
            seal = _SEAL.get(string(block.get("type")))
            if seal is not None and not string(block.get(seal)):
                yield Finding("thinking-signature", (*where, seal), f"no {seal}")


def _thinking_mode(asked: Asked) -> Iterator[Finding]:
    mode = asked.request.get("thinking")
    kind = mode.get("type") if isinstance(mode, Mapping) else None
    if kind == "enabled":
        yield from _thinking_missing(asked)
    elif kind == "disabled" and asked.messages and asked.messages[-1]["role"] == "assistant":
        last = len(asked.messages) - 1
        for where, block in content_blocks(asked.messages[last], (*asked.base, last)):
            if block.get("type") in THINKING:
                yield Finding("thinking-disabled", where, "thinking in the last message")


def _thinking_missing(asked: Asked) -> Iterator[Finding]:
    """The turn in progress must hold a message that begins with thinking, if its tools were just answered.

    The API looks for it before the last set of calls and results. Without interleaved thinking only the first
    message of a turn thinks, so one anywhere in the turn is taken to be enough.
    """
    if not asked.messages or not _holds(asked.messages[-1], "tool_result"):
        return
    turn: list[int] = []
    for index in range(len(asked.messages) - 1, -1, -1):
        message = asked.messages[index]
        if message["role"] == "assistant":
            turn.append(index)
        elif message["role"] == "user" and not _holds(message, "tool_result"):
            break
    if turn and not any(_begins_with_thinking(asked.messages[i]) for i in turn):
        yield Finding(
            "thinking-missing", (*asked.base, turn[0], "content", 0), "the turn in progress has no thinking"
        )


def _holds(message: Mapping[str, Any], kind: str) -> bool:
    return any(b.get("type") == kind for _, b in content_blocks(message, ()))


def _begins_with_thinking(message: Mapping[str, Any]) -> bool:
    kinds = [b.get("type") for _, b in content_blocks(message, ()) if b.get("type") != "compaction"]
    return bool(kinds) and kinds[0] in THINKING


def _marked(asked: Asked) -> Iterator[tuple[Path, Mapping[str, Any], Mapping[str, Any]]]:
    """Every block with a cache mark, in the order of processing: tools, system, messages."""
    found: list[tuple[Path, Mapping[str, Any]]] = []
    for key in ("tools", "system"):
        found += [((key, index), block) for index, block in blocks(asked.request.get(key))]
    for path, message in asked.each():
        for where, block in content_blocks(message, path):
            found.append((where, block))
            found += content_blocks(block, where)
    for where, block in found:
        mark = block.get("cache_control")
        if isinstance(mark, Mapping):
            yield where, block, mark


def _marks(asked: Asked) -> Iterator[Finding]:
    marked = list(_marked(asked))
    short: Path | None = None
    for where, block, mark in marked:
        if mark.get("ttl", "5m") != "1h":
            short = where
        elif short is not None:
            yield Finding("cache-ttl-order", where, "a 1-hour mark after a 5-minute one")
        kind = block.get("type")
        if kind in THINKING or (kind == "text" and block.get("text") == ""):
            yield Finding("cache-block", where, f"a cache mark on a {kind} block")
    if len(marked) > _MAX_MARKS:
        yield Finding("cache-marks", marked[_MAX_MARKS][0], f"{len(marked)} cache marks")


def _clear_at(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        if message["role"] != "system" and message.get("clear_at") is not None:
            yield Finding("clear-at", (*path, "clear_at"), f"clear_at on a {message['role']} message")


def _compaction(asked: Asked) -> Iterator[Finding]:
    """Signed blocks come from compaction on demand, which alone is strict about place and number."""
    signed = 0
    for index, (path, message) in enumerate(asked.each()):
        for where, block in content_blocks(message, path):
            if block.get("type") != "compaction":
                continue
            if block.get("content") == "":
                yield Finding("compaction-content", (*where, "content"), "an empty string")
            if not block.get("signature") or block.get("content") is None:
                continue
            signed += 1
            if signed > 1:
                yield Finding("compaction-single", where, "a second signed compaction block")
            elif index != 0 or where[-1] != 0:
                yield Finding("compaction-place", where, "something stands before the compaction block")


BLOCK_CHECKS: Final[tuple[Check, ...]] = (
    _content,
    _texts,
    _last,
    _thinking,
    _thinking_mode,
    _marks,
    _clear_at,
    _compaction,
)
