"""What is known of how a message is sent, and its form in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from turngate.ledger.edits import Edit
from turngate.proxy.chain.replies import Reply
from turngate.store import to_bytes, to_text
from turngate.store.ledger import EditRow
from turngate.store.ledger import Held as Row

#: Ops of the rows. A value in a tool result is the ledger's own "replace".
_REPLACE: Final = "replace"
_SENT: Final = "sent"
_BEFORE: Final = "before"
_HOLD: Final = "hold"
_TOOL: Final = "tool"
_CALL: Final = "call"
#: In the path of a "sent" row: the bytes are always ours, however the client spells the message.
_OWN: Final = "own"


@dataclass(frozen=True, slots=True)
class Held:
    """How one message is sent, wherever it comes again in this place of this history."""

    spelled: bytes = b""
    """Hash of the client's bytes as they first came, cache marks left out."""
    edits: tuple[Edit, ...] = ()
    """Values that stand in place of the client's while it spells the message so."""
    sent: bytes | None = None
    """The bytes that were sent, cache marks left out; None: not known, the client's go out."""
    own: bool = False
    """Whether `sent` goes out however the client spells the message: something of ours is inside it."""
    before: bytes = b""
    """Messages that the upstream produced or was given, and the client never saw; they go before it."""
    hold: bytes = b""
    """Results of calls in it that the client never saw; they go with the next message."""
    tool: bytes = b""
    """In the first message of a history: our tool as it is offered; empty where it is not."""
    policy: str = ""
    """Version of the policy that decided."""
    lost: bool = False
    """Whether a value of it was recorded and is gone."""

    @property
    def weight(self) -> int:
        """Bytes that it takes in memory, about."""
        return 900 + len(self.sent or b"") + len(self.before) + sum(len(edit.text) for edit in self.edits)


def to_rows(held: Held) -> tuple[tuple[EditRow, ...], dict[str, bytes]]:
    """The rows of a message, and the values that they name."""
    values: dict[str, bytes] = {}
    rows: list[EditRow] = []
    for op, path, value, origin in _parts(held):
        name = hashlib.sha256(value).hexdigest()
        values[name] = value
        rows.append(EditRow(op, path, name, origin))
    return tuple(rows), values


def from_row(row: Row, values: Mapping[str, bytes]) -> Held:
    """What the store holds of a message."""
    there = [edit for edit in row.edits if edit.sha256 in values]
    plain = {edit.op: values[edit.sha256] for edit in there}
    sent = next((edit.path for edit in row.edits if edit.op == _SENT), ())
    return Held(
        spelled=bytes.fromhex(str(sent[0])) if sent else b"",
        edits=_edits(there, values),
        sent=plain.get(_SENT),
        own=_OWN in sent,
        before=plain.get(_BEFORE, b""),
        hold=plain.get(_HOLD, b""),
        tool=plain.get(_TOOL, b""),
        policy=row.policy,
        lost=len(there) < len(row.edits),
    )


def _edits(rows: Sequence[EditRow], values: Mapping[str, bytes]) -> tuple[Edit, ...]:
    return tuple(
        Edit("replace", row.path, to_text(values[row.sha256]), row.origin)
        for row in rows
        if row.op == _REPLACE
    )


def _parts(held: Held) -> Iterator[tuple[str, tuple[str | int, ...], bytes, str]]:
    for edit in held.edits:
        yield _REPLACE, edit.path, to_bytes(edit.text), edit.origin
    if held.sent is not None:
        path = (held.spelled.hex(), _OWN) if held.own else (held.spelled.hex(),)
        yield _SENT, path, held.sent, ""
    for op, value in ((_BEFORE, held.before), (_HOLD, held.hold), (_TOOL, held.tool)):
        if value:
            yield op, (), value, ""


def reply_rows(reply: Reply) -> tuple[tuple[EditRow, ...], dict[str, bytes]]:
    """The rows of what a client did not see of a reply, and the values that they name."""
    parts: tuple[tuple[str, tuple[int, ...], bytes], ...] = (
        (_BEFORE, (reply.chars, reply.blocks, reply.total), reply.before),
        (_CALL, (reply.index,), reply.call),
        (_HOLD, (), reply.results),
    )
    named = [(op, path, hashlib.sha256(value).hexdigest(), value) for op, path, value in parts if value]
    return tuple(EditRow(op, path, name) for op, path, name, _ in named), {
        n: value for _, _, n, value in named
    }


def reply_from(row: Row, values: Mapping[str, bytes]) -> Reply | None:
    """The reply of these rows; None where a value of it is gone."""
    if any(edit.sha256 not in values for edit in row.edits):
        return None
    by_op = {edit.op: ([int(step) for step in edit.path], values[edit.sha256]) for edit in row.edits}
    (chars, blocks, total), before = by_op.get(_BEFORE, ([0, 0, 0], b""))
    index, call = by_op.get(_CALL, ([0], b""))
    return Reply(before, chars, blocks, total, call, index[0], by_op.get(_HOLD, ([], b""))[1])
