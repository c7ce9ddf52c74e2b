"""Views find what is there, with paths that lead to it in the raw body."""

from __future__ import annotations

import copy
import json

import pytest
from wire_shapes import (
    ANTHROPIC,
    ANTHROPIC_BETA,
    CHAT,
    HOUR,
    IMAGE,
    MARK,
    assistant,
    chat_calls,
    chat_result,
    result,
    results,
    text,
    use,
    user,
    uses,
)

from turngate.errors import WireError
from turngate.wire import VIEWS, elements, request_prefix, sniff, splice
from turngate.wire.anthropic import system_parts
from turngate.wire.scan import find, scan, text_of

ALL = [
    *(("chat", name, shape) for name, shape in CHAT.items()),
    *(("anthropic", name, shape) for name, shape in (ANTHROPIC | ANTHROPIC_BETA).items()),
]
EACH = pytest.mark.parametrize(("wire", "name", "shape"), ALL, ids=[f"{w}: {n}" for w, n, _ in ALL])


def raw(value) -> bytes:
    return json.dumps(value, indent=1).encode()


@EACH
def test_every_path_of_a_view_leads_to_its_text_in_the_raw_body(wire, name, shape):
    body = raw(shape)
    view = VIEWS[wire](body)
    root = scan(body)
    parts = [p for m in view.messages for p in m.texts] + [p for r in view.results for p in r.parts]
    for part in parts:
        assert text_of(body, find(root, part.path)) == part.text
    for item in (*view.messages, *view.calls, *view.results):
        assert find(root, item.path).kind == "object"
    assert [m.role for m in view.messages] == [m["role"] for m in shape["messages"]]
    assert view == VIEWS[wire](shape)


@EACH
def test_a_spliced_result_is_the_only_thing_a_view_sees_changed(wire, name, shape):
    body = raw(shape)
    changes = {p.path: "short" for r in VIEWS[wire](body).results for p in r.parts if p.text}
    after = VIEWS[wire](splice(body, changes))
    for before, now in zip(VIEWS[wire](body).results, after.results, strict=True):
        assert [p.text for p in now.parts] == ["short" if p.text else "" for p in before.parts]
        assert (now.call_id, now.tool, now.args, now.failed) == (
            before.call_id,
            before.tool,
            before.args,
            before.failed,
        )
    assert after.calls == VIEWS[wire](body).calls


def test_a_chat_result_knows_the_tool_and_arguments_of_its_call():
    shape = CHAT["parallel calls"]
    found = VIEWS["chat"](shape).results
    assert [(r.call_id, r.tool, r.args, r.failed) for r in found] == [
        ("c3", "read", '{"path":"a"}', None),
        ("c1", "read", '{"path":"a"}', None),
        ("c2", "read", '{"path":"a"}', None),
    ]
    assert [r.tool for r in VIEWS["chat"](CHAT["legacy function"]).results] == ["read"]
    assert [r.args for r in VIEWS["chat"](CHAT["custom tool"]).results] == ["ls"]


def test_an_id_that_is_used_again_means_its_latest_call():
    first, second = chat_calls("c1"), chat_calls("c1")
    second["tool_calls"][0]["function"] = {"name": "write", "arguments": "{}"}
    view = VIEWS["chat"]([first, chat_result("c1"), second, chat_result("c1")])
    assert [r.tool for r in view.results] == ["read", "write"]


def test_an_anthropic_result_gives_its_text_parts_its_call_and_its_error():
    blocks = [text("a"), IMAGE, text("b")]
    failed = user(result("t1", blocks, is_error=True), result("t2"))
    view = VIEWS["anthropic"]({"messages": [uses("t1", "t2"), failed]})
    one, two = view.results
    assert (one.text, one.failed, one.tool, one.args) == ("ab", True, "read", {"path": "a"})
    assert [p.path for p in one.parts] == [
        ("messages", 1, "content", 0, "content", 0, "text"),
        ("messages", 1, "content", 0, "content", 2, "text"),
    ]
    assert (two.text, two.failed) == ("out", None)


def test_server_tools_are_calls_of_the_provider_without_results_of_ours():
    view = VIEWS["anthropic"](ANTHROPIC["server tool"])
    assert [(c.name, c.server) for c in view.calls] == [("web_search", True)]
    assert view.results == ()


def test_the_system_prompt_has_paths_too():
    assert [p.path for p in system_parts({"system": "S"})] == [("system",)]
    assert [p.path for p in system_parts({"system": [text("S"), text("T")]})][1] == ("system", 1, "text")


@pytest.mark.parametrize(
    "value", [b"[1", b"{}", {"messages": "x"}, 1, [1], [{"content": "x"}], {"messages": [[]]}]
)
@pytest.mark.parametrize("wire", ["chat", "anthropic"])
def test_what_is_no_list_of_messages_raises_one_named_error(wire, value):
    with pytest.raises(WireError):
        VIEWS[wire](value)


UNDECIDED = {
    "text",
    "named user",
    "empty user text",
    "assistant text",
    "assistant parts",
    "text parts",
    "ends with assistant",
}


@EACH
def test_the_wire_of_every_documented_shape_is_recognised(wire, name, shape):
    assert sniff(raw(shape)) == wire
    alone = copy.deepcopy(shape["messages"])
    if sniff(alone) != wire:  # only where the messages alone do not say
        assert wire == "anthropic"
        assert not any(
            block in json.dumps(alone) for block in ("tool_use", "tool_result", "thinking", "image")
        )


@pytest.mark.parametrize(
    "value",
    [{}, [1], 3, {"input": []}, {"input": "x", "model": "embed"}, {"contents": []}, {"messages": [{"a": 1}]}],
)
def test_what_is_no_request_is_no_wire(value):
    assert sniff(value) is None


# The prefix.


def ant(*messages, **more) -> bytes:
    return json.dumps({"messages": list(messages), **more}).encode()


def test_a_prefix_is_tools_then_system_then_messages():
    body = ant(
        {"role": "user", "content": "Hi"}, system=[text("S"), text("T")], tools=[{"name": "a"}, {"name": "b"}]
    )
    assert [(e.kind, e.raw) for e in elements(body, "anthropic")] == [
        ("tools", b'{"name": "a"}'),
        ("tools", b'{"name": "b"}'),
        ("system", b'{"type": "text", "text": "S"}'),
        ("system", b'{"type": "text", "text": "T"}'),
        ("message", b'{"role": "user", "content": "Hi"}'),
    ]


@EACH
def test_a_request_that_only_grew_keeps_its_prefix_and_any_change_breaks_it(wire, name, shape):
    body = raw(shape)
    grown = json.loads(body)
    grown["messages"].append({"role": "user", "content": "more"})
    assert request_prefix(raw(grown), wire).startswith(request_prefix(body, wire))
    grown["messages"][0] = {"role": "user", "content": "other"}
    assert not request_prefix(raw(grown), wire).startswith(request_prefix(body, wire))


@pytest.mark.parametrize("order", [("type", "text", "cache_control"), ("cache_control", "type", "text")])
@pytest.mark.parametrize("mark", [MARK, HOUR])
def test_moving_the_cache_marks_keeps_the_prefix(order, mark):
    def body(one, two, tool):
        marked = [{k: (text("x") | m)[k] for k in order if k in text("x") | m} for m in (one, two)]
        return ant(
            user(*marked),
            assistant(use("t1")),
            user(result("t1", [text("a", **one)], **two)),
            tools=[{"name": "a", "input_schema": {"properties": {"cache_control": {}}}} | tool],
        )

    plain = request_prefix(body({}, {}, {}), "anthropic")
    assert request_prefix(body(mark, {}, mark), "anthropic") == plain
    assert request_prefix(body({}, mark, {}), "anthropic") == plain
    assert b'"properties": {"cache_control": {}}' in plain


def test_a_string_that_becomes_one_block_to_carry_a_mark_keeps_the_prefix():
    plain = ant({"role": "user", "content": "Hi"}, system="S")
    marked = ant(user(text("Hi", **MARK)), system=[text("S", **HOUR)])
    assert request_prefix(marked, "anthropic") == request_prefix(plain, "anthropic")
    two = ant(user(text("Hi"), text("you")), system="S")
    assert request_prefix(two, "anthropic") != request_prefix(plain, "anthropic")


def test_adjacent_and_only_marks_leave_valid_json():
    both = {"cache_control": 1, "prompt_cache_breakpoint": 2}
    cases = [
        {"text": "x", **both},
        {**both, "text": "x"},
        both,
        {"cache_control": 1, "text": "x", "prompt_cache_breakpoint": 2},
    ]
    for tool in cases:
        (element, *_) = elements(ant(tools=[tool]), "chat")
        assert json.loads(element.raw) == {k: v for k, v in tool.items() if k == "text"}


def test_cache_marks_in_what_the_model_wrote_are_content():
    body = ant(user(text("Hi"), IMAGE), assistant(use("t1") | {"input": MARK}), results("t1"))
    assert b'"input": {"cache_control": {"type": "ephemeral"}}' in request_prefix(body, "anthropic")


def test_blocks_are_counted_as_the_look_back_counts_them():
    body = ant({"role": "user", "content": "Hi"}, user(text("a"), text("b"), IMAGE), system="S")
    assert [e.blocks for e in elements(body, "anthropic")] == [1, 1, 3]


def test_a_bare_list_of_messages_has_the_same_elements():
    messages = [user(text("Hi", **MARK)), uses("t1"), results("t1")]
    bare = elements(json.dumps(messages).encode(), "anthropic")
    assert [e.raw for e in bare] == [e.raw for e in elements(ant(*messages), "anthropic")]
    assert [e.path for e in bare] == [(0,), (1,), (2,)]


def test_an_element_starts_where_it_says():
    body = ant(user(text("Hi"), text("you")), uses("t1"), results("t1"), tools=[{"name": "a"}])
    assert all(body[e.start :].startswith(e.raw) for e in elements(body, "anthropic"))


def test_a_body_without_messages_has_no_prefix():
    with pytest.raises(WireError, match="messages"):
        elements(b"{}", "chat")
