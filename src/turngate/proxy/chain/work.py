"""One request on its way through the engine: its messages in the chain, and what is settled of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from turngate.errors import WireError
from turngate.ledger import child_key, digest
from turngate.ledger.history import SYSTEM_ROLES, History, Link
from turngate.proxy.chain import tool
from turngate.proxy.chain.replies import trimmed
from turngate.proxy.chain.spelling import spelled_out, unmarked
from turngate.wire.layout import role_of

if TYPE_CHECKING:
    from turngate.ledger import Break
    from turngate.proxy.chain.ask import Ask
    from turngate.proxy.chain.held import Held
    from turngate.proxy.chain.memory import Snapshot
    from turngate.proxy.chain.reading import Reading
    from turngate.store.ledger import Call as CallKey
    from turngate.store.ledger import DecisionRow

_MAX_ROLE_CHARS: Final = 32


@dataclass(slots=True)
class Work:
    """One request."""

    ask: Ask
    root: bytes
    """Key above the first message."""
    reading: Reading
    before: Snapshot | None
    """The request that it is read on from."""
    common: int
    """Messages that both have."""
    first: int
    """Index of the first message of the chain; system messages before it stand beside it, each by itself."""
    keys: tuple[bytes, ...]
    """Key of each message."""
    digests: tuple[bytes, ...]
    roles: tuple[str, ...]
    links: tuple[Link, ...]
    """The messages of the chain that follow the common ones."""
    held: dict[bytes, Held] = field(default_factory=dict)
    """By key: what is settled."""
    new: dict[bytes, Held] = field(default_factory=dict)
    """By key: what is decided now."""
    calls: dict[CallKey, DecisionRow] = field(default_factory=dict)
    """Decisions on texts, made now."""
    tool: bytes = b""
    """Our tool as it stands in the request; empty where it does not."""
    rooted_tool: bytes = b""
    """Our tool as the conversation is offered it."""
    policy: str = ""
    """Version of the policy at the conversation's root."""
    session: str = ""
    """The conversation's session in the store."""
    broken: Break | None = None
    """How the request fails to extend the one before."""
    faults: list[str] = field(default_factory=list)
    degraded: bool = False

    @property
    def fresh(self) -> tuple[Link, ...]:
        """Messages that nothing is known of."""
        return tuple(link for link in self.links if link.key not in self.held)

    @property
    def first_key(self) -> bytes:
        """Key of the first message of the chain; empty where there is none."""
        return self.keys[self.first] if self.first < len(self.keys) else b""

    def parent_role(self, link: Link) -> str:
        """Role of the message before it; "" before the first."""
        return self.roles[link.index - 1] if link.index else ""

    def history(self) -> History:
        """The same as the ledger reads it, from the calls on that the first new message answers."""
        start = self.common
        while start > 0 and not self._begins_turn(start):
            start -= 1
        earlier = tuple(
            Link(self.keys[at], b"", self.digests[at], b"", self.roles[at], at, self.reading.nodes[at])
            for at in range(start, self.common)
        )
        reading = self.reading
        return History(reading.body, reading.wire, reading.nodes, (*earlier, *self.links), b"", b"", "")

    def _begins_turn(self, at: int) -> bool:
        """Whether a turn of the assistant begins there."""
        is_assistant = at < len(self.roles) and self.roles[at] == "assistant"
        return is_assistant and (at == 0 or self.roles[at - 1] != "assistant")


def begin(ask: Ask, root: bytes, reading: Reading, before: Snapshot | None, common: int) -> Work:
    """A request with its messages' keys.

    Raises:
        WireError: a message is not one.
    """
    facts = [_facts(reading, at) for at in range(common, len(reading.nodes))]
    roles = (*(before.roles[:common] if before else ()), *(role for role, _, _ in facts))
    first = _leading(roles) if ask.wire == "chat" else 0
    keys = list(before.keys[:common] if before else ())
    digests = (*(before.digests[:common] if before else ()), *(own for _, own, _ in facts))
    links: list[Link] = []
    for at in range(common, len(reading.nodes)):
        _, own, spelled = facts[at - common]
        parent = keys[at - 1] if at > first else root
        key = child_key(parent, own)
        keys.append(key)
        links.append(Link(key, parent, own, spelled, roles[at], at, reading.nodes[at]))
    return Work(ask, root, reading, before, common, first, tuple(keys), digests, roles, tuple(links))


def runs(work: Work) -> Iterator[list[Link]]:
    """The assistant's turns among the new messages: those that follow one of somebody else."""
    run: list[Link] = []
    fresh = {link.key for link in work.fresh}
    for link in work.links:
        if link.role == "assistant" and link.key in fresh and (run or work.parent_role(link) != "assistant"):
            run.append(link)
            continue
        if run:
            yield run
        run = []
    if run:
        yield run


@dataclass(frozen=True, slots=True)
class Composed:
    """A request's bytes as they are to be sent."""

    out: bytes
    ends: tuple[int, ...]
    """Offset after each message."""
    single: tuple[int, int] | None
    """Place of a conversation that is a single string."""


def compose(work: Work) -> Composed:
    """The request with what is settled of its messages, and our tool where it is offered."""
    reading, body = work.reading, work.reading.body
    place = tool.offer_place(reading) if work.tool else None
    pieces, ends = _beginning(work, place)
    length = sum(map(len, pieces))
    for at in range(work.common, len(reading.nodes)):
        node = reading.nodes[at]
        before = reading.ends[at - 1] if at else reading.start + (not reading.single)
        piece = _piece(work, at)
        if piece:
            pieces += (body[before : node.start], piece)
            length += node.start - before + len(piece)
        ends.append(length)
    rest = reading.ends[-1] if reading.nodes else reading.start + 1
    pieces.append(_with_tool(work, rest, len(body), place))
    out = b"".join(pieces)
    if out == body:
        out = body
    single = (ends[-1] - (reading.end - reading.start), ends[-1]) if reading.single else None
    return Composed(out, tuple(ends), single)


def sent(work: Work, at: int) -> bytes:
    """What is sent in the place of a message that is not new, with what was put before it."""
    before = work.before
    if before is not None and at < work.common:
        start = before.out_ends[at - 1] if at else _head_bytes(before)
        return before.out[start : before.out_ends[at]].strip(b", \t\r\n")
    return _piece(work, at)


def _beginning(work: Work, place: int | None) -> tuple[list[bytes], list[int]]:
    """What stands before the first message that is not common, and the ends of those before it."""
    before, common = work.before, work.common
    if before is not None and common and before.tool == work.tool:
        ends = before.out_ends[:common]
        return [before.out[: ends[-1]]], list(ends)
    # The common messages stay as they are where the tool came or went before them.
    head = _with_tool(work, 0, work.reading.start + (not work.reading.single), place)
    if before is None or not common:
        return [head], []
    old = _head_bytes(before)
    ends = tuple(end + len(head) - old for end in before.out_ends[:common])
    return [head, before.out[old : before.out_ends[common - 1]]], list(ends)


def _head_bytes(snapshot: Snapshot) -> int:
    """Where the messages begin in what was sent."""
    start = snapshot.reading.start + (not snapshot.reading.single)
    place = tool.offer_place(snapshot.reading) if snapshot.tool else None
    return start + (len(snapshot.tool) + 1 if place is not None and place < start else 0)


def _with_tool(work: Work, start: int, end: int, place: int | None) -> bytes:
    body = work.reading.body
    if place is None or not start <= place < end:
        return body[start:end]
    return body[start:place] + b"," + work.tool + body[place:end]


def _piece(work: Work, at: int) -> bytes:
    node, key = work.reading.nodes[at], work.keys[at]
    held = work.held.get(key)
    raw = work.reading.raw(at)
    if held is None:
        return raw
    spelled = work.links[at - len(work.reading.nodes) + len(work.links)].spelled
    try:
        return spelled_out(work.reading.body, node, spelled, held)
    except WireError as fault:
        work.faults.append(str(fault))
        return raw


def _facts(reading: Reading, at: int) -> tuple[str, bytes, bytes]:
    """(role, digest, hash of the bytes without marks) of a message."""
    value: Any = reading.message(at)
    if isinstance(value, str):
        value = {"role": "user", "content": value}
    role = role_of(value, reading.wire)
    bare = unmarked(reading.body, reading.nodes[at])
    if role == "assistant":
        value = trimmed(value)
    role = role[:_MAX_ROLE_CHARS].encode("ascii", "replace").decode()
    return role, digest(value), hashlib.sha256(bare).digest()[:16]


def _leading(roles: Sequence[str]) -> int:
    return next((at for at, role in enumerate(roles) if role not in SYSTEM_ROLES), len(roles))
