"""The passages of a text that answer a question, best first. Pure.

A text is looked at in units: its lines, over-long ones in pieces. A unit counts by the weight of the
question's words in it, by literal stretches of the question, and a little by its neighbours' words; a word
weighs by its rarity. Passages grow around the best units until a budget of characters is used.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from turngate.store.jsonpath import PathError, find_values
from turngate.store.lines import line_starts
from turngate.store.tables import extreme_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from turngate.store.question import Question, Term

#: A longer line is looked at in pieces of about this size.
UNIT_CHARS = 240
#: What a piece is cut at, if one of these stands in its last quarter.
_SEAMS = ("\n", "\r", "},", "; ", ", ", ",", " ", ">")
#: Occurrences of one word that are followed up; a word that is everywhere tells nothing.
_MAX_OCCURRENCES = 100_000
#: Units whose neighbourhood is weighed.
_MAX_RANKED = 3_000
#: Share of a word's weight that counts when it stands one, two or three units off.
_NEARBY_SHARES = ((1, 0.35), (2, 0.2), (3, 0.1))
#: Units shown around one that answers: what is named above is told below, more often than the reverse.
_BEFORE, _AFTER = 4, 4
#: Around one of many that answer equally well: then the list of them is the answer.
_MANY, _AROUND_MANY = 24, 1
#: Units at an end of the text when the question asks for that end, and when it does not.
_END_UNITS, _GLANCE_UNITS = 12, 4
#: A value that a JSON path names is shown up to this length; a longer one only draws attention to its place.
_MAX_VALUE_CHARS = 3_000
#: Where the ends of the text come in, as shares of the best unit's score.
_ASKED_SHARE, _GLANCE_SHARE = 1.01, 0.3
#: Share of a word's weight for the first unit behind a literal stretch that has the word: what is named in a
#: heading is told somewhere below. Up to so many stretches, so many units below.
_NEXT_SHARE, _NEXT_STRETCHES, _NEXT_UNITS = 0.5, 20, 400
#: What a stretch that the question names by its place is worth beside its best unit: more than any words are.
_PIN_FACTOR, _PIN_SHARE = 2.0, 2.0


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a text."""

    start: int
    """Where it starts."""
    end: int
    """Where it ends, exclusive."""
    score: float
    """Larger is better, among passages of one search."""
    at: int
    """Where the unit or value starts that it was chosen for; the rest is its neighbourhood."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A stretch that a question names by its place."""

    start: int
    """Where it starts."""
    end: int
    """Where it ends, exclusive."""
    at: int
    """Where what is named starts."""
    exact: bool
    """Whether it can be nothing else: a JSON path or an occurrence, not the extreme of some column."""


@dataclass(slots=True)
class Scan:
    """Where a question's words stand in one text."""

    text: str
    """The text."""
    starts: list[int]
    """Where each unit starts, and the text's end."""
    found: dict[int, int]
    """Unit -> bits of the terms in it."""
    literal: dict[int, float] = field(default_factory=dict)
    """Unit -> share of the question's literal stretches that start in it."""
    pinned: list[Pin] = field(default_factory=list)
    """Stretches that the question names by their place: a JSON path, an occurrence, an extreme."""

    @property
    def answers(self) -> bool:
        """Whether anything that the question names is in the text."""
        return bool(self.found or self.literal or self.pinned)

    @property
    def units(self) -> int:
        """How many units there are."""
        return max(0, len(self.starts) - 1)


def scan(text: str, question: Question) -> Scan:
    """Look `text` over for what the question names."""
    low = _lower(text)
    result = Scan(text, _unit_starts(text), {})
    for bit, term in enumerate(question.terms):
        for at in _occurrences(low, term):
            unit = bisect.bisect_right(result.starts, at) - 1
            result.found[unit] = result.found.get(unit, 0) | 1 << bit
    whole = sum(map(len, question.literals))
    for literal in question.literals:
        places = list(islice(_finds(low, literal), _MAX_OCCURRENCES))
        for at in places:
            unit = bisect.bisect_right(result.starts, at) - 1
            result.literal[unit] = min(1.0, result.literal.get(unit, 0.0) + len(literal) / whole)
        if 0 < question.nth <= len(places) and not result.pinned:
            unit = bisect.bisect_right(result.starts, places[question.nth - 1]) - 1
            start, end = result.starts[max(0, unit - 1)], result.starts[min(result.units, unit + _AFTER)]
            result.pinned.append(Pin(start, end, result.starts[unit], exact=True))
    result.pinned += [Pin(start, end, start, exact=True) for start, end in _named_values(text, question)]
    for extreme in question.extremes:
        result.pinned += [Pin(*row, row[0], exact=False) for row in extreme_rows(text, extreme)]
    return result


def weights(scans: Sequence[Scan], question: Question) -> list[float]:
    """Weight of each term by its rarity among the units of all texts."""
    total = sum(each.units for each in scans) + 1
    counts = [0] * len(question.terms)
    for each in scans:
        for bits, units in Counter(each.found.values()).items():
            for bit in range(len(counts)):
                counts[bit] += units * (bits >> bit & 1)
    return [
        term.boost * math.log(1 + total / (count + 0.5))
        for term, count in zip(question.terms, counts, strict=True)
    ]


def strengths(result: Scan, question: Question, term_weights: Sequence[float]) -> dict[int, float]:
    """Unit -> the share of what the question names that stands in it by itself, 0 to 1.

    All literal stretches are all that it names. Synonyms are words of ours, and count for nothing here.
    """
    own = [0.0 if term.synonym else weight for term, weight in zip(question.terms, term_weights, strict=True)]
    whole = sum(own) or 1.0
    shares = {
        bits: sum(weight for bit, weight in enumerate(own) if bits >> bit & 1) / whole
        for bits in set(result.found.values())
    }
    found = {unit: shares[bits] for unit, bits in result.found.items()}
    for unit, share in result.literal.items():
        found[unit] = max(found.get(unit, 0.0), share)
    for pin in result.pinned:
        if pin.exact:
            found[bisect.bisect_right(result.starts, pin.at) - 1] = 1.0
    return found


def rank(result: Scan, question: Question, term_weights: Sequence[float]) -> Iterator[Passage]:
    """Passages, best first, without overlap; in the end they cover the text."""
    scores = _scores(result, term_weights)
    order = sorted(scores, key=lambda unit: (-scores[unit], -unit if question.tail else unit))
    best = scores[order[0]] if order else 1.0
    equals = Counter(scores.values())
    taken: set[int] = set()
    for pin in sorted(result.pinned, key=lambda pin: not pin.exact):
        score = _PIN_FACTOR * best + pin.exact * _PIN_SHARE * sum(term_weights)
        yield Passage(pin.start, pin.end, score, pin.at)
    ends = list(_ends(result, question, best))
    for unit in order:
        while ends and ends[0][1] >= scores[unit]:
            yield from _take(result, taken, *ends.pop(0))
        crowded = equals[scores[unit]] > _MANY
        before, after = (_AROUND_MANY, _AROUND_MANY) if crowded else (_BEFORE, _AFTER)
        yield from _take(result, taken, range(unit - before, unit + after + 1), scores[unit], unit)
    for units, score in ends:
        yield from _take(result, taken, units, score)
    yield from _take(result, taken, range(result.units), 0.0)


def _scores(result: Scan, term_weights: Sequence[float]) -> dict[int, float]:
    sums: dict[int, float] = {}

    def weigh(bits: int) -> float:
        if bits not in sums:
            sums[bits] = sum(weight for bit, weight in enumerate(term_weights) if bits >> bit & 1)
        return sums[bits]

    everything = sum(term_weights)
    own = {
        unit: weigh(bits) + everything * result.literal.get(unit, 0.0) for unit, bits in result.found.items()
    }
    for unit in result.literal.keys() - own.keys():
        own[unit] = everything * result.literal[unit]
    for unit, share in _told_below(result, term_weights):
        own[unit] += share
    top = heapq.nlargest(_MAX_RANKED, own, key=own.__getitem__)
    return {unit: own[unit] + _nearby(result.found, unit, weigh) for unit in top}


def _told_below(result: Scan, term_weights: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Units that are the first with some word behind a literal stretch, and what that adds to each."""
    if not 0 < len(result.literal) <= _NEXT_STRETCHES:
        return
    for unit in sorted(result.literal):
        seen = result.found.get(unit, 0)
        for below in range(unit + 1, min(unit + _NEXT_UNITS, result.units)):
            fresh = result.found.get(below, 0) & ~seen
            if fresh:
                seen |= fresh
                yield (
                    below,
                    _NEXT_SHARE * sum(weight for bit, weight in enumerate(term_weights) if fresh >> bit & 1),
                )


def _nearby(found: dict[int, int], unit: int, weigh: object) -> float:
    seen, score = found.get(unit, 0), 0.0
    for distance, share in _NEARBY_SHARES:
        bits = (found.get(unit - distance, 0) | found.get(unit + distance, 0)) & ~seen
        if bits:
            score += share * weigh(bits)  # type: ignore[operator]
            seen |= bits
    return score


def _ends(result: Scan, question: Question, best: float) -> Iterator[tuple[range, float]]:
    """Both ends of the text, each with the score it competes with, higher first."""
    asked = [(question.tail, True), (question.head, False)]
    found = []
    for wanted, tail in asked:
        count, share = (_END_UNITS, _ASKED_SHARE) if wanted else (_GLANCE_UNITS, _GLANCE_SHARE)
        units = range(result.units - count, result.units) if tail else range(count)
        found.append((units, share * best))
    yield from sorted(found, key=lambda end: -end[1])


def _take(
    result: Scan, taken: set[int], units: range, score: float, best: int | None = None
) -> Iterator[Passage]:
    """The stretches of `units` that are not taken yet; they are now. They surround the unit `best`."""
    first: int | None = None
    for unit in range(max(0, units.start), min(units.stop, result.units) + 1):
        free = unit < min(units.stop, result.units) and unit not in taken
        if free:
            taken.add(unit)
            first = unit if first is None else first
        elif first is not None:
            at = best if best is not None and first <= best < unit else first
            yield Passage(result.starts[first], result.starts[unit], score, result.starts[at])
            first = None


def _named_values(text: str, question: Question) -> list[tuple[int, int]]:
    spans = []
    for path in question.paths:
        try:
            spans += [
                span for span in find_values(text, path, limit=8) if span[1] - span[0] <= _MAX_VALUE_CHARS
            ]
        except PathError:
            continue
    return spans


def _lower(text: str) -> str:
    """`text` in lowercase, character for character."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(char if len(char.lower()) != 1 else char.lower() for char in text)


def _occurrences(low: str, term: Term) -> Iterator[int]:
    for at in islice(_finds(low, term.word), _MAX_OCCURRENCES):
        if not term.whole or _alone(low, at, at + len(term.word)):
            yield at


def _finds(low: str, part: str) -> Iterator[int]:
    at = low.find(part)
    while at >= 0:
        yield at
        at = low.find(part, at + len(part))


def _alone(low: str, start: int, end: int) -> bool:
    # A number ends where its digits do, as in `v12` and `12ms`.
    goes_on = str.isdigit if low[start:end].isdigit() else str.isalnum
    return not (start > 0 and goes_on(low[start - 1])) and not (end < len(low) and goes_on(low[end]))


def _unit_starts(text: str) -> list[int]:
    lines = line_starts(text)
    starts: list[int] = []
    for start, end in pairwise(lines):
        starts.append(start)
        if end - start > 2 * UNIT_CHARS:
            starts += _cuts(text, start, end)
    starts.append(len(text))
    return starts


def _cuts(text: str, start: int, end: int) -> Iterator[int]:
    while end - start > 2 * UNIT_CHARS:
        hard = start + UNIT_CHARS
        floor = start + 3 * UNIT_CHARS // 4
        start = next((at + len(seam) for seam in _SEAMS if (at := text.rfind(seam, floor, hard)) >= 0), hard)
        yield start
