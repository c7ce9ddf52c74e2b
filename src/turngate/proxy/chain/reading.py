"""A request's places: its messages, and what stands beside them. Read on from where the one before agrees.

An agent sends its whole history each time. All but the end of it is, byte for byte, what stood in the request
before; so only what follows the common beginning is scanned. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from turngate.errors import WireError
from turngate.proxy.jsontext import loads
from turngate.wire import Wire
from turngate.wire.layout import LAYOUT
from turngate.wire.scan import Node, scan, scan_value, text_of

_SPACE: Final = re.compile(rb"[ \t\n\r]*+")


@dataclass(frozen=True, slots=True)
class Beside:
    """A field of the body that is not the list of messages."""

    start: int
    """Offset of the value's first byte."""
    end: int
    """Offset after its last byte."""
    kind: str
    """Its JSON type."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A request by its places."""

    body: bytes
    """The request as it came."""
    wire: Wire
    """Its format."""
    start: int
    """Offset of the list of messages."""
    end: int
    """Offset after it."""
    nodes: tuple[Node, ...]
    """The messages."""
    ends: tuple[int, ...]
    """Offset after each of them."""
    fields: Mapping[str, Beside]
    """The other fields; of duplicates the last."""

    @property
    def single(self) -> bool:
        """Whether the messages are a single string (Responses' `input`)."""
        return self.body[self.start : self.start + 1] == b'"'

    def raw(self, index: int) -> bytes:
        """The bytes of a message."""
        node = self.nodes[index]
        return self.body[node.start : node.end]

    def message(self, index: int) -> Any:
        """The value of a message."""
        return loads(self.raw(index))

    def field(self, name: str) -> bytes:
        """The bytes of another field; empty where it is not there."""
        place = self.fields.get(name)
        return b"" if place is None else self.body[place.start : place.end]

    def first_field(self, names: tuple[str, ...]) -> tuple[str, Beside] | None:
        """The first of these fields that is there."""
        return next(((name, self.fields[name]) for name in names if name in self.fields), None)


def read(body: bytes, wire: Wire) -> Reading:
    """Read a request from its first byte.

    Raises:
        WireError: it is not a JSON object with a list of messages.
    """
    top = scan(body)
    if top.kind != "object":
        raise WireError(f"the body is not an object but a {top.kind}; send an object with {_name(wire)!r}")
    found = top.get(_name(wire))
    if found is None or found.kind not in _listing(wire):
        raise WireError(f"{_name(wire)} is missing or not an array; send the conversation there")
    nodes = (found,) if found.kind == "string" else tuple(found.items)
    fields = {
        member.key: Beside(member.value.start, member.value.end, member.value.kind)
        for member in top.members
        if member.value is not found
    }
    return Reading(body, wire, found.start, found.end, nodes, tuple(node.end for node in nodes), fields)


def read_on(body: bytes, before: Reading, common: int) -> Reading:
    """Read a request whose first `common` messages, and all before them, are those of `before`.

    Raises:
        WireError: as `read`.
    """
    nodes = list(before.nodes[:common])
    at = nodes[-1].end
    while True:
        at = _skip(body, at)
        sign = body[at : at + 1]
        if sign == b"]":
            break
        if sign != b",":
            raise WireError(f"not JSON: a comma or a closing bracket was expected at byte {at}")
        node, at = scan_value(body, at + 1)
        nodes.append(node)
    end = at + 1
    head = {name: place for name, place in before.fields.items() if place.end <= before.start}
    ends = (*before.ends[:common], *(node.end for node in nodes[common:]))
    return Reading(body, before.wire, before.start, end, tuple(nodes), ends, head | _tail(body, end, before))


def common_messages(body: bytes, before: Reading) -> int:
    """How many messages of `before` stand in `body` at the same place, with all that precedes them."""
    old, ends = before.body, before.ends
    if not ends or before.single:
        return 0
    # A message is over where another sign follows it; the last one's sign may differ.
    if len(body) > ends[-1] and body[: ends[-1]] == old[: ends[-1]]:
        return len(ends)
    if body[: ends[0]] != old[: ends[0]]:
        return 0
    low, high = ends[0], min(len(body), ends[-1])
    while low < high:
        middle = (low + high + 1) // 2
        if body[low:middle] == old[low:middle]:
            low = middle
        else:
            high = middle - 1
    return bisect_right(ends, low)


def _tail(body: bytes, at: int, before: Reading) -> dict[str, Beside]:
    """The fields behind the list."""
    if body[at:] == before.body[before.end :]:
        by = at - before.end
        return {
            name: Beside(place.start + by, place.end + by, place.kind)
            for name, place in before.fields.items()
            if place.start >= before.end
        }
    return dict(_fields(body, at))


def _fields(body: bytes, at: int) -> Iterator[tuple[str, Beside]]:
    while True:
        at = _skip(body, at)
        sign = body[at : at + 1]
        if sign == b"}":
            break
        if sign != b",":
            raise WireError(f"not JSON: a comma or a closing bracket was expected at byte {at}")
        key, at = scan_value(body, at + 1)
        at = _skip(body, at)
        if body[at : at + 1] != b":":
            raise WireError(f"not JSON: a colon was expected at byte {at}")
        value, at = scan_value(body, at + 1)
        yield text_of(body, key), Beside(value.start, value.end, value.kind)
    if _skip(body, at + 1) != len(body):
        raise WireError(
            f"not JSON: something follows the value at byte {at + 1}; send exactly one JSON value"
        )


def _skip(body: bytes, at: int) -> int:
    found = _SPACE.match(body, at)
    return found.end() if found else at


def _name(wire: Wire) -> str:
    return LAYOUT[wire].messages


def _listing(wire: Wire) -> tuple[str, ...]:
    return ("array", "string") if wire == "responses" else ("array",)
