from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.turn import (
    compression_made_progress,
    message_tokens,
    native_note,
    should_run_preflight_estimate,
)

BASE64 = "data:image/png;base64," + "A" * 400_000


@pytest.mark.parametrize(
    ("sizes", "tokens", "progress"),
    [
        ((220, 220), (288_000, 183_000), True),
        ((220, 219), (100, 100), True),
        ((220, 219), (100, 200), True),
        ((10, 10), (100, 95), False),
        ((10, 10), (100, 94), True),
        ((10, 10), (1_000_000, 950_000), False),
        ((10, 10), (1_000_000, 949_999), True),
        ((10, 11), (100, 10), True),
        ((10, 10), (0, 0), False),
        ((10, 10), (100, 100), False),
    ],
)
def test_progress_is_fewer_messages_or_more_than_five_percent_fewer_tokens(sizes, tokens, progress):
    assert compression_made_progress(*sizes, *tokens) is progress


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_what_makes_no_progress_leaves_at_least_nineteen_twentieths(before, after):
    assert compression_made_progress(5, 5, before, after) is (after < before * 19 / 20)


def message(text):
    return {"role": "user", "content": text}


@pytest.mark.parametrize(
    ("messages", "needed"),
    [
        ([message("x")] * 7, True),
        ([message("x")] * 6, False),
        ([message("word " * 5_000)], True),
        ([message([{"type": "text", "text": "word " * 5_000}])], True),
        ([{"role": "assistant", "tool_calls": [{"function": {"arguments": "word " * 5_000}}]}], True),
        ([message([{"type": "image_url", "image_url": {"url": BASE64}}])], False),
        ([message([{"type": "image_url", "image_url": {"url": BASE64}}])] * 4, True),
        ([message(None)], False),
        ([], False),
    ],
)
def test_an_estimate_is_worth_it_for_many_messages_or_large_ones(messages, needed):
    assert should_run_preflight_estimate(messages, 2, 3, 4_000) is needed


@pytest.mark.parametrize(
    "kind", ["image", "image_url", "input_image", "document", "file", "input_audio", "video"]
)
def test_media_cost_the_same_however_they_are_encoded(kind):
    small, large = (message_tokens(message([{"type": kind, kind: data}])) for data in ("A", BASE64))
    assert small == large > 10


@pytest.mark.parametrize(
    "model",
    [
        "claude-opus-4-8",
        "claude-opus-4-8-20260528",
        "anthropic/claude-opus-4.8",
        "us.anthropic.claude-fable-5-1-20260831-v1:0",
        "claude-sonnet-5-5@20260901",
        "claude-opus-5-latest",
        "claude-opus-5[1m]",
        "Claude-Mythos-5",
    ],
)
def test_models_that_take_one_shot_notes_are_known_by_any_of_their_names(model):
    found = native_note(model)
    assert (found.role, found.clear_at) == ("system", "next_user_message")
    assert found.beta
    assert found.source.startswith("https://")


@pytest.mark.parametrize(
    "model", ["", "claude-sonnet-5", "claude-fable-5-2", "claude-opus-4-7", "gpt-5.6", "my-claude-opus-5"]
)
def test_models_that_would_refuse_a_one_shot_note_get_none(model):
    assert native_note(model) is None


def test_a_model_that_takes_a_note_behind_results_for_output_gets_none_there():
    assert native_note("claude-haiku-5-5")
    assert native_note("claude-haiku-5-5", after_results=True) is None
    assert native_note("claude-opus-5", after_results=True)
