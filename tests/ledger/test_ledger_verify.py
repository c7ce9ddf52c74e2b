from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.ledger.histories import WIRES, histories, request

from turngate.ledger import BEFORE_MESSAGES, REASONS, Footprint, Step, verify

TOOLS = {
    "chat": [{"type": "function", "function": {"name": "run", "parameters": {}}}],
    "anthropic": [{"name": "run", "input_schema": {"type": "object"}}],
}


def body(wire, messages, *, tools=0, system="S"):
    more = {"tools": TOOLS[wire] * (tools + 1)}
    if wire == "anthropic":
        return request(wire, messages, system=system, **more)
    return request(wire, [{"role": "system", "content": system}, *messages], **more)


def plain(data, wire):
    messages = [m for m in data.draw(histories(wire)) if m["role"] != "system"]
    return [m | {"name": f"n{i}"} if m["role"] == "user" else m for i, m in enumerate(messages)]


def place(wire, at):
    return at + (1 if wire == "chat" else 0)


@pytest.mark.parametrize("wire", WIRES)
@settings(deadline=None)
@given(data=st.data())
def test_a_request_that_extends_another_has_no_break(wire, data):
    messages = plain(data, wire)
    size = data.draw(st.integers(0, len(messages)))
    assert verify(body(wire, messages[:size]), body(wire, messages), wire) is None


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("how", ["tools", "system", "edited", "removed", "cut", "rewritten"])
@settings(deadline=None)
@given(data=st.data())
def test_exactly_the_break_that_was_made_is_found(wire, how, data):
    messages = plain(data, wire)
    at = data.draw(st.integers(0, len(messages) - 1))
    size = len(messages)
    strange = {"role": "user", "content": "something else"}
    wanted, index = REASONS, place(wire, at)
    before, after = body(wire, messages), b""
    if how == "tools":
        wanted, index = "tools changed", BEFORE_MESSAGES
        after = body(wire, messages, tools=1, system=data.draw(st.sampled_from("ST")))
    elif how == "system":
        wanted, index = "system changed", BEFORE_MESSAGES
        after = body(wire, messages[at:], system="T")
    elif how == "edited":
        wanted = "message edited"
        after = body(wire, [*messages[:at], strange, *messages[at + 1 :], strange])
    elif how == "removed":
        assume(at < size - 1)
        assume(messages[at] != messages[at + 1])
        wanted = "message removed"
        gone = data.draw(st.integers(1, size - 1 - at))
        rest = messages[at + gone :]
        assume(rest[0] != messages[at])
        assume(rest[1:] != messages[at + 1 :])
        after = body(wire, [*messages[:at], *rest, strange])
    elif how == "cut":
        wanted = "message removed"
        after = body(wire, messages[:at])
    else:
        assume(at < size - 1)
        wanted = "host rewrote history"
        after = body(wire, [*messages[:at], strange, strange | {"content": "and more"}])
        assume(size - at > 2 or messages[at + 1] != strange)
    found = verify(before, after, wire)
    assert (found.reason, found.index) == (wanted, index)
    assert REASONS[found.reason] in found.detail


@pytest.mark.parametrize("wire", WIRES)
def test_cache_marks_break_nothing_and_another_spelling_does(wire):
    text = {"type": "text", "text": "hi"}
    one = request(wire, [{"role": "user", "content": [text, text]}])
    marked = [text, text | {"cache_control": {"type": "ephemeral"}}]
    assert verify(one, request(wire, [{"role": "user", "content": marked}]), wire) is None
    spelled = one.replace(b'"hi"', b'"\\u0068i"')
    assert verify(one, spelled, wire).reason == "message edited"


def steps(*sent, policy="1", epoch=0, lost=False):
    return tuple(Step(bytes([n]), bytes([n]), s, policy, epoch, lost) for n, s in enumerate(sent))


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (steps(b"a", b"b"), steps(b"a", b"c", policy="2"), "policy changed"),
        (steps(b"a", b"b"), steps(b"a", b"c", lost=True), "decision lost"),
        (steps(b"a", b"b"), steps(b"a", b"c"), "message edited"),
    ],
)
def test_the_same_message_sent_otherwise_is_told_apart(before, after, reason):
    found = verify(Footprint(b"", b"", before), Footprint(b"", b"", after))
    assert (found.reason, found.index) == (reason, 1)


def test_what_was_sent_is_not_held_against_a_request_of_which_it_is_not_known():
    assert verify(Footprint(b"", b"", steps(b"a", b"")), Footprint(b"", b"", steps(b"a", b"x"))) is None


@pytest.mark.parametrize("change", [{"tools": b"t"}, {"system": b"s"}, {"steps": steps(b"a")}])
def test_a_break_across_a_declared_compaction_is_an_epoch(change):
    before = Footprint(b"", b"", steps(b"a", b"b"))
    after = {"tools": b"", "system": b"", "steps": before.steps, "epoch": 1}
    assert verify(before, Footprint(**after)) is None
    assert verify(before, Footprint(**after | change)).reason == "epoch"


BESIDE = {
    "responses": ("instructions", lambda text: text),
    "gemini": ("systemInstruction", lambda text: {"parts": [{"text": text}]}),
}


@pytest.mark.parametrize("wire", BESIDE)
@settings(deadline=None)
@given(data=st.data())
def test_items_and_contents_are_compared_as_messages_are(wire, data):
    messages = data.draw(histories(wire))
    field, spelled = BESIDE[wire]
    whole = request(wire, messages, **{field: spelled("S")})
    size = data.draw(st.integers(0, len(messages)))
    assert verify(request(wire, messages[:size], **{field: spelled("S")}), whole, wire) is None
    found = verify(request(wire, messages, **{field: spelled("T")}), whole, wire)
    assert (found.reason, found.index) == ("system changed", BEFORE_MESSAGES)
    cut = verify(whole, request(wire, messages[:-1], **{field: spelled("S")}), wire)
    assert (cut.reason, cut.index) == ("message removed", len(messages) - 1)
