"""Shorten a text of lines: score, select, and write the gaps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from turngate.compress.call import Doc
from turngate.compress.exact import MOST_SHARE, forms, repeats
from turngate.compress.notes import Notes
from turngate.compress.result import of
from turngate.compress.score import Aim, Bonus, Scores, score
from turngate.compress.select import select
from turngate.compress.units import Units, units_of

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
    #: `text` is the original in another form, from which it comes back.
    exact: bool = False


#: From a text, its units, their repetitions and a budget of tokens: the indices of those to show, ascending.
Chooser = Callable[[Doc, Units, list[repeats.Repeat], float], list[int]]


@dataclass(frozen=True, slots=True)
class Ways:
    """How a kind wants its lines handled."""

    #: Added to the scores.
    bonus: Bonus | None = None
    #: Where long lines are cut by preference: before each match.
    breaks: re.Pattern[bytes] | None = None
    #: See `Aim.places`.
    places: bool = True
    #: Chooses the units to show within a budget of tokens, instead of `best`.
    choose: Chooser | None = None


PLAIN = Ways()


def shorten_lines(doc: Doc, ways: Ways = PLAIN) -> Shown:
    """The lines of `doc` within its budget."""
    units = units_of(doc.data, ways.breaks)
    call = doc.call
    whole = sum(units.tokens)
    budget = call.curve.tokens(whole) if doc.budget_tokens is None else doc.budget_tokens
    again = repeats.find(units.whole)
    exact = _exact(doc, units, again, whole, budget)
    if exact is not None:
        return Shown(exact, units.line_count, units.line_count, (), exact=_is_unresolved(doc))
    kept = ways.choose(doc, units, again, budget) if ways.choose else best(doc, units, again, budget, ways)
    return show(units, _bridge(units, kept, BRIDGE_BUDGET_SHARE * budget), doc.notes)


def best(
    doc: Doc, units: Units, again: list[repeats.Repeat], budget_tokens: float, ways: Ways = PLAIN
) -> list[int]:
    """The indices of the units that tell most within a budget, ascending."""
    call = doc.call
    aim = Aim(budget_tokens, failed=bool(call.failed), mentioned=call.asked, places=ways.places)
    scores = score(units, aim, ways.bonus)
    _pool(scores, units, again)
    return select(scores, units.tokens, budget_tokens)


def _exact(
    doc: Doc, units: Units, again: list[repeats.Repeat], whole_tokens: float, budget_tokens: float
) -> str | None:
    """The whole in a form that is short enough; None where there is none.

    Where a good part of the text was control sequences, what a terminal leaves is all there is to read, and
    the budget is that of the text as it came.
    """
    if doc.budget_tokens is None and len(doc.data) <= EXACT_MOST_SHARE * len(doc.text):
        budget_tokens = doc.call.curve.tokens(doc.tokens)
        if whole_tokens <= budget_tokens:
            return b"\n".join(units.whole).decode("utf-8", "surrogatepass")
    return forms.fitting(units, again, whole_tokens, min(budget_tokens, MOST_SHARE * whole_tokens), doc.notes)


def _is_unresolved(doc: Doc) -> bool:
    """Whether the text held nothing that a terminal takes away, but for how its lines end."""
    size = len(doc.text.encode("utf-8", "surrogatepass"))
    return len(doc.data) + doc.text.count("\r\n") == size


def _pool(scores: Scores, units: Units, again: list[repeats.Repeat]) -> None:
    """To lines that repeat those above, no worth; to those above, the most that any of their turns is worth.

    A note tells the repetition where the lines above are shown.
    """
    total = scores.total
    for repeat in again:
        block, start, end = map(units.first_of, (repeat.start - repeat.period, repeat.start, repeat.end))
        size = start - block
        for offset in range(size):
            total[block + offset] = max(total[block + offset : end : size])
        if not scores.findings.isdisjoint(range(start, end)):
            found = {block + (at - start) % size for at in range(start, end) if at in scores.findings}
            scores.findings.update(found)
            scores.findings.difference_update(range(start, end))
        total[start:end] = [0.0] * (end - start)


def show(units: Units, kept: list[int], notes: Notes) -> Shown:
    """The kept units in order, with a note in each gap that is worth one."""
    shown = kept if units.lines is None else sorted({units.lines[index] for index in kept})
    hidden = _gaps(shown, units.line_count)
    texts = _lines(units, kept, notes)
    note_before = {last: note for (_, last), note in _notes(units, hidden, _parted(units, kept), notes)}
    out: list[str] = []
    for line, text in zip(shown, texts, strict=True):
        if line in note_before:
            out.append(note_before[line])
        out.append(text)
    if hidden and hidden[-1][1] == units.line_count:
        out.append(note_before[units.line_count])
    return Shown("\n".join(out), len(shown), units.line_count, hidden, within=_within(units, kept))


def _notes(
    units: Units, hidden: tuple[tuple[int, int], ...], parted: set[int], notes: Notes
) -> Iterator[tuple[tuple[int, int], str]]:
    """Each gap with its note, or two: of what is told exactly, and of what is hidden."""
    told = repeats.told(units.whole, hidden, parted, notes)
    left = tuple((told[gap[0]][0] + 1 if gap[0] in told else gap[0], gap[1]) for gap in hidden)
    sampled = _sample_gap(units, tuple(gap for gap in left if gap[0] <= gap[1]))
    for gap, rest in zip(hidden, left, strict=True):
        exact = told[gap[0]][1] if gap[0] in told else ""
        note = _note(rest, notes, sampled) if rest[0] <= rest[1] else ""
        yield gap, f"{exact}\n{note}" if exact and note else exact or note


def _parted(units: Units, kept: list[int]) -> set[int]:
    """The lines that are shown only in part."""
    if units.lines is None:
        return set()
    every, shown = Counter(units.lines), Counter(units.lines[index] for index in kept)
    return {line for line, count in shown.items() if count < every[line]}


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
