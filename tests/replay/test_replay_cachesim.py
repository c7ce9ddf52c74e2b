"""The cache simulator against cases computed by hand from the providers' documentation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.errors import SettingsError
from turngate.replay.cachesim import Billed, CacheSimulator, Request, Step, simulate
from turngate.replay.rules import PROVIDERS, as_of, assumed, cache_rules, default_model

ANTHROPIC = "platform.claude.com/docs/en/build-with-claude/prompt-caching"
OPENAI = "developers.openai.com/api/docs/guides/prompt-caching"
OPENAI_SDK = "openai-python types/chat/completion_create_params.py, PromptCacheOptions"
GEMINI = "ai.google.dev/gemini-api/docs/caching"
DEEPSEEK = "api-docs.deepseek.com/guides/kv_cache"


def request(spec: str, at: float = 0, marks: tuple[int, ...] | None = None, reply: str = "") -> Request:
    """``"T:500 S:1500 | u1:100 a1:50"``: steps as name:tokens[xblocks], static ones before the bar."""
    before, bar, after = spec.partition("|")
    static, rest = (before, after) if bar else ("", before)
    steps = [_step(word, static=True) for word in static.split()] + [_step(word) for word in rest.split()]
    return Request(tuple(steps), at, marks, _step(reply) if reply else None)


def _step(word: str, *, static: bool = False) -> Step:
    name, _, size = word.partition(":")
    tokens, _, blocks = size.partition("x")
    return Step(name.encode(), int(tokens), int(blocks or 1), static)


@dataclass(frozen=True)
class Case:
    name: str
    provider: str
    source: str
    requests: list[Request]
    expected: list[tuple[int, int, int]]
    """Tokens read, written, fresh."""
    model: str = ""
    ttl: str = ""


HEAD = "T:500 S:1500 |"
CHAT = f"{HEAD} u1:100"
GROWN = f"{CHAT} a1:200 r1:1000"

CASES = [
    # Anthropic: marks after the system prompt and after each of the last three messages.
    Case("first turn", "anthropic", ANTHROPIC, [request(CHAT)], [(0, 2100, 0)]),
    Case(
        "growth", "anthropic", ANTHROPIC, [request(CHAT), request(GROWN, 10)], [(0, 2100, 0), (2100, 1200, 0)]
    ),
    Case(
        "the same again",
        "anthropic",
        ANTHROPIC,
        [request(CHAT), request(CHAT, 10)],
        [(0, 2100, 0), (2100, 0, 0)],
    ),
    Case(
        "expiry after 5 minutes",
        "anthropic",
        ANTHROPIC,
        [request(CHAT), request(GROWN, 301)],
        [(0, 2100, 0), (0, 3300, 0)],
    ),
    Case(
        "each use starts the lifetime anew",
        "anthropic",
        ANTHROPIC,
        [request(CHAT), request(CHAT, 299), request(CHAT, 598), request(CHAT, 899)],
        [(0, 2100, 0), (2100, 0, 0), (2100, 0, 0), (0, 2100, 0)],
    ),
    Case(
        "an hour's lifetime",
        "anthropic",
        ANTHROPIC,
        [request(CHAT), request(GROWN, 3599), request(GROWN, 7200)],
        [(0, 2100, 0), (2100, 1200, 0), (0, 3300, 0)],
        ttl="1h",
    ),
    Case(
        "changed system prompt: all is lost",
        "anthropic",
        ANTHROPIC,
        [request(CHAT), request("T:500 S2:1500 | u1:100 a1:200", 10)],
        [(0, 2100, 0), (0, 2300, 0)],
    ),
    Case(
        "changed tool: all is lost",
        "anthropic",
        ANTHROPIC,
        [request(CHAT), request("T2:600 S:1500 | u1:100 a1:200", 10)],
        [(0, 2100, 0), (0, 2400, 0)],
    ),
    Case(
        "changed first message: the marked system prompt is left",
        "anthropic",
        ANTHROPIC,
        [request(CHAT), request(f"{HEAD} u2:100 a1:200", 10)],
        [(0, 2100, 0), (2000, 300, 0)],
    ),
    Case(
        "changed message in the middle: back to the last mark before it",
        "anthropic",
        ANTHROPIC,
        [request(f"{CHAT} a1:200 r1:1000 a2:50"), request(f"{CHAT} a1:200 r2:20 a2:50 r3:30", 10)],
        [(0, 3350, 0), (2300, 100, 0)],
    ),
    Case(
        "within the look-back: 19 blocks after the mark that was written",
        "anthropic",
        ANTHROPIC,
        [request(CHAT, marks=(2,)), request(f"{CHAT} r1:190x19", 10, marks=(3,))],
        [(0, 2100, 0), (2100, 190, 0)],
    ),
    Case(
        "beyond the look-back: 20 blocks after it",
        "anthropic",
        ANTHROPIC,
        [request(CHAT, marks=(2,)), request(f"{CHAT} r1:200x20", 10, marks=(3,))],
        [(0, 2100, 0), (0, 2300, 0)],
    ),
    Case(
        "a second mark saves what one mark's look-back misses",
        "anthropic",
        ANTHROPIC,
        [request(CHAT, marks=(2,)), request(f"{CHAT} r1:200x20", 10, marks=(2, 3))],
        [(0, 2100, 0), (2100, 200, 0)],
    ),
    Case(
        "more than four marks: the last four hold",
        "anthropic",
        ANTHROPIC,
        [
            request("a:2000 b:10 c:10 d:10 e:10", marks=(0, 1, 2, 3, 4)),
            request("a:2000 x:10", 9, marks=(0, 1)),
        ],
        [(0, 2040, 0), (0, 2010, 0)],
    ),
    Case(
        "below the minimum nothing is cached",
        "anthropic",
        ANTHROPIC,
        [request("S:900 | u1:123"), request("S:900 | u1:123", 10)],
        [(0, 0, 1023), (0, 0, 1023)],
    ),
    Case(
        "at the minimum it is",
        "anthropic",
        ANTHROPIC,
        [request("S:900 | u1:124"), request("S:900 | u1:124", 10)],
        [(0, 1024, 0), (1024, 0, 0)],
    ),
    Case(
        "a minimum of another model",
        "anthropic",
        "docs.litellm.ai/docs/completion/prompt_caching",
        [request("S:900 | u1:124 a1:2000"), request("S:900 | u1:124 a1:3072", 10)],
        [(0, 0, 3024), (0, 4096, 0)],
        model="claude-haiku-4-5",
    ),
    Case(
        "what stands after the last mark is fresh",
        "anthropic",
        ANTHROPIC,
        [request(CHAT, marks=(1,)), request(GROWN, 10, marks=(1,))],
        [(0, 2000, 100), (2000, 0, 1300)],
    ),
    Case("no mark, no cache", "anthropic", ANTHROPIC, [request(CHAT, marks=())] * 2, [(0, 0, 2100)] * 2),
    # OpenAI from 5.6 on: an implicit mark after the newest message, matched exactly.
    Case("first turn", "openai", OPENAI, [request(CHAT)], [(0, 2100, 0)]),
    Case("growth", "openai", OPENAI, [request(CHAT), request(GROWN, 10)], [(0, 2100, 0), (2100, 1200, 0)]),
    Case(
        "expiry after 30 minutes",
        "openai",
        OPENAI_SDK,
        [request(CHAT), request(GROWN, 1799), request(GROWN, 3600)],
        [(0, 2100, 0), (2100, 1200, 0), (0, 3300, 0)],
    ),
    Case(
        "changed system prompt",
        "openai",
        OPENAI,
        [request(CHAT), request("T:500 S2:1500 | u1:100", 10)],
        [(0, 2100, 0), (0, 2100, 0)],
    ),
    Case(
        "changed tool",
        "openai",
        OPENAI,
        [request(CHAT), request("T2:500 S:1500 | u1:100", 10)],
        [(0, 2100, 0)] * 2,
    ),
    Case(
        "a stable prefix with another suffix misses, having no mark between",
        "openai",
        OPENAI,
        [request(CHAT), request(f"{HEAD} u2:100", 10)],
        [(0, 2100, 0), (0, 2100, 0)],
    ),
    Case(
        "an explicit mark after the system prompt is what saves it",
        "openai",
        OPENAI_SDK,
        [request(CHAT, marks=(1, 2)), request(f"{HEAD} u2:100", 10, marks=(1, 2))],
        [(0, 2100, 0), (2000, 100, 0)],
    ),
    Case(
        "no limit of blocks to look back",
        "openai",
        OPENAI_SDK,
        [request(CHAT), request(f"{CHAT} r1:200x200 r2:300x300", 10)],
        [(0, 2100, 0), (2100, 500, 0)],
    ),
    Case("below the minimum", "openai", OPENAI, [request("S:900 | u1:123")] * 2, [(0, 0, 1023)] * 2),
    # OpenAI before 5.6: the common prefix, in steps of 128 tokens from 1,024; writing is free.
    Case("first turn", "openai", OPENAI, [request(CHAT)], [(0, 0, 2100)], model="gpt-4o"),
    Case(
        "growth, rounded down to 1024 + 8 * 128",
        "openai",
        OPENAI,
        [request(CHAT), request(GROWN, 10)],
        [(0, 0, 2100), (2048, 0, 1252)],
        model="gpt-4o",
    ),
    Case(
        "expiry",
        "openai",
        OPENAI,
        [request(CHAT), request(GROWN, 301)],
        [(0, 0, 2100), (0, 0, 3300)],
        model="gpt-5.5",
    ),
    Case(
        "another suffix keeps the common prefix: 2000 rounds to 1920",
        "openai",
        OPENAI,
        [request(CHAT), request(f"{HEAD} u2:100", 10)],
        [(0, 0, 2100), (1920, 0, 180)],
        model="gpt-5.5",
    ),
    Case(
        "an older branch is found again",
        "openai",
        OPENAI,
        [request(GROWN), request(f"{HEAD} u2:100", 10), request(f"{GROWN} a2:10", 20)],
        [(0, 0, 3300), (1920, 0, 180), (3200, 0, 110)],
        model="gpt-5.5",
    ),
    Case(
        "changed tool",
        "openai",
        OPENAI,
        [request(CHAT), request("T2:500 S:1500 | u1:100", 10)],
        [(0, 0, 2100), (0, 0, 2100)],
        model="gpt-4o",
    ),
    Case(
        "below the minimum",
        "openai",
        OPENAI,
        [request("S:900 | u1:123")] * 2,
        [(0, 0, 1023)] * 2,
        model="gpt-4o",
    ),
    # Gemini, implicit: the common prefix from 4,096 tokens on (2,048 for the 2.5 models); writing is free.
    Case("first turn", "gemini", GEMINI, [request("S:4000 | u1:100")], [(0, 0, 4100)]),
    Case(
        "growth",
        "gemini",
        GEMINI,
        [request("S:4000 | u1:100"), request("S:4000 | u1:100 a1:50", 10)],
        [(0, 0, 4100), (4100, 0, 50)],
    ),
    Case("below the minimum", "gemini", GEMINI, [request("S:4000 | u1:95")] * 2, [(0, 0, 4095)] * 2),
    Case(
        "the minimum of the 2.5 models",
        "gemini",
        GEMINI,
        [request("S:2000 | u1:48"), request("S:2000 | u1:48", 1)],
        [(0, 0, 2048), (2048, 0, 0)],
        model="gemini-2.5-pro",
    ),
    Case(
        "expiry",
        "gemini",
        GEMINI,
        [request("S:4000 | u1:100"), request("S:4000 | u1:100", 301)],
        [(0, 0, 4100), (0, 0, 4100)],
    ),
    Case(
        "changed system prompt",
        "gemini",
        GEMINI,
        [request("T:5000 S:100 | u1:10"), request("T:5000 S2:100 | u1:10", 10)],
        [(0, 0, 5110), (5000, 0, 110)],
    ),
    Case(
        "changed tool",
        "gemini",
        GEMINI,
        [request("T:5000 S:100 | u1:10"), request("T2:5000 S:100 | u1:10", 10)],
        [(0, 0, 5110), (0, 0, 5110)],
    ),
    # DeepSeek: whole units only.
    Case("first turn", "deepseek", DEEPSEEK, [request("A:500 B:100")], [(0, 0, 600)]),
    Case(
        "example one of its guide: A+B, then A+B+C",
        "deepseek",
        DEEPSEEK,
        [request("A:500 B:100"), request("A:500 B:100 C:50", 10)],
        [(0, 0, 600), (600, 0, 50)],
    ),
    Case(
        "example two: A+B, then A+C misses, then A+D hits A",
        "deepseek",
        DEEPSEEK,
        [request("A:500 B:100"), request("A:500 C:100", 10), request("A:500 D:100", 20)],
        [(0, 0, 600), (0, 0, 600), (500, 0, 100)],
    ),
    Case(
        "the answer is part of a unit",
        "deepseek",
        DEEPSEEK,
        [request("A:500 B:100", reply="a:70"), request("A:500 B:100 a:70 C:50", 10)],
        [(0, 0, 600), (670, 0, 50)],
    ),
    Case(
        "a changed answer leaves the input's unit",
        "deepseek",
        DEEPSEEK,
        [request("A:500 B:100", reply="a:70"), request("A:500 B:100 x:70 C:50", 10)],
        [(0, 0, 600), (600, 0, 120)],
    ),
    Case(
        "changed tool",
        "deepseek",
        DEEPSEEK,
        [request("T:99 S:500 | u1:100"), request("T2:99 S:500 | u1:100", 10)],
        [(0, 0, 699), (0, 0, 699)],
    ),
    Case(
        "changed system prompt: the tools were no unit yet",
        "deepseek",
        DEEPSEEK,
        [
            request("T:99 S:500 | u1:100"),
            request("T:99 S2:500 | u1:100", 10),
            request("T:99 S3:500 | u1:100", 20),
        ],
        [(0, 0, 699), (0, 0, 699), (99, 0, 600)],
    ),
    Case(
        "expiry",
        "deepseek",
        DEEPSEEK,
        [request("A:500 B:100"), request("A:500 B:100", 7201)],
        [(0, 0, 600), (0, 0, 600)],
    ),
    Case(
        "below the minimum",
        "deepseek",
        DEEPSEEK,
        [request("A:63"), request("A:63", 1)],
        [(0, 0, 63), (0, 0, 63)],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.provider} {c.model}: {c.name}")
def test_a_case_computed_by_hand(case):
    assert case.source
    rules = cache_rules(case.provider, case.model, ttl=case.ttl)
    found = list(simulate(case.requests, rules))
    assert [(b.read_tokens, b.written_tokens, b.fresh_tokens) for b in found] == case.expected


def test_a_mark_is_remembered_until_eighty_newer_ones_were_written():
    def branch(n: int) -> Request:
        return request(f"{HEAD} u{n}:100", n)

    rules = cache_rules("openai")
    *_, again = simulate([*(branch(n) for n in range(80)), request(f"{HEAD} u0:100", 90)], rules)
    assert (again.read_tokens, again.written_tokens) == (2100, 0)
    *_, gone = simulate([*(branch(n) for n in range(81)), request(f"{HEAD} u0:100", 90)], rules)
    assert (gone.read_tokens, gone.written_tokens) == (0, 2100)


def test_the_price_in_units_is_that_of_the_rules():
    billed = Billed(read_tokens=1000, written_tokens=200, fresh_tokens=30)
    assert billed.units(cache_rules("anthropic")) == pytest.approx(100 + 250 + 30)
    assert billed.units(cache_rules("anthropic", ttl="1h")) == pytest.approx(100 + 400 + 30)
    assert billed.units(cache_rules("anthropic", "claude-opus-5-5")) == pytest.approx(50 + 250 + 30)
    assert (billed + billed).input_tokens == 2460


STEPS = st.lists(
    st.builds(Step, st.sampled_from([b"a", b"b", b"c", b"d"]), st.just(700), st.integers(1, 12)), max_size=9
)
RULES = st.sampled_from([cache_rules(p) for p in PROVIDERS] + [cache_rules("openai", "gpt-4o")])


@st.composite
def conversations(draw):
    gaps = draw(st.lists(st.sampled_from([1.0, 200.0, 400.0, 8000.0]), min_size=1, max_size=6))
    at, out = 0.0, []
    for gap in gaps:
        at += gap
        out.append(Request(tuple(draw(STEPS)), at))
    return out


@given(conversations(), RULES)
def test_every_token_is_charged_once_and_none_twice(requests, rules):
    for billed, asked in zip(simulate(requests, rules), requests, strict=True):
        assert billed.input_tokens == sum(step.tokens for step in asked.steps)
        assert min(billed.read_tokens, billed.written_tokens, billed.fresh_tokens) >= 0
        assert not billed.read_tokens or billed.read_tokens >= rules.minimum_tokens


@given(conversations(), RULES)
def test_a_change_against_the_last_request_costs_what_the_whole_request_costs(requests, rules):
    whole, simulator = list(simulate(requests, rules)), CacheSimulator([rules])
    assert [simulator.send(r.steps, at_seconds=r.at_seconds)[0] for r in requests] == whole


@given(conversations())
def test_providers_side_by_side_charge_what_each_charges_alone(requests):
    rules = [cache_rules(p) for p in PROVIDERS]
    alone = [list(simulate(requests, each)) for each in rules]
    beside = CacheSimulator(rules)
    together = [beside.send(r.steps, at_seconds=r.at_seconds) for r in requests]
    assert [list(charged) for charged in zip(*together, strict=True)] == alone


@given(conversations(), RULES)
def test_the_first_request_and_one_after_every_lifetime_read_nothing(requests, rules):
    late = [replace(r, at_seconds=i * 1e6) for i, r in enumerate(requests)]
    assert [b.read_tokens for b in simulate(late, rules)] == [0] * len(requests)


@given(st.integers(1, 30), st.integers(1, 3), RULES)
def test_an_append_only_conversation_reads_all_that_it_has_written(turns, growth, rules):
    steps, simulator, cached = [Step(b"s", 5000, static=True)], CacheSimulator([rules]), 0
    for turn in range(turns):
        new = [Step(b"%d.%d" % (turn, i), 300) for i in range(growth)]
        (billed,) = simulator.send(
            [*steps, *new] if turn == 0 else new, kept=len(steps) if turn else 0, at_seconds=turn
        )
        assert billed.read_tokens > cached - rules.step_tokens
        steps += new
        cached = billed.input_tokens


# The data file.


def test_the_rules_are_dated_and_every_assumption_is_listed():
    assert as_of() == "2026-11-30"
    for provider in PROVIDERS:
        assert assumed(provider)
        assert default_model(provider)


def test_an_unknown_provider_or_lifetime_is_refused_with_the_known_ones():
    with pytest.raises(SettingsError, match="anthropic, openai, gemini, deepseek"):
        cache_rules("acme")
    with pytest.raises(SettingsError, match="5m, 1h"):
        cache_rules("anthropic", ttl="2h")
