"""A span of messages as one text: readable, searchable line by line, and exact enough to be read back. Pure.

    [12] user
    How do I …
    [13] assistant
    → read_file {"path": "a.py"}
    [14] tool read_file
    …the result, as it was…
    [#] the rest of these messages, as JSON
    {"role": "user", "content": {"@": [2, 1]}}
    …
    [#] turngate span 1: messages 12–14, texts at "@"

The second half holds each message with its texts replaced by their lines above, so that the messages can be
made again, whatever they hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turngate.errors import StoreCorruptError
from turngate.window.offload import leaves, replaced
from turngate.window.units import SYSTEM_ROLES, Message
from turngate.wire import Path, Wire

_REST: Final = "[#] the rest of these messages, as JSON"
_END: Final = '[#] turngate span 1: messages {}–{}, texts at "{}"'
_END_LINE: Final = re.compile(r'\[#\] turngate span 1: messages (\d+)–(\d+), texts at "(@+)"')
#: The one key of an object that stands for lines of the text: first line (from 1) and how many. Doubled as
#: often as it takes for no message to have such a key.
_LINES: Final = "@"


def render(messages: Sequence[Message], wire: Wire, *, first: int) -> tuple[str, tuple[int, ...]]:
    """The text of a span, and the line (from 1) on which each message begins.

    Args:
        messages: the span.
        wire: its format.
        first: number of its first message in the conversation, from 0.
    """
    key = _LINES
    while any(f'"{key}"' in json.dumps(message) for message in messages):
        key += _LINES
    lines: list[str] = []
    starts: list[int] = []
    rest: list[str] = []
    for at, message in enumerate(messages):
        starts.append(len(lines) + 1)
        lines.append(f"[{first + at}] {_heading(message, wire)}")
        changes: dict[Path, Any] = {}
        for path, text in _texts(message, wire):
            own = text.split("\n")
            changes[path] = {key: [len(lines) + 1, len(own)]}
            lines += own
        rest.append(json.dumps(replaced(message, changes)))
    end = _END.format(first, first + len(messages) - 1, key)
    return "\n".join([*lines, _REST, *rest, end]), tuple(starts)


def parse(text: str) -> tuple[int, list[dict[str, Any]]]:
    """The number of the first message of a span, and its messages.

    Raises:
        StoreCorruptError: it is not the text of a span.
    """
    lines = text.split("\n")
    ending = _END_LINE.fullmatch(lines[-1])
    count = int(ending[2]) - int(ending[1]) + 1 if ending else 0
    if ending is None or len(lines) < count + 2 or lines[-2 - count] != _REST:
        raise StoreCorruptError("this is not the text of a span; retrieve it whole, by the marker's id")
    try:
        rest = [_filled(json.loads(line), lines, ending[3]) for line in lines[-1 - count : -1]]
    except (ValueError, TypeError, IndexError) as error:
        raise StoreCorruptError("the span's second half is damaged; its texts stand above it") from error
    return int(ending[1]), rest


def _heading(message: Message, wire: Wire) -> str:
    """Role, and the names of tools that are called or answer."""
    calls = [f"→ {leaf.name}" for leaf in leaves(message, wire) if leaf.what == "arguments"]
    name = message.get("name") if isinstance(message.get("name"), str) else ""
    return " ".join(filter(None, (str(message.get("role")), str(name or ""), *calls)))


def _texts(message: Message, wire: Wire) -> Iterator[tuple[Path, str]]:
    """The texts with their paths; of arguments that are an object, each string in it."""
    for leaf in leaves(message, wire):
        value: Any = message
        for step in leaf.path:
            value = value[step]
        yield from _strings(value, leaf.path)
    if message.get("role") in SYSTEM_ROLES:
        yield from _strings(message.get("content"), ("content",))


def _strings(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _strings(item, (*path, at))


def _filled(value: Any, lines: Sequence[str], key: str) -> Any:
    """A value of the second half with its texts."""
    if isinstance(value, dict):
        at = value.get(key)
        if len(value) == 1 and isinstance(at, list):
            first, count = at
            return "\n".join(lines[first - 1 : first - 1 + count])
        return {name: _filled(item, lines, key) for name, item in value.items()}
    return [_filled(item, lines, key) for item in value] if isinstance(value, list) else value


def speaker(message: Mapping[str, Any]) -> str:
    """Who speaks in it: its role; ``tool`` for a message that only holds results."""
    content = message.get("content")
    if message.get("role") == "user" and isinstance(content, list) and content:
        kinds = [block.get("type") for block in content if isinstance(block, Mapping)]
        return "tool" if all(kind == "tool_result" for kind in kinds) else "user"
    return str(message.get("role"))
