"""Prices are those of genai-prices; what it does not know has none."""

from __future__ import annotations

from datetime import UTC, datetime

import genai_prices
import pytest

from turngate.replay.cachesim import Billed
from turngate.replay.prices import price_list
from turngate.replay.report import money
from turngate.replay.rules import PROVIDERS, cache_rules, default_model

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
MODELS = [
    *(
        ("anthropic", f"claude-{m}")
        for m in ("sonnet-5", "opus-5", "opus-5-5", "sonnet-5-5", "fable-5-1", "haiku-4-5")
    ),
    *(("anthropic", f"claude-{m}") for m in ("haiku-5-5", "fable-5", "mythos-5-2")),
    *(
        ("openai", m)
        for m in ("gpt-5.6-sol", "gpt-4o", "gpt-4.1-mini", "gpt-5.5", "gpt-6.1-sol", "gpt-6-luna", "o4-mini")
    ),
    *(
        ("gemini", m)
        for m in ("gemini-3.1-pro-preview", "gemini-2.5-flash", "gemini-2.0-flash", "gemini-3.8-flash")
    ),
    *(("deepseek", m) for m in ("deepseek-v4-pro", "deepseek-v4-flash", "deepseek-chat")),
]
EACH = pytest.mark.parametrize(("provider", "model"), MODELS, ids=[m for _, m in MODELS])
BILLS = [
    Billed(0, 0, 0, 0),
    Billed(1000, 200, 30, 4),
    Billed(0, 0, 200_000, 7),
    Billed(0, 0, 200_001, 7),
    Billed(260_000, 9_000, 3_001, 900),
    Billed(100_000, 1, 0, 9),
]


@EACH
@pytest.mark.parametrize("billed", BILLS)
def test_a_price_is_what_genai_prices_computes(provider, model, billed):
    usage = genai_prices.Usage(
        input_tokens=billed.input_tokens,
        cache_read_tokens=billed.read_tokens,
        cache_write_tokens=billed.written_tokens,
        output_tokens=billed.output_tokens,
    )
    name = "google" if provider == "gemini" else provider
    expected = genai_prices.calc_price(usage, model, provider_id=name, genai_request_timestamp=AT).total_price
    prices = price_list(provider, model, AT)
    assert prices is not None
    assert prices.dollars(billed) == pytest.approx(float(expected), rel=1e-9)


def test_an_hour_of_cache_has_its_own_price():
    prices = price_list("anthropic", "claude-sonnet-5", AT)
    assert prices is not None
    assert prices.dollars(Billed(written_tokens=1_000_000), ttl="1h") == pytest.approx(4.0)
    assert prices.dollars(Billed(written_tokens=1_000_000)) == pytest.approx(2.5)


@pytest.mark.parametrize("model", ["", "no-such-model", "claude-sonnet-5"])
def test_an_unknown_model_has_no_price(model):
    assert price_list("deepseek", model, AT) is None


@EACH
def test_the_multipliers_of_the_rules_are_the_ratios_of_the_list_prices(provider, model):
    rules, prices = cache_rules(provider, model), price_list(provider, model, AT)
    assert prices is not None
    base = prices.tiers[0]
    assert rules.read_multiplier == pytest.approx(base.read / base.fresh, rel=0.02)
    assert rules.write_multiplier == pytest.approx(base.write / base.fresh)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_model_taken_by_default_has_a_price(provider):
    assert price_list(provider, default_model(provider), AT) is not None


@pytest.mark.parametrize(
    ("known", "all_known", "shown"),
    [
        (1234.5, True, "$1,234.50"),
        (0.0412, True, "$0.041"),
        (0.0004, True, "<$0.001"),
        (0.0, True, "$0.000"),
        (1.25, False, "≥$1.25"),
        (0.0004, False, ">$0"),
        (0.0, False, "unknown"),
    ],
)
def test_a_sum_shows_nothing_as_zero_that_costs_something(known, all_known, shown):
    assert money({"dollars": known if all_known else None, "known_dollars": known}) == shown
