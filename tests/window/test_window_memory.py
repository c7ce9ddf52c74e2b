"""Contract M and F of the memory section, and rows SY1 to SY3, SY19 to SY21."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turngate.window.memory import (
    HONESTY_MARKER_SENTINEL as S,
)
from turngate.window.memory import (
    MemoryFlusher,
    compose_memory_section,
    flush_memory,
    quote_sentinel,
    strip_stale_marker,
)

PIECES = st.lists(
    st.sampled_from([S, "\n", " ", "text", S[:40], S[40:], "é", "\ud800", "[memory]"]), max_size=6
)

#: The machine may be busy; how long an example takes proves nothing.
RELAXED = settings(deadline=None)
SECTIONS = st.one_of(st.text(), PIECES.map("".join))


def compose(text: Any, index: Any, entries: Any, **more: Any) -> Any:
    return compose_memory_section(
        summary_text=text, last_compacted_index=index, entries_count=entries, **more
    )


def test_m1_the_sentinel_is_the_literal_of_the_seed():
    assert S == (
        "[memory] Earlier turns exist in this conversation's history but are not currently in context."
    )
    assert len(S) == 93


def test_m2_the_marker_stands_at_the_head_when_turns_are_gone_and_none_is_in_view():
    assert compose("", 5, 0) == S
    assert compose("sum", 5, 0) == f"{S}\nsum"
    assert compose("   \n", 5, 0) == f"{S}\n   \n"


@RELAXED
@given(SECTIONS, st.integers(), st.integers())
def test_m3_without_the_precondition_the_section_is_the_same_object(text, index, entries):
    if index <= 0 or entries > 0:
        assert compose(text, index, entries) is text


@RELAXED
@given(SECTIONS, st.integers(-2, 9), st.integers(-2, 2))
def test_m4_composing_twice_is_composing_once(text, index, entries):
    once = compose(text, index, entries)
    assert compose(once, index, entries) == once


@RELAXED
@given(SECTIONS)
@example(f"A {S} B")
@example(f"[mem{S}ory] Earlier turns")
@example(f"  {S}\nB")
def test_m5_the_head_is_tested_and_no_second_sentinel_appears(text):
    out = compose(text, 3, 0)
    assert out.startswith(S)
    assert out.count(S) <= max(1, text.count(S))


def test_m6_negative_numbers_count_as_nought():
    assert compose("sum", -1, 0) == "sum"
    assert compose("sum", 3, -1) == f"{S}\nsum"


def test_m7_arguments_have_names():
    with pytest.raises(TypeError):
        compose_memory_section("sum", 5, 0)  # type: ignore[misc]


NAN = float("nan")
COMPAT = [
    ("sum", 5, 0, f"{S}\nsum"),
    ("", 5, 0, S),
    ("sum", 0, 0, "sum"),
    ("sum", -3, 0, "sum"),
    ("sum", 5, 4, "sum"),
    ("sum", 5, -1, "sum"),
    ("sum", 5, None, "sum"),
    (f"A {S} B", 3, 0, f"A {S} B"),
    (f"A\n{S}\nB", 3, 0, f"A\n{S}\nB"),
    (f"  {S}\nB", 3, 0, f"  {S}\nB"),
    (f"{S}\n{S}\nB", 3, 0, f"{S}\n{S}\nB"),
    (S.upper(), 3, 0, f"{S}\n{S.upper()}"),
    (S[:-1], 3, 0, f"{S}\n{S[:-1]}"),
    ("   \n", 3, 0, f"{S}\n   \n"),
    (f"{S}\nB", 0, 0, f"{S}\nB"),
    (f"{S}\nB", 3, 4, f"{S}\nB"),
    ("sum", 0.5, 0, f"{S}\nsum"),
    ("sum", True, False, f"{S}\nsum"),
    ("sum", NAN, 0.0, f"{S}\nsum"),
    (None, 0, 0, None),
    (["x"], 3, 0, f"{S}\n['x']"),
]


@pytest.mark.parametrize(("text", "index", "entries", "expected"), COMPAT)
def test_m8_compat_gives_the_truth_table_of_the_seeds_code(text, index, entries, expected):
    assert compose(text, index, entries, compat=True) == expected


@pytest.mark.parametrize(("text", "index"), [(None, 3), (b"x", 3), ("x", None), ("x", "3")])
def test_m8_compat_raises_what_the_seeds_code_raises(text, index):
    with pytest.raises(TypeError):
        compose(text, index, 0, compat=True)


def test_m8_compat_returns_a_list_that_holds_the_sentinel_itself():
    held = [S]
    assert compose(held, 3, 0, compat=True) is held
    assert math.isnan(NAN)


def test_m10_a_stale_marker_is_stripped_once_entries_are_in_view():
    assert strip_stale_marker(f"{S}\nbody", entries_count=1) == "body"
    assert strip_stale_marker(S, entries_count=1) == ""
    assert strip_stale_marker(f"{S}\nbody", entries_count=0) == f"{S}\nbody"


@RELAXED
@given(SECTIONS)
def test_m13_a_quote_of_the_sentinel_neither_forges_nor_suppresses_it(text):
    body = quote_sentinel(text)
    assert S not in body
    assert compose(body, 1, 0).startswith(S)
    assert compose(body, 1, 1) == body


def test_sy1_a_sentinel_in_the_middle_does_not_suppress_the_one_at_the_head():
    assert compose(f"A {S} B", 3, 0).startswith(S)


class Flusher:
    """Records what it was given."""

    def __init__(self, outcome: Any = None) -> None:
        self.seen: list[Any] = []
        self.outcome = outcome

    async def flush(self, state):
        self.seen.append(state)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


class SyncFlusher(Flusher):
    def flush(self, state):
        self.seen.append(state)
        return "ignored"


class EmptyFlusher(SyncFlusher):
    def __len__(self) -> int:
        return 0


def flushed(flusher: Any, **more: Any) -> dict[str, Any]:
    state = {"deps": {MemoryFlusher: flusher}, **more}
    assert asyncio.run(flush_memory(state)) is None
    return state


def test_f1_missing_deps_is_a_key_error_and_none_is_nothing_to_do():
    with pytest.raises(KeyError, match="deps"):
        asyncio.run(flush_memory({}))
    asyncio.run(flush_memory({"deps": None}))


def test_f2_an_async_flusher_gets_the_same_state_once_and_its_result_is_ignored():
    flusher = Flusher(outcome=17)
    state = flushed(flusher)
    assert len(flusher.seen) == 1
    assert flusher.seen[0] is state


def test_f3_a_sync_flusher_is_accepted():
    flusher = SyncFlusher()
    assert flushed(flusher) is flusher.seen[0]


def test_f4_sy20_a_falsy_flusher_is_called():
    flusher = EmptyFlusher()
    assert not flusher
    assert flushed(flusher) is flusher.seen[0]


@pytest.mark.parametrize("flusher", [None, object(), type("Odd", (), {"flush": 3})()])
def test_f5_what_cannot_flush_is_nothing_to_do(flusher):
    flushed(flusher)
    asyncio.run(flush_memory({"deps": object()}))


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()])
def test_f7_errors_and_cancellation_pass_through(error):
    with pytest.raises(type(error)):
        flushed(Flusher(error))


def test_f7_a_flush_can_be_given_a_time_limit():
    class Slow:
        async def flush(self, state):
            await asyncio.sleep(30)

    with pytest.raises(TimeoutError):
        asyncio.run(flush_memory({"deps": {MemoryFlusher: Slow()}}, timeout_seconds=0.01))


def test_the_protocol_names_what_has_a_flush():
    assert isinstance(SyncFlusher(), MemoryFlusher)
