from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from turngate.ledger import Ledger, Policy
from turngate.store import SqliteStore
from turngate.turn import (
    MemoryStates,
    NoteBox,
    attend_with,
    confirm_with,
    consume_gateway_turn_context_notes,
    drop_with,
)
from turngate.turn.notes import LEASE_SECONDS, MAX_CLAIMS, MAX_WAITING, give_back_gateway_notes


class ReadOnly:
    _gateway_turn_context_notes = property(lambda self: self.notes)

    def __init__(self, notes):
        self.notes = notes


class Slotted(ReadOnly):
    __slots__ = ("notes",)


class Ignores(ReadOnly):
    @property
    def _gateway_turn_context_notes(self):
        return self.notes

    @_gateway_turn_context_notes.setter
    def _gateway_turn_context_notes(self, value):
        pass


class NoReference:
    """Can't be referred to weakly."""

    __slots__ = ("notes",)
    _gateway_turn_context_notes = property(lambda self: self.notes)

    def __init__(self, notes):
        self.notes = notes


def test_notes_are_popped_off_the_agent():
    agent = SimpleNamespace(_gateway_turn_context_notes="voice on")
    assert consume_gateway_turn_context_notes(agent) == "voice on"
    assert agent._gateway_turn_context_notes == ""
    assert consume_gateway_turn_context_notes(agent) == ""


@pytest.mark.parametrize("value", [None, 3, "", ["a"]])
def test_what_is_no_text_is_no_note(value):
    assert consume_gateway_turn_context_notes(SimpleNamespace(_gateway_turn_context_notes=value)) == ""
    assert consume_gateway_turn_context_notes(object()) == ""


@pytest.mark.parametrize("kind", [ReadOnly, Slotted, Ignores, NoReference])
def test_notes_that_cannot_be_cleared_are_delivered_once_all_the_same(kind):
    agent = kind("a")
    assert consume_gateway_turn_context_notes(agent) == "a"
    assert consume_gateway_turn_context_notes(agent) == ""
    agent.notes = "b"
    assert consume_gateway_turn_context_notes(agent) == "b"
    agent.notes = ""
    assert consume_gateway_turn_context_notes(agent) == ""
    agent.notes = "b"
    assert consume_gateway_turn_context_notes(agent) == "b"
    assert consume_gateway_turn_context_notes(kind("b")) == "b"


def test_an_attribute_that_raises_breaks_nothing():
    class Raises:
        @property
        def _gateway_turn_context_notes(self):
            raise OSError

    assert consume_gateway_turn_context_notes(Raises()) == ""


def test_notes_that_were_not_sent_come_before_those_that_came_since():
    agent = SimpleNamespace(_gateway_turn_context_notes="a")
    notes = consume_gateway_turn_context_notes(agent)
    agent._gateway_turn_context_notes = "b"
    give_back_gateway_notes(agent, notes)
    assert consume_gateway_turn_context_notes(agent) == "a\n\nb"
    stuck = ReadOnly("a")
    give_back_gateway_notes(stuck, consume_gateway_turn_context_notes(stuck))
    assert consume_gateway_turn_context_notes(stuck) == "a"


def texts(notes):
    return [note.text for note in notes]


def in_threads(count, work):
    barrier = threading.Barrier(count)
    out = []

    def run(number):
        barrier.wait()
        out.append(work(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


def test_one_of_many_threads_gets_the_agent_s_notes():
    for _ in range(50):
        agent = SimpleNamespace(_gateway_turn_context_notes="a")
        found = in_threads(4, lambda _, agent=agent: consume_gateway_turn_context_notes(agent))
        assert sorted(found) == ["", "", "", "a"]


@pytest.fixture
def store_at(tmp_path):
    opened = []

    def make():
        opened.append(SqliteStore(tmp_path / "t.db"))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def test_of_concurrent_turns_each_note_goes_to_exactly_one(store_at):
    stores = [store_at() for _ in range(4)]
    boxes = [NoteBox(store, "s") for store in stores]
    posted = [f"n{n}.{m}" for n in range(4) for m in range(3)]

    def work(number):
        claimed = []
        for m in range(3):
            boxes[number].post(f"n{number}.{m}")
            claimed += texts(boxes[number].claim(f"turn {number}.{m}"))
        return claimed

    found = [note for notes in in_threads(4, work) for note in notes] + texts(boxes[0].claim("last"))
    assert sorted(found) == sorted(posted)


def test_many_that_prepare_one_turn_get_the_same_notes(store_at):
    boxes = [NoteBox(store_at(), "s") for _ in range(4)]
    boxes[0].post("a")
    assert in_threads(4, lambda number: texts(boxes[number].claim("turn"))) == [["a"]] * 4


def test_blank_notes_are_none_and_too_many_lose_the_oldest():
    box = NoteBox(MemoryStates(), "s")
    box.post(" \n\x00")
    assert texts(box.claim("a")) == []
    for number in range(MAX_WAITING + 2):
        box.post(str(number))
    assert texts(box.claim("b")) == [str(number) for number in range(2, MAX_WAITING + 2)]


def test_claims_that_are_done_don_t_pile_up():
    states = MemoryStates()
    box = NoteBox(states, "s", clock=lambda: 0.0)
    sizes = []
    for number in range(3 * MAX_CLAIMS):
        box.post("note")
        claimed = box.claim(f"{number:05d}")
        box.confirm(f"{number:05d}", [note.id for note in claimed])
        sizes.append(len(states.load_state("s", "notes")[0]))
    assert max(sizes) <= sizes[MAX_CLAIMS] + 3 * MAX_CLAIMS


class NoteLife(RuleBasedStateMachine):
    """Turns, crashes at every point and edits by the user, over a ledger: what does the model see?"""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = SqliteStore(Path(self.folder.name) / "t.db")
        self.now = 0.0
        self.posted = 0
        self.messages = []
        self.sent = b"[]"

    def ledger(self):
        self.box = NoteBox(self.store, "s", clock=lambda: self.now)
        policy = Policy("1", None, attend_with(notes=self.box), drop_with(self.box))
        return Ledger(lambda: self.store, scope="x", wire="chat", session="s", policy=policy)

    @rule()
    def post(self):
        self.ledger()
        self.box.post(f"<note {self.posted}>")
        self.posted += 1

    @rule(words=st.sampled_from(["a", "b"]))
    def say(self, words):
        self.messages = [*self.messages, {"role": "user", "content": words}]

    @rule(crash=st.sampled_from(["", "after claim", "after recording"]), seconds=st.sampled_from([1, 100]))
    def send(self, crash, seconds):
        self.now += seconds
        if not self.messages or self.messages[-1]["role"] != "user":
            return
        ledger = self.ledger()
        prepared = ledger.prepare(self.messages) if crash != "after claim" else self.claim_only(ledger)
        if crash:
            return
        self.sent = prepared.body
        confirm_with(self.box, prepared)
        self.messages = [*self.messages, {"role": "assistant", "content": "ok"}]

    def claim_only(self, ledger):
        """The process dies between the claim and the record."""
        history = ledger._reader.read(self.messages, ledger._root)
        rows = self.store.ledger.load([link.key for link in history.links], session="s").attached
        told = {key.hex(): {edit.origin for edit in edits} for key, edits in rows.items()}
        self.box.claim(history.links[-1].key.hex(), told)

    @rule()
    def take_back(self):
        """The user takes back what was not answered yet."""
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages = self.messages[:-1]

    @invariant()
    def no_note_is_seen_twice(self):
        for number in range(self.posted):
            assert self.sent.count(f"<note {number}>".encode()) <= 1

    def teardown(self):
        if not hasattr(self, "store"):
            return
        self.now += 2 * LEASE_SECONDS
        self.messages = [*self.messages, {"role": "user", "content": "at last"}]
        body = self.ledger().prepare(self.messages).body
        self.store.close()
        self.folder.cleanup()
        for number in range(self.posted):
            assert body.count(f"<note {number}>".encode()) == 1, "every note is in view exactly once"


TestNoteLife = NoteLife.TestCase
TestNoteLife.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)


def test_notes_claimed_for_a_message_that_another_sent_without_them_wait_again(tmp_path):
    """Another process was asked before the note was posted, and was first to record that there is none."""
    store = SqliteStore(tmp_path / "t.db")
    box = NoteBox(store, "s")
    body = b'[{"role":"user","content":"hi"}]'

    def first(occasion):
        other = Policy("1", None, lambda _: [])
        Ledger(lambda: store, scope="x", wire="chat", session="s", policy=other).apply(body)
        return attend_with(notes=box)(occasion)

    box.post("note")
    policy = Policy("1", None, first, drop_with(box))
    prepared = Ledger(lambda: store, scope="x", wire="chat", session="s", policy=policy).prepare(body)
    assert b"note" not in prepared.body
    confirm_with(box, prepared)
    assert texts(box.claim("next")) == ["note"]
    store.close()
