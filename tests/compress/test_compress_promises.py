"""The promises that the room keeps for every text: faithful, bounded, deterministic, and never a fault."""

import json

import pytest
from bench import faithful
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import json_lines, json_texts, long_texts

from turngate.compress import Shortened, shorten
from turngate.tokens import estimate

ANY_TEXT = st.one_of(long_texts, json_texts, json_lines)
BUDGETS = st.sampled_from(["default", "wide"])


def shortened(text: str, budget: str = "default") -> Shortened:
    result = shorten(text, budget=budget, least_chars=0)
    assert not result.reason.startswith("fault"), result.reason
    return result


@settings(max_examples=250, deadline=None)
@given(ANY_TEXT, BUDGETS)
def test_what_is_shown_is_the_originals_own_in_order_with_exact_notes_for_the_rest(text, budget):
    result = shortened(text, budget)
    if result.changed:
        assert faithful.check(text, result.text, kind=result.kind) == []


@settings(max_examples=150, deadline=None)
@given(ANY_TEXT, BUDGETS)
def test_a_shortened_text_is_smaller_and_saves_enough(text, budget):
    result = shortened(text, budget)
    if result.changed:
        assert len(result.text) < len(text)
        assert estimate(result.text) <= 0.8 * estimate(text)
        assert estimate(text) - estimate(result.text) >= 150
        assert 0 < result.kept <= result.total
    else:
        assert result.text is text


@settings(max_examples=100, deadline=None)
@given(ANY_TEXT)
def test_the_same_text_gives_the_same_bytes(text):
    assert shortened(text) == shortened(text[:1] + text[1:])


@settings(max_examples=150, deadline=None)
@given(st.one_of(json_texts, json_lines))
def test_shortened_json_still_parses(text):
    result = shortened(text)
    if result.changed and result.kind == "json":
        lines = [text] if _parses(text) else text.split("\n")
        shown = [result.text] if len(lines) == 1 else result.text.split("\n")
        assert all(_parses(line) for line in shown)


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@settings(max_examples=100, deadline=None)
@given(long_texts)
def test_hidden_ranges_and_shown_lines_add_up(text):
    result = shortened(text)
    if result.changed and result.unit == "lines":
        hidden = sum(last - first + 1 for first, last in result.hidden)
        assert hidden + result.kept == result.total


BAD = {
    "NUL bytes": "\0" * 50_000,
    "lone surrogates": "\ud800abc\n" * 3_000,
    "undecodable bytes": bytes(range(256)).decode("utf-8", "surrogateescape") * 200,
    "empty lines": "\n" * 200_000,
    "carriage returns": "\r" * 50_000,
    "escape characters": "\x1b[" * 50_000,
    "an endless line": "x" * 2_000_000,
    "an unclosed string": '{"a":"' + "\\" * 50_001,
    "deep arrays": "[" * 10_000 + "]" * 10_000,
    "deep objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "arrays as deep as a parser goes": "[" * 900 + "1" + "]" * 900,
    "a huge number": "[" + "9" * 100_000 + "]",
    "huge exponents": "[" + ",".join(["1e400"] * 5_000) + "]",
    "duplicate keys": "{" + ",".join(f'"a":{i}' for i in range(5_000)) + "}",
    "constants of Python": "[" + ",".join(["NaN", "-Infinity"] * 3_000) + "]",
    "look-alike markers": "<<<CCR:0123456789abcdef|tool|5|inline>>> x\n" * 2_000,
    "look-alike notes": "\n".join(f"[… {i}–{i + 20}]" for i in range(3_000)),
    "look-alike counts": json.dumps([{"…": i, "a": f"[…{i}]"} for i in range(2_000)], ensure_ascii=False),
    "private-use characters": '["\\n' + "".join(map(chr, range(0xE000, 0xF8FF))) * 3 + '"]',
    "binary": bytes(i * i % 256 for i in range(100_000)).decode("latin-1"),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_no_text_is_a_fault_and_all_stay_true(text):
    result = shortened(text)
    assert len(result.text) <= len(text)
    if result.changed:
        assert faithful.check(text, result.text, kind=result.kind) == []
