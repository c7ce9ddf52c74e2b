"""The context engine in the real agent: what the model was sent before and after, and what the host stored.

Windows are filled by what the stub reports, as a provider would; where it reports nothing, by real volume.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import contextmanager
from pathlib import Path

import pytest
from hermes_agent import PIXEL, TOOLSETS, Agent
from hermes_wire import breaks, marker_id
from stub import by_conversation, call, overflow, say, terminal, wait_for

from turngate import wire
from turngate.gate import Gate
from turngate.settings import Settings

ENGINE = {"context": {"engine": "turngate"}, "plugins": {"enabled": ["turngate", "giant"]}}
ORIENTATION = "[turngate: first-turn orientation]"
FULL, EMPTY = 60_000, 9_000
RECORD_END = "[End of the record. The conversation goes on below.]"


def make(folder, stub, config=None, **env):
    agent = Agent(
        folder, stub, env={"TURNGATE_CONTEXT_ENGINE": "1", "TURNGATE_STORE_BUSY_TIMEOUT_MS": "50"} | env
    )
    shutil.copytree(Path(__file__).with_name("giant"), agent.home / "plugins" / "giant")
    agent.configure(ENGINE | (config or {}))
    return agent


@pytest.fixture(scope="module")
def agent(tmp_path_factory, stub):
    return make(tmp_path_factory.mktemp("engine"), stub)


@pytest.fixture(scope="module")
def talks(agent):
    with agent.process() as process:
        yield process


def work(number, *, tokens=EMPTY):
    """A call whose output is just too short to be shortened, about 500 tokens."""
    command = f"for i in $(seq 1 60); do echo considerations $i, part {number}; done"
    return terminal(command, tokens=tokens)


def chain(count, *, then=FULL, first=1):
    """Calls one after the other, the last of which fills the window."""
    return [*(work(first + n) for n in range(count - 1)), work(first + count - 1, tokens=then)]


def record(request):
    """The record of a compaction in a request, or None."""
    for message in request.messages:
        if isinstance(message["content"], list) and message["content"][0].get("text", "").endswith(
            RECORD_END
        ):
            return message["content"][0]["text"]
    return None


def is_valid(request):
    return wire.violations(request.body, "chat") == []


@pytest.fixture(scope="module")
def done(talks, stub):
    stub.play(*chain(7), work(8), say("end", tokens=EMPTY))
    answer = talks.turn("work on", name="chain")
    first = stub.requests
    stub.play(say("second", tokens=EMPTY))
    talks.turn("and now", name="chain")
    return answer, [*first, *stub.requests]


class TestInTheMiddleOfAToolChain:
    def test_the_history_becomes_shorter_once_and_the_turn_goes_on(self, done, talks):
        answer, requests = done
        before, after = len(requests[6].raw), len(requests[7].raw)
        assert answer["answer"] == "end"
        assert record(requests[6]) is None
        assert record(requests[7]) is not None
        assert after < 0.8 * before
        assert talks.ask("engine", name="chain")["status"]["compression_count"] == 1
        assert breaks(requests) == 1

    def test_every_request_is_one_that_a_provider_accepts(self, done):
        assert all(map(is_valid, done[1]))

    def test_the_newest_user_message_keeps_what_was_injected_and_nothing_is_injected_twice(self, done):
        before, after = done[1][6], done[1][7]
        asked = before.messages[1]
        assert asked["content"].startswith(f"work on\n\n{ORIENTATION}")
        assert asked in after.messages
        assert after.raw.count(ORIENTATION.encode()) == 1
        assert done[1][-1].raw.count(ORIENTATION.encode()) == 1

    def test_the_last_calls_stay_word_for_word(self, done):
        assert done[1][7].messages[-2:] == done[1][8].messages[-4:-2]
        assert json.loads(done[1][7].results[-1])["output"].count("\n") == 59

    def test_what_went_can_be_had_back_whole(self, done, agent):
        ref = marker_id(record(done[1][7]))
        with agent.gate() as gate:
            text = gate.session(done[0]["session"]).retrieve(ref, expand=True).text
        left = {message.get("tool_call_id") for message in done[1][7].messages}
        gone = [
            m["content"] for m in done[1][6].messages if m["role"] == "tool" and m["tool_call_id"] not in left
        ]
        assert len(gone) > 2
        assert all(content in text for content in gone)

    def test_the_host_keeps_the_old_rows_and_marks_them(self, done, agent):
        rows = agent.rows(
            "SELECT active, compacted, count(*) FROM messages WHERE session_id = ? GROUP BY 1, 2",
            done[0]["session"],
        )
        assert {(active, compacted) for active, compacted, _ in rows} == {(1, 0), (0, 1)}

    def test_other_plugins_are_told(self, done, agent):
        told = [json.loads(line) for line in (agent.home / "compressed.jsonl").read_text().splitlines()]
        (mine,) = [each for each in told if each["stats"]["session"] == done[0]["session"]]
        assert mine["engine"] == "turngate"
        assert mine["stats"]["after_tokens"] < 0.95 * mine["stats"]["before_tokens"]

    def test_a_resumed_session_sends_the_same_record(self, done, agent, stub):
        sent = done[1][-1]
        stub.play(say("resumed", tokens=EMPTY))
        assert agent.chat("go on", resume=done[0]["session"]).code == 0
        assert record(stub.requests[0]) == record(sent)
        # The host itself forgets the name of a tool message when it resumes a session.
        plain = [[m | {"name": ""} for m in request.messages] for request in (sent, stub.requests[0])]
        assert plain[1][: len(plain[0])] == plain[0]


def test_what_newer_hosts_ask_is_answered(talks, done):
    """Methods of 0.21, by their documented signatures."""
    said = talks.ask("later_host", name="chain")
    assert said["pruned"] == said["history"]
    assert said["selected_is_history"]
    assert said["squeezed"] < said["history"]
    assert said["info"]["should_compress"] is True
    assert said["untouched"]
    assert said["copied"]


def test_on_overflow_the_history_is_shortened_until_the_provider_takes_it(talks, stub):
    stub.play(*(work(n) for n in range(1, 13)), overflow(), overflow(), say("fits", tokens=EMPTY))
    assert talks.turn("overflow", name="overflow")["answer"] == "fits"
    sizes = [len(request.raw) for request in stub.requests[-3:]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[1] > sizes[2]
    assert all(map(is_valid, stub.requests))


def test_compactions_that_win_nothing_do_not_stop_later_ones(talks, stub):
    """D1: the host's own compressor gives up for good after two."""
    stub.play(
        *(terminal(f"echo {n}", tokens=64_500) for n in range(4)),
        *chain(8, then=EMPTY),
        overflow(),
        say("ok"),
    )
    assert talks.turn("latch", name="latch")["answer"] == "ok"
    assert record(stub.requests[-1]) is not None


def test_the_window_is_full_before_it_overflows(talks, stub):
    """D2: the host's own threshold at 65,536 is 97.7 percent of the window."""
    stub.play(say("hi", tokens=100))
    talks.turn("hi", name="size")
    status = talks.ask("engine", name="size")["status"]
    assert status["threshold_tokens"] <= 0.86 * status["context_length"]


def test_a_full_window_costs_far_fewer_bytes_afterwards(talks, stub, agent):
    """D11: with large results the host's own compressor wins 18 percent."""
    reads = []
    for number in range(13):
        lines = (f"{number}.{line}: {'lorem ipsum dolor sit amet'[: line % 26]}\n" for line in range(260))
        (agent.work / f"doc{number}.txt").write_text("".join(lines))
        reads.append(
            call(("read_file", {"path": f"doc{number}.txt"}), tokens=FULL if number == 12 else EMPTY)
        )
    stub.play(*reads, say("read", tokens=EMPTY))
    talks.turn("read all", name="gain")
    before, after = len(stub.requests[7].raw), len(stub.requests[13].raw)
    assert before > 60_000
    fixed = len(stub.requests[0].raw)
    assert after < 0.7 * before
    assert after - fixed < 0.5 * (before - fixed)


def test_without_reported_usage_the_hosts_estimates_count(talks, stub, agent):
    stub.reports_usage = False
    try:
        for number in range(8):
            (agent.work / f"big{number}.txt").write_text(f"{number} is the word of this line\n" * 1_200)
        stub.play(
            *(call(("read_file", {"path": f"big{number}.txt", "limit": 1_000})) for number in range(8)),
            say("read"),
        )
        assert talks.turn("read a lot", name="unreported")["answer"] == "read"
        sizes = [len(request.raw) for request in stub.requests]
        assert max(sizes) < 4 * 62_000
        assert sizes[-1] < 0.5 * max(sizes)
    finally:
        stub.reports_usage = True


def test_an_image_turn_with_the_engine_loses_nothing(talks, stub):
    """D10: what the host would drop beside the image comes with the next text."""
    stub.play(say("a pixel", tokens=EMPTY))
    talks.turn(
        [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PIXEL}}], name="image"
    )
    stub.play(*chain(7), say("end", tokens=EMPTY))
    talks.turn("work now", name="image")
    assert record(stub.requests[-1]) is not None
    assert stub.requests[-1].raw.count(ORIENTATION.encode()) == 1
    assert is_valid(stub.requests[-1])


def test_a_subagent_has_an_engine_of_its_own(talks, stub):
    ended = []

    def end(request):
        ended.append(request)
        return say("child", tokens=EMPTY)

    child = [*chain(7, first=100), end]
    delegated = call(("delegate_task", {"goal": "go further", "context": "none"}), tokens=EMPTY)
    stub.play(by_conversation({"parent": [delegated, say("parent", tokens=EMPTY)], "go further": child}))
    talks.turn("parent", name="family", toolsets=f"{TOOLSETS},delegation")
    assert wait_for(lambda: ended), stub.faults
    assert record(ended[0]) is not None
    assert talks.ask("engine", name="family")["status"]["compression_count"] == 0


def test_the_engine_reports_no_fault(talks):
    assert talks.ask("plugin")["faults"] == {}


@contextmanager
def locked(path):
    """Nobody else can write."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def test_with_a_locked_database_the_turn_goes_on_whole(talks, stub, agent):
    """D5: an exception of an engine ends the host's process in one of the places where it asks."""
    with locked(agent.data_dir / "turngate.sqlite3"):
        stub.play(*chain(6), say("end", tokens=FULL))
        assert talks.turn("locked", name="locked")["answer"] == "end"
    assert record(stub.requests[-1]) is None
    assert len(stub.requests[-1].results) == 6


def test_a_conversation_that_goes_on_under_a_new_id_extends_its_record(tmp_path, stub):
    agent = make(tmp_path, stub, {"compression": {"enabled": True, "in_place": False}})
    with agent.process() as process:
        stub.play(*chain(7), say("one", tokens=EMPTY))
        old = process.turn("work", name="rotated")["session"]
        first = record(stub.requests[-1])
        hidden = marker_id(first)
        back = call(("turngate_retrieve", {"hash": hidden, "lines": "1-2"}), tokens=EMPTY)
        stub.play(back, *chain(7, first=50), say("two", tokens=EMPTY))
        new = process.turn("more", name="rotated")["session"]
        assert json.loads(stub.requests[1].results[-1])["found"]
        assert record(stub.requests[-1]).count("<<<CCR:") >= 2
        assert process.ask("plugin")["faults"] == {}
    assert len({old, new}) == 2


def test_without_the_switch_the_host_takes_its_own_engine(tmp_path, stub):
    agent = Agent(tmp_path, stub, config={"context": {"engine": "turngate"}})
    stub.play(terminal("seq 1 3000"), say("fine"))
    done = agent.chat("hello")
    assert (done.code, "fine" in done.out) == (0, True)
    assert stub.requests[-1].results[0].count("<<<CCR:") == 1


def test_a_broken_plugin_costs_no_turn(tmp_path, stub):
    """No folder for the store, nonsense for settings: the agent works as without it."""
    agent = make(tmp_path, stub)
    agent.data_dir.parent.mkdir(parents=True, exist_ok=True)
    agent.data_dir.write_text("a file where a folder should be")
    config = tmp_path / "broken.toml"
    config.write_text("this is = not [toml")
    agent.env["TURNGATE_CONFIG"] = str(config)
    stub.play(terminal("seq 1 3000"), *chain(6), say("done", tokens=FULL))
    done = agent.chat("work")
    assert (done.code, "done" in done.out) == (0, True)
    assert json.loads(stub.requests[-1].results[0])["output"].splitlines()[-1] == "3000"


@pytest.fixture(scope="module")
def shown(tmp_path_factory, stub):
    agent = make(tmp_path_factory.mktemp("screen"), stub)
    seen = {"agent": agent}
    with agent.screen("-t", TOOLSETS) as screen:
        screen.wait("❯", 60)
        stub.play(
            terminal("echo the banana is in the cellar", tokens=EMPTY),
            *chain(8, then=EMPTY),
            terminal("seq 1 3000", tokens=EMPTY),
            say("ANSWER-A", tokens=EMPTY),
        )
        screen.enter("first question", "ANSWER-A")
        seen["first"] = stub.requests
        seen["stats"] = screen.enter("/turngate stats", "out of view")
        seen["explain"] = screen.enter("/turngate explain", "shortened so far")
        screen.enter("/compress banana", "ompress")
        screen.enter("/turngate off", "off for this session")
        stub.play(terminal("seq 1 3000", tokens=EMPTY), say("ANSWER-B", tokens=EMPTY))
        screen.enter("second question", "ANSWER-B")
        seen["second"] = stub.requests
        screen.enter("/turngate on", "on for this session")
        screen.enter("/new", "Type 1/2/3")
        screen.enter("1", "ew session")
        stub.play(*chain(7), say("ANSWER-C", tokens=EMPTY))
        screen.enter("third question", "ANSWER-C", 90)
        seen["third"] = stub.requests
    return seen


class TestAtTheKeyboard:
    """Commands, focus and /new, in the interactive program."""

    def test_stats_and_explain_tell_what_happened(self, shown):
        assert "1 of 10 results shortened" in shown["stats"]
        assert "first-turn orientation" in shown["explain"]
        assert "terminal: seq 1 3000" in shown["explain"]

    def test_compress_keeps_what_was_named(self, shown):
        request = shown["second"][0]
        assert record(request) is not None
        assert "the banana is in the cellar" in "".join(request.results)
        assert len(request.messages) < len(shown["first"][-1].messages)

    def test_off_lets_results_pass(self, shown):
        assert "CCR:" not in shown["second"][-1].results[-1]

    def test_after_new_the_engine_works_for_the_new_session(self, shown):
        """D9: the host leaves a plugin's engine bound to the old one."""
        agent = shown["agent"]
        sessions = [name for (name,) in agent.rows("SELECT id FROM sessions ORDER BY started_at")]
        assert len(sessions) == 2
        text = record(shown["third"][-1])
        with Gate.open(agent.data_dir, Settings()) as gate:
            ref = marker_id(text)
            assert gate.store.known([ref], session=sessions[1])
            assert not gate.store.known([ref], session=sessions[0])
