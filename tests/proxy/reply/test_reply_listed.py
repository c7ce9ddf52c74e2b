"""Gemini's stream as one JSON array: the same as its events, and the bytes stay where nothing is ours."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played import EVENTS, end_of, replies, seen, split, streamed

from turngate.proxy.errors import stream_error
from turngate.proxy.reply import OWN, stream_reply
from turngate.wire.sse import Frames, parse

OURS = ("call", "call_1", OWN, {"hash": "a" * 16})
BETWEEN = st.sampled_from([",\r\n", "\n,\n", ", "])


def array(reply, name="a", between=",\r\n", indent=None):
    events = EVENTS["gemini"](reply, end_of("gemini", reply), name)
    return ("[" + between.join(json.dumps(event, indent=indent) for event in events) + "\n]\n").encode()


def listed(made, cuts=(), **how):
    machine, out, rounds = stream_reply("gemini", listed=True), [], []
    for at, reply in enumerate(made):
        if at:
            machine.again()
        out += [machine.feed(chunk) for chunk in split(array(reply, str(at), **how), cuts)]
        rounds.append(machine.end())
    return b"".join([*out, machine.close()]), rounds


@settings(max_examples=40, deadline=None)
@given(made=replies(), cuts=st.lists(st.integers(0, 10**6), max_size=12), between=BETWEEN)
def test_it_says_what_the_events_say_wherever_it_is_cut(made, cuts, between):
    data, rounds = listed(made, cuts, between=between, indent=1)
    events, wanted = streamed("gemini", made)
    assert rounds == wanted
    assert json.loads(data) == [json.loads(parse(frame).data) for frame in Frames().feed(events)]
    assert (data, rounds) == listed(made, range(20_000), between=between, indent=1)


@settings(max_examples=20, deadline=None)
@given(made=replies(), cuts=st.lists(st.integers(0, 10**6), max_size=12), between=BETWEEN)
def test_without_a_call_of_ours_its_bytes_stay(made, cuts, between):
    data = array(seen(made[-1]), between=between, indent=2)
    machine = stream_reply("gemini", listed=True)
    out = b"".join(machine.feed(chunk) for chunk in split(data, cuts))
    machine.end()
    assert out + machine.close() == data


def test_an_element_is_relayed_as_soon_as_it_is_complete():
    machine = stream_reply("gemini", listed=True)
    data = array([("text", "one two three")])
    first = data.index(b"},\r\n") + 1
    assert machine.feed(data[: first - 1]) == b""
    assert machine.feed(data[first - 1 : first]) == data[:first]


@pytest.mark.parametrize("data", [b'{"error":{"code":500}}', b"\n oh no", b"[]", b"[1,2]", b" [ ] "])
def test_what_is_no_array_of_responses_passes(data):
    for size in (1, 3, 100):
        machine = stream_reply("gemini", listed=True)
        out = b"".join(machine.feed(data[at : at + size]) for at in range(0, len(data), size))
        machine.end()
        assert out + machine.close() == data


def test_a_fault_is_its_last_element():
    machine = stream_reply("gemini", listed=True)
    out = machine.feed(array([("text", "let me see"), OURS]))
    assert machine.end().own
    out += machine.fault(stream_error("gemini", "protocol", "the upstream refuses"))
    *_, last = json.loads(out)
    assert last["error"]["status"] == "UNAVAILABLE"


def test_an_element_that_is_cut_off_is_left_out():
    machine = stream_reply("gemini", listed=True)
    data = array([("text", "one two three")])
    out = machine.feed(data[:-40])
    machine.end()
    assert json.loads(out + machine.close() + b"]")
