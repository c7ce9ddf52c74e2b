"""Changes inside a message that stays: long texts make room for a marker and an excerpt; thinking goes. Pure.

A message is never altered: a changed one shares what did not change with the one that came in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from turngate import tokens
from turngate.compress.notes import Notes, tag_for
from turngate.store import line_count, split_lines
from turngate.window.units import THINKING, Message
from turngate.wire import Path, Wire
from turngate.wire.view import blocks, string

What: TypeAlias = Literal["result", "said", "arguments"]
"""What a text is: of a tool's result, said by user or assistant, or arguments of a call."""

#: A text is offloaded when it is this many times as long as the excerpt that stays of it.
LONG_TIMES: Final = 1.5
#: Of an excerpt's characters so many are the text's beginning; its end often says how it came out.
_HEAD_SHARE: Final = 0.6
_CHARS_PER_TOKEN: Final = 4
_LEAST_CHARS: Final = 40
#: Where an excerpt is too heavy for its length, the next try has so much of it.
_DENSER_SHARE: Final = 0.7
#: The one key of arguments that were offloaded, since a provider demands an object.
ARGUMENTS_KEY: Final = "turngate_offloaded"
_BODY: Final = {"function": "arguments", "custom": "input"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text in a message that can be offloaded."""

    path: Path
    """From the message."""
    text: str
    """The text; of arguments that are an object, their JSON."""
    what: What
    """What it is."""
    call_id: str = ""
    """The call it belongs to."""
    name: str = ""
    """The tool's name, where the message has it."""


def leaves(message: Message, wire: Wire, *, spoken: bool = True) -> Iterator[Leaf]:
    """The texts of a message. Not those of system messages; a user's own words only with `spoken`."""
    role = message.get("role")
    for leaf in _READERS[wire](message):
        if role in {"assistant", "tool", "function"} or leaf.what != "said" or (role == "user" and spoken):
            yield leaf


def replaced(message: Message, changes: Mapping[Path, Any]) -> dict[str, Any]:
    """A copy of the message with other values at these paths; what lies beside them is shared."""
    copy: Any = dict(message)
    for path, value in changes.items():
        parent = copy
        for step in path[:-1]:
            child = parent[step]
            parent[step] = dict(child) if isinstance(child, Mapping) else list(child)
            parent = parent[step]
        parent[path[-1]] = value
    return dict(copy)


def stand_in(leaf: Leaf, shown: str, wire: Wire) -> Any:
    """What to put at the leaf's place so that `shown` is read there."""
    if leaf.what != "arguments":
        return shown
    kept = {ARGUMENTS_KEY: shown}
    return kept if wire == "anthropic" else json.dumps(kept, ensure_ascii=False)


def excerpt(
    text: str,
    most_tokens: float,
    count: Callable[[str], float] = tokens.estimate,
    *,
    head_share: float = _HEAD_SHARE,
) -> str:
    """The beginning and the end of a text, and a note of what is hidden between; by lines where it can be."""
    most_chars = max(_LEAST_CHARS, int(most_tokens * _CHARS_PER_TOKEN))
    if len(text) <= most_chars and count(text) <= most_tokens:
        return text
    shown = text
    while most_chars >= _LEAST_CHARS:
        shown = _ends(text, most_chars, head_share)
        if count(shown) <= most_tokens:
            break
        most_chars = int(most_chars * _DENSER_SHARE)
    return shown


def _ends(text: str, most_chars: int, head_share: float) -> str:
    if len(text) <= most_chars:
        return text
    notes = Notes(tag_for(text))
    lines = split_lines(text)
    head = _fitting(lines, int(most_chars * head_share))
    tail = _fitting(lines[len(head) :][::-1], most_chars - sum(map(len, head)))[::-1]
    hidden = len(lines) - len(head) - len(tail)
    if head and hidden > 0:
        gap = notes.gap(len(head) + 1, len(head) + hidden)
        above = "".join(line.rstrip("\n") + "\n" for line in head)
        return above + gap + "".join("\n" + line.rstrip("\n") for line in tail)
    before = int(most_chars * head_share)
    after = most_chars - before
    return f"{text[:before]}{notes.inside(len(text) - before - after)}{text[len(text) - after :]}"


def away(arguments: str) -> str:
    """What stands in for arguments that were put away; "" where they were not."""
    if ARGUMENTS_KEY not in arguments[: len(ARGUMENTS_KEY) + 4]:
        return ""
    try:
        value = json.loads(arguments)
    except ValueError:
        return ""
    shown = value.get(ARGUMENTS_KEY) if isinstance(value, dict) and len(value) == 1 else ""
    return shown if isinstance(shown, str) else ""


def preview(text: str) -> str:
    """One line that says what was offloaded."""
    return f"{line_count(text):,} lines, {len(text):,} characters, offloaded whole"


def without_thinking(message: Message) -> Message:
    """The message without its thinking blocks; the same object where there is none, or nothing else."""
    content = message.get("content")
    if not isinstance(content, Sequence) or isinstance(content, str):
        return message
    kept = [block for block in content if not (isinstance(block, Mapping) and block.get("type") in THINKING)]
    if len(kept) == len(content) or not kept:
        return message
    return {**message, "content": kept}


def _fitting(lines: Sequence[str], most_chars: int) -> list[str]:
    """As many of the first lines as fit."""
    kept: list[str] = []
    for line in lines:
        most_chars -= len(line)
        if most_chars < 0:
            break
        kept.append(line)
    return kept


def _chat(message: Message) -> Iterator[Leaf]:
    role = message.get("role")
    result = role in {"tool", "function"}
    answered = string(message.get("tool_call_id")) or string(message.get("name")) if result else ""
    what: What = "result" if result else "said"
    for path, text in _texts(message.get("content"), ("content",)):
        yield Leaf(path, text, what, answered, string(message.get("name")) if result else "")
    for at, call in blocks(message.get("tool_calls") if role == "assistant" else None):
        for kind, field in _BODY.items():
            body = call.get(kind)
            if isinstance(body, Mapping) and isinstance(body.get(field), str):
                path = ("tool_calls", at, kind, field)
                yield Leaf(path, body[field], "arguments", string(call.get("id")), string(body.get("name")))


def _anthropic(message: Message) -> Iterator[Leaf]:
    content = message.get("content")
    if isinstance(content, str):
        yield Leaf(("content",), content, "said")
    for at, block in blocks(content):
        path: Path = ("content", at)
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            yield Leaf((*path, "text"), block["text"], "said")
        elif kind == "tool_result":
            for where, text in _texts(block.get("content"), (*path, "content")):
                yield Leaf(where, text, "result", string(block.get("tool_use_id")))
        elif kind == "tool_use" and isinstance(block.get("input"), Mapping):
            text = json.dumps(block["input"], ensure_ascii=False)
            yield Leaf(
                (*path, "input"), text, "arguments", string(block.get("id")), string(block.get("name"))
            )


def _texts(content: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(content, str):
        yield path, content
    for at, block in blocks(content):
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            yield (*path, at, "text"), block["text"]


_READERS: Final[Mapping[Wire, Callable[[Message], Iterator[Leaf]]]] = {
    "chat": _chat,
    "anthropic": _anthropic,
}
"""Wire -> what finds a message's texts."""
