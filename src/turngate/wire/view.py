"""What every wire has in common: messages, tool calls and tool results, each with its path into the request.

A view reads; it never rebuilds. What is to change is named by path and spliced into the raw body
(:func:`turngate.wire.scan.splice`), so that whatever the view did not understand leaves as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from turngate.errors import WireError
from turngate.wire.scan import Path, scan, show, value_of

Wire: TypeAlias = Literal["chat", "anthropic", "responses", "gemini"]
"""``chat``: OpenAI Chat Completions and all that speak it. ``anthropic``: Anthropic Messages. ``responses``:
OpenAI Responses. ``gemini``: Gemini's ``generateContent``."""

Source: TypeAlias = bytes | Mapping[str, Any] | Sequence[Any]
"""A request: its raw body, the parsed object, or the bare list of messages."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """One string that the model reads as text."""

    text: str
    path: Path
    """Where the string stands, for :func:`~turngate.wire.scan.splice`."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made."""

    id: str
    """Empty for the legacy ``function_call``, which has none."""
    name: str
    args: Mapping[str, Any] | str
    """As the wire has them: a JSON string in Chat Completions, an object in Anthropic Messages."""
    path: Path
    message: int
    """Index of the message that holds it."""
    server: bool = False
    """The provider runs it, and puts the result into the same turn."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a client-side tool answered."""

    call_id: str
    tool: str
    """Name of the tool, from the result itself or from its call; empty if neither is there."""
    args: Mapping[str, Any] | str | None
    """Arguments of the call it answers; ``None`` if that is not there."""
    parts: tuple[TextPart, ...]
    """Its text, string by string; images, documents and references are not among them."""
    path: Path
    message: int
    """Index of the message that holds it."""
    failed: bool | None = None
    """What the wire says of success (``is_error``); ``None`` where it says nothing."""

    @property
    def text(self) -> str:
        """All of its text, as the model reads it."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Message:
    """One element of the message list."""

    index: int
    role: str
    path: Path
    texts: tuple[TextPart, ...] = ()
    """Its text outside tool results."""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A request as its wire is meant, in render order."""

    wire: Wire
    messages: tuple[Message, ...]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All tool calls, in order."""
        return tuple(call for message in self.messages for call in message.calls)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """All tool results, in order."""
        return tuple(result for message in self.messages for result in message.results)


def parse(source: Source) -> Any:
    """The Python value of a request, whichever way it was given.

    Raises:
        WireError: if bytes were given that are not JSON.
    """
    if isinstance(source, bytes):
        return value_of(source, scan(source))
    return source


def message_list(value: Any) -> tuple[Path, list[Mapping[str, Any]]]:
    """The messages of a request or of a bare list, and the path to them.

    Raises:
        WireError: if there are none, or one of them is not an object with a role.
    """
    base: Path = ()
    if isinstance(value, Mapping):
        base, value = ("messages",), value.get("messages")
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise WireError('no list of messages; send a JSON array, or an object with an array under "messages"')
    for index, message in enumerate(value):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise WireError(f'{show((*base, index))} is not a message; each is an object with a "role"')
    return base, list(value)


def blocks(value: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """The objects of a content array with their indexes; nothing if it is not an array."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return []
    return [(index, block) for index, block in enumerate(value) if isinstance(block, Mapping)]


_TEXT: Final = frozenset({"text"})


def text_parts(content: Any, path: Path, types: frozenset[str] = _TEXT) -> tuple[TextPart, ...]:
    """The text of a content value: the string itself, or the blocks of these types in an array."""
    if isinstance(content, str):
        return (TextPart(content, path),)
    return tuple(
        TextPart(block["text"], (*path, index, "text"))
        for index, block in blocks(content)
        if string(block.get("type")) in types and isinstance(block.get("text"), str)
    )


def string(value: Any) -> str:
    """``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""
