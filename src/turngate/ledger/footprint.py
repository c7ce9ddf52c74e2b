"""Does one request extend another? If not: where it first differs, and why. Pure.

A footprint is what the comparison needs of a request: a few hashes a message. The provider caches a prefix of
tools, system prompt and messages, in this order; so they are compared in this order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from turngate.ledger.canonical import root_key
from turngate.ledger.history import History, Link, Reader

if TYPE_CHECKING:
    from turngate.ledger.edits import Edit
    from turngate.wire import Source, Wire

Reason: TypeAlias = Literal[
    "tools changed",
    "system changed",
    "message edited",
    "message removed",
    "host rewrote history",
    "policy changed",
    "decision lost",
    "epoch",
]

REASONS: Final[Mapping[Reason, str]] = {
    "tools changed": "the tools differ; they stand before everything else",
    "system changed": "the system prompt differs; it stands before all messages",
    "message edited": "this message differs, and what followed it is as it was",
    "message removed": "messages are gone that the request before still had",
    "host rewrote history": "from here on the messages are others",
    "policy changed": "the message is the same, but was shortened by another version of the policy",
    "decision lost": "what the message was sent as is no longer in the store",
    "epoch": "a compaction was declared between the two requests",
}
"""Every reason, in words."""

BEFORE_MESSAGES: Final = -1
"""Place of a break in what stands before the messages."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message of a request, as it was sent."""

    key: bytes
    """Its key in the chain; tells it with all that stands before it."""
    digest: bytes
    """Hash of its canonical form, as the client has it."""
    sent: bytes = b""
    """Hash of what was sent of it, cache marks left out; empty when that is not known any more."""
    policy: str = ""
    """Version of the policy that decided on it."""
    epoch: int = 0
    """The epoch in which it was first sent."""
    lost: bool = False
    """Whether a value of it was recorded and is gone."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """A request, as far as comparing needs it."""

    tools: bytes
    """Hash of the tools."""
    system: bytes
    """Hash of the system prompt; in Chat Completions, of the system messages that stand first."""
    steps: tuple[Step, ...]
    """The other messages, in order."""
    first: int = 0
    """Index of the first step's message in the request."""
    epoch: int = 0
    """The session's epoch at the time."""


@dataclass(frozen=True, slots=True)
class Break:
    """Where and why a request does not extend the one before."""

    reason: Reason
    """Why."""
    index: int
    """Index of the message in the later request; `BEFORE_MESSAGES` for tools and system prompt."""
    detail: str
    """In words."""


def verify(previous: Footprint | Source, following: Footprint | Source, wire: Wire = "chat") -> Break | None:
    """None if the second request extends the first (or equals it), else the first break.

    Args:
        previous: what was sent before: a footprint, or the request itself.
        following: what is sent now.
        wire: the format of requests that are given themselves.

    Raises:
        WireError: a request is not in the format.
    """
    before, after = _footprint(previous, wire), _footprint(following, wire)
    found = _first_break(before, after)
    if found is None:
        return None
    reason, index = found
    if after.epoch > before.epoch:
        reason = "epoch"
    where = "before the messages" if index == BEFORE_MESSAGES else f"messages[{index}]"
    return Break(reason, index, f"{where}: {REASONS[reason]}")


def _first_break(before: Footprint, after: Footprint) -> tuple[Reason, int] | None:
    if before.tools != after.tools:
        return "tools changed", BEFORE_MESSAGES
    if before.system != after.system:
        return "system changed", BEFORE_MESSAGES
    common = common_steps(before.steps, after.steps)
    for at in range(common):
        if _sent_otherwise(before.steps[at], after.steps[at]):
            return _why_otherwise(before.steps[at], after.steps[at]), after.first + at
    if common == len(before.steps):
        return None
    return _why_parted(before.steps, after.steps, common), after.first + common


def trace(history: History, sent: Mapping[bytes, Sent], *, epoch: int = 0) -> Footprint:
    """The footprint of a request; `sent` has what is ours in its messages, by key."""
    steps = tuple(_step(link, sent.get(link.key, _AS_IT_CAME)) for link in history.links)
    first = len(history.nodes) - len(history.links)
    return Footprint(history.tools, history.system, steps, first, epoch)


@dataclass(frozen=True, slots=True)
class Sent:
    """What is known of how a message is sent."""

    edits: tuple[Edit, ...] = ()
    """What is ours in it; none: it is sent as it came."""
    policy: str = ""
    """Version of the policy that decided."""
    epoch: int = 0
    """The epoch in which it was first sent."""
    lost: bool = False
    """Whether a value of it was recorded and is gone."""


_AS_IT_CAME: Final = Sent()


def common_steps(before: Sequence[Step], after: Sequence[Step]) -> int:
    """How many steps two chains share. A key stands for all before it, so it is searched by halves."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[middle - 1].key == after[middle - 1].key:
            low = middle
        else:
            high = middle - 1
    return low


def _footprint(given: Footprint | Source, wire: Wire) -> Footprint:
    if isinstance(given, Footprint):
        return given
    return trace(Reader(wire).read(given, root_key("", wire)), {})


def _step(link: Link, sent: Sent) -> Step:
    whole = link.spelled
    if sent.edits:
        parts = [part for e in sent.edits for part in (e.op, repr(e.path), e.text)]
        joined = "\0".join(parts).encode("utf-8", "surrogatepass")
        whole = hashlib.sha256(link.spelled + joined).digest()[: len(link.spelled)]
    return Step(link.key, link.digest, whole, sent.policy, sent.epoch, sent.lost)


def _sent_otherwise(before: Step, after: Step) -> bool:
    return before.sent != after.sent and bool(before.sent) and bool(after.sent)


def _why_otherwise(before: Step, after: Step) -> Reason:
    """The message is the same and its bytes are not."""
    if after.lost and not before.lost:
        return "decision lost"
    return "policy changed" if before.policy != after.policy else "message edited"


def _why_parted(before: Sequence[Step], after: Sequence[Step], at: int) -> Reason:
    old = [step.digest for step in before[at:]]
    new = [step.digest for step in after[at:]]
    if not new:
        return "message removed"
    if new[1 : len(old)] == old[1:]:
        return "message edited"
    gone = next((n for n in range(1, len(old)) if new[: len(old) - n] == old[n:]), 0)
    return "message removed" if gone else "host rewrote history"
