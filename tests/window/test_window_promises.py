"""Random histories: valid out, nothing lost, the budget met or not without a word, the same again."""

from __future__ import annotations

import json

import pytest
from bench.histories import broken, valid
from bench.window import one
from bench.window_rules import Trial
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turngate.window.cut import Target, plan
from turngate.window.measure import Sizes
from turngate.window.record.transcript import parse, render
from turngate.window.units import units

RANDOM = st.randoms(use_true_random=False)
#: The machine may be busy; how long an example takes proves nothing.
RELAXED = settings(deadline=None)
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@SLOW
@given(RANDOM, st.booleans())
def test_chat_histories_keep_every_promise(rng, whole):
    messages = valid(rng, "chat") if whole else broken(rng, "chat")
    assert list(Trial(rng, messages, "chat", bound=False).faults()) == []


@SLOW
@given(RANDOM, st.booleans(), st.booleans(), st.booleans())
def test_anthropic_histories_keep_every_promise(rng, whole, thinking, bound):
    messages = valid(rng, "anthropic", thinking=thinking) if whole else broken(rng, "anthropic")
    assert list(Trial(rng, messages, "anthropic", bound=bound).faults()) == []


@RELAXED
@given(RANDOM, st.sampled_from(["chat", "anthropic"]), st.integers(0, 99))
def test_a_span_is_read_back_as_it_was(rng, wire, first):
    messages = broken(rng, wire)
    assert parse(*render(messages, wire, first=first)) == messages


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("@"), inner, max_size=3)
    ),
    max_leaves=8,
)


MESSAGES = st.lists(
    st.builds(
        lambda role, content, more: {"x": more, "role": role, "content": content},
        st.sampled_from(["user", "assistant", "tool", "system"]),
        JSON,
        JSON,
    ),
    min_size=1,
    max_size=4,
)


@RELAXED
@given(MESSAGES)
def test_a_span_of_any_json_is_read_back_as_it_was(messages):
    assert parse(*json.loads(json.dumps(render(messages, "anthropic", first=0)))) == messages


@RELAXED
@given(RANDOM, st.sampled_from(["chat", "anthropic"]), st.floats(0, 5_000), st.integers(0, 9))
def test_a_plan_names_each_message_once_and_gives_a_reason(rng, wire, limit, keep):
    messages = broken(rng, wire)
    parts = units(messages, wire, Sizes())
    assert [i for unit in parts for i in range(unit.first, unit.end)] == list(range(len(messages)))
    made = plan(parts, Target(limit, limit / 2, limit / 10, keep), lambda unit: unit.tokens / 2)
    assert [(step.first, step.end) for step in made.steps] == [(unit.first, unit.end) for unit in parts]
    assert all(step.reason for step in made.steps)
    assert made.met or made.why
    assert not made.changes or made.progress_share >= 0.05


@pytest.mark.parametrize("seed", [632, 1_005_552, 5_003_332, 10_050_588])
def test_histories_that_once_broke_a_promise_keep_it(seed):
    assert one(seed)[3] == []
