"""A span of messages as a text to read and search, and a skeleton to make the messages again with. Pure.

    [12] user
    How do I …
    [13] assistant → read_file
    {"path": "a.py"}
    [14] tool read_file
    …the result, as it was…

The skeleton has each message as JSON, with its texts replaced by their lines; so the messages can be made
again, whatever they hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turngate.errors import StoreCorruptError
from turngate.window.offload import leaves, replaced
from turngate.window.units import SYSTEM_ROLES, Message
from turngate.wire import Path, Wire

#: The one key of an object that stands for lines of the text: first line (from 1) and how many. Doubled as
#: often as it takes for no message to have such a key.
_LINES: Final = "@"


def render(messages: Sequence[Message], wire: Wire, *, first: int) -> tuple[str, dict[str, Any]]:
    """The text of a span, and its skeleton, a JSON value.

    Args:
        messages: the span.
        wire: its format.
        first: number of its first message in the conversation, from 0.
    """
    key = _LINES
    while any(f'"{key}"' in json.dumps(message) for message in messages):
        key += _LINES
    lines: list[str] = []
    rest: list[Any] = []
    tools: dict[str, str] = {}
    for number, message in enumerate(messages, first):
        lines.append(f"[{number}] {_heading(message, wire, tools)}")
        changes: dict[Path, Any] = {}
        for path, text in _texts(message, wire):
            own = text.split("\n")
            changes[path] = {key: [len(lines) + 1, len(own)]}
            lines += own
        rest.append(replaced(message, changes))
    return "\n".join(lines), {"key": key, "messages": rest}


def parse(text: str, skeleton: Any) -> list[dict[str, Any]]:
    """The messages of a span.

    Raises:
        StoreCorruptError: text and skeleton are not those of a span.
    """
    lines = text.split("\n")
    try:
        return [_filled(message, lines, skeleton["key"]) for message in skeleton["messages"]]
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise StoreCorruptError("a span's skeleton is damaged; its text can still be retrieved") from error


def _heading(message: Message, wire: Wire, tools: dict[str, str]) -> str:
    """Role, and the names of tools that are called or answer; `tools` is told of the calls."""
    names = []
    for leaf in leaves(message, wire):
        if leaf.what == "arguments":
            tools[leaf.call_id] = leaf.name
            names.append(f"→ {leaf.name}")
        elif leaf.what == "result":
            names.append(tools.get(leaf.call_id) or leaf.name)
    return " ".join(filter(None, (str(message.get("role")), *names)))


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
