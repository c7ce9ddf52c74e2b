from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.histories import WIRES, histories

from turngate.errors import WireError
from turngate.ledger import child_key, digest, root_key
from turngate.ledger.history import Reader

MARK = {"type": "ephemeral"}


def keys(wire, messages, scope="x"):
    return [link.key for link in Reader(wire).read(messages, root_key(scope, wire)).links]


def as_blocks(value):
    """Every text a block, every block marked, optional fields null."""
    if isinstance(value, list):
        return [as_blocks(each) for each in value]
    if not isinstance(value, dict):
        return value
    out = {key: as_blocks(each) for key, each in value.items()}
    if isinstance(out.get("content"), str):
        out["content"] = [{"type": "text", "text": out["content"]}]
    if out.get("type") in {"text", "tool_result", "tool_use"}:
        out |= {"cache_control": MARK}
    if "role" in out:
        out |= {"refusal": None, "annotations": []}
    return out


def respelled_arguments(message):
    out = copy.deepcopy(message)
    for call in out.get("tool_calls", ()):
        args = json.loads(call["function"]["arguments"])
        call["function"]["arguments"] = json.dumps(dict(reversed(args.items())), indent=1)
    return dict(reversed(out.items()))


SHAPES = {
    "marked blocks with nulls": lambda messages: [as_blocks(each) for each in messages],
    "other spelling and order": lambda messages: [respelled_arguments(each) for each in messages],
    "absent fields": lambda messages: [
        {key: value for key, value in each.items() if value is not None} for each in messages
    ],
    "is_error false": lambda messages: [
        each
        if isinstance(each["content"], str | None)
        else each
        | {
            "content": [
                block | ({"is_error": False} if block["type"] == "tool_result" else {})
                for block in each["content"]
            ]
        }
        for each in messages
    ],
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("shape", SHAPES)
@settings(deadline=None)
@given(data=st.data())
def test_one_history_in_every_shape_has_the_same_keys(wire, shape, data):
    messages = data.draw(histories(wire))
    assert keys(wire, SHAPES[shape](messages)) == keys(wire, messages)


def changes(wire, messages, at):
    """What makes another message of the one at `at`."""
    message = messages[at]
    yield message | {"name": "somebody"}
    if isinstance(message["content"], str):
        yield message | {"content": message["content"] + " "}
        yield message | {"content": [{"type": "text", "text": message["content"]}] * 2}
    elif message["content"]:
        yield message | {"content": message["content"][1:]}
    for call in message.get("tool_calls", ()):
        other = copy.deepcopy(call)
        other["function"]["arguments"] = '{"n": null}'
        yield message | {"tool_calls": [other]}


@pytest.mark.parametrize("wire", WIRES)
@settings(deadline=None)
@given(data=st.data())
def test_another_message_has_another_key_and_so_has_all_that_follows(wire, data):
    messages = data.draw(histories(wire))
    first = next(i for i, message in enumerate(messages) if message["role"] != "system")
    at = data.draw(st.integers(first, len(messages) - 1))
    before = keys(wire, messages)
    for other in changes(wire, messages, at):
        after = keys(wire, [*messages[:at], other, *messages[at + 1 :]])
        assert after[: at - first] == before[: at - first]
        assert not set(after[at - first :]) & set(before)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1}', '{ "a":1.0 }', True),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": null}', "{}", False),
        ('{"cache_control": 1}', "{}", False),
        ('{"a": "\\u00e4"}', '{"a": "ä"}', True),
        ("{broken", "{broken", True),
        ("{broken", "{broken ", False),
        ('"x"', "x", False),
        ("NaN", "null", False),
    ],
)
def test_call_arguments_are_compared_as_values(one, other, same):
    def message(arguments):
        return {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}

    assert (digest(message(one)) == digest(message(other))) is same


def test_scope_and_wire_are_in_every_key():
    message = [{"role": "user", "content": "hi"}]
    found = {keys(wire, message, scope)[0] for wire in WIRES for scope in ("a", "b", b"\xff")}
    assert len(found) == 6
    assert keys("chat", message, "a") == [child_key(root_key("a", "chat"), digest(message[0]))]


def test_system_messages_that_stand_first_are_beside_the_chain():
    user = {"role": "user", "content": "hi"}
    one = Reader("chat").read([{"role": "system", "content": "a"}, user], b"")
    two = Reader("chat").read([{"role": "developer", "content": "b"}, user], b"")
    assert one.links[0].key == two.links[0].key
    assert one.system != two.system


def test_a_message_nested_too_deep_is_refused_by_name():
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(WireError, match="nested"):
        digest({"role": "user", "content": deep})
