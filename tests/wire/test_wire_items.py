"""Responses and Gemini: views lead to what is there, prefixes hold, the oracle judges as providers do."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from google.genai import types as gemini_types
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import response_create_params as responses_params
from pydantic import TypeAdapter
from wire_shapes_items import (
    DECLARED,
    FUNCTION,
    GEMINI,
    RESPONSES,
    ask,
    fcall,
    fout,
    gcall,
    gout,
    model,
    part,
    said,
    thought,
    user,
)

from turngate.errors import WireError
from turngate.wire import VIEWS, elements, request_prefix, sniff, splice, violations
from turngate.wire.layout import LAYOUT, message_nodes, message_values, role_of, without_marks
from turngate.wire.scan import find, scan, text_of
from turngate.wire.validity import RULES

WIRES = ("responses", "gemini")
ALL = [
    *(("responses", name, shape) for name, shape in RESPONSES.items()),
    *(("gemini", name, shape) for name, shape in GEMINI.items()),
]
EACH = pytest.mark.parametrize(("wire", "name", "shape"), ALL, ids=[f"{w}: {n}" for w, n, _ in ALL])
REQUEST = TypeAdapter(responses_params.ResponseCreateParamsNonStreaming)


def raw(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


def listed(wire: str, shape: Any) -> list[Any]:
    held = shape[LAYOUT[wire].messages]
    return [held] if isinstance(held, str) else held


def forced(value: Any) -> Any:
    """Pydantic checks an Iterable lazily: walk it, so that every nested part is checked."""
    if isinstance(value, dict):
        return {k: forced(v) for k, v in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [forced(v) for v in value]


@pytest.mark.parametrize("name", RESPONSES)
def test_every_shape_fits_openais_types(name):
    assert forced(REQUEST.validate_python(copy.deepcopy(RESPONSES[name])))


@pytest.mark.parametrize("name", GEMINI)
def test_every_shape_fits_googles_types(name):
    shape = GEMINI[name]
    for content in shape["contents"]:
        assert gemini_types.Content.model_validate(content).parts
    for tool in shape.get("tools", ()):
        assert gemini_types.Tool.model_validate(tool).function_declarations


@EACH
def test_every_path_of_a_view_leads_to_its_text_in_the_raw_body(wire, name, shape):
    body = raw(shape)
    view = VIEWS[wire](body)
    root = scan(body)
    parts = [p for m in view.messages for p in m.texts] + [p for r in view.results for p in r.parts]
    assert all(text_of(body, find(root, each.path)) == each.text for each in parts)
    places = [item.path for item in (*view.messages, *view.calls, *view.results)]
    assert all(find(root, place).kind in {"object", "string"} for place in places)
    assert [m.role for m in view.messages] == [role_of(m, wire) for m in listed(wire, shape)]
    assert view == VIEWS[wire](shape)
    assert [n.start for n in message_nodes(root, wire)] == [find(root, m.path).start for m in view.messages]


@EACH
def test_a_spliced_result_is_the_only_thing_a_view_sees_changed(wire, name, shape):
    body = raw(shape)
    before = VIEWS[wire](body)
    after = VIEWS[wire](splice(body, {p.path: "short" for r in before.results for p in r.parts if p.text}))
    for old, new in zip(before.results, after.results, strict=True):
        assert [p.text for p in new.parts] == ["short" if p.text else "" for p in old.parts]
        assert (new.call_id, new.tool, new.args, new.failed) == (old.call_id, old.tool, old.args, old.failed)
    assert after.calls == before.calls


def results(wire: str, name: str) -> list[tuple[Any, ...]]:
    shape = (RESPONSES if wire == "responses" else GEMINI)[name]
    return [(r.call_id, r.tool, r.args, r.text, r.failed) for r in VIEWS[wire](shape).results]


READ = {"path": "a"}


@pytest.mark.parametrize(
    ("wire", "name", "expected"),
    [
        ("responses", "call", [("c1", "read", '{"path":"a"}', "out", None)]),
        ("responses", "result parts", [("c1", "read", '{"path":"a"}', "ab", None)]),
        ("responses", "image result", [("c1", "read", '{"path":"a"}', "", None)]),
        ("responses", "custom tool", [("c1", "sh", "ls", "out", None)]),
        (
            "responses",
            "local shell",
            [("c1", "local_shell", {"type": "exec", "command": ["ls"], "env": {}}, "out", None)],
        ),
        ("responses", "shell", [("c1", "shell", {"commands": ["ls"]}, "oe", True)]),
        (
            "responses",
            "patch",
            [("c1", "apply_patch", {"type": "delete_file", "path": "a"}, "no such file", True)],
        ),
        ("responses", "called by a program", [("c1", "read", '{"path":"a"}', "", None)]),
        ("responses", "tail of a server conversation", [("c1", "", None, "out", None)]),
        ("gemini", "call", [("read#0", "read", READ, "out", None)]),
        ("gemini", "call with ids", [("c1", "read", READ, "out", None)]),
        (
            "gemini",
            "parallel calls",
            [("list#0", "list", READ, "out", None), ("read#0", "read", READ, "out", None)],
        ),
        (
            "gemini",
            "same function twice",
            [("read#0", "read", READ, "out", None), ("read#1", "read", READ, "2", None)],
        ),
        ("gemini", "error", [("read#0", "read", READ, "no such file", True)]),
        ("gemini", "nested response", [("read#0", "read", READ, "textab", None)]),
        ("gemini", "response without text", [("read#0", "read", READ, "", None)]),
        ("gemini", "other spelling", [("read#0", "read", {}, "out", None)]),
    ],
)
def test_a_result_knows_its_call_its_text_and_how_it_ended(wire, name, expected):
    assert results(wire, name) == expected


def test_a_text_deeper_than_four_levels_of_a_response_is_no_part_of_it():
    deep = {"a": {"b": {"c": {"d": "in", "e": {"f": "out"}}}}}
    (result,) = VIEWS["gemini"]([user(part()), model(gcall()), user(gout(response=deep))]).results
    assert [p.text for p in result.parts] == ["in"]


def test_what_the_provider_runs_is_its_own_call():
    assert [(c.name, c.server) for c in VIEWS["responses"](RESPONSES["web search"]).calls] == [
        ("web_search", True)
    ]


def test_thoughts_are_no_text_of_a_message():
    texts = [[p.text for p in m.texts] for m in VIEWS["gemini"](GEMINI["thought and signed text"]).messages]
    assert texts == [["Hi"], ["ok"], ["more"]]
    assert [m.texts for m in VIEWS["responses"]([ask(), thought(), said()]).messages[1:2]] == [()]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "value", [b"[1", {}, 1, [1], {"input": 1}, {"input": [{}]}, {"contents": ["x"]}, "x"]
)
def test_what_is_no_list_of_messages_raises_one_named_error(wire, value):
    with pytest.raises(WireError):
        VIEWS[wire](value)
    with pytest.raises(WireError):
        message_nodes(scan(b'{"messages":[]}'), wire)


@EACH
def test_the_wire_of_every_shape_is_recognised(wire, name, shape):
    assert sniff(raw(shape)) == wire
    assert sniff(shape, ("chat", "anthropic")) is None
    if wire == "gemini":
        assert sniff(shape["contents"]) == wire


# The prefix.


@EACH
def test_a_request_that_only_grew_keeps_its_prefix_and_any_change_breaks_it(wire, name, shape):
    if isinstance(shape.get("input"), str):
        return
    body, field = raw(shape), LAYOUT[wire].messages
    grown = json.loads(body)
    grown[field].append(ask("more") if wire == "responses" else user(part("more")))
    assert request_prefix(raw(grown), wire).startswith(request_prefix(body, wire))
    grown[field][0] = ask("other") if wire == "responses" else user(part("other"))
    assert not request_prefix(raw(grown), wire).startswith(request_prefix(body, wire))


def test_a_prefix_is_tools_then_instructions_then_items():
    shape = {"input": [ask()], "instructions": "S", "tools": [FUNCTION]}
    assert [(e.kind, e.path) for e in elements(raw(shape), "responses")] == [
        ("tools", ("tools", 0)),
        ("system", ("instructions",)),
        ("message", ("input", 0)),
    ]
    gemini = {"contents": [user(part())], "tools": [DECLARED], "systemInstruction": {"parts": [part("S")]}}
    assert [e.kind for e in elements(raw(gemini), "gemini")] == ["tools", "system", "message"]
    assert [(e.raw, e.path) for e in elements(b'{"input":"Hi"}', "responses")] == [(b'"Hi"', ("input",))]


def test_moving_the_cache_marks_keeps_the_prefix():
    marked = json.dumps(RESPONSES["marked"])
    plain = marked.replace(', "prompt_cache_breakpoint": {"mode": "explicit"}', "")
    assert marked != plain
    assert request_prefix(marked.encode(), "responses") == request_prefix(plain.encode(), "responses")


def test_a_mark_whose_name_is_spelled_with_escapes_is_a_mark():
    body = b'[{"role":"user","content":[{"type":"text","text":"x","cache\\u005fcontrol":{"type":"e"}}]}]'
    (node,) = message_nodes(scan(body), "chat")
    assert b"cache" not in without_marks(body, node, "chat")


def test_what_looks_like_a_mark_in_a_gemini_call_is_content():
    body = raw([model({"functionCall": {"name": "f", "args": {"content": [{"cache_control": 1}]}}})])
    (node,) = message_nodes(scan(body), "gemini")
    assert without_marks(body, node, "gemini") == body[node.start : node.end]


# The oracle.


@EACH
def test_every_documented_shape_is_accepted(wire, name, shape):
    assert violations(shape, wire) == []
    assert violations(json.dumps(shape).encode(), wire) == []
    assert violations(shape, wire, sent=shape) == []
    if "previous_response_id" not in shape and not isinstance(shape.get("input"), str):
        assert violations(shape[LAYOUT[wire].messages], wire) == []


RESPONSES_FAULTS: list[tuple[str, str, Any]] = [
    ("message-shape", "no list", {"input": None}),
    ("message-shape", "an item without type or role", [ask(), {"content": "x"}]),
    ("message-shape", "a string among items", {"input": [ask(), "x"]}),
    ("messages-empty", "no item", {"input": []}),
    ("role-unknown", "a role of another wire", [ask() | {"role": "tool"}]),
    ("result-orphan", "a result without any call", [ask(), fout()]),
    ("result-order", "the result before its call", [ask(), fout(), fcall(), fout()]),
    ("result-missing", "an unanswered call", [ask(), fcall(), ask()]),
    ("result-missing", "one of two parallel calls", [ask(), fcall("c1"), fcall("c2"), fout("c1")]),
    ("result-duplicate", "two results", [ask(), fcall(), fout(), fout()]),
    ("result-shape", "a number", [ask(), fcall(), fout(output=1)]),
    ("call-duplicate", "one id for two calls", [ask(), fcall(), fcall(), fout()]),
    ("call-id", "a call without id", [ask(), fcall("")]),
    ("call-id", "a result without id", [ask(), fout("")]),
    ("call-shape", "arguments as an object", [ask(), fcall(arguments={}), fout()]),
    ("call-shape", "a call without name", [ask(), fcall(name=None), fout()]),
    ("item-duplicate", "an item twice", [ask(), said(), said()]),
    ("reasoning-alone", "reasoning before the user", [ask(), thought(), ask()]),
    ("reasoning-alone", "reasoning before a result", [ask(), fcall(), thought(), fout()]),
    ("reasoning-alone", "reasoning at the end", [ask(), thought()]),
    ("reasoning-shape", "its summary was dropped", [ask(), thought(summary=None), said()]),
    ("content-missing", "a message without content", [{"role": "user"}]),
    (
        "part-unsupported",
        "input in an answer",
        [ask(), {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}],
    ),
    (
        "part-unsupported",
        "a part of another wire",
        [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
    ),
    ("part-unsupported", "output in a result", [ask(), fcall(), fout(output=[{"type": "output_text"}])]),
    ("name-pattern", "a space in a name", [ask(), fcall(name="a b"), fout()]),
    ("name-pattern", "a tool's name", {"input": [ask()], "tools": [FUNCTION | {"name": ""}]}),
    ("compaction-placement", "items behind it", [ask(), {"type": "compaction_trigger"}, ask()]),
]

GEMINI_FAULTS: list[tuple[str, str, Any]] = [
    ("message-shape", "no list", {"contents": "Hi"}),
    ("messages-empty", "no content", []),
    ("role-unknown", "a role of another wire", [{"role": "assistant", "parts": [part()]}]),
    ("parts-empty", "no parts", [user()]),
    ("part-empty", "only a signature", [user(part()), model({"thoughtSignature": "x"})]),
    ("result-missing", "an unanswered call", [user(part()), model(gcall()), user(part())]),
    ("result-missing", "an unanswered call at the end", [user(part()), model(gcall())]),
    ("result-count", "one of two", [user(part()), model(gcall(), gcall()), user(gout())]),
    ("result-count", "one too many", [user(part()), model(gcall()), user(gout(), gout())]),
    ("result-orphan", "a response without call", [user(part()), user(gout())]),
    (
        "result-orphan",
        "text between call and response",
        [user(part()), model(gcall()), user(part()), user(gout())],
    ),
    ("result-name", "another function", [user(part()), model(gcall()), user(gout("list"))]),
    ("result-name", "another id", [user(part()), model(gcall(id="a")), user(gout(id="b"))]),
    ("call-first", "the user was cut off", [model(gcall()), user(gout())]),
    ("call-shape", "arguments as a string", [user(part()), model(gcall(args="{}")), user(gout())]),
    ("call-shape", "a call without name", [user(part()), model(gcall("")), user(gout(""))]),
    ("result-shape", "a string", [user(part()), model(gcall()), user(gout(response="x"))]),
    (
        "name-pattern",
        "a tool's name",
        {"contents": [user(part())], "tools": [{"functionDeclarations": [{"name": "a b"}]}]},
    ),
    ("cache-fields", "tools again", {"contents": [user(part())], "tools": [DECLARED], "cachedContent": "c"}),
]
SEALED = gcall() | {"thoughtSignature": "x"}

HISTORY_FAULTS: list[tuple[str, str, str, Any, Any]] = [
    (
        "responses",
        "reasoning-lost",
        "reasoning dropped before its call",
        [ask(), thought(), fcall(), fout()],
        [ask(), fcall(), fout()],
    ),
    (
        "responses",
        "reasoning-lost",
        "other reasoning",
        [ask(), thought(), said()],
        [ask(), thought(encrypted_content="other"), said()],
    ),
    ("responses", "user-lost", "the user was cut off", [ask(), said()], [said()]),
    (
        "gemini",
        "signature-lost",
        "a signature dropped",
        [user(part()), model(SEALED), user(gout())],
        [user(part()), model(gcall()), user(gout())],
    ),
    (
        "gemini",
        "signature-lost",
        "another signature",
        [user(part()), model(SEALED), user(gout())],
        [user(part()), model(gcall() | {"thoughtSignature": "y"}), user(gout())],
    ),
    ("gemini", "user-lost", "the user was cut off", [user(part()), model(part())], [model(part())]),
]

FAULTS = [
    *(("responses", rule, name, None, bad) for rule, name, bad in RESPONSES_FAULTS),
    *(("gemini", rule, name, None, bad) for rule, name, bad in GEMINI_FAULTS),
    *HISTORY_FAULTS,
]


@pytest.mark.parametrize(
    ("wire", "rule", "name", "sent", "bad"), FAULTS, ids=[f"{f[0]}: {f[1]}: {f[2]}" for f in FAULTS]
)
def test_each_class_of_fault_is_rejected_under_its_name(wire, rule, name, sent, bad):
    found = violations(bad, wire, sent=sent)
    assert rule in {v.rule for v in found}
    for violation in found:
        assert violation.text
        value = bad
        for step in violation.path[:-1]:  # the path leads somewhere; its last step may be what is missing
            value = value[step]


@pytest.mark.parametrize("wire", WIRES)
def test_every_rule_has_a_fault_that_shows_it_and_every_source_is_named(wire):
    assert {rule for w, rule, *_ in FAULTS if w == wire} == {rule.name for rule in RULES[wire]}
    assert all(rule.says and rule.source for rule in RULES[wire])


def test_only_the_server_knows_the_calls_of_a_conversation_that_it_keeps():
    tail = {"input": [fout()], "conversation": "conv_1"}
    assert violations(tail, "responses") == []
    assert [v.rule for v in violations(tail | {"conversation": None}, "responses")] == ["result-orphan"]


KEYS = ["role", "content", "type", "text", "id", "call_id", "input", "contents", "parts", "functionCall"]
KEYS += ["functionResponse", "name", "args", "response", "output", "arguments", "tools", "summary", "outcome"]
WORDS = [
    "user",
    "model",
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "shell_call_output",
]


def nested(inner):
    values = inner | st.sampled_from(WORDS)
    return st.lists(values, max_size=3) | st.dictionaries(st.sampled_from(KEYS), values, max_size=5)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), nested, max_leaves=25)


@given(JSON, JSON, st.sampled_from(WIRES))
def test_no_json_value_makes_the_oracle_or_a_view_raise_but_by_name(value, sent, wire):
    field = LAYOUT[wire].messages
    violations(value, wire, sent=sent)
    violations({field: [value, {"role": "user", "content": value, "parts": [value]}]}, wire)
    sniff(value)
    for given_value in (value, {field: [value]}, [value]):
        try:
            message_values(given_value, wire)
        except WireError:
            continue
        VIEWS[wire](given_value)
