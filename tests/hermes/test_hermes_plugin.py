"""The plugin in the real agent: what the model was sent, what the host stored, what the plugin knows."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from giant import report
from hermes_agent import PIXEL, TOOLSETS, Agent
from hermes_wire import breaks, marker_id, output
from stub import by_conversation, call, say, terminal, wait_for

COUNTING = "".join(f"{number}\n" for number in range(1, 3001)).rstrip("\n")
ORIENTATION = "[turngate: first-turn orientation]"


@pytest.fixture(scope="module")
def agent(tmp_path_factory, stub):
    agent = Agent(tmp_path_factory.mktemp("agent"), stub)
    shutil.copytree(Path(__file__).with_name("giant"), agent.home / "plugins" / "giant")
    agent.configure({"plugins": {"enabled": ["turngate", "giant"]}})
    return agent


@pytest.fixture(scope="module")
def talks(agent):
    with agent.process() as process:
        yield process


def retrieve(of=0, **ways):
    """Ask for what result number `of` hides."""
    return lambda request: call(("turngate_retrieve", {"hash": marker_id(request.results[of]), **ways}))


def test_a_terminal_result_is_shortened_and_comes_back_byte_identical(talks, stub, agent):
    stub.play(terminal("seq 1 3000; exit 3"), retrieve(), say())
    session = talks.turn("count", name="back")["session"]
    shown, back = stub.requests[-1].results
    assert not stub.faults
    assert output(shown).startswith("<<<CCR:")
    assert len(shown) < 500
    assert json.loads(shown)["exit_code"] == 3
    assert json.loads(back)["text"] == COUNTING
    stored = agent.rows(
        "SELECT content FROM messages WHERE session_id = ? AND role = 'tool' ORDER BY id", session
    )
    assert [content for (content,) in stored] == [shown, back]


def test_what_is_retrieved_is_not_shortened_again(talks, stub):
    stub.play(terminal("seq 1 3000"), retrieve(), retrieve(lines="100-2900"), say())
    state = talks.turn("count", name="again")["session"]
    whole, part = map(json.loads, stub.requests[-1].results[1:])
    assert whole["text"] == COUNTING
    assert part["text"].splitlines() == [str(number) for number in range(100, 2901)]
    assert talks.ask("plugin")["talks"][state]["stats"]["retrievals"] == 2


def test_error_lines_and_exit_code_stay_in_view(talks, stub):
    stub.play(terminal("seq 1 2000; echo 'ValueError: bad spoon'; seq 2001 4000; exit 7"), say())
    talks.turn("run it", name="errors")
    shown = json.loads(stub.requests[-1].results[0])
    assert "ValueError: bad spoon" in shown["output"]
    assert shown["exit_code"] == 7


def test_the_injected_block_lands_in_the_user_message_and_is_replayed(talks, stub, agent):
    stub.play(say("one"))
    session = talks.turn("first question", name="inject")["session"]
    sent = stub.requests[0].messages[-1]["content"]
    stub.play(say("two"))
    talks.turn("second question", name="inject")
    assert sent.startswith(f"first question\n\n{ORIENTATION}")
    assert stub.requests[0].messages[1]["content"] == sent
    assert stub.requests[0].messages[-1]["content"] == "second question"
    rows = agent.rows("SELECT content, api_content FROM messages WHERE session_id = ? ORDER BY id", session)
    assert rows[0] == ("first question", sent)


def test_earlier_bytes_of_a_conversation_never_change(talks, stub):
    stub.play(terminal("seq 1 3000"), terminal("seq 5000 9000"), retrieve(1, lines="7-9"), say("one"))
    talks.turn("count", name="prefix")
    before = stub.requests
    stub.play(terminal("seq 1 3000"), say("two"))
    talks.turn("and again", name="prefix")
    assert breaks([*before, *stub.requests]) == 0


def test_parallel_calls_get_a_marker_each(talks, stub):
    commands = [("terminal", {"command": f"seq {first} {first + 3000}"}) for first in (1, 50_000, 90_000)]
    stub.play(call(*commands), say())
    talks.turn("count thrice", name="parallel")
    shown = stub.requests[-1].results
    assert len({marker_id(result) for result in shown}) == 3
    assert [output(result).splitlines()[1] for result in shown] == ["1", "50000", "90000"]


def test_a_subagent_sees_what_its_parent_saw_and_leaves_its_state_alone(talks, stub):
    def ask_for_the_parents(request):
        return call(("turngate_retrieve", {"hash": hidden, "lines": "1000-1001"}))

    def end(request):
        child.append(request)
        return say("child")

    child = []
    stub.play(terminal("seq 1 3000"), say())
    parent = talks.turn("count", name="family", toolsets=f"{TOOLSETS},delegation")["session"]
    hidden = marker_id(stub.requests[-1].results[0])
    before = talks.ask("plugin")["talks"][parent]
    delegated = call(("delegate_task", {"goal": "go further", "context": "none"}))
    childs = by_conversation(
        {
            "count": [delegated, say("parent")],
            "go further": [terminal("seq 3000 6000"), ask_for_the_parents, end],
        }
    )
    stub.play(childs)
    assert talks.turn("delegate", name="family")["answer"] == "parent"
    assert wait_for(lambda: child), stub.faults
    assert output(child[0].results[0]).startswith("<<<CCR:")
    assert json.loads(child[0].results[1])["text"] == "1000\n1001\n"
    after = talks.ask("plugin")["talks"][parent]
    assert (before["turn"], after["turn"]) == (1, 2)
    assert after["stats"]["retrievals"] == before["stats"]["retrievals"]


def test_what_an_image_turn_would_drop_comes_with_the_next_text_turn(talks, stub, agent):
    picture = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    stub.play(say("a pixel"))
    session = talks.turn(picture, name="image")["session"]
    assert isinstance(stub.requests[0].messages[-1]["content"], list)
    assert ORIENTATION not in json.dumps(stub.requests[0].messages)
    before = stub.requests
    stub.play(say("bye"))
    talks.turn("and now?", name="image")
    assert ORIENTATION in stub.requests[0].messages[-1]["content"]
    assert talks.ask("plugin")["talks"][session]["turn"] == 1
    assert breaks([*before, *stub.requests]) == 0


def test_calls_inside_a_script_get_whole_json(talks, stub):
    code = (
        "from hermes_tools import terminal\n"
        "answer = terminal('seq 1 3000')\n"
        "print('lines', len(answer['output'].splitlines()))\n"
    )
    stub.play(call(("execute_code", {"code": code})), say())
    talks.turn("run code", name="script", toolsets=f"{TOOLSETS},code_execution")
    assert "lines 3000" in stub.requests[-1].results[0]


def test_a_huge_result_is_shortened_before_the_host_puts_it_away(talks, stub):
    def next_page(number):
        return retrieve(page=number)

    stub.play(call(("giant_report", {})), *map(next_page, range(1, 4)), say())
    talks.turn("report", name="huge", toolsets=f"{TOOLSETS},giant")
    shown, *pages = stub.requests[-1].results
    assert shown.startswith("<<<CCR:")
    assert "persisted-output" not in "".join(stub.requests[-1].results)
    answers = [json.loads(page) for page in pages]
    count = int(answers[0]["page"].split(" of ")[1])
    assert count > 20
    assert "".join(answer["text"] for answer in answers) == report()[: sum(len(a["text"]) for a in answers)]
    assert all(len(page) <= 38_400 for page in pages)


def test_a_terminal_flood_arrives_as_the_host_cuts_it_and_is_shortened(talks, stub):
    stub.play(terminal("seq 1 200000"), say())
    talks.turn("flood", name="flood")
    (shown,) = stub.requests[-1].results
    assert len(shown) < 5_000
    assert "persisted-output" not in shown


def test_other_results_keep_their_shape(talks, stub, agent):
    lines = (f"{'call' if number % 3 else 'skip'} {number * 7919} of a\n" for number in range(1500))
    (agent.work / "a.txt").write_text("".join(lines))
    stub.play(
        call(("read_file", {"path": "a.txt"})),
        call(("write_file", {"path": "b.txt", "content": "x" * 5000})),
        call(("search_files", {"pattern": "call", "path": "a.txt", "limit": 400})),
        say(),
    )
    talks.turn("look around", name="shapes")
    read, wrote, found = map(json.loads, stub.requests[-1].results)
    assert read["content"].count("\n") > 100
    assert "CCR:" not in json.dumps([read, wrote])
    assert found["matches_text"].startswith("<<<CCR:")
    assert found["total_count"] >= 400


def test_the_smoke_test_succeeds_beside_the_host(hermes_bin, agent):
    done = subprocess.run(
        [hermes_bin / "turngate", "doctor", "--mode", "full", "--json"],
        env=agent.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["failed"]) == (0, {})
    assert report["outcomes"]["engine_can_be_copied"] is True


def test_the_host_reports_no_fault_of_ours(talks):
    assert talks.ask("plugin")["faults"] == {}
