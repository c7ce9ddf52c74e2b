"""Contract B: how much room there is, what a message weighs, when something is done at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_shapes import SEED, Summariser, a, chat, h, loop, s, t, words

from turngate.errors import SettingsError
from turngate.settings import WindowSettings
from turngate.window import CachePrices, Sizes, limits
from turngate.window.budget import Pace, weigh
from turngate.window.models import cache_prices, thinking_bound, window_tokens

EIGHT = WindowSettings(context_window_tokens=8_000, weigh_cost=False)
#: The machine may be busy; how long an example takes proves nothing.
RELAXED = settings(deadline=None)


def eights(number, chars):
    """So many messages of together `chars` characters."""
    each, rest = divmod(chars, number)
    return [h("x" * (each + (at < rest))) for at in range(number)]


@pytest.mark.parametrize(
    ("chosen", "model", "tokens", "source"),
    [
        (WindowSettings(context_window_tokens=5), "claude-opus-5-5", 5, "setting"),
        (WindowSettings(), "claude-opus-4-5-20251101", 200_000, "model"),
        (WindowSettings(), "anthropic/claude-sonnet-5-5", 1_000_000, "model"),
        (WindowSettings(), "gpt-5-mini", 400_000, "model"),
        (WindowSettings(), "nobody-knows-me", 200_000, "default"),
        (WindowSettings(), "", 200_000, "default"),
    ],
)
def test_b1_the_window_is_the_setting_then_the_models_then_200_000(chosen, model, tokens, source):
    found = limits(chosen, model=model)
    assert (found.window_tokens, found.source) == (tokens, source)


def test_b1_a_model_of_no_row_is_looked_up_in_genai_prices():
    assert window_tokens("gpt-4")[0] == 8_192


def test_b2_the_budget_is_tokens_times_share():
    assert limits(SEED).hard_tokens == 100_000


@pytest.mark.parametrize(("chars", "fires"), [(16_000, False), (16_001, True)])
def test_b3_both_thresholds_are_strict(make_window, chars, fires):
    soft = replace(SEED, weigh_cost=False, keep_recent_messages=2)
    assert (make_window(soft).fit(eights(8, chars)).compaction is not None) is fires
    hard = replace(soft, context_window_tokens=8_000, soft_threshold_tokens=4_000)
    assert (make_window(hard, session="hard").fit(eights(8, chars)).plan is not None) is fires


@pytest.mark.parametrize("value", [2.5, True, float("inf"), 0, -5, "8000"])
@pytest.mark.parametrize("name", ["context_window_tokens", "keep_recent_messages", "chars_per_token"])
def test_b4_a_window_is_a_whole_number_above_nought(name, value):
    if (name, value) == ("keep_recent_messages", 0):
        return
    with pytest.raises(SettingsError, match=name):
        WindowSettings(**{name: value})


@pytest.mark.parametrize("share", [0, -0.5, 1.5, float("nan"), True, "half"])
def test_b4_a_share_is_above_nought_and_at_most_one(share):
    with pytest.raises(SettingsError, match="max_history_share"):
        WindowSettings(max_history_share=share)


MESSAGES = st.lists(
    st.one_of(
        st.builds(h, st.text()),
        st.builds(lambda args: a("c", args=args), st.text()),
        st.builds(
            lambda text: t("c", [{"type": "text", "text": text}, {"type": "text", "text": None}]), st.text()
        ),
        st.just({"role": "assistant", "content": None}),
    )
)


@RELAXED
@given(MESSAGES, MESSAGES)
def test_b5_more_messages_never_weigh_less(first, second):
    sizes = Sizes()
    assert sizes.messages(first + second) >= sizes.messages(first)
    assert sizes.messages(first) == Sizes().messages(first)


def test_b6_tools_and_system_prompt_take_their_room(make_window):
    tools = [
        {"type": "function", "function": {"name": f"tool{at}", "description": words(2_000)}}
        for at in range(4)
    ]
    bare = make_window(EIGHT).fit({"messages": [h()]})
    full = make_window(EIGHT).fit({"messages": [h()], "tools": tools, "system": words(4_000)})
    assert bare.limits.hard_tokens - full.limits.hard_tokens > 3_000
    assert full.limits.beside_tokens > 3_000


def test_b6_where_tools_leave_no_room_that_is_said(make_window):
    fitted = make_window(EIGHT).fit({"messages": loop(4), "system": words(60_000)})
    assert fitted.over
    assert "no room for messages" in fitted.why


def test_b7_under_budget_the_very_object_comes_back(make_window, store):
    messages = chat(3, 100)
    summariser = Summariser()
    fitted = make_window(EIGHT, summariser=summariser).fit(messages)
    assert fitted.request is messages
    assert (fitted.plan, fitted.compaction, summariser.asked) == (None, None, [])
    assert store.stats().contents == 0


def test_b8_a_second_pass_changes_nothing_and_asks_nobody(make_window):
    summariser = Summariser()
    first = make_window(EIGHT, summariser=summariser).fit(loop(8))
    second = make_window(EIGHT, summariser=summariser).fit(list(first.messages))
    assert list(second.messages) == list(first.messages)
    assert second.compaction is None
    assert len(summariser.asked) == 1


def test_b9_a_latch_says_when_it_opens_and_opens(make_window, notices):
    summariser = Summariser()
    settings = replace(SEED, context_window_tokens=8_000, soft_threshold_tokens=100, weigh_cost=False)
    window = make_window(settings, summariser=summariser)
    few = [h(words(1_000)), a(), h(words(1_000))]
    for _ in range(3):
        assert window.fit(few).compaction is None or notices[-1].method == "none"
    assert len(notices) == 1
    assert "no model is asked before the messages weigh" in notices[0].why
    grown = [*few, *loop(14)]
    assert window.fit(grown).compaction.method == "model"


def test_b10_few_huge_messages_are_reduced_or_reported(make_window):
    for messages in ([h(words(90_000)), a(), h("x")], [h(words(90_000))]):
        fitted = make_window(EIGHT, session=str(len(messages))).fit(messages)
        assert fitted.why if fitted.over else fitted.compaction


def test_b11_the_budget_holds_before_every_call_of_a_loop(make_window):
    window = make_window(EIGHT)
    messages = [s(), *loop(30, 3_000)]
    for end in range(2, len(messages), 2):
        fitted = window.fit(messages[: end + 1])
        assert not fitted.over
        assert fitted.tokens <= fitted.limits.hard_tokens


def test_estimates_are_corrected_by_what_is_reported(make_window):
    window = make_window(EIGHT, model="m")
    messages = loop(1, 2_000)
    fitted = window.fit(messages)
    window.observe(fitted, "m", 2 * fitted.tokens)
    assert make_window(EIGHT, model="m").fit(messages).tokens == pytest.approx(2 * fitted.tokens, rel=0.01)


def priced(**changes):
    given_ = {
        "before_tokens": 60_000, "after_tokens": 20_000, "kept_prefix_tokens": 0, "limit_tokens": 150_000,
        "pace": Pace(40, 1_000), "prices": CachePrices(0.1, 1.25, 300),
    }  # fmt: skip
    return weigh(**{**given_, **changes})


def test_a_soft_compaction_pays_only_when_calls_to_come_save_more_than_the_rewrite_costs():
    assert priced().pays
    assert not priced(after_tokens=50_000).pays
    assert not priced(pace=Pace(3, 1_000)).pays
    assert not priced(limit_tokens=62_000).pays
    assert not priced(prices=CachePrices(0.01, 1.25, 300)).pays
    assert priced(after_tokens=50_000, cold=True).pays
    assert priced().cost < priced(summarised_by_model_tokens=50_000, summary_tokens=4_000).cost


def test_a_compaction_that_does_not_pay_is_not_made_and_is_explained(make_window):
    settings = WindowSettings(context_window_tokens=20_000)
    fitted = make_window(settings).fit(loop(3, 12_000))
    assert fitted.compaction is None
    assert "does not pay: rewriting costs" in fitted.why
    assert not fitted.verdict.pays
    assert make_window(settings, session="cold").fit(loop(3, 12_000), cold=True).verdict.pays


def test_what_models_are_known_for():
    models = ("claude-fable-5-2", "claude-sonnet-5-5", "claude-opus-5", "gpt-5")
    assert [thinking_bound(model) for model in models] == ["always", "newer", "never", "never"]
    assert thinking_bound("claude-next") == "newer"
    assert cache_prices("claude-opus-5-5").read == 0.05
    assert cache_prices("unheard-of").write == 1.25
