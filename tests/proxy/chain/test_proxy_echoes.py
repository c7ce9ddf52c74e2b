"""A reply in which calls of ours were answered comes back as one; upstream it goes as it was produced."""

from __future__ import annotations

import json

import pytest
from conversations import LIST, body, call, requests, result, said, user
from test_proxy_chain import WIRES, extends, prefixes, send

from turngate.proxy.chain.ask import Ask
from turngate.proxy.chain.replies import Echo, Reply
from turngate.wire import request_prefix, violations

OWN = "turngate_retrieve"


def own_call(wire, id_="own_1"):
    return [json.loads(json.dumps(m).replace('"bash"', f'"{OWN}"')) for m in call(wire, id_)]


def spelled(messages):
    return b",".join(json.dumps(message).encode() for message in messages)


def block_of(wire, id_="own_1"):
    """Our call as it stands among the client's."""
    (message,) = own_call(wire, id_)
    inner = {"chat": "tool_calls", "anthropic": "content", "gemini": "parts"}
    return spelled([message] if wire == "responses" else message[inner[wire]])


def first_round(wire, id_="own_1"):
    """Text, then our call; then its result."""
    turn = own_call(wire, id_)
    if wire == "chat":
        turn[0]["content"] = "Let me see. "
    elif wire == "responses":
        turn = [said(wire, "Let me see. "), *turn]
    else:
        inner = {"anthropic": "content", "gemini": "parts"}[wire]
        text = {"type": "text", "text": "Let me see. "} if wire == "anthropic" else {"text": "Let me see. "}
        turn[0][inner].insert(0, text)
    answer = json.loads(json.dumps(result(wire, id_, "line 17")).replace('"bash"', f'"{OWN}"'))
    return spelled([*turn, answer])


def merged(wire, text):
    """What the client saw, as it may echo it."""
    if wire == "responses":
        return [said(wire, "Let me see. "), said(wire, text)]
    if wire == "anthropic":
        return [
            {"role": "assistant", "content": [{"type": "text", "text": t} for t in ("Let me see. ", text)]}
        ]
    if wire == "gemini":
        return [{"role": "model", "parts": [{"text": "Let me see. " + text}]}]
    return [said(wire, "Let me see. " + text)]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("anew", [False, True])
def test_an_answered_call_goes_upstream_as_it_was_produced(new_engine, wire, anew):
    engine = new_engine()
    history = [user(wire, "What is in line 17?")]
    first = send(engine, wire, history)
    between = first.extended(first_round(wire))
    reply = Reply(before=first_round(wire), chars=len("Letmesee."), blocks=1, total=2)
    engine.replied(first, reply, Echo("Let me see. It says 17.", []))
    if anew:
        engine = new_engine()
    second = send(engine, wire, [*history, *merged(wire, "It says 17."), user(wire, "Thanks.")])
    assert extends([request_prefix(part, wire) for part in (first.body, between, second.body)])
    assert not violations(second.body, wire)
    last = json.loads(second.body)[LIST[wire]][-2]
    assert "It says 17." in json.dumps(last)
    assert "Let me see" not in json.dumps(last)


@pytest.mark.parametrize("wire", ["chat", "anthropic", "gemini"])
def test_an_echo_may_be_spelled_anew(engine, wire):
    history = [user(wire, "What is in line 17?")]
    first = send(engine, wire, history)
    engine.replied(first, Reply(first_round(wire), 9, 1, 2), Echo("Let me see. It says 17.", []))
    one = "Let me see.\n\nIt says 17."
    inner = "parts" if wire == "gemini" else "content"
    echo = (
        said(wire, one) if wire != "chat" else {"role": "assistant", inner: [{"type": "text", "text": one}]}
    )
    second = send(engine, wire, [*history, echo, user(wire, "Thanks.")])
    between = first.extended(first_round(wire))
    assert extends([request_prefix(part, wire) for part in (first.body, between, second.body)])
    assert json.dumps(json.loads(second.body)[LIST[wire]]).count("Let me see.") == 1


@pytest.mark.parametrize("wire", WIRES)
def test_another_reply_to_the_same_request_is_left_as_it_is(engine, wire):
    history = [user(wire, "What is in line 17?")]
    first = send(engine, wire, history)
    engine.replied(first, Reply(first_round(wire), 9, 1, 2), Echo("Let me see. It says 17.", []))
    second = send(engine, wire, [*history, said(wire, "It says 18."), user(wire, "Thanks.")])
    assert OWN.encode() not in second.body.replace(b'"name":"%s"' % OWN.encode(), b"")
    assert not violations(second.body, wire)


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_beside_the_clients_is_answered_in_the_next_request(new_engine, wire):
    engine = new_engine()
    history = [user(wire, "Look at both.")]
    first = send(engine, wire, history)
    answer = json.loads(json.dumps(result(wire, "own_1", "line 17")).replace('"bash"', f'"{OWN}"'))
    reply = Reply(call=block_of(wire), index=0, results=spelled([answer]))
    engine.replied(first, reply, Echo("", ["call_1"]))
    following = [*history, *call(wire, "call_1"), result(wire, "call_1", "fine")]
    second = send(new_engine(), wire, following)
    assert not violations(second.body, wire)
    assert b"line 17" in second.body
    third = send(new_engine(), wire, [*following, said(wire, "Done."), user(wire, "Thanks.")])
    assert extends(prefixes([first, second, third], wire))


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_beside_the_clients_goes_with_it_when_it_goes(engine, wire):
    history = [user(wire, "Look at both.")]
    first = send(engine, wire, history)
    engine.replied(first, Reply(call=block_of(wire), index=0, results=b"{}"), Echo("", ["call_1"]))
    second = send(engine, wire, [*history, user(wire, "Never mind.")])
    assert not violations(second.body, wire)
    assert b"own_1" not in second.body


def test_cache_marks_move_and_nothing_else_does(engine):
    mark = {"cache_control": {"type": "ephemeral"}}
    messages = requests("anthropic", [*call_loop(3)])
    sent = []
    for part in messages:
        last = part[-1]
        blocks = last["content"]
        if isinstance(blocks, str):
            last["content"] = [{"type": "text", "text": blocks, **mark}]
        else:
            blocks[-1] |= mark
        sent.append(engine.prepare(Ask(body("anthropic", part), "anthropic", "scope")).body)
        assert sent[-1].count(b"cache_control") == 1
    assert extends([request_prefix(each, "anthropic") for each in sent])
    assert extends([strict(each) for each in sent])


def call_loop(turns):
    from conversations import loop  # noqa: PLC0415

    return loop("anthropic", turns)


def strict(raw):
    """Messages as bytes, only the marks removed."""
    from turngate.proxy.chain.spelling import unmarked  # noqa: PLC0415
    from turngate.wire.scan import scan  # noqa: PLC0415

    nodes = scan(raw).get("messages").items
    return b"\x1e".join(unmarked(raw, node) for node in nodes) + b"\x1e"


def test_a_string_that_was_a_block_stays_a_block(engine):
    history = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    first = engine.prepare(Ask(body("anthropic", history), "anthropic", "scope"))
    again = [{"role": "user", "content": "hello"}, said("anthropic", "Hi."), user("anthropic", "Bye.")]
    second = engine.prepare(Ask(body("anthropic", again), "anthropic", "scope"))
    assert strict(second.body).startswith(strict(first.body))
