"""Contract T and W: the functions for those who only want a function."""

from __future__ import annotations

import json

import pytest
from bench.histories import broken, valid
from bench.window_rules import PAIRING
from hypothesis import given, settings
from hypothesis import strategies as st
from window_shapes import a, chat, h, loop, results, s, t, use, words

from turngate.errors import WireError
from turngate.window import clear_tool_results, repair, trim, validate
from turngate.window.helpers import CLEARED
from turngate.wire import violations

#: The machine may be busy; how long an example takes proves nothing.
RELAXED = settings(deadline=None)

WIRES = st.sampled_from(["chat", "anthropic"])
RANDOM = st.randoms(use_true_random=False)


def pairing(messages, wire):
    return [found for found in violations(messages, wire) if found.rule in PAIRING]


@RELAXED
@given(RANDOM, WIRES, st.integers(0, 4_000), st.one_of(st.none(), st.integers(0, 20)))
def test_w1_a_trimmed_list_fits_or_says_so_and_is_valid(rng, wire, budget, cap):
    messages = valid(rng, wire)
    trimmed = trim(messages, budget, max_messages=cap, wire=wire)
    out = trimmed.messages
    assert not violations(out, wire)
    assert trimmed.dropped == len(messages) - len(out)
    newest = [m for m in messages if m["role"] == "user" and not _has_results(m)][-1]
    assert newest in out
    first = next(m for m in out if m["role"] != "system")
    assert first["role"] == "user"
    if trimmed.met and cap is not None:
        assert sum(m["role"] != "system" for m in out) <= cap


def _has_results(message):
    content = message["content"]
    return isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)


@RELAXED
@given(RANDOM, WIRES, st.integers(0, 4_000))
def test_trimming_never_makes_a_broken_list_worse(rng, wire, budget):
    messages = broken(rng, wire)
    assert len(pairing(trim(messages, budget, wire=wire).messages, wire)) <= len(pairing(messages, wire))


def test_w2_the_budget_includes_the_newest_message():
    trimmed = trim(chat(6, 500), max_messages=1)
    assert trimmed.messages[-1]["role"] == "user"
    assert len(trimmed.messages) == 1


def test_without_a_budget_nothing_goes():
    messages = chat(3)
    assert trim(messages).messages == messages


@RELAXED
@given(RANDOM, WIRES, st.integers(0, 6), st.booleans())
def test_cleared_lists_are_valid_lighter_or_the_very_list(rng, wire, keep, inputs):
    messages = valid(rng, wire)
    kept = json.dumps(messages)
    cleared = clear_tool_results(messages, keep=keep, inputs=inputs, wire=wire)
    assert json.dumps(messages) == kept
    assert not violations(cleared.messages, wire)
    if cleared.messages is not messages:
        assert cleared.tokens > 0
        assert len(json.dumps(list(cleared.messages))) < len(kept)


def test_t2_id_name_and_status_stay():
    messages = [h(), use("c1"), results(("c1", words(500))), use("c2"), results(("c2", words(500)))]
    messages[2]["content"][0] |= {"is_error": True, "cache_control": {"type": "ephemeral"}}
    block = clear_tool_results(messages, keep=1).messages[2]["content"][0]
    assert block == messages[2]["content"][0] | {"content": CLEARED}


def test_t4_what_is_cleared_is_a_growing_prefix():
    messages = loop(6, 500)
    before = ()
    for end in range(3, len(messages) + 1, 2):
        ids = clear_tool_results(messages[:end], keep=2).call_ids
        assert ids[: len(before)] == before
        before = ids
    assert before == ("c0", "c1", "c2", "c3")


def test_t8_failed_results_and_named_tools_can_stay():
    messages = [h(), use("c1"), results(("c1", words(500))), use("c2"), results(("c2", words(500))), h("go")]
    messages[2]["content"][0]["is_error"] = True
    assert clear_tool_results(messages, keep=0, errors=False).call_ids == ("c2",)
    assert clear_tool_results(messages, keep=0, skip_tools=("read",)).messages is messages


def test_a_stand_in_may_be_a_marker():
    cleared = clear_tool_results(
        loop(3), keep=1, stand_in=lambda text: f"<<<CCR:{'0' * 16}|tool|{len(text)}|token>>>"
    )
    assert cleared.messages[2]["content"].startswith("<<<CCR:")


@RELAXED
@given(RANDOM, WIRES)
def test_a_valid_list_is_repaired_by_leaving_it_alone(rng, wire):
    messages = valid(rng, wire)
    found = repair(messages, wire=wire)
    assert found.messages is messages
    assert (found.repairs, found.left) == ((), [])


@RELAXED
@given(RANDOM, WIRES)
def test_a_repaired_list_pairs_calls_and_results_and_says_what_was_done(rng, wire):
    messages = broken(rng, wire)
    kept = json.dumps(messages)
    found = repair(messages, wire=wire)
    assert json.dumps(messages) == kept
    assert len(pairing(found.messages, wire)) <= len(pairing(messages, wire))
    for wrong in pairing(found.messages, wire):
        # Ids that are called twice it cannot tell apart; the last calls may still be answered.
        after = found.messages[wrong.path[0] + 1 :]
        assert wrong.rule == "call-duplicate" or all(m["role"] == "tool" or _has_results(m) for m in after)
    if found.messages is not messages:
        assert found.repairs


def test_a_call_is_answered_for_where_only_text_beside_a_strays_result_follows():
    ask = {"type": "tool_use", "id": "c2", "name": "bash", "input": {}}
    stray = {"type": "tool_result", "tool_use_id": "c9", "content": "x"}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [ask]},
        {"role": "user", "content": [stray, {"type": "text", "text": "by the way"}]},
    ]
    found = repair(messages, wire="anthropic")
    assert found.left == []
    assert [block["type"] for block in found.messages[2]["content"]] == ["tool_result", "text"]
    assert found.messages[2]["content"][0]["tool_use_id"] == "c2"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([h(), t("x"), a()], [h(), a()]),
        ([h(), a("c"), h("wait"), t("c", "r"), a()], [h(), a("c"), t("c", "r"), h("wait"), a()]),
        ([h(), a("c"), t("c", "r"), t("c", "r"), a()], [h(), a("c"), t("c", "r"), a()]),
        ([h(), a("c"), t("c", "r"), h(), a("c"), t("c", "s"), a()], None),
    ],
    ids=["orphan", "moved", "doubled", "the id again in a later turn"],
)
def test_what_repair_does_to_each_fault(messages, expected):
    assert repair(messages).messages == (expected or messages)


def test_a_call_that_was_never_answered_gets_a_result_that_says_so():
    out = repair([h(), a("c1", "c2"), t("c1", "r"), h("go on")]).messages
    assert out[3]["tool_call_id"] == "c2"
    assert "not answered" in out[3]["content"]
    assert not validate(out)


def test_a_call_that_may_still_be_answered_is_left_alone():
    messages = [h(), a("c1", "c2"), t("c1", "r")]
    found = repair(messages)
    assert found.messages == messages
    assert [each.rule for each in found.left] == ["result-missing"]


def test_anthropic_results_are_moved_to_the_front_of_the_right_message():
    text = {"type": "text", "text": "wait"}
    messages = [h(), use("c1", "c2"), {"role": "user", "content": [text, *results(("c1", "r"))["content"]]}]
    out = repair([*messages, a(), results(("c2", "s"))], wire="anthropic").messages
    assert not pairing(out, "anthropic")
    assert out[2]["content"][-1] == text


def test_validate_says_what_a_provider_would_refuse():
    assert validate(chat(2)) == []
    assert [found.rule for found in validate([h(), t("x")])] == ["result-orphan"]


@pytest.mark.parametrize("call", [trim, clear_tool_results, repair])
@pytest.mark.parametrize("junk", [{}, "text", [1], [{"no": "role"}]])
def test_what_is_no_list_of_messages_is_refused_by_name(call, junk):
    with pytest.raises(WireError):
        call(junk)


def test_system_messages_do_not_count_against_a_cap():
    assert [m["role"] for m in trim([s(), s("b"), *chat(3)], max_messages=2).messages][:2] == ["system"] * 2
