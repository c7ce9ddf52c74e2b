"""Whatever the chunks and the rounds: the client sees one reply with nothing of ours in it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played import (
    CUT,
    INPUT,
    OUTPUT,
    WIRES,
    frames,
    is_answered,
    joined,
    replies,
    seen,
    streamed,
    unstreamed,
    whole,
)

from turngate.proxy.reply import OWN, OwnCall, messages_of_result, stream_reply, whole_reply
from turngate.wire import violations
from turngate.wire.layout import LAYOUT
from turngate.wire.sse import Frames, parse

wires = pytest.mark.parametrize("wire", WIRES)
OURS = ("call", "call_1", OWN, {"hash": "a" * 16})
THEIRS = ("call", "call_2", "bash", {"command": "ls"})


def said(messages):
    """Messages; that a chat message has no text is told in two ways."""
    made = json.loads(b"[%b]" % messages)
    return [each | {"content": each.get("content") or None} for each in made]


def values(data):
    out = [parse(frame).data for frame in Frames().feed(data)]
    return [json.loads(each) for each in out if each not in {b"", b"[DONE]"}]


@wires
@settings(max_examples=25, deadline=None)
@given(made=replies(), cuts=st.lists(st.integers(0, 10**6), max_size=12))
def test_chunks_may_end_anywhere(wire, made, cuts):
    whole_chunks, rounds = streamed(wire, made)
    assert streamed(wire, made, cuts) == (whole_chunks, rounds)
    assert OWN.encode() not in whole_chunks


@wires
def test_single_bytes_make_the_same_stream(wire):
    made = [[("text", "é漢🙂"), OURS], [("think", "hm"), ("text", "done."), OURS, THEIRS]]
    data, rounds = streamed(wire, made)
    assert streamed(wire, made, range(20_000)) == (data, rounds)


@wires
@settings(max_examples=20, deadline=None)
@given(made=replies(), ending=st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_reply_without_a_call_of_ours_keeps_its_bytes(wire, made, ending):
    reply = seen(made[-1])
    data = b": hello\n\n" + b"".join(frames(wire, reply, ending=ending)).replace(b'": ', b'" :  ')
    data = data.replace(OWN.encode(), b"other")
    machine = stream_reply(wire)
    out = machine.feed(data)
    machine.end()
    assert out + machine.close() == data
    body = whole(wire, reply).replace(OWN.encode(), b"other")
    kept = whole_reply(wire)
    kept.read(body)
    assert kept.body() is body


@wires
def test_unknown_events_and_words_pass(wire):
    odd = b'event: news\nid: 7\ndata: {"type":"news","x":1.50}\n\ndata: no JSON\n\nretry: 5\n\ndata: [1]\n\n'
    assert stream_reply(wire).feed(odd) == odd


@wires
@settings(max_examples=25, deadline=None)
@given(made=replies())
def test_a_round_is_the_same_streamed_and_whole(wire, made):
    _, by_stream = streamed(wire, made)
    body, at_once = unstreamed(wire, made)
    assert OWN.encode() not in body
    for one, other, reply in zip(by_stream, at_once, made, strict=True):
        assert said(one.messages) == said(other.messages)
        assert [call.id for call in one.own] == [m[1] for m in reply if m[0] == "call" and m[2] == OWN]
        assert [json.loads(call.args) for call in one.own] == [m[3] for m in reply if m[-2:-1] == (OWN,)]
        for name in ("own_index", "client_calls", "text", "blocks", "usage", "finished", "status"):
            assert getattr(one, name) == getattr(other, name), name
        assert one.text == joined(reply, "text")
        assert one.finished
        assert one.usage == {"input": INPUT, "output": OUTPUT, "cache_read": 3}
        assert json.loads(b"[%b]" % one.own_call) == json.loads(b"[%b]" % other.own_call)


@wires
@settings(max_examples=20, deadline=None)
@given(made=replies())
def test_what_goes_back_upstream_is_a_request_that_the_provider_accepts(wire, made):
    _, rounds = streamed(wire, made)
    asked = (
        {"role": "user", "parts": [{"text": "go"}]} if wire == "gemini" else {"role": "user", "content": "go"}
    )
    messages = [asked]
    for produced in rounds:
        if not produced.own or produced.client_calls:
            break
        answers = messages_of_result(wire, [(call, "found") for call in produced.own])
        messages += json.loads(b"[%b,%b]" % (produced.messages, answers))
        body = json.dumps({"model": "m", "max_tokens": 9, LAYOUT[wire].messages: messages}).encode()
        assert violations(body, wire) == []


@wires
def test_text_is_relayed_when_it_arrives(wire):
    machine, got = stream_reply(wire), b""
    reply = [("text", "ab"), OURS, ("text", "xy")] if wire != "chat" else [OURS, ("text", "abxy")]
    waiting = [frame for frame in frames(wire, reply) if b'"ab"' in frame or b'"xy"' in frame]
    for frame in frames(wire, reply):
        out = machine.feed(frame)
        got += out
        if frame in waiting and b"response.completed" not in frame:
            assert out
    assert b'"ab"' in got
    assert b"xy" in got


@wires
def test_of_a_round_that_is_answered_the_end_is_never_told(wire):
    data, _ = streamed(wire, [[("text", "one"), OURS], [("text", "two"), OURS], [("text", "three")]])
    told = {
        "chat": b'"finish_reason":"stop"',
        "anthropic": b'"message_stop"}',
        "responses": b'"type":"response.completed"',
        "gemini": b'"finishReason":"STOP"',
    }
    assert data.replace(b": ", b":").count(told[wire]) == 1
    assert data.count(b"[DONE]") == (wire == "chat")
    begins = {"anthropic": b'"message_start"', "responses": b'"response.created"', "chat": b'"role"'}
    assert data.count(begins.get(wire, b"responseIx")) == (wire != "gemini")


@wires
@settings(max_examples=20, deadline=None)
@given(made=replies())
def test_indexes_and_numbers_are_dense(wire, made):
    events = values(streamed(wire, made)[0])
    if wire == "responses":
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        added = [e["output_index"] for e in events if e["type"] == "response.output_item.added"]
        assert added == list(range(len(events[-1]["response"]["output"])))
        assert {e["response"]["id"] for e in events if "response" in e} == {"resp_0"}
    if wire == "anthropic":
        started = [event["index"] for event in events if event["type"] == "content_block_start"]
        assert started == list(range(len(started)))
    if wire == "chat":
        calls = [c for e in events for ch in e["choices"] for c in ch["delta"].get("tool_calls", ())]
        named = [call["index"] for call in calls if "id" in call]
        assert named == list(range(len(named)))
        assert {event["id"] for event in events} == {"chatcmpl-0"}
    if wire == "gemini":
        assert {event["responseId"] for event in events} == {"0"}


@wires
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_stream_cut_anywhere_shows_nothing_of_ours(wire, data):
    whole_stream = b"".join(frames(wire, [("text", "hm"), OURS, THEIRS]))
    cut = data.draw(st.integers(0, len(whole_stream) - 1))
    machine = stream_reply(wire)
    out = machine.feed(whole_stream[:cut])
    produced = machine.end()
    out += machine.close()
    assert OWN[:9].encode() not in out
    if wire in {"anthropic", "responses"} and produced.finished:
        assert cut >= len(whole_stream) - 2


@wires
def test_a_call_that_the_limit_cut_off_is_not_finished(wire):
    reply = [("text", "one"), OURS]
    machine = stream_reply(wire)
    out = machine.feed(b"".join(frames(wire, reply, end=CUT[wire])))
    produced = machine.end()
    out += machine.close()
    assert not produced.finished
    assert OWN.encode() not in out
    assert CUT[wire].encode() in out
    at_once = whole_reply(wire)
    assert not at_once.read(whole(wire, reply, end=CUT[wire])).finished
    assert CUT[wire].encode() in at_once.body()
    assert OWN.encode() not in at_once.body()


@wires
def test_without_hiding_a_call_of_ours_goes_through(wire):
    machine = stream_reply(wire)
    machine.feed(b"".join(frames(wire, [OURS], name="0")))
    machine.end()
    machine.again(hide=False)
    out = machine.feed(b"".join(frames(wire, [("call", "call_9", OWN, {})], name="1")))
    produced = machine.end()
    assert OWN.encode() in out + machine.close()
    assert (produced.own, produced.client_calls) == ((), ("call_9",))


@wires
def test_a_last_frame_without_its_blank_line_still_counts(wire):
    reply = [("text", "one"), OURS]
    data = b"".join(frames(wire, reply)).removesuffix(b"\n\n")
    machine = stream_reply(wire)
    out = machine.feed(data)
    assert machine.end().finished
    machine.again()
    out += machine.feed(b"".join(frames(wire, [("text", "two")], name="1")))
    machine.end()
    out += machine.close()
    if wire == "responses":
        events = values(out)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert out.count(b"[DONE]") == (wire == "chat")


@wires
def test_an_error_within_a_stream_passes_and_ends_it(wire):
    value = {
        "chat": {"error": {"message": "busy", "type": "server_error"}},
        "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        "responses": {"type": "error", "code": "x", "message": "busy", "sequence_number": 1},
        "gemini": {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}},
    }[wire]
    error = b"data: " + json.dumps(value).encode() + b"\n\n"
    first = next(iter(frames(wire, [("text", "one")])))
    machine = stream_reply(wire)
    machine.feed(first)
    assert machine.feed(error) == error
    assert not machine.end().finished
    assert machine.close() == b""


def test_chat_text_that_comes_with_the_end_is_not_lost():
    function = {"name": OWN, "arguments": "{}"}
    call = {"index": 0, "id": "x", "type": "function", "function": function}
    delta = {"role": "assistant", "content": "Hm. ", "tool_calls": [call]}
    first = {"id": "a", "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]}
    machine = stream_reply("chat")
    out = machine.feed(b"data: " + json.dumps(first).encode() + b"\n\ndata: [DONE]\n\n")
    assert machine.end().own == (OwnCall("x", "{}"),)
    machine.again()
    out += machine.feed(b"".join(frames("chat", [("text", "Yes.")])))
    assert OWN.encode() not in out
    texts = [c["delta"].get("content") or "" for e in values(out) for c in e["choices"]]
    assert "".join(texts) == "Hm. Yes."
    assert out.count(b'"tool_calls"') == 0


@pytest.mark.parametrize("index", [{}, {"index": 0}], ids=["no index", "one index for all"])
def test_chat_calls_are_told_apart_by_their_ids_too(index):
    calls = [
        {**index, "id": name, "type": "function", "function": {"name": tool, "arguments": "{}"}}
        for name, tool in (("x", OWN), ("y", "bash"))
    ]
    chunks = [{"id": "a", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]
    machine = stream_reply("chat")
    out = machine.feed(b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks))
    produced = machine.end()
    assert OWN.encode() not in out
    assert [call.id for call in produced.own] == ["x"]
    assert produced.client_calls == ("y",)


def test_responses_hide_our_tool_in_the_list_that_they_repeat():
    reply = [("text", "one")]
    data, _ = streamed("responses", [reply])
    events = values(data)
    lists = [[t["name"] for t in e["response"]["tools"]] for e in events if "response" in e]
    assert lists == [["bash"]] * 3
    assert data.replace(b"[", b"").count(b'"temperature": 1.0') == 3
    machine = whole_reply("responses")
    body = whole("responses", reply)
    machine.read(body)
    ours = json.loads(body)["tools"][1]
    assert machine.body() == body.replace(b", " + json.dumps(ours).encode(), b"")


@wires
def test_usage_of_all_rounds_is_summed(wire):
    made = [[OURS], [("text", "a"), OURS], [("text", "b")]]
    rounds = len(made)
    body = json.loads(unstreamed(wire, made)[0])
    last = values(streamed(wire, made)[0])[-2 if wire == "anthropic" else -1]
    field = "usageMetadata" if wire == "gemini" else "usage"
    names = {
        "chat": ("prompt_tokens", "completion_tokens"),
        "anthropic": ("input_tokens", "output_tokens"),
        "responses": ("input_tokens", "output_tokens"),
        "gemini": ("promptTokenCount", "candidatesTokenCount"),
    }[wire]
    for usage in (body[field], (last.get("response") or last)[field]):
        assert [usage[name] for name in names] == [INPUT * rounds, OUTPUT * rounds]


@given(made=replies())
@settings(max_examples=20)
def test_the_rounds_drawn_are_what_they_say(made):
    assert all(is_answered(reply) for reply in made[:-1])
    assert not is_answered(made[-1])
    assert all(a is not b for a, b in pairwise(made))
