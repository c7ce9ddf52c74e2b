"""The store goes and comes back: what was sent stays, what is new passes, and is known of afterwards."""

from __future__ import annotations

import pytest
from conversations import LONG, body, loop, requests
from test_proxy_chain import WIRES, extends, prefixes, send

from turngate.errors import StoreUnavailableError
from turngate.proxy.chain import engine as engine_module

pytestmark = pytest.mark.parametrize("wire", WIRES)


@pytest.fixture
def outage(gate, monkeypatch):
    monkeypatch.setattr(engine_module, "REST_SECONDS", 0.0)
    state = {"down": False}
    opened = gate._access.store

    def store():
        if state["down"]:
            raise StoreUnavailableError("the server is away")
        return opened()

    monkeypatch.setattr(gate._access, "store", store)
    monkeypatch.setattr(type(gate._access), "resting", property(lambda self: False))

    def switch(down):
        state["down"] = down

    return switch


def test_an_outage_breaks_no_prefix_and_loses_nothing(engine, new_engine, outage, wire):
    parts = requests(wire, loop(wire, 6))
    sent = [send(engine, wire, part) for part in parts[:3]]
    outage(True)
    sent += [send(engine, wire, part) for part in parts[3:5]]
    assert [each.degraded for each in sent] == [False, False, False, True, True]
    assert not engine.store_ok
    outage(False)
    assert engine.catch_up()
    sent += [send(engine, wire, part) for part in parts[5:]]
    assert extends(prefixes(sent, wire))
    assert sent[-1].shortened == 1
    elsewhere = send(new_engine(), wire, parts[-1])
    assert elsewhere.body == sent[-1].body


def test_a_conversation_that_begins_in_an_outage_is_never_shortened(engine, outage, wire):
    parts = requests(wire, loop(wire, 2))
    outage(True)
    first = send(engine, wire, parts[0])
    outage(False)
    later = [send(engine, wire, part) for part in parts[1:]]
    assert not first.offered
    assert [each.body for each in later] == [body(wire, part) for part in parts[1:]]
    assert LONG.splitlines()[200].encode() in later[-1].body


def test_another_replica_that_starts_in_an_outage_sends_what_was_sent(engine, new_engine, outage, wire):
    parts = requests(wire, loop(wire, 3))
    sent = [send(engine, wire, part) for part in parts]
    other = new_engine()
    send(other, wire, parts[0])
    outage(True)
    again = send(other, wire, parts[-1])
    assert again.body.startswith(sent[1].body[: sent[1].at])
