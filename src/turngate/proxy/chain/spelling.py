"""The bytes of a message as it goes upstream: what was sent before, with the cache marks of today. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from turngate.errors import WireError
from turngate.ledger.edits import ByteEdit, byte_edits, splice_bytes
from turngate.wire.layout import MARKS, mark_cuts
from turngate.wire.scan import Node, Path, scan, text_of

if TYPE_CHECKING:
    from turngate.proxy.chain.held import Held

#: Levels of content below a message that carry marks: its blocks, and what a tool result holds.
_DEPTH: Final = 2
#: How marks begin, unless a client escapes letters, which costs nothing but their place.
_MARK_KEYS: Final = tuple(f'"{mark}"'.encode() for mark in sorted(MARKS))
#: Fields whose elements carry marks, in any wire.
_NESTED: Final = ("content", "output")


def spelled_out(body: bytes, node: Node, spelled: bytes, held: Held) -> bytes:
    """What goes upstream in the place of a message; empty where nothing does.

    Args:
        body: the client's request.
        node: the message in it.
        spelled: hash of the message's bytes, marks left out.
        held: how it is sent.

    Raises:
        WireError: a value has no place in the message.
    """
    raw = body[node.start : node.end]
    if held.sent is None or (spelled == held.spelled and not held.own):
        if held.sent is not None and held.edits and not _may_have_marks(raw):
            raw = held.sent
        elif held.edits:
            raw = _spliced(body, node, tuple(byte_edits(body, node, held.edits, native=False)))
    else:
        raw = with_marks(held.sent, marks(body, node)) if held.sent else b""
    return b",".join(part for part in (held.before, raw) if part)


def marks(body: bytes, node: Node) -> list[tuple[Path, bytes]]:
    """The cache marks of a message: the object that has one (as if every text stood in a block), and it."""
    return list(_marks(body, node, (), _DEPTH))


def with_marks(raw: bytes, wanted: Sequence[tuple[Path, bytes]]) -> bytes:
    """A message's bytes with these marks, as far as their places are in it."""
    if not wanted:
        return raw
    root = scan(raw)
    return splice_bytes(raw, [edit for path, mark in wanted if (edit := _insertion(raw, root, path, mark))])


def unmarked(body: bytes, node: Node) -> bytes:
    """A message's bytes without its marks; everything else as the client spells it."""
    raw = body[node.start : node.end]
    if not _may_have_marks(raw):
        return raw
    return _spliced(body, node, list(_apart(sorted(_cuts(node, _DEPTH)))))


def _apart(cuts: Sequence[ByteEdit]) -> Iterator[ByteEdit]:
    """Of cuts that overlap (two marks in one object) the first, and what the others cut beyond it."""
    done = 0
    for start, end, new in cuts:
        if end > done:
            yield max(start, done), end, new
            done = end


def _cuts(node: Node, depth: int) -> Iterator[ByteEdit]:
    yield from mark_cuts(node)
    for name in _NESTED if depth else ():
        for item in _items(node.get(name)):
            yield from _cuts(item, depth - 1)


def _may_have_marks(raw: bytes) -> bool:
    return any(mark in raw for mark in _MARK_KEYS)


def _spliced(body: bytes, node: Node, edits: Sequence[ByteEdit]) -> bytes:
    moved = [(start - node.start, end - node.start, new) for start, end, new in edits]
    return splice_bytes(body[node.start : node.end], moved)


def _marks(body: bytes, node: Node, path: Path, depth: int) -> Iterator[tuple[Path, bytes]]:
    for member in node.members:
        if member.key in MARKS and body[member.value.start : member.value.end] != b"null":
            yield path, body[member.start : member.value.end]
    for name in _NESTED if depth else ():
        for index, item in enumerate(_items(node.get(name))):
            yield from _marks(body, item, (*path, name, index), depth - 1)


def _items(node: Node | None) -> list[Node]:
    return node.items if node is not None else []


def _insertion(raw: bytes, root: Node, path: Path, mark: bytes) -> ByteEdit | None:
    """The edit that puts a mark into the object at `path`; None where there is none."""
    node = root
    for depth, step in enumerate(path):
        child = node.get(step) if isinstance(step, str) else _item(node, step)
        if child is None:
            return _as_block(raw, node, mark) if path[depth:] == (0,) else None
        node = child
    if node.kind != "object":
        return None
    comma = b"," if node.members else b""
    return node.end - 1, node.end - 1, comma + mark


def _as_block(raw: bytes, node: Node, mark: bytes) -> ByteEdit | None:
    """A string cannot carry a mark; as the one block that it stands for it can."""
    try:
        text_of(raw, node)
    except WireError:
        return None
    if not mark.startswith(b'"cache_control"'):
        # OpenAI's marks stand on blocks of other types.
        return None
    text = raw[node.start : node.end]
    return node.start, node.end, b'[{"type":"text","text":' + text + b"," + mark + b"}]"


def _item(node: Node, index: int) -> Node | None:
    return node.items[index] if 0 <= index < len(node.items) else None
