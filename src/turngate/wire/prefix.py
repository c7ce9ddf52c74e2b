"""A request as the provider's prefix cache sees it: tools, system, messages; raw bytes, no cache marks.

Two requests share a prefix as far as their elements are equal. Marks do not count: where a client puts its
breakpoints moves from turn to turn, and what is cached does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from turngate.wire.layout import (
    LAYOUT,
    MARKS,
    MESSAGE_DEPTH,
    mark_cuts,
    message_nodes,
    only_text,
    without_marks,
)
from turngate.wire.scan import Node, Path, find, scan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.wire.view import Wire

__all__ = ["MARKS", "Element", "elements", "head", "mark_cuts", "request_prefix"]

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
    nodes = message_nodes(root, wire)
    base: Path = () if root.kind == "array" else (LAYOUT[wire].messages,)
    listed = not base or find(root, base).kind == "array"  # else Responses: a string
    out = list(head(body, wire, root))
    for index, node in enumerate(nodes):
        path = (*base, index) if listed else base
        raw = without_marks(body, node, wire, MESSAGE_DEPTH)
        out.append(Element("message", raw, path, node.start, _blocks(node)))
    return tuple(out)


def head(body: bytes, wire: Wire, root: Node) -> Iterator[Element]:
    """The elements that stand before the messages."""
    for key in LAYOUT[wire].tools:
        yield from _each(body, root.get(key), wire, "tools", (key,))
    for key in LAYOUT[wire].system:
        yield from _each(body, root.get(key), wire, "system", (key,))


def request_prefix(body: bytes, wire: Wire) -> bytes:
    """The rendering to compare: when a later request's starts with an earlier one's, the prefix was kept."""
    return b"".join(element.raw + _END for element in elements(body, wire))


def _each(
    body: bytes, node: Node | None, wire: Wire, kind: Literal["tools", "system"], path: Path
) -> Iterator[Element]:
    if node is None or node.kind == "literal":
        return
    if node.kind != "array":
        yield Element(kind, without_marks(body, node, wire, 0), path, node.start, 1)
        return
    alone = only_text(body, node) if kind == "system" and wire == "anthropic" else None
    if alone is not None:
        yield Element(kind, body[alone.start : alone.end], (*path, 0), node.start, 1)
        return
    for index, item in enumerate(node.items):
        raw = without_marks(body, item, wire, 0)
        yield Element(kind, raw, (*path, index), item.start, _blocks(item))


def _blocks(node: Node) -> int:
    content = node.get("content") or node.get("parts")
    return max(1, len(content.items)) if content is not None else 1
