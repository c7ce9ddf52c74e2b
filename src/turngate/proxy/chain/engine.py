"""The engine: known messages go upstream as they went before, new ones as they are decided and recorded."""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from turngate.errors import StoreConflictError, StoreError, WireError
from turngate.ledger import deciding as values
from turngate.ledger import root_key
from turngate.ledger.footprint import BEFORE_MESSAGES, Break, Footprint, Step, verify
from turngate.ledger.memory import Recent
from turngate.proxy.chain import deciding
from turngate.proxy.chain.ask import Ask, Sending
from turngate.proxy.chain.deciding import Terms
from turngate.proxy.chain.held import Held, from_row, reply_from, reply_rows, to_rows
from turngate.proxy.chain.memory import Memory, Snapshot
from turngate.proxy.chain.reading import read, read_on
from turngate.proxy.chain.replies import Echo, Reply, fingerprint
from turngate.proxy.chain.work import Composed, Work, begin, compose, runs
from turngate.store import to_bytes
from turngate.store.ledger import Entry, NodeRow, RequestRow

if TYPE_CHECKING:
    from turngate.gate import Gate
    from turngate.store import Store
    from turngate.store.ledger import Page

#: After a fault of the store it is asked again so much later, so that no request waits for it twice.
REST_SECONDS: Final = 1.0
#: Sessions of which it is remembered what they were shown.
_SESSIONS: Final = 200
#: Sessions that do not share a lock, mostly.
_TURNS: Final = 64
#: Where the key of the scopes is kept.
_KEY_SESSION: Final = "proxy"
_KEY_ROOM: Final = "scope key"

_log = logging.getLogger("turngate.proxy")


class Engine:
    """What a proxy sends. Safe from any thread; any number of engines may share a store."""

    def __init__(self, gate: Gate, terms: Terms, memory: Memory | None = None) -> None:
        self._gate = gate
        self._terms = terms
        self._memory = memory or Memory()
        self._shown: Recent[str, frozenset[str]] = Recent(_SESSIONS)
        self._turns = tuple(threading.Lock() for _ in range(_TURNS))
        self._rests_until = 0.0
        self._secret: bytes | None = None
        #: Whether the store could be used when it was last tried.
        self.store_ok = True

    def scope(self, credential: str) -> str:
        """A keyed hash of a credential: who may share what was sent. All replicas have the store's key.

        Raises:
            StoreError: the store cannot be asked for the key, which this process has not seen yet.
        """
        if self._secret is None:
            try:
                self._secret = _secret_of(self._store())
            except StoreError as fault:
                self._failed(fault)
                raise
        return hmac.digest(self._secret, to_bytes(credential), "sha256").hex()[:32]

    def prepare(self, ask: Ask) -> Sending:
        """A request as it is to be sent; whatever is new in it is on disk before this returns.

        Nothing is raised for a request that cannot be read, nor for a fault of the store: then the client's
        own bytes go out, and `faults` says why.
        """
        root = root_key(ask.scope, ask.wire)
        try:
            work = self._begin(ask, root)
        except WireError as fault:
            return Sending(ask.body, ask.wire, faults=(str(fault),))
        if not work.first_key:
            return Sending(ask.body, ask.wire)
        self._remembered(work)
        try:
            store = self._store()
            self._recall(work, store)
            if not deciding.follows(work):
                return Sending(ask.body, ask.wire)
            self._settle(work, store)
        except StoreError as fault:
            self._without_store(work, fault)
        return self._finish(work)

    def replied(self, sending: Sending, reply: Reply, echo: Echo) -> None:
        """Keep what the client did not see of a reply, durably, before the client sees its end.

        Args:
            sending: the request that it answers.
            reply: what the client did not see.
            echo: what it saw, and may send back.
        """
        key = deciding.reply_key(sending.tip, fingerprint(echo.text, echo.calls))
        kept = {key: (sending.tip, reply)}
        if echo.id:
            kept[deciding.named_key(sending.root, echo.id)] = sending.root, Reply(before=echo.after)
        nodes: list[NodeRow] = []
        laid: dict[str, bytes] = {}
        for name, (parent, each) in kept.items():
            self._memory.replies.put(name, each)
            rows, found = reply_rows(each)
            nodes.append(NodeRow(name, parent, b"", "reply", self._terms.version, 0, rows))
            laid |= found
        entry = Entry(sending.root, sending.session, nodes=tuple(nodes), values=laid)
        try:
            self._store().ledger.record(entry)
        except StoreError as fault:
            self._failed(fault)
            self._memory.wait(key, entry)

    def catch_up(self) -> bool:
        """Write what waits for the store; whether it can be used."""
        try:
            store = self._gate.store
            for name, entry in self._memory.waiting():
                store.ledger.record(entry)
                self._memory.written(name)
            store.touch(_KEY_SESSION)
        except StoreError as fault:
            self._failed(fault)
        else:
            self.store_ok = True
        return self.store_ok

    def _store(self) -> Store:
        """The store, after what waited for it is written.

        Raises:
            StoreError: it cannot be used, or could not a moment ago.
        """
        if time.monotonic() < self._rests_until:
            raise StoreError("the store could not be used a moment ago; it is tried again soon")
        store = self._gate.store
        if self._memory.waiting() and not self.catch_up():
            raise StoreError("what waits for the store cannot be written yet")
        return store

    def _failed(self, fault: StoreError) -> None:
        if self.store_ok:
            _log.warning("%s: new results pass whole until the store is back", type(fault).__name__)
        self.store_ok = False
        if time.monotonic() >= self._rests_until:
            self._rests_until = time.monotonic() + REST_SECONDS

    def _begin(self, ask: Ask, root: bytes) -> Work:
        nearest = self._memory.nearest(root, ask.hint, ask.body)
        if nearest is None:
            return begin(ask, root, read(ask.body, ask.wire), None, 0)
        before, common = nearest
        if common <= before.first:
            return begin(ask, root, read(ask.body, ask.wire), None, 0)
        return begin(ask, root, read_on(ask.body, before.reading, common), before, common)

    def _remembered(self, work: Work) -> None:
        for link in work.links:
            held = self._memory.held.get(link.key)
            if held is not None:
                work.held[link.key] = held
        deciding.root(work, self._terms)
        self._name_session(work)

    def _name_session(self, work: Work) -> None:
        ask = work.ask
        name = ask.hint or work.first_key.hex()
        work.session = f"proxy:{ask.scope[:16]}:{name}"

    def _recall(self, work: Work, store: Store) -> None:
        """Settle what was sent before, by the store."""
        missing = [link.key for link in work.fresh]
        replies = self._unknown_replies(work) if work.common else []
        before = work.links[0].parent if work.links and work.common else b""
        if before and self._memory.held.get(before) is None:
            missing.append(before)
        if not missing:
            return
        page = store.ledger.load([*missing, *replies])
        for key, row in page.nodes.items():
            held = from_row(row, page.values)
            if key in missing:
                work.held[key] = held
                if not held.lost:
                    self._memory.held.put(key, held)
        self._take_replies(page, replies)
        if not work.common:
            deciding.root(work, self._terms)

    def _settle(self, work: Work, store: Store) -> None:
        """Decide on what is new, record it, and take what then stands in the store."""
        if before := work.links[0].parent if work.links and work.common else b"":
            held = self._memory.held.get(before)
            if held is not None:
                work.held[before] = held
        fresh = work.fresh
        if fresh and not work.common and (replies := self._unknown_replies(work)):
            self._take_replies(store.ledger.load(replies), replies)
        work.broken = _break(work)
        settled: dict[bytes, Held] = {}
        # One transaction for the originals and for what is sent in their place. Two requests of one session
        # take turns, or each would wait for what the other holds: the session's own lock, and the store's.
        with self._turns[hash(work.session) % len(self._turns)], store.together():
            if fresh:
                session = self._gate.session(work.session)
                deciding.decide(work, self._terms, session, store, self._memory.replies.get)
            if fresh or work.broken:
                settled = self._record(work, store)
            shown = self._show(work, {**work.held, **settled}, store)
        for key, held in settled.items():
            self._memory.held.put(key, held)
        work.held |= settled
        self._shown.put(work.session, shown)
        self.store_ok = True

    def _unknown_replies(self, work: Work) -> list[bytes]:
        """Keys of replies that are echoed now, as far as memory does not have them."""
        keys = [deciding.echo_key(work, run) for run in runs(work)] if work.rooted_tool else []
        keys += [key for key in (deciding.previous_key(work),) if key]
        return [key for key in keys if self._memory.replies.get(key) is None]

    def _take_replies(self, page: Page, wanted: Sequence[bytes]) -> None:
        """Bring what the store holds of replies into memory."""
        for key in wanted:
            found = reply_from(page.nodes[key], page.values) if key in page.nodes else None
            if found is not None:
                self._memory.replies.put(key, found)

    def _record(self, work: Work, store: Store) -> dict[bytes, Held]:
        """Write what is new; how these messages are sent by what then stands in the store, by key."""
        page = store.ledger.record(self._entry(work))
        rows = ((link.key, page.nodes.get(link.key)) for link in work.fresh)
        return {key: work.new[key] if row is None else from_row(row, page.values) for key, row in rows}

    def _entry(self, work: Work) -> Entry:
        nodes: list[NodeRow] = []
        laid: dict[str, bytes] = {}
        for link in work.fresh:
            held = work.new[link.key]
            rows, found = to_rows(held)
            laid |= found
            nodes.append(NodeRow(link.key, link.parent, link.digest, link.role, held.policy, 0, rows))
        request = RequestRow(
            session=work.session,
            tip=work.keys[-1],
            depth=len(work.keys) - work.first,
            tools=b"",
            system=b"",
            epoch=0,
            policy=work.policy,
            reason=work.broken.reason if work.broken else "",
            place=work.broken.index if work.broken else BEFORE_MESSAGES,
            detail=work.broken.detail if work.broken else "",
        )
        calls = tuple((*call, row) for call, row in work.calls.items())
        return Entry(
            work.root, work.session, nodes=tuple(nodes), decisions=calls, values=laid, request=request
        )

    def _show(self, work: Work, held: Mapping[bytes, Held], store: Store) -> frozenset[str]:
        """See to it that the conversation may look behind every marker that it is shown; all of these."""
        origins = {edit.origin for each in held.values() for edit in each.edits if edit.origin}
        shown = self._shown.get(work.session) or frozenset()
        if origins - shown:
            values.show_originals(store, work.session, set(origins - shown))
        return shown | origins

    def _without_store(self, work: Work, fault: StoreError) -> None:
        self._failed(fault)
        work.degraded = True
        work.faults.append(str(fault))
        fresh = work.fresh
        deciding.without_store(work, self._terms)
        if fresh:
            for link in fresh:
                self._memory.held.put(link.key, work.new[link.key])
            unsettled = {link.key for link in fresh}
            waiting = replace(work, held={k: h for k, h in work.held.items() if k not in unsettled})
            self._memory.wait(work.keys[-1], self._entry(waiting))

    def _finish(self, work: Work) -> Sending:
        made = compose(work)
        self._memory.remember(_snapshot(work, made), work.before)
        return Sending(
            body=made.out,
            wire=work.ask.wire,
            offered=bool(work.tool),
            session=work.session,
            scope=work.ask.scope,
            root=work.root,
            tip=work.keys[-1],
            at=made.ends[-1],
            single=made.single,
            decided=len(work.new),
            shortened=sum(len(held.edits) for held in work.new.values()),
            broken=work.broken.detail if work.broken else "",
            faults=tuple(work.faults),
            degraded=work.degraded,
        )


def _secret_of(store: Store) -> bytes:
    """The key of all scopes, made by whoever comes first."""
    while True:
        secret, version = store.load_state(_KEY_SESSION, _KEY_ROOM)
        if secret is not None:
            store.touch(_KEY_SESSION)
            return secret
        try:
            store.save_state(_KEY_SESSION, _KEY_ROOM, secrets.token_bytes(32), version)
        except StoreConflictError:
            continue


def _snapshot(work: Work, made: Composed) -> Snapshot:
    return Snapshot(
        work.root, work.ask.hint, work.reading, made.out, made.ends, work.first, work.keys, work.digests,
        work.roles, work.tool, work.rooted_tool, work.policy, work.session,
    )  # fmt: skip


def _break(work: Work) -> Break | None:
    """How the request fails to extend the one that it is read on from; None if it does."""
    before = work.before
    if before is None or work.keys[: len(before.keys)] == before.keys:
        return None
    old, new = (_footprint(each.first, each.keys, each.digests) for each in (before, work))
    return verify(old, new)


def _footprint(first: int, keys: Sequence[bytes], digests: Sequence[bytes]) -> Footprint:
    steps = tuple(Step(key, own) for key, own in zip(keys[first:], digests[first:], strict=True))
    return Footprint(b"", b"", steps, first)
