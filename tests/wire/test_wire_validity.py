"""The oracle accepts every documented shape and rejects each class of fault, under its own name."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from anthropic.types import message_create_params as ant_params
from anthropic.types.beta import message_create_params as beta_params
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import completion_create_params as chat_params
from pydantic import TypeAdapter
from wire_shapes import (
    ANT_TOOL,
    ANTHROPIC,
    ANTHROPIC_BETA,
    CHAT,
    CHAT_TOOL,
    FOUND,
    HIDDEN,
    HOUR,
    IMAGE,
    MARK,
    SEARCH,
    SYSTEM,
    THINK,
    assistant,
    chat_call,
    chat_calls,
    chat_result,
    result,
    results,
    text,
    use,
    user,
    uses,
)

from turngate.wire import violations
from turngate.wire.validity import RULES

ADAPTERS = {
    "chat": TypeAdapter(chat_params.CompletionCreateParamsNonStreaming),
    "anthropic": TypeAdapter(ant_params.MessageCreateParamsNonStreaming),
    "beta": TypeAdapter(beta_params.MessageCreateParamsNonStreaming),
}
SHAPES = [
    *(("chat", "chat", name, shape) for name, shape in CHAT.items()),
    *(("anthropic", "anthropic", name, shape) for name, shape in ANTHROPIC.items()),
    *(("anthropic", "beta", name, shape) for name, shape in ANTHROPIC_BETA.items()),
]


def forced(value: Any) -> Any:
    """Pydantic checks an Iterable lazily: walk it, so that every nested block is checked."""
    if isinstance(value, dict):
        return {k: forced(v) for k, v in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [forced(v) for v in value]


@pytest.mark.parametrize(
    ("wire", "adapter", "name", "shape"), SHAPES, ids=[f"{s[1]}: {s[2]}" for s in SHAPES]
)
def test_every_documented_shape_fits_the_official_types_and_is_accepted(wire, adapter, name, shape):
    assert forced(ADAPTERS[adapter].validate_python(copy.deepcopy(shape)))
    assert violations(shape, wire) == []
    assert violations(json.dumps(shape).encode(), wire) == []
    assert violations(shape["messages"], wire) == []
    assert violations(shape, wire, sent=shape) == []


U = {"role": "user", "content": "Hi"}
A = {"role": "assistant", "content": "ok"}

CHAT_FAULTS: list[tuple[str, str, Any]] = [
    ("message-shape", "no list", {"messages": None}),
    ("message-shape", "a message without role", [U, {"content": "x"}]),
    ("messages-empty", "no message", []),
    ("role-unknown", "a role of another wire", [U, {"role": "model", "content": "x"}]),
    ("result-orphan", "a result without any call", [U, chat_result("c1")]),
    ("result-orphan", "its call was cut off", [chat_result("c1"), U]),
    ("result-missing", "an unanswered call", [U, chat_calls("c1"), U]),
    ("result-missing", "an unanswered call at the end", [U, chat_calls("c1")]),
    (
        "result-missing",
        "one of two parallel calls unanswered",
        [U, chat_calls("c1", "c2"), chat_result("c1")],
    ),
    ("results-split", "text between call and result", [U, chat_calls("c1"), U, chat_result("c1")]),
    (
        "results-split",
        "parallel results around another message",
        [U, chat_calls("c1", "c2"), chat_result("c1"), A, chat_result("c2")],
    ),
    (
        "result-order",
        "the result before its call",
        [U, chat_result("c1"), chat_calls("c1"), chat_result("c1")],
    ),
    ("result-duplicate", "two results", [U, chat_calls("c1"), chat_result("c1"), chat_result("c1")]),
    ("call-duplicate", "one id for two calls", [U, chat_calls("c1", "c1"), chat_result("c1")]),
    ("call-id", "a call without id", [U, chat_calls(""), chat_result("")]),
    (
        "call-id",
        "a result without id",
        [U, chat_calls("c1"), chat_result("c1"), {"role": "tool", "content": "x"}],
    ),
    (
        "call-shape",
        "arguments as an object",
        [U, {"role": "assistant", "tool_calls": [chat_call("c1", arguments={})]}, chat_result("c1")],
    ),
    (
        "call-shape",
        "a call without name",
        [U, {"role": "assistant", "tool_calls": [chat_call("c1", name=None)]}, chat_result("c1")],
    ),
    ("calls-empty", "an empty array of calls", [U, A | {"tool_calls": []}]),
    ("content-missing", "a user message without content", [{"role": "user"}]),
    ("content-missing", "an assistant message with nothing", [U, {"role": "assistant", "content": None}]),
    ("content-missing", "a number", [{"role": "user", "content": 1}]),
    ("content-empty", "an empty array", [{"role": "user", "content": []}]),
    (
        "part-unsupported",
        "an image in a result",
        [U, chat_calls("c1"), chat_result("c1", [{"type": "image_url"}])],
    ),
    ("part-unsupported", "a block of another wire", [{"role": "user", "content": [IMAGE]}]),
    (
        "name-pattern",
        "a space in a name",
        [U, {"role": "assistant", "tool_calls": [chat_call("c1", name="a b")]}, chat_result("c1")],
    ),
    (
        "name-pattern",
        "a tool's name",
        {"messages": [U], "tools": [{"function": CHAT_TOOL["function"] | {"name": ""}}]},
    ),
]

ANTHROPIC_FAULTS: list[tuple[str, str, Any]] = [
    ("message-shape", "a string", {"messages": "Hi"}),
    ("messages-empty", "no message", {"messages": []}),
    ("role-unknown", "a role of another wire", [U, {"role": "tool", "content": "x"}]),
    ("first-not-user", "the assistant first", [A, U]),
    ("system-placement", "system first", [SYSTEM, A, U]),
    ("system-placement", "system after the assistant", [U, A, SYSTEM]),
    ("system-placement", "system before the user", [U, SYSTEM, U]),
    ("system-placement", "two in a row", [U, SYSTEM, SYSTEM, A]),
    ("system-placement", "system between call and result", [U, uses("t1"), SYSTEM, results("t1")]),
    ("system-content", "an image in it", [U, {"role": "system", "content": [IMAGE]}]),
    ("result-orphan", "a result without any call", [U, results("t1")]),
    ("result-orphan", "its call was cut off", [results("t1"), A, U]),
    ("result-missing", "an unanswered call", [U, uses("t1"), U]),
    ("result-missing", "an unanswered call at the end", [U, uses("t1")]),
    ("result-missing", "one of two parallel calls unanswered", [U, uses("t1", "t2"), results("t1")]),
    (
        "results-split",
        "parallel results in two messages",
        [U, uses("t1", "t2"), results("t1"), results("t2")],
    ),
    ("results-split", "a text turn between call and result", [U, uses("t1"), U, results("t1")]),
    ("results-split", "an assistant turn between call and result", [U, uses("t1"), A, results("t1")]),
    ("result-order", "the result before its call", [U, results("t1"), uses("t1"), results("t1")]),
    ("result-after-text", "text before the result", [U, uses("t1"), user(text("here"), result("t1"))]),
    ("result-duplicate", "two results", [U, uses("t1"), results("t1", "t1")]),
    ("call-duplicate", "one id in one turn", [U, uses("t1", "t1"), results("t1")]),
    ("call-duplicate", "one id in two turns", [U, uses("t1"), results("t1"), uses("t1"), results("t1")]),
    ("call-id", "a space in the id", [U, uses("t 1"), results("t 1")]),
    ("call-shape", "arguments as a string", [U, assistant(use("t1") | {"input": "{}"}), results("t1")]),
    ("call-shape", "no name", [U, assistant(use("t1", None)), results("t1")]),
    ("server-result-orphan", "its call was cut off", [U, assistant(FOUND, text("x")), U]),
    ("server-result-missing", "its result was cut off", [U, assistant(SEARCH, text("x")), U, A, U]),
    ("name-pattern", "a dot in a name", [U, assistant(use("t1", "a.b")), results("t1")]),
    ("name-pattern", "a tool's name", {"messages": [U], "tools": [ANT_TOOL | {"name": ""}]}),
    ("tool-duplicate", "the same tool twice", {"messages": [U], "tools": [ANT_TOOL, ANT_TOOL]}),
    ("content-missing", "an empty string", [{"role": "user", "content": ""}, A]),
    ("content-missing", "an empty assistant in the middle", [U, assistant(), U]),
    ("content-missing", "null", [{"role": "user", "content": None}]),
    ("content-missing", "a system message with nothing", [U, {"role": "system"}]),
    ("text-empty", "an empty text block", [user(text(""))]),
    ("text-empty", "white space in a block", [user(text(" \n"))]),
    ("text-empty", "white space as content", [{"role": "user", "content": " "}]),
    ("text-empty", "an empty block in a result", [U, uses("t1"), user(result("t1", [text("")]))]),
    ("block-shape", "a block without type", [user({"text": "x"})]),
    ("block-role", "a call by the user", [user(use("t1"))]),
    ("block-role", "a result by the assistant", [U, assistant(result("t1"))]),
    ("block-role", "thinking by the user", [user(THINK, text("x"))]),
    (
        "error-result-content",
        "an image in a failure",
        [U, uses("t1"), user(result("t1", [IMAGE], is_error=True))],
    ),
    ("last-trailing-space", "a prefill with a space", [U, {"role": "assistant", "content": "The answer: "}]),
    ("last-trailing-space", "the same as a block", [U, assistant(text("The answer:\n"))]),
    ("thinking-first", "text before thinking", [U, assistant(text("a"), THINK, text("b")), U]),
    ("thinking-last", "nothing after thinking", [U, assistant(THINK), U]),
    ("thinking-last", "thinking last", [U, assistant(THINK, text("a"), HIDDEN), U]),
    (
        "thinking-signature",
        "no signature",
        [U, assistant({"type": "thinking", "thinking": "x"}, text("a")), U],
    ),
    ("thinking-signature", "no data", [U, assistant(HIDDEN | {"data": ""}, text("a")), U]),
    (
        "thinking-missing",
        "thinking cut from a tool loop",
        {"messages": [U, uses("t1"), results("t1")], "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ),
    (
        "thinking-disabled",
        "thinking in a prefill",
        {"messages": [U, assistant(THINK, text("a"))], "thinking": {"type": "disabled"}},
    ),
    ("cache-marks", "five marks", [user(*(text(str(i), **MARK) for i in range(5)))]),
    (
        "cache-ttl-order",
        "5 minutes before 1 hour",
        {"messages": [user(text("a", **HOUR))], "tools": [ANT_TOOL | MARK]},
    ),
    ("cache-block", "a mark on thinking", [U, assistant(THINK | MARK, text("a")), U]),
    ("cache-block", "a mark on empty text", [user(text("", **MARK))]),
    ("clear-at", "clear_at on a user message", [U | {"clear_at": "next_user_message"}]),
    (
        "compaction-content",
        "an empty summary",
        [assistant({"type": "compaction", "content": ""}, text("a")), U],
    ),
    (
        "compaction-place",
        "a signed summary further down",
        [U, assistant({"type": "compaction", "content": "s", "signature": "x"}, text("a")), U],
    ),
    (
        "compaction-single",
        "two signed summaries",
        [assistant(*({"type": "compaction", "content": "s", "signature": x} for x in "ab"), text("a")), U],
    ),
]

LONG = [
    U,
    assistant(THINK, text("a")),
    U,
    assistant(THINK | {"signature": "sig2", "thinking": "two"}, use("t1")),
]
LONG = [*LONG, results("t1")]


def _changed(change) -> list[Any]:
    value = copy.deepcopy(LONG)
    change(value)
    return value


def _set(*path: Any, to: Any):
    def change(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        value[path[-1]] = to

    return change


REASONED = [U, chat_calls("c1", reasoning_content="because"), chat_result("c1")]

HISTORY_FAULTS: list[tuple[str, str, str, Any, Any]] = [
    (
        "anthropic",
        "thinking-modified",
        "its text",
        LONG,
        _changed(_set(1, "content", 0, "thinking", to="hmm")),
    ),
    (
        "anthropic",
        "thinking-modified",
        "its signature",
        LONG,
        _changed(_set(1, "content", 0, "signature", to="x")),
    ),
    (
        "anthropic",
        "thinking-order",
        "two blocks change places",
        LONG,
        [
            U,
            assistant(LONG[3]["content"][0], text("a")),
            U,
            assistant(LONG[1]["content"][0], use("t1")),
            results("t1"),
        ],
    ),
    ("anthropic", "thinking-prefix", "an edited user turn", LONG, _changed(_set(0, "content", to="Hello"))),
    ("anthropic", "thinking-prefix", "a removed turn", LONG, LONG[2:]),
    (
        "anthropic",
        "thinking-prefix",
        "another system prompt",
        {"messages": LONG, "system": "S"},
        {"messages": LONG, "system": "T"},
    ),
    (
        "anthropic",
        "thinking-prefix",
        "another tool",
        {"messages": LONG},
        {"messages": LONG, "tools": [ANT_TOOL]},
    ),
    (
        "anthropic",
        "user-lost",
        "only a summary is left",
        LONG,
        [assistant({"type": "compaction", "content": "s"})],
    ),
    ("chat", "user-lost", "only the system prompt is left", [U], [{"role": "system", "content": "S"}]),
    ("chat", "reasoning-lost", "dropped", REASONED, [U, chat_calls("c1"), chat_result("c1")]),
    (
        "chat",
        "reasoning-lost",
        "changed",
        REASONED,
        [U, chat_calls("c1", reasoning_content="x"), chat_result("c1")],
    ),
]

FAULTS = [
    *(("chat", rule, name, None, bad) for rule, name, bad in CHAT_FAULTS),
    *(("anthropic", rule, name, None, bad) for rule, name, bad in ANTHROPIC_FAULTS),
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


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
def test_every_rule_has_a_fault_that_shows_it_and_every_source_is_named(wire):
    assert {rule for w, rule, *_ in FAULTS if w == wire} == {rule.name for rule in RULES[wire]}
    assert all(rule.says and rule.source for rule in RULES[wire])


def test_moved_cache_marks_do_not_break_what_thinking_is_bound_to():
    marked = _changed(_set(0, "content", to="Hi"))
    marked[2] = user(text("Hi", **MARK))
    unmarked = copy.deepcopy(marked)
    del unmarked[2]["content"][0]["cache_control"]
    assert violations(unmarked, "anthropic", sent=marked) == []
    assert violations(LONG, "anthropic", sent=marked) == []


def test_a_request_that_asks_for_drop_block_may_edit_its_history():
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    edited = _changed(_set(0, "content", to="Hello"))
    assert violations({"messages": edited, "thinking": binding}, "anthropic", sent={"messages": LONG}) == []


KEYS = ["role", "content", "type", "text", "id", "tool_use_id", "tool_calls", "tool_call_id", "messages"]
KEYS += ["function", "input", "name", "cache_control", "system", "tools", "thinking", "signature"]
WORDS = ["user", "assistant", "tool", "system", "tool_use", "tool_result", "text", "thinking", "t1"]


def nested(inner):
    values = inner | st.sampled_from(WORDS)
    return st.lists(values, max_size=3) | st.dictionaries(st.sampled_from(KEYS), values, max_size=5)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), nested, max_leaves=25)


@given(JSON, JSON, st.sampled_from(["chat", "anthropic"]))
def test_no_json_value_makes_the_oracle_raise(value, sent, wire):
    violations(value, wire, sent=sent)
    violations({"messages": [value, {"role": "user", "content": value}]}, wire)
