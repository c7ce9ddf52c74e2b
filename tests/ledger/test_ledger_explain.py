from __future__ import annotations

import json

import pytest

from turngate.cli import main
from turngate.gate import Gate
from turngate.ledger import Ledger
from turngate.settings import Settings

HISTORY = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
]


@pytest.fixture
def explain(tmp_path, monkeypatch, capsys):
    for name in ("XDG_CONFIG_HOME", "HOME", "TURNGATE_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))

    def call(*argv):
        code = main(["explain", *argv])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def send(tmp_path):
    def call(*requests):
        with Gate.open(tmp_path, Settings()) as gate:
            ledger = Ledger(lambda: gate.store, scope="x", wire="chat", session="s")
            for messages in requests:
                gate.session("s").next_turn()
                ledger.apply(messages)

    return call


def test_every_break_is_told_with_its_turn_place_and_reason(explain, send):
    edited = [HISTORY[0] | {"content": "uno"}, *HISTORY[1:]]
    send(HISTORY[:1], HISTORY, edited, edited[:1])
    code, out, _ = explain("s")
    assert code == 0
    first, second = out.splitlines()
    assert first.startswith("request 3 in turn 3 broke the prefix: message edited (messages[0]: ")
    assert second.startswith("request 4 in turn 4 broke the prefix: message removed (messages[1]: ")
    breaks = json.loads(explain("s", "--turn", "4", "--json")[1])["breaks"]
    assert [(each["request"], each["message"], each["reason"]) for each in breaks] == [
        (4, 1, "message removed")
    ]


def test_a_session_without_a_break_is_told_so(explain, send):
    send(HISTORY[:1], HISTORY)
    assert explain("s")[:2] == (0, "every request began with what was sent before\n")


def test_a_session_that_sent_nothing_is_unknown(explain, send):
    send(HISTORY)
    code, out, err = explain("t")
    assert (code != 0, out) == (True, "")
    assert "'t'" in err
