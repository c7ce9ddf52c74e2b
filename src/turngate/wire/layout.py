"""Where each wire keeps what: the fields of its body, its messages, their roles, its cache marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from turngate.errors import WireError
from turngate.wire.scan import Node, Path, show, text_of
from turngate.wire.view import Wire, string

ByteEdit: TypeAlias = tuple[int, int, bytes]
"""Start, end, and what stands there instead."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The names of a body's fields."""

    messages: str
    """The list of messages."""
    tools: tuple[str, ...]
    """What offers tools, in render order."""
    system: tuple[str, ...]
    """The system prompt, where it is no message; two spellings of one field, if there are two."""
    nested: tuple[str, ...] = ()
    """Fields of a message, and of what stands in them, whose elements may carry cache marks."""


LAYOUT: Final[Mapping[Wire, Layout]] = {
    "chat": Layout("messages", ("tools", "functions"), ("system",), ("content",)),
    "anthropic": Layout("messages", ("tools",), ("system",), ("content",)),
    "responses": Layout("input", ("tools",), ("instructions",), ("content", "output")),
    "gemini": Layout("contents", ("tools",), ("systemInstruction", "system_instruction")),
}
"""Wire -> its fields. Several gateways take ``system`` in Chat Completions, too. Gemini speaks protocol
buffers as JSON, whose names may be spelled in either case."""

MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Cache marks of Anthropic and OpenAI; several gateways take Anthropic's in Chat Completions, too."""

MESSAGE_DEPTH: Final = 2
"""How many levels below a message carry marks: its blocks, and what a tool result holds."""

_ANSWERS: Final = frozenset({"mcp_approval_response"})
"""Types of Responses items that come from the client and are not called ``…_output``."""

_GEMINI_ROLES: Final = {"model": "assistant", "function": "tool"}


def message_nodes(top: Node, wire: Wire) -> list[Node]:
    """The places of a request's messages, or of a bare array's. Responses' string input is one message.

    Raises:
        WireError: if there are none.
    """
    if top.kind == "array":
        return top.items
    name = LAYOUT[wire].messages
    found = top.get(name)
    if found is not None and found.kind == "array":
        return found.items
    if found is not None and found.kind == "string" and wire == "responses":
        return [found]
    raise WireError(_no_list(wire))


def message_values(value: Any, wire: Wire) -> list[tuple[Path, Any]]:
    """The messages of a parsed request, or of a bare list, each with its path.

    Raises:
        WireError: if there are none, or one of them is none of this wire.
    """
    base: Path = ()
    if isinstance(value, Mapping):
        name = LAYOUT[wire].messages
        base, value = (name,), value.get(name)
        if isinstance(value, str) and wire == "responses":
            return [(base, value)]
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise WireError(_no_list(wire))
    for index, message in enumerate(value):
        try:
            role_of(message, wire)
        except WireError as error:
            raise WireError(f"{show((*base, index))}: {error}") from None
    return [((*base, index), message) for index, message in enumerate(value)]


def _no_list(wire: Wire) -> str:
    name = LAYOUT[wire].messages
    return f'no list of messages; send a JSON array, or an object with an array under "{name}"'


def role_of(message: Any, wire: Wire) -> str:
    """Whose message it is: ``user``, ``assistant``, ``tool``, ``system``, or what the client wrote.

    Raises:
        WireError: if it is no message of this wire.
    """
    if wire == "responses":
        role = _role_of_item(message)
    elif wire == "gemini":
        role = _role_of_content(message)
    else:
        role = message.get("role") if isinstance(message, Mapping) else None
    if not isinstance(role, str):
        raise WireError(_FAULTS.get(wire, 'a message is not an object with a "role"; each must be one'))
    return role


_FAULTS: Final[Mapping[Wire, str]] = {
    "responses": 'an item of "input" is not an object with a "type" or a "role"; each must be one',
    "gemini": 'an element of "contents" is not an object with "parts"; each must be one',
}


def _role_of_item(item: Any) -> str | None:
    """Items that the model produced have no role of their own, but for its messages."""
    if isinstance(item, str):
        return "user"
    if not isinstance(item, Mapping):
        return None
    role, kind = item.get("role"), string(item.get("type"))
    if role is not None or not kind:
        return role if isinstance(role, str) else None
    return "tool" if kind.endswith("_output") or kind in _ANSWERS else "assistant"


def _role_of_content(content: Any) -> str | None:
    """A content without a role is the user's (Gemini API, ``Content.role``)."""
    if not isinstance(content, Mapping):
        return None
    role = content.get("role", "user")
    return _GEMINI_ROLES.get(role, role) if isinstance(role, str) else None


def without_marks(body: bytes, node: Node, wire: Wire, depth: int = MESSAGE_DEPTH) -> bytes:
    """A message's bytes without its cache marks; in Anthropic's format a lone text block is its string.

    Args:
        body: the request.
        node: the message's place in it.
        wire: the request's format.
        depth: levels below it that carry marks; 0 for an element that is no message.
    """
    whole = body[node.start : node.end]
    cuts = _cuts(body, node, wire, depth) if _may_mark(whole) else _unblocked(body, node, wire, depth)
    pieces: list[bytes] = []
    at = node.start
    for start, end, new in sorted(cuts):
        if end > at:
            pieces += (body[at:start], new)
            at = end
    pieces.append(body[at : node.end])
    return b"".join(pieces)


def _may_mark(raw: bytes) -> bool:
    """Whether a mark can be in it; its name may be spelled with escapes."""
    return any(name in raw for name in _MARK_SIGNS)


_MARK_SIGNS: Final = (*(name.encode() for name in MARKS), rb"\u00")


def _unblocked(body: bytes, node: Node, wire: Wire, depth: int) -> list[ByteEdit]:
    """A message's lone text block, as the string that it stands for."""
    content = node.get("content") if wire == "anthropic" and depth else None
    if content is None or node.get("role") is None:
        return []
    alone = only_text(body, content)
    return [] if alone is None else [(content.start, content.end, body[alone.start : alone.end])]


def _cuts(body: bytes, node: Node, wire: Wire, depth: int) -> Iterator[ByteEdit]:
    if wire == "gemini" or node.kind != "object":
        return
    yield from mark_cuts(node)
    alone = _unblocked(body, node, wire, depth)
    yield from alone
    contents = (node.get(name) for name in LAYOUT[wire].nested if depth and not alone)
    for content in contents:
        for item in content.items if content is not None else ():
            yield from _cuts(body, item, wire, depth - 1)


def mark_cuts(node: Node) -> Iterator[ByteEdit]:
    """Spans that take the marks out of an object, each with one comma."""
    kept_end: int | None = None
    for this, following in zip_longest(node.members, node.members[1:]):
        if this.key not in MARKS:
            kept_end = this.value.end
        elif following is not None:
            yield this.start, following.start, b""
        else:
            yield kept_end or node.members[0].start, this.value.end, b""


def only_text(body: bytes, content: Node) -> Node | None:
    """The string of a content array that holds a single plain text block.

    Anthropic documents a string as shorthand for exactly that, and clients switch between both forms when
    they set or lift a mark.
    """
    if content.kind != "array" or len(content.items) != 1:
        return None
    block = content.items[0]
    kind, text = block.get("type"), block.get("text")
    if {m.key for m in block.members} - MARKS != {"type", "text"} or kind is None or text is None:
        return None
    plain = kind.kind == "string" and text.kind == "string" and text_of(body, kind) == "text"
    return text if plain else None
