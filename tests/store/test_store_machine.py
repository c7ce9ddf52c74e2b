"""The store against a plain model of it: sessions with parents, contents, time, collections."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from store_clock import DAY, Clock

from turngate.errors import UnknownContentError
from turngate.settings import StoreSettings
from turngate.store import SqliteStore

SESSIONS = ("root", "child", "grandchild", "other")
PARENTS = {"child": "root", "grandchild": "child"}
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")
LIVE_DAYS, MAX_AGE_DAYS = 30, 100

session = st.sampled_from(SESSIONS)
content = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join) | st.sampled_from(WORDS)


def colliding(data: bytes, length: int) -> str:
    return ("ab"[len(data) % 2]) * length


class StoreMachine(RuleBasedStateMachine):
    """Model: which content each session saw and when each was last used."""

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.ids: dict[str, str] = {}
        self.seen: dict[str, set[str]] = {name: set() for name in SESSIONS}
        self.used: dict[str, float] = {}
        self.content_used: dict[str, float] = {}
        self.reopen()
        self._name_parents()

    def _name_parents(self):
        """As a host does when it goes on with a session; a collection may have forgotten an idle one."""
        for child, parent in PARENTS.items():
            self.store.open_session(child, parent=parent)
            self.used[child] = self.used[parent] = self.clock.now

    @rule()
    def reopen(self):
        if hasattr(self, "store"):
            self.store.close()
        limits = StoreSettings(live_days=LIVE_DAYS, max_age_days=MAX_AGE_DAYS)
        self.store = SqliteStore(
            Path(self.folder.name) / "s.db", limits, clock=self.clock, short_hash=colliding
        )

    @rule(session=session, text=content)
    def put(self, session, text):
        stored = self.store.put(text.encode(), session=session)
        assert stored.new == (text not in self.ids)
        assert self.ids.setdefault(text, stored.id) == stored.id
        self._saw(session, text)

    @rule(session=session, text=content)
    def get(self, session, text):
        ref = self.ids.get(text, "0" * 16)
        if text in self._scope(session):
            assert self.store.get(ref, session=session).data == text.encode()
        else:
            with pytest.raises(UnknownContentError):
                self.store.get(ref, session=session)

    @rule(session=session, text=content)
    def note(self, session, text):
        if text in self.ids:
            self.store.note(session, self.store.get(self.ids[text]).sha256, turn=1, how="retrieved")
            self._saw(session, text)

    @rule(session=session, word=st.sampled_from(WORDS))
    def search(self, session, word):
        hits = self.store.search(f"which {word}?", session=session, limit=50)
        assert {hit.id for hit in hits} == {self.ids[text] for text in self._scope(session) if word in text}
        assert all(any(word in line for _, line in hit.lines) for hit in hits)

    @rule(days=st.sampled_from([1, 20, 50, 120]))
    def wait(self, days):
        self.clock.pass_days(days)

    @rule(session=session)
    def touch(self, session):
        self.store.touch(session)
        self.used[session] = self.clock.now

    @rule()
    def collect(self):
        live = {name for name, at in self.used.items() if at >= self.clock.now - LIVE_DAYS * DAY}
        live |= {above for name in live for above in self._line(name)}
        kept = {text for name in live for text in self.seen[name]}
        too_old = self.clock.now - MAX_AGE_DAYS * DAY
        gone = {text for text in self.ids if text not in kept and self.content_used[text] < too_old}
        assert self.store.gc().removed == len(gone)
        self.ids = {text: ref for text, ref in self.ids.items() if text not in gone}
        self.seen = {name: texts - gone for name, texts in self.seen.items()}
        self._name_parents()

    @invariant()
    def ids_are_distinct_and_known(self):
        if not hasattr(self, "store"):
            return
        assert len(set(self.ids.values())) == len(self.ids)
        for name in SESSIONS:
            known = self.store.known(self.ids.values(), session=name)
            assert set(known) == {self.ids[text] for text in self._scope(name)}

    def teardown(self):
        self.store.close()
        self.folder.cleanup()

    def _saw(self, session, text):
        self.seen[session].add(text)
        self.used[session] = self.content_used[text] = self.clock.now

    def _line(self, session):
        while session:
            yield session
            session = PARENTS.get(session)

    def _scope(self, session):
        return {text for name in self._line(session) for text in self.seen[name]}


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
