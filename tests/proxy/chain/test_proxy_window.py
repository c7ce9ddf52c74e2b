"""With a window set, a history that outgrows it is compacted once, and so ever after."""

from __future__ import annotations

import pytest
from conversations import call, loop, requests, result, user
from test_proxy_chain import send

from turngate.proxy.chain.compacting import fitted
from turngate.wire import request_prefix, violations

WINDOW = 4_000
pytestmark = pytest.mark.parametrize("wire", ["chat", "anthropic"])


def long_history(wire):
    messages = [user(wire, "What went wrong?")]
    for turn in range(30):
        messages += [*call(wire, f"call_{turn}", f"Step {turn}: " + "thinking aloud " * 40)]
        messages.append(result(wire, f"call_{turn}", f"fine {turn} " * 30))
    return [*messages, *call(wire, "last")]


def test_it_fits_and_is_valid(engine, gate, wire):
    for part in requests(wire, long_history(wire)):
        sending = send(engine, wire, part)
        small = fitted(gate, sending, WINDOW)
        assert not violations(small.body, wire)
    assert small.epochs
    assert len(small.body) < len(sending.body) / 2


def test_between_two_compactions_each_request_extends_the_one_before(engine, gate, wire):
    before, epochs, breaks = b"", 0, 0
    for part in requests(wire, long_history(wire)):
        small = fitted(gate, send(engine, wire, part), WINDOW)
        now = request_prefix(small.body, wire)
        breaks += small.epochs == epochs and not now.startswith(before)
        before, epochs = now, small.epochs
    assert not breaks


def test_a_further_round_goes_behind_the_last_message(engine, gate, wire):
    part = requests(wire, long_history(wire))[-1]
    for earlier in requests(wire, long_history(wire)):
        send(engine, wire, earlier)
    small = fitted(gate, send(engine, wire, part), WINDOW)
    import json  # noqa: PLC0415

    more = ",".join(json.dumps(m) for m in [*call(wire, "x"), result(wire, "x", "y")]).encode()
    assert not violations(small.extended(more), wire)


def test_a_small_history_is_left_alone(engine, gate, wire):
    sending = send(engine, wire, requests(wire, loop(wire, 1))[0])
    assert fitted(gate, sending, WINDOW) is sending
    assert fitted(gate, sending, 0) is sending
