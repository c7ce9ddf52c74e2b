"""The ledger itself: known messages are sent as they were, new ones as today's policy has it, recorded first.

What a message is sent as depends only on what stands before it and on what is recorded; so the output for the
beginning of a history is the beginning of the output for the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from turngate.errors import StoreError, WireError
from turngate.ledger import deciding
from turngate.ledger.canonical import root_key
from turngate.ledger.edits import Edit, Op, byte_edits, splice_bytes
from turngate.ledger.footprint import Break, Footprint, Sent, trace
from turngate.ledger.history import History, Link, as_bytes
from turngate.ledger.memory import Memory
from turngate.ledger.past import LOOK_BACK, Past
from turngate.ledger.policy import Policy
from turngate.store import to_bytes, to_text
from turngate.store.ledger import DecisionRow, EditRow, Entry, NodeRow, Page, RequestRow

if TYPE_CHECKING:
    from turngate.ledger.edits import ByteEdit
    from turngate.store import Store
    from turngate.store.ledger import Call, LedgerStore
    from turngate.wire import Source, Wire

_OPS: Mapping[str, Op] = {"replace": "replace", "append": "append", "note": "note"}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as it is to be sent."""

    body: bytes
    """The bytes; the very object given when nothing is ours in it."""
    footprint: Footprint | None = None
    """For comparing with other requests; None when the request could not be read."""
    broken: Break | None = None
    """How it fails to extend what the session sent before."""
    replayed: int = 0
    """Messages sent before, with something of ours in them."""
    decided: int = 0
    """Messages that were new at their place."""
    lost: int = 0
    """Messages whose recorded values are gone, so that they are sent as they came."""
    added_bytes: int = 0
    """Bytes of UTF-8 that stand beside user messages in the whole request."""
    new_added_bytes: int = 0
    """The part of these that this request adds."""
    told: Mapping[bytes, frozenset[str]] = field(default_factory=dict)
    """By key of a message beside which something is said in this session: the tags of what is said."""
    faults: tuple[str, ...] = ()
    """What went wrong; each time the client's own bytes are sent."""


@dataclass(slots=True)
class _Work:
    """One request on its way."""

    history: History
    epoch: int
    sent: dict[bytes, Sent] = field(default_factory=dict)
    """By key: what is settled."""
    attached: dict[bytes, tuple[Edit, ...]] = field(default_factory=dict)
    """By key: what is settled for the session."""
    fresh: list[Link] = field(default_factory=list)
    """Messages that are not recorded."""
    new: dict[bytes, tuple[Edit, ...]] = field(default_factory=dict)
    """By key: what is decided now; to be recorded."""
    new_attached: dict[bytes, tuple[Edit, ...]] = field(default_factory=dict)
    """The same for the session."""
    calls: dict[Call, DecisionRow] = field(default_factory=dict)
    """Decisions made now."""
    mended: dict[str, bytes] = field(default_factory=dict)
    """Values that were lost and came out the same again, by hash."""
    faults: list[str] = field(default_factory=list)


class Ledger:
    """What one session, or one scope without sessions, sends in one wire.

    Cheap to make, and not for two threads at once; any number of ledgers may share a store and a `Memory`, in
    any number of processes.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        *,
        scope: str | bytes,
        wire: Wire,
        session: str = "",
        policy: Policy | None = None,
        memory: Memory | None = None,
    ) -> None:
        """Nothing is read yet.

        Args:
            store: gives the store, or raises a `StoreError`.
            scope: who may share what was sent: in a proxy a keyed hash of the credential.
            wire: the format of the requests.
            session: the session's id; "": not known, so that nothing is added beside user messages.
            policy: what becomes of new messages; None: they are recorded as they come.
            memory: shared with other ledgers of the process.
        """
        self._store = store
        self._root = root_key(scope, wire)
        self._session = session
        self._owner = session or f"scope:{self._root.hex()}"
        self._policy = policy or Policy()
        self._memory = memory or Memory()
        self._reader = self._memory.reader(wire)
        self._past = Past()
        self._shown: set[str] = set()

    def apply(self, source: Source, *, native: bool = False, epoch: int = 0) -> bytes:
        """The bytes to send for a request or a list of messages; see `prepare`."""
        return self.prepare(source, native=native, epoch=epoch).body

    def prepare(self, source: Source, *, native: bool = False, epoch: int = 0) -> Prepared:
        """A request as it is to be sent; whatever is new in it is on disk before this returns.

        Nothing is raised for a request that cannot be read, nor for a fault of the store or of the policy:
        then the client's bytes go out, and `faults` says why.

        Args:
            source: the request's body, the same as values, or a bare list of messages.
            native: whether the model takes one-shot system messages (`turngate.turn.native_note`).
            epoch: how many compactions of the session were declared so far.
        """
        body = as_bytes(source)
        try:
            work = _Work(self._reader.read(body, self._root), epoch)
        except WireError as fault:
            return Prepared(body, faults=(str(fault),))
        try:
            store = self._store()
            self._recall(work, store)
            self._decide(work, store)
            broken = self._record(work, store)
        except StoreError as fault:
            broken = None
            self._pass_new(work, fault)
        return self._finish(work, broken, native=native)

    def _recall(self, work: _Work, store: Store) -> None:
        """Settle what was sent before, from memory or from the store."""
        self._remembered(work)
        missing = [link.key for link in work.history.links if self._is_unknown(work, link)]
        if missing:
            self._believe(work, store.ledger.load(missing, session=self._session), store)
        work.fresh = [link for link in work.history.links if link.key not in work.sent]

    def _remembered(self, work: _Work) -> None:
        for link in work.history.links:
            sent = self._memory.sent.get(link.key)
            if sent is not None:
                work.sent[link.key] = sent
            added = self._memory.attached.get((self._session, link.key)) if self._adds_to(link) else None
            if added is not None:
                work.attached[link.key] = added

    def _adds_to(self, link: Link) -> bool:
        return bool(self._session) and link.role == "user"

    def _is_unknown(self, work: _Work, link: Link) -> bool:
        return link.key not in work.sent or (self._adds_to(link) and link.key not in work.attached)

    def _believe(self, work: _Work, page: Page, store: Store) -> None:
        """Settle what the store holds."""
        by_key = {link.key: link for link in work.history.links}
        for key, node in page.nodes.items():
            if key in work.sent or key not in by_key:
                continue
            edits, lost = _edits(node.edits, page.values)
            if lost:
                edits = self._mend(work, by_key[key], edits, lost, store)
            sent = Sent(edits, node.policy, node.epoch, lost=len(edits) < len(node.edits))
            work.sent[key] = sent
            if not sent.lost:
                self._memory.sent.put(key, sent)
        for key, rows in page.attached.items():
            edits, lost = _edits(rows, page.values)
            work.attached[key] = edits
            if lost:
                work.faults.append("what was added to a message is no longer in the store; it is left out")
            self._memory.attached.put((self._session, key), edits)

    def _mend(
        self, work: _Work, link: Link, kept: tuple[Edit, ...], lost: Sequence[EditRow], store: Store
    ) -> tuple[Edit, ...]:
        """The edits that are left, with those that come out as they were when they are decided again."""
        again = deciding.decide(work.history, [link], self._policy, store, self._root).edits.get(link.key, ())
        found = {(edit.path, deciding.sha256_of(edit.text)): edit for edit in again}
        mended = [replace(e, origin=row.origin) for row in lost if (e := found.get((row.path, row.sha256)))]
        work.mended |= {deciding.sha256_of(edit.text): to_bytes(edit.text) for edit in mended}
        return tuple(sorted((*kept, *mended), key=lambda edit: repr(edit.path)))

    def _decide(self, work: _Work, store: Store) -> None:
        """Decide on what is new; what went out unrecorded before stays as it went out."""
        gone = self._memory.unrecorded
        open_links = [link for link in work.fresh if not gone.get(("", link.key))]
        decided = deciding.decide(work.history, open_links, self._policy, store, self._root)
        work.faults += decided.faults
        work.calls = decided.calls
        work.new = {link.key: decided.edits.get(link.key, ()) for link in work.fresh}
        told = _tags(work.attached)
        last = work.history.links[-1] if work.history.links else None
        for link in work.history.links:
            if self._adds_to(link) and link.key not in work.attached:
                asked = link is last and not gone.get((self._session, link.key))
                work.new_attached[link.key] = (
                    deciding.attend(work.history, told, self._policy, store, work.faults) if asked else ()
                )
        self._name_origins(work, store)

    def _name_origins(self, work: _Work, store: Store) -> None:
        """Note which originals the new markers stand for."""
        every = [edit for edits in work.new.values() for edit in edits if not edit.origin]
        origins = deciding.with_origins(every, store, self._session)
        if origins:
            work.new = {
                key: tuple(deciding.named(edit, origins) for edit in edits) for key, edits in work.new.items()
            }
            by_value = {deciding.sha256_of(e.text): e.origin for edits in work.new.values() for e in edits}
            work.calls = {
                call: replace(row, origin=by_value.get(row.sha256, row.origin))
                for call, row in work.calls.items()
            }

    def _record(self, work: _Work, store: Store) -> Break | None:
        """Write what is new, settle it by what then stands in the store, and compare with the past."""
        footprint = trace(work.history, self._outcome(work), epoch=work.epoch)
        rows = store.ledger.requests(self._owner, limit=LOOK_BACK)
        broken = self._past.find_break(rows, footprint, store.ledger) if self._session else None
        request = self._request(work, footprint, broken, store)
        again = not (work.new or work.new_attached or work.mended) and bool(rows) and _same(rows[0], request)
        if request.depth and not again:
            self._write(work, request, store.ledger)
        self._show(work, store)
        self._past.remember(footprint)
        return broken

    def _write(self, work: _Work, request: RequestRow, store: LedgerStore) -> None:
        nodes = tuple(
            NodeRow(
                link.key, link.parent, link.digest, link.role, self._policy.version, work.epoch,
                _rows(work.new[link.key]),
            )
            for link in work.fresh
        )  # fmt: skip
        attached = tuple((key, _rows(edits)) for key, edits in work.new_attached.items())
        edits = [e for table in (work.new, work.new_attached) for each in table.values() for e in each]
        values = {deciding.sha256_of(edit.text): to_bytes(edit.text) for edit in edits}
        calls = tuple((*call, row) for call, row in work.calls.items())
        entry = Entry(
            self._root, self._owner, self._session, nodes, attached, calls, values | work.mended, request
        )
        page = store.record(entry)
        for key, node in page.nodes.items():
            sent = Sent(_edits(node.edits, page.values)[0], node.policy, node.epoch)
            work.sent[key] = sent
            self._memory.sent.put(key, sent)
        for key, rows in page.attached.items():
            work.attached[key] = _edits(rows, page.values)[0]
            self._memory.attached.put((self._session, key), work.attached[key])
        there = _tags(work.attached)
        for key, tags in _tags(work.new_attached).items():
            if not tags <= there.get(key, frozenset()):
                self._drop(work, key)

    def _drop(self, work: _Work, key: bytes) -> None:
        dropped = self._policy.dropped
        if dropped is not None:
            deciding.guarded(lambda: dropped(key), None, work.faults)

    def _request(self, work: _Work, footprint: Footprint, broken: Break | None, store: Store) -> RequestRow:
        links = work.history.links
        row = RequestRow(
            session=self._owner,
            tip=links[-1].key if links else self._root,
            depth=len(links),
            tools=footprint.tools,
            system=footprint.system,
            epoch=work.epoch,
            policy=self._policy.version,
            turn=store.turn(self._session) if self._session else 0,
        )
        if broken is None:
            return row
        return replace(row, reason=broken.reason, place=broken.index, detail=broken.detail)

    def _show(self, work: _Work, store: Store) -> None:
        """See to it that the session may look behind every marker that it is shown."""
        if not self._session:
            return
        origins = {e.origin for sent in work.sent.values() for e in sent.edits if e.origin} - self._shown
        if origins:
            deciding.show_originals(store, self._session, origins)
            self._shown |= origins

    def _outcome(self, work: _Work) -> dict[bytes, Sent]:
        """By key: everything of ours in each message, whether settled or about to be."""
        version = self._policy.version
        new = {key: Sent(edits, version, work.epoch) for key, edits in work.new.items()}
        out = new | work.sent
        for key, added in (work.new_attached | work.attached).items():
            if added:
                sent = out.get(key, Sent())
                out[key] = replace(sent, edits=(*sent.edits, *added))
        return out

    def _pass_new(self, work: _Work, fault: StoreError) -> None:
        """The store failed: what is not settled goes out as it came, and stays so."""
        work.faults.append(str(fault))
        for link in work.history.links:
            if link.key not in work.sent:
                self._memory.unrecorded.put(("", link.key), True)
            if self._adds_to(link) and link.key not in work.attached:
                self._memory.unrecorded.put((self._session, link.key), True)
        for key, edits in work.new_attached.items():
            if edits and key not in work.attached:
                self._drop(work, key)
        work.new, work.new_attached, work.fresh = {}, {}, []

    def _finish(self, work: _Work, broken: Break | None, *, native: bool) -> Prepared:
        history, outcome = work.history, self._outcome(work)
        changes: list[ByteEdit] = []
        for link in history.links:
            edits = outcome[link.key].edits if link.key in outcome else ()
            if edits:
                try:
                    changes += byte_edits(history.body, link.node, edits, native=native)
                except WireError as fault:
                    work.faults.append(str(fault))
        added = {key: _added_bytes(sent.edits) for key, sent in outcome.items()}
        return Prepared(
            body=splice_bytes(history.body, changes),
            footprint=trace(history, outcome, epoch=work.epoch),
            broken=broken,
            replayed=sum(1 for key, sent in outcome.items() if sent.edits and key not in work.new),
            decided=len(work.fresh),
            lost=sum(sent.lost for sent in outcome.values()),
            added_bytes=sum(added.values()),
            new_added_bytes=sum(added.get(key, 0) for key in work.new_attached),
            told=_tags(work.attached),
            faults=tuple(work.faults),
        )


def _edits(rows: Sequence[EditRow], values: Mapping[str, bytes]) -> tuple[tuple[Edit, ...], list[EditRow]]:
    """The edits whose values are there, and the rows whose values are not."""
    edits = tuple(
        Edit(_OPS[row.op], row.path, to_text(values[row.sha256]), row.origin)
        for row in rows
        if row.sha256 in values
    )
    return edits, [row for row in rows if row.sha256 not in values]


def _rows(edits: Sequence[Edit]) -> tuple[EditRow, ...]:
    return tuple(EditRow(e.op, e.path, deciding.sha256_of(e.text), e.origin) for e in edits)


def _tags(attached: Mapping[bytes, Sequence[Edit]]) -> dict[bytes, frozenset[str]]:
    return {
        key: frozenset(edit.origin for edit in edits if edit.origin)
        for key, edits in attached.items()
        if edits
    }


def _same(row: RequestRow, request: RequestRow) -> bool:
    return replace(row, seq=0, at=0.0, turn=0) == replace(request, turn=0)


def _added_bytes(edits: Sequence[Edit]) -> int:
    return sum(len(to_bytes(edit.text)) for edit in edits if edit.op != "replace")
