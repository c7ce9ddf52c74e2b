"""`turngate explain`: what was injected, and why."""

from __future__ import annotations

import json

import pytest

from turngate.cli import main
from turngate.gate import Gate
from turngate.settings import Settings


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    for name, value in (
        ("TURNGATE_DATA_DIR", folder),
        ("XDG_CONFIG_HOME", tmp_path / "c"),
        ("HOME", tmp_path),
    ):
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def run(data_dir, capsys):
    def call(*argv):
        code = main(["explain", *argv])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def told(data_dir):
    """Two turns of session `s`: the second has a task that the limit drops."""
    with Gate.open(data_dir, Settings()) as gate:
        session = gate.session("s")
        session.next_turn()
        texts = [session.turn_block()]
        session.push_nudge("mind the gap")
    with Gate.open(data_dir, Settings(flow_budget_chars=40)) as gate:
        session = gate.session("s")
        session.task("build", "running", "x" * 50)
        session.next_turn()
        return [*texts, session.turn_block()]


def test_every_turn_says_what_became_of_each_section_and_why(run, told):
    code, out, _ = run("s")
    assert code == 0
    for words in (
        "orientation: kept, ",
        "directives: in view since turn 1",
        "nudges: kept, 21 bytes",
        "background tasks: dropped, 0 of 96 bytes; the sections came to 118 bytes, the limit is 40",
    ):
        assert words in out


def test_one_turn_comes_with_its_text(run, told):
    code, out, _ = run("s", "--turn", "1")
    assert code == 0
    assert told[0] in out
    assert "nudges" not in out


def test_for_programs_all_of_it_is_json(run, told):
    value = json.loads(run("s", "--json")[1])
    assert [turn["turn"] for turn in value["turns"]] == [1, 2]
    assert [turn["text"] for turn in value["turns"]] == told
    assert value["turns"][1]["budget_bytes"] == 40
    assert [section["outcome"] for section in value["turns"][1]["sections"]] == ["in view", "kept", "dropped"]


@pytest.mark.parametrize(
    ("argv", "says"), [(("t",), "into session 't'"), (("s", "--turn", "9"), "into turn 9 of session 's'")]
)
def test_what_is_not_remembered_is_said(run, told, argv, says):
    code, out, err = run(*argv)
    assert (code, out) == (1, "")
    assert says in err


def test_looking_creates_no_store(run, data_dir):
    assert run("s")[0] == 1
    assert not data_dir.exists()
