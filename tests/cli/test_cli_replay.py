"""`turngate replay`: what goes in, what comes out, and that the user's own files are only read."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

from turngate.replay.arms import ARMS
from turngate.replay.rules import PROVIDERS
from turngate.replay.run import ORIENTATION_TOKENS, SCHEMA_TOKENS

LOG = "\n".join(f"10:00:{n % 60:02} INFO worker job {n} done in {n * 7 % 91} ms" for n in range(700))

PROBE = {
    "file": "one.json",
    "question": "How long did job 433 take?",
    "answers": ["job 433 done in 28 ms"],
    "first_message_index": 2,
}


def chat(text=LOG, turns=2):
    out = [{"role": "user", "content": "Go"}]
    for i in range(turns):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        out += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": f"{i}\n{text}"},
        ]
    return [*out, {"role": "assistant", "content": "done"}]


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "one.json"
    path.write_text(json.dumps(chat()))
    return path


class TestTable:
    def test_it_compares_all_policies_at_all_providers_with_none(self, run, session, data_dir):
        done = run("replay", session)
        assert done.code == 0
        rows = {line.split()[0]: line for line in done.text.splitlines() if line}
        assert {"none", "head-tail", "mask", "turngate"} <= rows.keys()
        assert all(provider in done.text.splitlines()[0] for provider in PROVIDERS)
        assert rows["turngate"].count("%") == len(PROVIDERS)
        assert "estimates" in done.text
        assert not data_dir.exists()

    def test_policies_and_providers_can_be_chosen(self, run, session):
        done = run("replay", session, "--arm", "turngate", "--provider", "gemini")
        assert "mask" not in done.text
        assert "anthropic" not in done.text
        assert "none" in done.text

    def test_several_sessions_are_listed_and_summed(self, run, tmp_path, session):
        (tmp_path / "two.jsonl").write_text("\n".join(map(json.dumps, chat(turns=3))))
        done = run("replay", tmp_path)
        assert "2 sessions, 7 requests" in done.text
        assert "one.json" in done.text
        assert "two.jsonl" in done.text

    def test_without_probes_facts_are_unknown_and_a_line_says_how_to_ask(self, run, session, tmp_path):
        done = run("replay", session)
        rows = {line.split()[0]: line.split() for line in done.text.splitlines() if line}
        assert all(rows[arm][-2:] == ["–", "–"] for arm in ARMS)
        assert "--probes FILE" in done.text
        (tmp_path / "p.txt").write_text(json.dumps(PROBE))
        done = run("replay", session, "--probes", tmp_path / "p.txt")
        rows = {line.split()[0]: line.split() for line in done.text.splitlines() if line}
        assert [rows[arm][-2:] for arm in ARMS] == [["0", "0"], ["0", "1"], ["0", "0"], ["1", "0"]]
        assert "--probes" not in done.text

    def test_why_a_small_session_costs_more_is_said_when_one_does(self, run, session, tmp_path):
        assert "costs more" not in run("replay", session).text
        (tmp_path / "small.json").write_text(json.dumps(chat("ok")))
        done = run("replay", tmp_path)
        assert "turngate costs more than none in 1 of 2 sessions" in done.text
        words = " ".join(done.text.split())
        assert f"({SCHEMA_TOKENS + ORIENTATION_TOKENS} tokens)" in words
        assert "1,024 at anthropic" in words

    def test_an_unknown_model_is_unknown_in_the_table(self, run, session):
        done = run("replay", session, "--model", "acme-1")
        assert done.text.count("unknown") == 4 * len(PROVIDERS)
        assert "$0.00" not in done.text
        assert "No price is known for acme-1;" in done.text

    def test_one_unknown_model_among_others_takes_no_sum_away_and_adds_no_zero(self, run, session, tmp_path):
        known = run("replay", session, "--json").json["total"]["none"]["providers"]["openai"]["dollars"]
        (tmp_path / "acme.json").write_text(json.dumps({"model": "acme-1", "messages": chat()}))
        value = run("replay", tmp_path, "--json").json
        cost = value["total"]["none"]["providers"]["openai"]
        assert (cost["dollars"], cost["known_dollars"]) == (None, known)
        assert value["notes"][0].startswith("No price is known for acme-1;")
        (row,) = [line for line in run("replay", tmp_path).text.splitlines() if line.startswith("none ")]
        assert row.count("≥$") == len(PROVIDERS)


class TestJson:
    def test_it_has_every_turn_of_every_policy(self, run, session):
        value = run("replay", session, "--json").json
        (one,) = value["sessions"]
        assert one["name"] == str(session)
        turns = one["arms"]["turngate"]["turns"]
        assert len(turns) == 3
        assert turns[1]["reused_bytes"] == turns[0]["request_bytes"]
        anthropic = one["arms"]["none"]["turns"][2]["providers"]["anthropic"]
        assert anthropic["read_tokens"] > 0
        assert anthropic["dollars"] > 0
        total = value["total"]["turngate"]
        assert total["input_tokens"] == sum(turn["input_tokens"] for turn in turns)
        assert total["providers"]["anthropic"]["share_above_none"] < 0
        assert value["basis"]["rules_as_of"] == "2026-11-30"
        assert value["basis"]["assumed"]["gemini"]

    def test_what_was_not_asked_is_null_and_notes_say_why(self, run, session, tmp_path):
        value = run("replay", session, "--json").json
        assert (value["total"]["turngate"]["facts"], value["total"]["turngate"]["lost"]) == (0, None)
        assert value["sessions"][0]["arms"]["mask"]["retrieved"] is None
        (note,) = value["notes"]
        assert "--probes FILE" in note
        (tmp_path / "small.json").write_text(json.dumps(chat("ok")))
        small, _ = run("replay", tmp_path / "small.json", "--json").json["notes"]
        assert small.startswith("turngate costs more than none in this session")

    def test_an_unknown_price_is_null(self, run, session):
        value = run("replay", session, "--json", "--model", "acme-1").json
        assert value["total"]["none"]["providers"]["openai"]["dollars"] is None
        assert value["sessions"][0]["offers"][0]["price_known"] is False

    def test_facts_are_charged(self, run, session, tmp_path):
        (tmp_path / "p.txt").write_text(json.dumps(PROBE))
        value = run("replay", session, "--json", "--probes", tmp_path / "p.txt").json
        assert value["total"]["turngate"]["retrieved"] == 1
        assert (value["total"]["none"]["facts"], value["total"]["none"]["lost"]) == (1, 0)
        assert value["notes"] == []


class TestBadInput:
    def test_faults_are_told_with_file_and_line_and_the_rest_goes_on(self, run, tmp_path, session):
        (tmp_path / "broken.json").write_text('[\n{"role": "user"')
        (tmp_path / "empty.jsonl").write_text("")
        done = run("replay", tmp_path, "--json")
        assert done.code == 0
        assert [s["name"] for s in done.json["sessions"]] == [str(session)]
        assert f"turngate: {tmp_path}/broken.json:2: not JSON" in done.err
        assert len(done.json["faults"]) == 2

    def test_a_folder_with_every_fault_names_each_by_line_and_replays_the_rest(self, run, tmp_path, session):
        long = [json.dumps(message) for message in chat("ok", turns=500)]
        long[899] = long[899][:25]
        claude = {"type": "user", "uuid": "1", "sessionId": "a", "message": {"role": "user", "content": "Hi"}}
        files = {
            "cut.json": json.dumps(chat(), indent=1)[:400],
            "cut.jsonl": "\n".join(map(json.dumps, chat()))[:-9],
            "empty.json": "[]",
            "line900.jsonl": "\n".join(long),
            "mixed.jsonl": "\n".join(map(json.dumps, [*chat(), claude])),
            "nocalls.json": json.dumps([m for m in chat() if not m.get("tool_calls")]),
            "other.json": '{"name": "package"}',
        }
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        done = run("replay", tmp_path, "--json")
        assert done.code == 0
        names = [s["name"].rpartition("/")[2] for s in done.json["sessions"]]
        assert names == ["cut.jsonl", "line900.jsonl", "mixed.jsonl", "nocalls.json", "one.json"]
        told = [fault.removeprefix(f"{tmp_path}/") for fault in done.json["faults"]]
        assert [re.match(r"[\w.]+:\d+: [\w ]+", fault)[0] for fault in told if "orphan" not in fault] == [
            "cut.json:23: not JSON",
            "cut.jsonl:6: not JSON",
            "empty.json:1: no answer of a model in ",
            "line900.jsonl:900: not JSON",
            "mixed.jsonl:7: not a message line",
            "other.json:1: not a session",
        ]
        orphans = [fault.partition(" ")[0] for fault in told if "orphan" in fault]
        assert orphans == ["line900.jsonl:901:", "nocalls.json:1:", "nocalls.json:1:"]

    def test_nothing_that_can_be_replayed_is_a_failure(self, run, tmp_path):
        (tmp_path / "empty.json").write_text("[]")
        done = run("replay", tmp_path)
        assert done.code == 1
        assert "empty.json:1" in done.err
        assert run("replay", tmp_path, "--json").json["sessions"] == []

    @pytest.mark.parametrize("argv", [(), ("x.json", "--arm", "best"), ("x.json", "--provider", "acme")])
    def test_wrong_usage_says_what_is_possible(self, run, argv):
        done = run("replay", *argv)
        assert done.code == 2
        assert any(word in done.err for word in ("--claude-code", "head-tail", "deepseek"))

    @pytest.mark.parametrize("place", [1, 99, -1])
    def test_a_probe_whose_message_lacks_the_answer_is_named_and_left_out(
        self, run, session, tmp_path, place
    ):
        rows = [PROBE, PROBE | {"first_message_index": place, "used_message_index": 5}]
        (tmp_path / "p.txt").write_text("\n".join(map(json.dumps, rows)))
        done = run("replay", session, "--probes", tmp_path / "p.txt", "--json")
        assert done.json["total"]["none"]["facts"] == 1
        assert done.json["total"]["none"]["lost"] == 0
        assert f"does not stand in message {place}; the probe is left out" in done.err

    def test_bad_probes_stop_before_the_work(self, run, session, tmp_path):
        (tmp_path / "p.txt").write_text("{")
        done = run("replay", session, "--probes", tmp_path / "p.txt")
        assert done.code == 1
        assert "p.txt:1: no probe" in done.err


class TestClaudeCode:
    def test_the_users_sessions_are_summed_up_and_only_read(self, run, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        folder = tmp_path / ".claude" / "projects" / "-p"
        folder.mkdir(parents=True)
        for name in ("a", "b"):
            lines = [
                {
                    "type": "user",
                    "uuid": "1",
                    "sessionId": name,
                    "message": {"role": "user", "content": "Hi"},
                },
                {
                    "type": "assistant",
                    "uuid": "2",
                    "sessionId": name,
                    "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "ok"}]},
                },
            ]
            (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
        before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
        done = run("replay", "--claude-code")
        assert done.code == 0
        assert "2 sessions, 2 requests" in done.text
        assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


class TestPage:
    def test_it_holds_figures_results_and_faults_and_names_no_address(self, run, tmp_path, session):
        evil = "</script><script>alert(1)</script>\n" + LOG
        (tmp_path / "evil.json").write_text(json.dumps(chat(evil)))
        (tmp_path / "bad.json").write_text("<b>")
        done = run("replay", tmp_path, "--html", tmp_path / "r.html")
        assert f"report: {tmp_path}/r.html" in done.text
        page = (tmp_path / "r.html").read_text()
        assert page.count("<script") == 2
        assert evil in unescape(page)
        assert "bad.json:1: not JSON" in page
        assert 'href="http' not in page
        assert "src=" not in page
        assert "default-src 'none'" in page
        assert "<td>–</td><td>–</td>" in page
        assert "--probes FILE" in page

    def test_it_says_why_a_small_session_costs_more(self, run, tmp_path):
        (tmp_path / "small.json").write_text(json.dumps(chat("ok")))
        run("replay", tmp_path / "small.json", "--html", tmp_path / "r.html")
        assert "turngate costs more than none in this session" in unescape((tmp_path / "r.html").read_text())

    def test_with_json_the_note_goes_to_stderr(self, run, tmp_path, session):
        done = run("replay", session, "--json", "--html", tmp_path / "r.html")
        assert done.json["sessions"]
        assert "report:" in done.err
