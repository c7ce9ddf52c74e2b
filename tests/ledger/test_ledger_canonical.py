from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.histories import ALL_WIRES, WIRES, histories

from turngate.errors import WireError
from turngate.ledger import child_key, digest, root_key
from turngate.ledger.edits import Edit, block_path, byte_edits, splice_bytes, takes_text
from turngate.ledger.history import Reader
from turngate.wire import VIEWS
from turngate.wire.layout import role_of
from turngate.wire.scan import scan

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


# Responses and Gemini.

ITEM = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
OUT = {"type": "function_call_output", "call_id": "c", "output": "x"}
THOUGHT = {"type": "reasoning", "encrypted_content": "e", "summary": []}
CALL = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]}
DONE = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hi", {"role": "user", "content": "hi"}),
        ("hi", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
        (SAID, SAID | {"id": "msg_1", "status": "completed"}),
        (SAID, {"role": "assistant", "content": "x"}),
        (SAID, SAID | {"content": [SAID["content"][0] | {"annotations": [], "logprobs": None}]}),
        (ITEM, ITEM | {"id": "fc_1", "status": "completed", "arguments": '{"a":1.0}'}),
        (OUT, OUT | {"output": [{"type": "input_text", "text": "x"}], "id": "fo_1", "status": None}),
        (THOUGHT, {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}),
        (CALL, {"role": "model", "parts": [{"function_call": {"args": {"a": 1.0}, "name": "f"}}]}),
        ({"parts": [{"text": "x"}]}, {"role": "user", "parts": [{"text": "x"}]}),
    ],
)
def test_what_a_client_may_leave_out_or_spell_otherwise_makes_no_other_item(one, other):
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hi", {"role": "developer", "content": "hi"}),
        (SAID, SAID | {"phase": "commentary"}),
        (ITEM, ITEM | {"call_id": "d"}),
        (ITEM, ITEM | {"arguments": '{"a": null}'}),
        (ITEM, ITEM | {"type": "custom_tool_call"}),
        (OUT, OUT | {"output": "x "}),
        (THOUGHT, THOUGHT | {"encrypted_content": "f"}),
        ({"type": "item_reference", "id": "a"}, {"type": "item_reference", "id": "b"}),
        (
            {"type": "local_shell_call_output", "id": "a", "output": "x"},
            {"type": "local_shell_call_output", "id": "b", "output": "x"},
        ),
        (
            {"type": "apply_patch_call_output", "call_id": "a", "status": "failed"},
            {"type": "apply_patch_call_output", "call_id": "a", "status": "completed"},
        ),
        (CALL, {"role": "model", "parts": [CALL["parts"][0] | {"thoughtSignature": "s"}]}),
        (CALL, {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1, "b": None}}}]}),
        (
            DONE,
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": ["x"]}}}]},
        ),
        (CALL, CALL | {"role": "user"}),
        ({"parts": [{"text": "x"}, {"text": "y"}]}, {"parts": [{"text": "xy"}]}),
    ],
)
def test_everything_else_makes_another_item(one, other):
    assert digest(one) != digest(other)


@pytest.mark.parametrize("wire", ALL_WIRES)
@settings(deadline=None)
@given(data=st.data())
def test_a_chain_has_a_link_for_every_message_and_reads_it_back(wire, data):
    messages = data.draw(histories(wire))
    history = Reader(wire).read(messages, b"")
    assert [history.message(link.index) for link in history.links] == messages[
        len(messages) - len(history.links) :
    ]
    assert [link.role for link in history.links] == [
        role_of(history.message(i.index), wire) for i in history.links
    ]
    assert len({link.key for link in history.links}) == len(history.links)


def test_a_whole_input_is_one_message_and_its_neighbours_stand_beside_the_chain():
    body = b'{"model":"m","input":"hi","instructions":"S","tools":[{"type":"function","name":"f"}]}'
    history = Reader("responses").read(body, b"")
    assert [(link.role, history.message(link.index)) for link in history.links] == [("user", "hi")]
    assert history.model == "m"
    other = Reader("responses").read(body.replace(b'"S"', b'"T"'), b"")
    assert (history.tools, history.links[0].key) == (other.tools, other.links[0].key)
    assert history.system != other.system


@pytest.mark.parametrize(
    ("wire", "message", "expected"),
    [
        ("responses", "hi", "hi\n\nnote"),
        ("responses", {"role": "user", "content": "hi"}, {"role": "user", "content": "hi\n\nnote"}),
        (
            "responses",
            {"role": "user", "content": [{"type": "input_image", "image_url": "u"}]},
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "u"},
                    {"type": "input_text", "text": "note"},
                ],
            },
        ),
        (
            "gemini",
            {"parts": [{"text": "hi"}]},
            {"parts": [{"text": "hi"}, {"text": "note"}]},
        ),
    ],
)
def test_a_text_is_added_in_the_blocks_of_its_wire(wire, message, expected):
    body = json.dumps(message).encode()
    node = scan(body)
    assert takes_text(node)
    changes = list(byte_edits(body, node, [Edit("append", ("content",), "note")], native=False))
    assert json.loads(splice_bytes(body, changes)) == expected


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("responses", OUT),
        ("responses", OUT | {"output": [{"type": "input_text", "text": "x"}]}),
        (
            "responses",
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "x", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
        ),
        ("gemini", DONE),
        (
            "gemini",
            {"parts": [{"functionResponse": {"name": "f", "response": {"text": "x", "n": [{"text": "y"}]}}}]},
        ),
    ],
)
def test_a_text_that_a_view_names_is_replaced_where_it_stands(wire, message):
    body = json.dumps(message).encode()
    (result,) = VIEWS[wire]([message]).results
    edits = [Edit("replace", block_path(p.path[1:]), "short") for p in result.parts]
    after = splice_bytes(body, list(byte_edits(body, scan(body), edits, native=False)))
    (again,) = VIEWS[wire]([json.loads(after)]).results
    assert {p.text for p in again.parts} == {"short"}
    assert [p.path for p in again.parts] == [p.path for p in result.parts]
