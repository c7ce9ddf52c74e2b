from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from itertools import pairwise

import pytest
from tests.ledger.histories import Telling, request, shortening

from turngate.errors import StoreUnavailableError
from turngate.gate import Gate
from turngate.ledger import Addition, Ledger, Memory, Policy
from turngate.settings import Settings, StoreSettings
from turngate.wire import request_prefix

DAY = 86_400
USER = {"role": "user", "content": "do it"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "red and blue"}
TURN = [USER, CALL, RESULT]


def sql(make_store, statement):
    store = make_store()
    conn = sqlite3.connect(store.path)
    with conn:
        rows = conn.execute(statement).fetchall()
    conn.close()
    return rows


def shown(body):
    return [message["content"] for message in json.loads(body)["messages"]]


def test_what_is_new_is_on_disk_before_it_is_handed_out(tmp_path, make_store):
    store = make_store()
    script = f"""
import os, sys
from pathlib import Path
from turngate.ledger import Ledger, Policy
from turngate.store import SqliteStore
store = SqliteStore(Path({str(store.path)!r}))
ledger = Ledger(lambda: store, scope="x", wire="chat", policy=Policy("1", lambda r, t: "first"))
sys.stdout.buffer.write(ledger.apply({request("chat", TURN)!r}))
sys.stdout.flush()
os._exit(9)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert ran.returncode == 9, ran.stderr
    later = Ledger(lambda: store, scope="x", wire="chat", policy=Policy("2", lambda r, t: "second"))
    assert later.apply(request("chat", TURN)) == ran.stdout
    assert shown(ran.stdout)[-1] == "first"


def test_of_many_that_decide_at_once_the_first_decides_for_all(make_store, make_ledger):
    stores = [make_store() for _ in range(4)]
    barrier = threading.Barrier(len(stores))
    bodies = []

    def work(number, store):
        policy = Policy("1", lambda r, t: f"by {number}", Telling())
        policy.attend.told = {bytes([n]): n for n in range(number)}
        ledger = make_ledger(policy=policy, of=store)
        barrier.wait()
        bodies.append(ledger.apply(request("chat", TURN)))

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(bodies)) == 1
    assert len(bodies) == len(stores)


def test_a_result_that_was_decided_keeps_its_decision_when_the_chain_breaks(make_ledger):
    before = make_ledger(policy=Policy("1", shortening)).apply(request("chat", TURN))
    edited = [USER | {"content": "do it now"}, CALL, RESULT]
    policy = Policy("2", lambda r, t: "decided anew")
    after = make_ledger(policy=policy).prepare(request("chat", edited))
    assert shown(after.body)[-1] == shown(before)[-1] == "[red]"
    elsewhere = make_ledger(policy=policy, scope="y", session="t").apply(request("chat", edited))
    assert shown(elsewhere)[-1] == "decided anew"
    other_text = [*edited[:2], RESULT | {"content": "green and blue"}]
    assert shown(make_ledger(policy=policy).apply(request("chat", other_text)))[-1] == "decided anew"


def test_what_passed_goes_on_passing(make_ledger):
    make_ledger(policy=Policy("1")).apply(request("chat", TURN))
    policy = Policy("2", shortening, Telling())
    edited = [USER | {"content": "do it now"}, CALL, RESULT]
    assert shown(make_ledger(policy=policy, session="").apply(request("chat", TURN)))[-1] == RESULT["content"]
    assert shown(make_ledger(policy=policy).apply(request("chat", edited)))[-1] == RESULT["content"]


def test_never_decided_and_decided_and_lost_are_told_apart(make_store, make_ledger):
    first = make_ledger(policy=Policy("1", shortening)).prepare(request("chat", TURN))
    assert (first.decided, first.lost) == (3, 0)
    sql(make_store, "DELETE FROM ledger_value")
    lost = make_ledger(policy=Policy("1")).prepare(request("chat", TURN))
    assert (lost.decided, lost.lost) == (0, 1)
    assert shown(lost.body)[-1] == RESULT["content"]
    again = make_ledger(policy=Policy("1")).prepare(request("chat", TURN))
    assert again.lost == 1


def test_a_lost_value_that_comes_out_the_same_again_is_mended(make_store, make_ledger):
    first = make_ledger(policy=Policy("1", shortening)).apply(request("chat", TURN))
    sql(make_store, "UPDATE ledger_value SET data = x'00'")
    mended = make_ledger(policy=Policy("1", shortening)).prepare(request("chat", TURN))
    assert (mended.body, mended.lost) == (first, 0)
    assert make_ledger(policy=Policy("2")).apply(request("chat", TURN)) == first


def test_losing_a_value_is_named_as_the_break_it_is(make_store, make_ledger):
    ledger = make_ledger(policy=Policy("1", shortening))
    ledger.apply(request("chat", TURN))
    sql(make_store, "DELETE FROM ledger_value")
    ledger._memory, ledger._policy = Memory(), Policy("1")
    longer = [*TURN, {"role": "assistant", "content": "x"}, USER]
    found = ledger.prepare(request("chat", longer))
    assert (found.broken.reason, found.broken.index) == ("decision lost", 2)


@pytest.mark.parametrize("restarted", [False, True])
def test_every_break_of_a_session_is_recorded_with_its_reason(store, make_ledger, restarted):
    ledger = make_ledger()
    longer = [*TURN, {"role": "assistant", "content": "done"}, USER | {"content": "next"}]
    for messages, more in (
        (TURN, {}),
        (longer, {}),
        ([USER | {"content": "else"}, *longer[1:]], {}),
        ([USER | {"content": "else"}, *longer[3:]], {"tools": []}),
        ([USER], {"tools": [{"type": "function", "function": {"name": "f"}}]}),
    ):
        ledger = make_ledger() if restarted else ledger
        ledger.apply(request("chat", messages, **more))
    found = [(row.reason, row.place) for row in reversed(store.ledger.requests("s"))]
    assert found == [
        ("", -1),
        ("", -1),
        ("message edited", 0),
        ("message removed", 1),
        ("tools changed", -1),
    ]


def test_another_conversation_under_the_same_session_is_no_break(make_ledger):
    ledger = make_ledger()
    tools = [{"type": "function", "function": {"name": "f"}}]
    ledger.apply(request("chat", TURN, tools=tools))
    title = [{"role": "system", "content": "Make a title."}, USER | {"content": "title?"}]
    assert ledger.prepare(request("chat", title)).broken is None
    longer = [*TURN, {"role": "assistant", "content": "x"}, USER]
    assert ledger.prepare(request("chat", longer, tools=tools)).broken is None


def test_a_request_that_is_sent_again_adds_no_row(store, make_ledger):
    for _ in range(3):
        make_ledger().apply(request("chat", TURN))
    assert len(store.ledger.requests("s")) == 1


def test_each_turn_adds_as_many_rows_as_the_one_before(make_store, make_ledger):
    tables = ("ledger_node", "ledger_edit", "ledger_decision", "ledger_request")
    ledger = make_ledger(policy=Telling().policy())
    messages, counts = [], []
    for turn in range(6):
        call = json.loads(json.dumps(CALL).replace("c1", f"c{turn}"))
        result = RESULT | {"tool_call_id": f"c{turn}", "content": f"red and {turn}"}
        messages += [USER | {"content": f"turn {turn}"}]
        ledger.apply(request("chat", messages))
        messages += [call, result]
        ledger.apply(request("chat", messages))
        messages += [{"role": "assistant", "content": "ok"}]
        counts.append([sql(make_store, f"SELECT count(*) FROM {table}")[0][0] for table in tables])
    grown = [[b - a for a, b in zip(*pair, strict=True)] for pair in pairwise(counts)]
    assert len({tuple(row) for row in grown}) == 1


def test_the_store_s_limits_spare_what_a_live_session_was_sent(make_store, make_ledger, clock):
    store = make_store()
    kept = make_ledger(policy=Policy("1", shortening), session="live").apply(request("chat", TURN))
    old = [USER | {"content": "long ago"}, CALL, RESULT | {"content": "gone and past"}]
    make_ledger(policy=Policy("1", shortening), session="old").apply(request("chat", old))
    clock.now += 400 * DAY
    store.touch("live")
    store.gc()
    assert make_ledger(policy=Policy("1"), session="live").apply(request("chat", TURN)) == kept
    assert sql(make_store, "SELECT count(*) FROM ledger_node") == [(3,)]
    assert sql(make_store, "SELECT count(*) FROM ledger_value") == [(1,)]
    assert [row.session for row in store.ledger.requests("live")] == ["live"]
    assert store.ledger.requests("old") == []
    edited = [USER | {"content": "do it now"}, CALL, RESULT]
    assert (
        shown(make_ledger(policy=Policy("2"), session="live").apply(request("chat", edited)))[-1] == "[red]"
    )
    assert sql(make_store, "SELECT count(*) FROM ledger_decision") == [(1,)]
    assert make_ledger(policy=Policy("2"), session="old").prepare(request("chat", old)).decided == 3


def test_a_fork_that_is_gone_takes_nothing_from_the_branch_that_lives(make_store, make_ledger, clock):
    store = make_store()
    make_ledger(session="fork").apply(request("chat", [*TURN, {"role": "assistant", "content": "x"}, USER]))
    make_ledger(session="live").apply(request("chat", TURN))
    clock.now += 400 * DAY
    store.touch("live")
    store.gc()
    assert sql(make_store, "SELECT count(*) FROM ledger_node") == [(3,)]


class Broken:
    """A store that fails when it is told to."""

    def __init__(self, store):
        self.store = store
        self.fails = ()

    def __getattr__(self, name):
        if name in self.fails:
            raise StoreUnavailableError("the store is locked")
        if name == "ledger":
            return Broken.of(self.store.ledger, self.fails)
        return getattr(self.store, name)

    @classmethod
    def of(cls, ledger, fails):
        inner = cls(ledger)
        inner.fails = fails
        return inner


@pytest.mark.parametrize("fails", ["ledger", "load", "decisions", "record", "requests", "turn"])
def test_when_the_store_fails_the_client_s_bytes_go_out_and_stay_so(store, fails):
    broken = Broken(store)
    telling = Telling()
    ledger = Ledger(lambda: broken, scope="x", wire="chat", session="s", policy=telling.policy())
    first = ledger.prepare(request("chat", TURN[:1]))
    assert b"told 1" in first.body
    longer = [*TURN, {"role": "assistant", "content": "ok"}, USER | {"content": "next"}]
    body = request("chat", longer)
    broken.fails = (fails,)
    during = ledger.prepare(body)
    assert during.faults
    assert shown(during.body)[0] == shown(first.body)[0]
    assert shown(during.body)[2:] == [RESULT["content"], "ok", "next"]
    broken.fails = ()
    after = ledger.prepare(body)
    assert after.body == during.body
    assert not after.faults
    assert len(telling.dropped) == (fails in {"record", "requests", "turn"})
    assert Ledger(lambda: store, scope="x", wire="chat", session="s", policy=telling.policy()).apply(
        body
    ) == (after.body)


def test_a_fault_in_the_policy_lets_the_text_pass_and_is_told(make_ledger):
    def fail(*_):
        raise ZeroDivisionError

    prepared = make_ledger(policy=Policy("1", fail, fail)).prepare(request("chat", TURN))
    assert prepared.body == request("chat", TURN)
    assert set(prepared.faults) == {"policy: ZeroDivisionError"}
    later = make_ledger(policy=Telling().policy()).apply(request("chat", TURN))
    assert later == request("chat", TURN)


def test_a_store_that_replaces_secrets_is_given_none(tmp_path):
    secret = "password = hunter2hunter2"
    with Gate.open(tmp_path, Settings(store=StoreSettings(redact=True))) as gate:
        policy = Policy("1", lambda r, t: secret, lambda o: [Addition(secret)])
        ledger = Ledger(lambda: gate.store, scope="x", wire="chat", session="s", policy=policy)
        body = ledger.apply(request("chat", TURN))
        assert shown(body)[-1] == RESULT["content"]
        told = ledger.apply(request("chat", [USER]))
        gate.close()
        raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"hunter2" not in raw
    assert b"hunter2" not in told


def test_a_session_that_is_shown_a_marker_again_may_look_behind_it(tmp_path):
    log = "".join(f"2025-03-04 10:00:{n % 60:02d} INFO worker {n} done\n" for n in range(900))
    turn = [USER, CALL, RESULT | {"content": log}]
    with Gate.open(tmp_path, Settings()) as gate:

        def ledger_of(session):
            door = gate.session(session)

            def decide(result, text):
                return door.tool_result(name=result.tool, args=result.args, text=text, call_id=result.call_id)

            return Ledger(
                lambda: gate.store, scope="x", wire="chat", session=session, policy=Policy("1", decide)
            )

        first = ledger_of("a").apply(request("chat", turn))
        assert len(first) < len(log) / 2
        assert ledger_of("b").apply(request("chat", turn)) == first
        for session in "ab":
            assert gate.session(session).retrieve(shown(first)[-1].partition("\n")[0]).total_lines == 900
            assert gate.session(session).original(shown(first)[-1].partition("\n")[0]).text == log


def test_one_shot_notes_are_native_where_they_can_be_and_texts_elsewhere(make_ledger):
    ledger = make_ledger("anthropic", policy=Telling("note").policy())
    body = request("anthropic", [USER])
    native = json.loads(ledger.apply(body, native=True))["messages"]
    assert native == [USER, {"role": "system", "content": "told 1", "clear_at": "next_user_message"}]
    plain = json.loads(ledger.apply(body, native=False))["messages"]
    assert plain == [USER | {"content": "do it\n\ntold 1"}]
    longer = request("anthropic", [USER, {"role": "assistant", "content": "ok"}, USER])
    for kind in (True, False):
        before, after = (ledger.apply(each, native=kind) for each in (body, longer))
        assert request_prefix(after, "anthropic").startswith(request_prefix(before, "anthropic"))


def test_only_the_newest_message_is_told_anything(make_ledger):
    messages = [USER, {"role": "assistant", "content": "ok"}, USER | {"content": "next"}]
    body = make_ledger(policy=Telling().policy()).apply(request("chat", messages))
    assert shown(body) == ["do it", "ok", "next\n\ntold 1"]
    rewound = make_ledger(policy=Telling().policy()).apply(request("chat", messages[:1]))
    assert shown(rewound) == ["do it"]
