"""A request as the provider's prefix cache sees it: tools, system, messages; raw bytes, no cache marks.

Two requests share a prefix as far as their elements are equal. Marks do not count: where a client puts its
breakpoints moves from turn to turn, and what is cached does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from turngate.errors import WireError
from turngate.wire.scan import Node, Path, scan, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.wire.view import Wire

Edit: TypeAlias = tuple[int, int, bytes]

MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Cache marks of Anthropic and OpenAI; several gateways take Anthropic's in Chat Completions, too."""

_DEPTH: Final = {"tools": 0, "system": 0, "message": 2}
"""How many levels of ``content`` below an element carry marks: a block, and what a tool result holds."""

_END: Final = b"\x1e"
"""Ends each element of a rendered prefix; it cannot stand in JSON, so no element is the prefix of another."""


@dataclass(frozen=True, slots=True)
class Element:
    """One step of the prefix."""

    kind: Literal["tools", "system", "message"]
    raw: bytes
    """Its bytes as they were received, without marks."""
    path: Path
    start: int
    """Offset of its first byte in the body."""
    blocks: int
    """Content blocks in it, as Anthropic's look-back counts them; at least one."""


def elements(body: bytes, wire: Wire, root: Node | None = None) -> tuple[Element, ...]:
    """The elements of a raw request, or of a bare array of messages, in render order.

    ``root`` is the request's place in ``body``, if it was scanned already, or is not all of it.

    Raises:
        WireError: if ``body`` is neither.
    """
    root = scan(body) if root is None else root
    bare = root.kind == "array"
    messages = root if bare else root.get("messages")
    if messages is None or messages.kind != "array":
        raise WireError('no list of messages; send a JSON array, or an object with an array under "messages"')
    out: list[Element] = []
    for key in ("tools", "functions"):
        out += _each(body, root.get(key), wire, "tools", (key,))
    out += _each(body, root.get("system"), wire, "system", ("system",))
    out += _each(body, messages, wire, "message", () if bare else ("messages",))
    return tuple(out)


def request_prefix(body: bytes, wire: Wire) -> bytes:
    """The rendering to compare: when a later request's starts with an earlier one's, the prefix was kept."""
    return b"".join(element.raw + _END for element in elements(body, wire))


def _each(
    body: bytes, node: Node | None, wire: Wire, kind: Literal["tools", "system", "message"], path: Path
) -> Iterator[Element]:
    if node is None or node.kind == "literal":
        return
    if node.kind != "array":
        yield Element(kind, _clean(body, node, wire, 0), path, node.start, 1)
        return
    alone = _only_text(body, node) if kind == "system" and wire == "anthropic" else None
    if alone is not None:
        yield Element(kind, body[alone.start : alone.end], (*path, 0), node.start, 1)
        return
    for index, item in enumerate(node.items):
        raw = _clean(body, item, wire, _DEPTH[kind])
        yield Element(kind, raw, (*path, index), item.start, _blocks(item))


def _blocks(node: Node) -> int:
    content = node.get("content")
    return max(1, len(content.items)) if content is not None else 1


def _clean(body: bytes, node: Node, wire: Wire, depth: int) -> bytes:
    """The node's bytes without its marks."""
    pieces: list[bytes] = []
    at = node.start
    for start, end, new in sorted(_edits(body, node, wire, depth)):
        if end > at:
            pieces += (body[at:start], new)
            at = end
    pieces.append(body[at : node.end])
    return b"".join(pieces)


def _edits(body: bytes, node: Node, wire: Wire, depth: int) -> Iterator[Edit]:
    yield from mark_cuts(node)
    content = node.get("content") if depth else None
    if content is None:
        return
    alone = _only_text(body, content) if wire == "anthropic" and node.get("role") is not None else None
    if alone is not None:
        yield content.start, content.end, body[alone.start : alone.end]
        return
    for item in content.items:
        yield from _edits(body, item, wire, depth - 1)


def mark_cuts(node: Node) -> Iterator[Edit]:
    """Spans that take the marks out of an object, each with one comma."""
    kept_end: int | None = None
    for this, following in zip_longest(node.members, node.members[1:]):
        if this.key not in MARKS:
            kept_end = this.value.end
        elif following is not None:
            yield this.start, following.start, b""
        else:
            yield kept_end or node.members[0].start, this.value.end, b""


def _only_text(body: bytes, content: Node) -> Node | None:
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
