"""Hermes' state.db, read: what the plugin would have saved, replays, and markers that lead nowhere."""

from __future__ import annotations

import json
import sqlite3

import pytest

from turngate.cli import main
from turngate.errors import TranscriptError
from turngate.gate import Gate
from turngate.hermes import state
from turngate.hermes.checks import log_output
from turngate.replay.transcripts import read
from turngate.settings import Settings

#: The columns that are read, of the host's own tables (0.19.0).
TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, model TEXT, system_prompt TEXT, started_at REAL NOT NULL);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT,
    tool_calls TEXT, tool_name TEXT, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0, api_content TEXT
);
"""
CALL = [{"id": "c1", "call_id": "c1", "function": {"name": "terminal", "arguments": '{"command": "make"}'}}]
OUTPUT = json.dumps({"output": log_output(), "exit_code": 1, "error": None})
PARTS = [{"type": "text", "text": "look"}]


@pytest.fixture
def home(tmp_path):
    connection = sqlite3.connect(tmp_path / state.FILE)
    connection.executescript(TABLES)
    connection.execute("INSERT INTO sessions VALUES ('s1', 'm', 'You are.', 1764540000)")
    rows = [
        ("user", "\0json:" + json.dumps(PARTS), None, None, None, None, 1, 0),
        ("assistant", "", None, None, json.dumps(CALL), None, 1, 0),
        ("tool", OUTPUT, None, "c1", None, "terminal", 1, 0),
        ("user", "thanks", "thanks\n\n[injected]", None, None, None, 1, 0),
        ("assistant", "bye", None, None, None, None, 1, 0),
        ("user", "before", None, None, None, None, 0, 1),
        ("assistant", "gone", None, None, None, None, 0, 1),
    ]
    connection.executemany(
        "INSERT INTO messages (session_id, role, content, api_content, tool_call_id, tool_calls, tool_name,"
        " active, compacted) VALUES ('s1', ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    connection.commit()
    connection.close()
    return tmp_path


def test_messages_are_those_that_were_sent(home):
    messages = state.messages(home / state.FILE, "s1")
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert messages[0]["content"] == PARTS
    assert messages[1]["tool_calls"] == [{"id": "c1", "type": "function", "function": CALL[0]["function"]}]
    assert messages[3]["content"] == "thanks\n\n[injected]"
    before = state.messages(home / state.FILE, "s1", which="before")
    assert [message["content"] for message in before] == ["before", "gone"]


def test_sessions_are_weighed_without_storing_anything(home, capsys):
    assert main(["hermes", "sessions", "--home", str(home), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["results"], row["would_shorten"], row["already"]) == (1, 1, 0)
    assert row["saved_share"] > 0.9
    assert main(["hermes", "sessions", "--home", str(home)]) == 0
    assert "s1" in capsys.readouterr().out
    assert {path.name for path in home.iterdir()} == {state.FILE}


def test_what_the_plugin_shortened_is_counted_as_such(home):
    with Gate.open(home / "data", Settings()) as gate:
        shown = gate.session("s1").tool_result(name="terminal", text=log_output())
    connection = sqlite3.connect(home / state.FILE)
    with connection:
        connection.execute(
            "UPDATE messages SET content = ? WHERE role = 'tool'", (json.dumps({"output": shown}),)
        )
    connection.close()
    worth = state.worth(home / state.FILE, "s1")
    assert (worth.results, worth.shortened, worth.already) == (1, 0, 1)
    assert worth.saved_share == 0


def test_a_database_is_replayed_session_by_session(home):
    faults = []
    found = list(read(home / state.FILE, faults.append))
    assert [transcript.name.partition("#")[2] for transcript in found] == ["s1", "s1 (before compaction)"]
    assert [transcript.requests for transcript in found] == [2, 1]
    assert not faults


def test_another_database_is_a_fault_and_no_traceback(tmp_path, capsys):
    sqlite3.connect(tmp_path / state.FILE).executescript("CREATE TABLE x (y);").close()
    faults = []
    assert list(read(tmp_path / state.FILE, faults.append)) == []
    assert "no state.db of Hermes" in str(faults[0])
    with pytest.raises(TranscriptError):
        state.talks(tmp_path / state.FILE)
    assert main(["hermes", "sessions", "--home", str(tmp_path / "none")]) == 1
    assert "name Hermes' home" in capsys.readouterr().err


def test_the_doctor_names_markers_that_lead_nowhere(home, capsys, monkeypatch):
    monkeypatch.setenv("TURNGATE_DATA_DIR", str(home / "data"))
    (home / "config.yaml").write_text("plugins:\n  enabled: [turngate]\n")
    connection = sqlite3.connect(home / state.FILE)
    with connection:
        foreign = "⫷CCR:0123456789abcdef|log⫸"
        connection.execute("UPDATE messages SET content = ? WHERE role = 'tool'", (foreign,))
    connection.close()
    main(["doctor", "--hermes-home", str(home), "--json"])
    found = [each for each in json.loads(capsys.readouterr().out) if "lead to nothing" in each["what"]]
    assert len(found) == 1
    assert "aphrodite" in found[0]["remedy"]


@pytest.mark.parametrize(("mode", "checks"), [("quick", 10), ("full", 18)])
def test_the_doctors_modes_run_the_smoke_test(mode, checks, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TURNGATE_DATA_DIR", str(tmp_path))
    assert main(["doctor", "--mode", mode, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] == report["checks"] == checks


def test_a_failing_check_is_an_exit_code(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TURNGATE_DATA_DIR", str(tmp_path))
    monkeypatch.setattr("turngate.hermes.checks.ERROR", "what never stands in an output")
    monkeypatch.setattr("turngate.hermes.checks.log_output", lambda: "short")
    assert main(["doctor", "--mode", "quick"]) == 1
    assert "FAILED  shortens_a_result" in capsys.readouterr().out
