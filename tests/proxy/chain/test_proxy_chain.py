"""What the engine sends: each request extends the one before, and what is not ours is the client's."""

from __future__ import annotations

import itertools
import json

import pytest
from conversations import LIST, LONG, body, call, loop, requests, result, user

from turngate.proxy.chain.ask import Ask
from turngate.wire import request_prefix, violations

WIRES = ["chat", "anthropic", "responses", "gemini"]
pytestmark = pytest.mark.parametrize("wire", WIRES)


def send(engine, wire, messages, **more):
    return engine.prepare(Ask(body(wire, messages, **more), wire, "scope"))


def prefixes(sendings, wire):
    return [request_prefix(sending.body, wire) for sending in sendings]


def extends(sent):
    return all(later.startswith(earlier) for earlier, later in itertools.pairwise(sent))


@pytest.mark.parametrize("first", [False, True])
def test_each_request_of_a_growing_history_extends_the_one_before(engine, wire, first):
    sent = [send(engine, wire, part, first=first) for part in requests(wire, loop(wire, 5))]
    assert extends(prefixes(sent, wire))
    assert not [violation for each in sent for violation in violations(each.body, wire)]
    assert sum(each.shortened for each in sent) == 5
    assert len(sent[-1].body) < len(body(wire, loop(wire, 5))) / 2


def test_another_process_sends_the_same_bytes(new_engine, wire):
    parts = requests(wire, loop(wire, 5))
    one = [send(new_engine(), wire, part).body for part in parts]
    engine = new_engine()
    assert [send(engine, wire, part).body for part in parts] == one


def test_what_is_not_ours_is_the_clients_bytes(engine, wire):
    messages = [user(wire, "hé \\ud800 <b>")]
    raw = body(wire, messages, temperature=1.0).replace(
        b'"model": "m"', b'"model" :\t"m",  "x": 1e400, "x": 2'
    )
    sending = engine.prepare(Ask(raw, wire, "scope"))
    assert sending.offered
    from turngate.proxy.chain.tool import declaration  # noqa: PLC0415

    assert sending.body.replace(b"," + declaration(wire), b"") == raw


def test_without_tools_nothing_is_offered_and_nothing_is_shortened(engine, wire):
    for part in requests(wire, loop(wire, 2)):
        raw = body(wire, part, tools=False)
        assert engine.prepare(Ask(raw, wire, "scope")).body is raw


def test_a_history_that_began_elsewhere_is_left_alone(engine, wire):
    history = loop(wire, 2)
    parts = [*requests(wire, history)[1:], [*history, user(wire, "go on")]]
    for part in parts:
        sending = send(engine, wire, part)
        assert (sending.body, sending.offered) == (body(wire, part), False)


def test_adopting_takes_it_over(new_engine, wire):
    sending = send(new_engine(adopt=True), wire, requests(wire, loop(wire, 2))[1])
    assert sending.offered
    assert sending.shortened == 1


def test_another_credential_finds_nothing(engine, wire):
    parts = requests(wire, loop(wire, 2))
    send(engine, wire, parts[0])
    other = engine.prepare(Ask(body(wire, parts[1]), wire, "another scope"))
    assert not other.offered


def test_a_fork_extends_what_it_shares(engine, wire):
    parts = requests(wire, loop(wire, 3))
    for part in parts:
        send(engine, wire, part)
    fork = [*parts[2], user(wire, "something else")]
    sending = send(engine, wire, fork)
    assert request_prefix(sending.body, wire).startswith(
        request_prefix(send(engine, wire, parts[2]).body, wire)
    )


def test_a_new_policy_changes_nothing_that_was_sent(new_engine, wire):
    parts = requests(wire, loop(wire, 3))
    old = new_engine()
    before = [send(old, wire, part) for part in parts[:2]]
    after = send(new_engine(version="2"), wire, parts[2])
    assert extends(prefixes([*before, after], wire))


def test_what_is_spelled_anew_goes_out_as_it_went_before(engine, wire):
    parts = requests(wire, loop(wire, 4))
    sent = [send(engine, wire, part) for part in parts[:2]]
    respelled = [dict(reversed(message.items())) for message in parts[2]]
    sent.append(send(engine, wire, respelled))
    sent.append(send(engine, wire, parts[3]))
    assert extends(prefixes(sent, wire))


def test_a_request_that_is_none_passes(engine, wire):
    for raw in (
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"%s": null}' % LIST[wire].encode(),
        b'{"%s": [1]}' % LIST[wire].encode(),
    ):
        sending = engine.prepare(Ask(raw, wire, "scope"))
        assert sending.body is raw
        assert not sending.tip


def test_a_result_of_a_tool_that_is_read_whole_passes(engine, wire):
    raw = json.dumps(LONG).encode()
    part = requests(wire, loop(wire, 1))
    send(engine, wire, part[0])
    renamed = body(wire, [*part[1][:-1], result(wire, "call_0", LONG)]).replace(b'"bash"', b'"read_file"')
    sent = engine.prepare(Ask(renamed, wire, "scope"))
    assert raw in sent.body


def test_a_request_beside_the_conversation_decides_nothing_for_it(engine, wire):
    parts = requests(wire, loop(wire, 1))
    aside = engine.prepare(Ask(body(wire, parts[0], tools=False, tools_=[]), wire, "scope"))
    forced = {
        "chat": {"tool_choice": {"type": "function", "function": {"name": "bash"}}},
        "anthropic": {"tool_choice": {"type": "tool", "name": "bash"}},
        "responses": {"tool_choice": {"type": "function", "name": "bash"}},
        "gemini": {
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["bash"]}}
        },
    }
    titled = engine.prepare(Ask(body(wire, parts[0], **forced[wire]), wire, "scope"))
    assert not aside.offered
    assert not titled.offered
    assert send(engine, wire, parts[0]).offered
    assert send(engine, wire, parts[1]).shortened == 1


def test_the_same_result_again_is_said_to_be_that_of_the_earlier_call(engine, wire):
    short = "\n".join(f"row {n} of the table holds {n * 7919 % 1000}" for n in range(40))
    messages = [user(wire, "Look twice."), *call(wire, "call_0"), result(wire, "call_0", short)]
    send(engine, wire, messages[:1])
    first = send(engine, wire, messages)
    again = [*messages, *call(wire, "call_1"), result(wire, "call_1", short)]
    second = send(engine, wire, again)
    assert first.shortened == 0
    assert second.shortened == 1
    assert extends(prefixes([first, second], wire))
    assert second.body.count(b"row 17 of the table") == 1


def test_a_result_is_shown_anew_where_the_earlier_one_is_gone(engine, wire):
    short = "\n".join(f"row {n} of the table holds {n * 7919 % 1000}" for n in range(40))
    messages = [user(wire, "Look twice."), *call(wire, "call_0"), result(wire, "call_0", short)]
    send(engine, wire, messages[:1])
    send(engine, wire, messages)
    compacted = [user(wire, "Look twice."), *call(wire, "call_1"), result(wire, "call_1", short)]
    assert send(engine, wire, compacted).body.count(b"row 17 of the table") == 1


def test_where_several_replies_are_asked_for_nothing_is_offered(engine, wire):
    several = {"chat": {"n": 2}, "gemini": {"generationConfig": {"candidateCount": 2}}}.get(wire)
    sending = send(engine, wire, [user(wire, "hi")], **(several or {}))
    assert sending.offered == (several is None)
