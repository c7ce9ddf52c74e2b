"""Replays within a window: every arm's requests are compacted, and what was done is told."""

from __future__ import annotations

import orjson
import pytest
from click.testing import CliRunner

from turngate.cli.app import cli
from turngate.replay.arms import ARMS
from turngate.replay.costs import offers
from turngate.replay.report import session_dict
from turngate.replay.run import replay
from turngate.replay.transcripts import read


@pytest.fixture
def file(tmp_path):
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "find the bug"}]
    for at in range(12):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        output = "\n".join(f"{at} line {n}: {n * 7919 % 1009}" for n in range(200))
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": output},
        ]
    messages.append({"role": "assistant", "content": "done"})
    path = tmp_path / "session.json"
    path.write_bytes(orjson.dumps({"model": "claude-sonnet-5", "messages": messages}))
    return path


@pytest.fixture
def session(file):
    (session,) = read(file, lambda error: None)
    return session


@pytest.mark.parametrize("arm", list(ARMS))
def test_requests_stay_within_it_and_only_compactions_break_the_prefix(session, arm):
    terms = offers(session.model, ["anthropic"])
    (free,) = replay(session, [arm], terms)
    (kept,) = replay(session, [arm], terms, window_tokens=8_000)
    assert free.compactions == []
    # Shortened on arrival, the session fits as it is.
    assert bool(kept.compactions) is (arm != "turngate")
    assert kept.over == 0
    assert max(turn.input_tokens for turn in kept.turns) <= 8_000
    assert kept.wrong == []
    assert arm == "mask" or kept.breaks == 0


def test_the_report_says_what_became_of_which_messages(session):
    terms = offers(session.model, ["anthropic"])
    outcomes = replay(session, ["none"], terms, window_tokens=8_000)
    compacted = session_dict(session, terms, outcomes)["arms"]["none"]["compacted"]
    actions = {step["action"] for each in compacted for step in each["plan"]}
    assert actions >= {"keep", "summarise"}
    for each in compacted:
        assert each["providers"]["anthropic"]["dollars"] > 0
        assert each["after_tokens"] < each["before_tokens"]


def test_the_command_line_lists_each_compaction(file):
    done = CliRunner().invoke(cli, ["replay", str(file), "--window", "8000", "--arm", "none"])
    assert "summarise, older than what stays" in done.output
    assert "that request cost $" in done.output
    assert "none: " in done.output
