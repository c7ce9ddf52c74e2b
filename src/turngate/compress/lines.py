"""Shorten a text of lines: score, select, and write the gaps."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby

from turngate.compress.call import Doc
from turngate.compress.notes import Notes
from turngate.compress.result import of
from turngate.compress.score import Aim, Bonus, score
from turngate.compress.select import select
from turngate.compress.units import Units, units_of
from turngate.tokens import estimate

#: A gap of so few bytes is shown: a note and the reader's attention would cost as much.
BRIDGE_BYTES = 130
#: Gaps are bridged, the narrowest first, for at most this share of the budget.
BRIDGE_BUDGET_SHARE = 0.15
#: Only the widest gap may carry a sample (some 16 tokens), and only where one form makes up most of it.
SAMPLE_LEAST_LINES = 100
SAMPLE_LEAST_SHARE = 0.8
SAMPLE_CHARS = 72
#: From this share of its length on, a text without its control sequences isn't worth showing for that alone.
EXACT_MOST_SHARE = 0.8
_VARIABLE = re.compile(r"\d[\d.,:/-]*|\b(?=[a-f]*\d)[0-9a-f]{6,}\b")


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a text, and what isn't."""

    text: str
    #: How many units are shown, in whole or in part, and how many there were.
    kept: int
    total: int
    #: 1-based inclusive ranges of units of which nothing is shown.
    hidden: tuple[tuple[int, int], ...]
    unit: str = "lines"
    #: The completeness of a text inside this one, or of lines shown in part; empty when there is neither.
    within: str = ""


@dataclass(frozen=True, slots=True)
class Ways:
    """How a kind wants its lines handled."""

    #: Added to the scores.
    bonus: Bonus | None = None
    #: Where long lines are cut by preference: before each match.
    breaks: re.Pattern[bytes] | None = None
    #: See `Aim.places`.
    places: bool = True


PLAIN = Ways()


def shorten_lines(doc: Doc, ways: Ways = PLAIN) -> Shown:
    """The lines of `doc` within its budget."""
    units = units_of(doc.data, ways.breaks)
    call = doc.call
    whole = sum(units.tokens)
    if _is_enough(doc, whole):
        return show(units, list(range(len(units.rows))), doc.notes)
    budget = call.curve.tokens(whole) if doc.budget_tokens is None else doc.budget_tokens
    aim = Aim(budget, failed=bool(call.failed), mentioned=call.asked, places=ways.places)
    kept = select(score(units, aim, ways.bonus), units.tokens, budget)
    return show(units, _bridge(units, kept, BRIDGE_BUDGET_SHARE * budget), doc.notes)


def _is_enough(doc: Doc, whole_tokens: float) -> bool:
    """Whether what a terminal leaves, which is all there is to read, is short enough with nothing hidden."""
    if doc.budget_tokens is not None or len(doc.data) > EXACT_MOST_SHARE * len(doc.text):
        return False
    return whole_tokens <= doc.call.curve.tokens(estimate(doc.text))


def show(units: Units, kept: list[int], notes: Notes) -> Shown:
    """The kept units in order, with a note in each gap that is worth one."""
    shown = kept if units.lines is None else sorted({units.lines[index] for index in kept})
    hidden = _gaps(shown, units.line_count)
    texts = _lines(units, kept, notes)
    sampled = _sample_gap(units, hidden)
    gap_before = {last: (first, last) for first, last in hidden}
    out: list[str] = []
    for line, text in zip(shown, texts, strict=True):
        if line in gap_before:
            out.append(_note(gap_before[line], notes, sampled))
        out.append(text)
    if hidden and hidden[-1][1] == units.line_count:
        out.append(_note(hidden[-1], notes, sampled))
    return Shown("\n".join(out), len(shown), units.line_count, hidden, within=_within(units, kept))


def _within(units: Units, kept: list[int]) -> str:
    """How much of the text is shown where lines are shown in part."""
    if units.lines is None:
        return ""
    return of(sum(len(units.rows[index]) for index in kept), sum(map(len, units.rows)), "bytes")


def _lines(units: Units, kept: list[int], notes: Notes) -> list[str]:
    """The lines that the `kept` units are of, each with what of it is shown."""
    if units.lines is None:
        return b"\n".join([units.rows[index] for index in kept]).decode("utf-8", "surrogatepass").split("\n")
    return [_line(units, list(group), notes) for _, group in groupby(kept, units.lines.__getitem__)]


def _gaps(shown: list[int], total: int) -> tuple[tuple[int, int], ...]:
    """The 1-based ranges of the lines that are not among the 0-based `shown`."""
    befores = [-1, *shown]
    afters = [*shown, total]
    return tuple((a + 2, b) for a, b in zip(befores, afters, strict=True) if b - a > 1)


def _bridge(units: Units, kept: list[int], room: float) -> list[int]:
    """`kept` and the units of gaps that are no longer than a note, within `room` tokens."""
    rows = units.rows
    gaps: list[tuple[int, int, int]] = []
    before = -1
    for index in [*kept, len(rows)]:
        width = index - before - 1
        if 0 < width <= BRIDGE_BYTES:
            size = sum(map(len, rows[before + 1 : index])) + width
            if size <= BRIDGE_BYTES:
                gaps.append((size, before + 1, index))
        before = index
    bridged: list[int] = []
    for _, first, end in sorted(gaps):
        room -= sum(units.tokens[first:end])
        if room < 0:
            break
        bridged.extend(range(first, end))
    return sorted(kept + bridged)


def _line(units: Units, indices: list[int], notes: Notes) -> str:
    """One line of which the units `indices` are shown."""
    assert units.lines is not None
    line = units.line_of(indices[0])
    first, last = indices[0], indices[-1]
    while first > 0 and units.lines[first - 1] == line:
        first -= 1
    while last + 1 < len(units.lines) and units.lines[last + 1] == line:
        last += 1
    parts: list[str] = []
    skipped = 0
    wanted = set(indices)
    for index in range(first, last + 1):
        piece = units.rows[index].decode("utf-8", "surrogatepass")
        if index not in wanted:
            skipped += len(piece)
            continue
        parts += [notes.inside(skipped), piece] if skipped else [piece]
        skipped = 0
    return "".join([*parts, notes.inside(skipped)] if skipped else parts)


def _note(gap: tuple[int, int], notes: Notes, sampled: tuple[tuple[int, int], str, int] | None) -> str:
    if sampled is not None and sampled[0] == gap:
        return notes.alike(*gap, sampled[1], sampled[2])
    return notes.gap(*gap)


def _sample_gap(units: Units, hidden: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], str, int] | None:
    """The widest gap, what most of its lines look like, and how many do; None when it isn't worth saying."""
    if units.lines is not None or not hidden:
        return None
    gap = max(hidden, key=lambda pair: pair[1] - pair[0])
    first, last = gap[0] - 1, gap[1]
    if last - first < SAMPLE_LEAST_LINES:
        return None
    skeleton, count = Counter(units.skeletons[first:last]).most_common(1)[0]
    if count < SAMPLE_LEAST_SHARE * (last - first) or not skeleton.strip():
        return None
    row = units.rows[units.skeletons.index(skeleton, first)]
    sample = _VARIABLE.sub("…", row.decode("utf-8", "replace")).strip()
    sample = "".join(c for c in sample if c.isprintable())
    return gap, sample if len(sample) <= SAMPLE_CHARS else sample[:SAMPLE_CHARS] + "…", count
