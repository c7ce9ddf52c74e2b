from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.histories import ALL_WIRES, Telling, histories, request, sendable

from turngate.ledger import Ledger, Memory, Policy
from turngate.store import SqliteStore
from turngate.wire import request_prefix, violations


class World:
    """A store on disk, and ledgers that come and go."""

    def __init__(self, wire, op="append"):
        self.folder = tempfile.TemporaryDirectory()
        self.wire = wire
        self.store = SqliteStore(Path(self.folder.name) / "t.db")
        self.memory = Memory()
        self.telling = Telling(op)
        self.ledger = self.open()

    def open(self, session="s", version="1", policy=None):
        return Ledger(
            lambda: self.store,
            scope="x",
            wire=self.wire,
            session=session,
            policy=policy or self.telling.policy(version),
            memory=self.memory,
        )

    def restart(self, version):
        self.store.close()
        self.memory = Memory()
        self.telling = Telling(self.telling.op)
        self.ledger = self.open(version=version)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.store.close()
        self.folder.cleanup()


@pytest.mark.parametrize("wire", ALL_WIRES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_is_sent_for_a_beginning_is_the_beginning_of_what_is_sent_for_the_whole(wire, data):
    """Over turns, retries, forks, restarts, other policies and other spellings of the same history."""
    messages = data.draw(histories(wire))
    other = data.draw(histories(wire, max_turns=2))
    op = data.draw(st.sampled_from(["append", "note"])) if wire == "anthropic" else "append"
    with World(wire, op) as world:
        sent = []
        for size in sendable(wire, messages):
            event = data.draw(st.sampled_from(["go on", "retry", "fork", "restart", "new policy"]))
            if event == "restart":
                world.restart("1")
            elif event == "new policy":
                world.restart("2")
                world.ledger = world.open(version="2", policy=Policy("2", lambda _, text: f"<{text}>"))
            elif event == "fork" and size > 1:
                fork = [*messages[: size - 1], *other]
                world.open(session="fork").prepare(request(wire, fork))
            body = request(wire, messages[:size])
            prepared = world.ledger.prepare(body, native=True)
            if event == "retry":
                assert world.ledger.apply(body, native=True) == prepared.body
            assert not prepared.faults
            assert not violations(prepared.body, wire)
            sent.append(request_prefix(prepared.body, wire))
        for before, after in pairwise(sent):
            assert after.startswith(before)


@pytest.mark.parametrize("wire", ALL_WIRES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_resumed_history_is_sent_at_once_as_it_was_sent_piece_by_piece(wire, data):
    messages = data.draw(histories(wire))
    with World(wire) as world:
        for size in sendable(wire, messages):
            last = world.ledger.apply(request(wire, messages[:size]))
        world.restart("9")
        assert world.ledger.apply(request(wire, messages)) == last


@pytest.mark.parametrize("wire", ALL_WIRES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_without_a_policy_the_very_body_goes_out(wire, data):
    messages = data.draw(histories(wire))
    with World(wire) as world:
        body = request(wire, messages)
        assert world.open(policy=Policy()).apply(body) is body


@pytest.mark.parametrize("wire", ALL_WIRES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_two_conversations_with_one_opening_don_t_share_what_belongs_to_a_session(wire, data):
    messages = data.draw(histories(wire, max_turns=1))
    with World(wire) as world:
        one = world.open("a", policy=Policy("1", None, Telling())).prepare(request(wire, messages))
        told = Telling()
        told.told = {b"other": 1}
        two = world.open("b", policy=Policy("1", None, told)).prepare(request(wire, messages))
        bare = world.open("", policy=world.telling.policy()).prepare(request(wire, messages))
        assert b"told 1" in one.body or one.added_bytes == 0
        assert b"told 1" not in two.body
        assert b"told" not in bare.body
        assert bare.added_bytes == 0


@settings(max_examples=200, deadline=None)
@given(raw=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_whatever_is_no_request_goes_out_as_it_came(raw):
    ledger = Ledger(lambda: pytest.fail("the store is not asked"), scope="x", wire="chat", session="s")
    try:
        prepared = ledger.prepare(raw)
    except pytest.fail.Exception:
        return  # it was a request after all
    assert prepared.body is raw
