"""The documentation's figures of the simulator are those of its rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from turngate.replay.arms import HEAD_TAIL_CHARS, MASK_KEEPS
from turngate.replay.html import MOST_CHARS, MOST_SESSIONS
from turngate.replay.rules import PROVIDERS, cache_rules
from turngate.replay.run import ASSUMED_SECONDS, ORIENTATION_TOKENS, SCHEMA_TOKENS

PAGE = (Path(__file__).parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_table_of_providers_has_the_rules_in_force(provider):
    (row,) = re.findall(rf"^\| {provider} \| .*? \| (.*) \|$", PAGE, re.MULTILINE)
    rules = cache_rules(provider)
    assert row.split(" | ") == [
        f"{rules.minimum_tokens:,}",
        f"{rules.ttl_seconds:,} s",
        f"{rules.read_multiplier:g}",
        f"{rules.write_multiplier:g}",
    ]


def test_limits_and_charges_are_those_in_force():
    assert f"{SCHEMA_TOKENS + ORIENTATION_TOKENS} tokens in each request" in PAGE
    assert f"else {ASSUMED_SECONDS:g} seconds" in PAGE
    assert f"over {2 * HEAD_TAIL_CHARS:,} characters the first and the last {HEAD_TAIL_CHARS:,}" in PAGE
    assert (MASK_KEEPS, MOST_SESSIONS, MOST_CHARS) == (5, 100, 24_000_000)
    assert "the newest five results" in PAGE
