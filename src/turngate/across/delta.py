"""A text as lines of earlier texts and lines of its own. Exact: `Delta.whole` is the text again."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

#: Earlier results that one result may be made of: more would have to be looked up in too many places.
MAX_BASES = 3
#: Places of a line that are tried, the newest of each text: repeated lines have thousands.
_PLACES = 8
#: A run is named only where it has so many lines and characters; a shorter one is shown.
_RUN_LINES, _RUN_CHARS = 3, 100
#: Lines shown again at an end of a run where new lines follow or go before, so that these have a place; from
#: runs of so many lines only.
_CONTEXT_LINES, _CONTEXT_FROM = 1, 8
#: Line numbers as viewers of files print them before each line.
_NUMBERED = re.compile(r"([ \t]*)(\d{1,7})([:|\t→]| {1,2}(?=\S|$))")


class Run(NamedTuple):
    """Consecutive lines of an earlier text."""

    base: int
    """Which of the texts."""
    first: int
    """Its first line, from 0."""
    length: int
    """How many lines."""
    shift: int
    """What is added to the number that each line begins with; 0: they stand as they are."""

    @property
    def end(self) -> int:
        """The line after its last."""
        return self.first + self.length


class Own(NamedTuple):
    """Consecutive lines of the text itself."""

    lines: tuple[str, ...]


#: What a line takes in memory beside its characters, in `Base.lines` and `Base.places` together: measured
#: with CPython 3.11 on lines that differ.
_LINE_BYTES = 220


@dataclass(frozen=True)
class Base:
    """An earlier text that stands whole in view."""

    call: str
    """Id of the call."""
    label: str
    """The call in a few words."""
    text: str
    """The text."""

    @cached_property
    def weight(self) -> int:
        """Bytes that it takes in memory, about, once it has been compared with."""
        return 3 * len(self.text) + _LINE_BYTES * (self.text.count("\n") + 1)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines, parted at line feeds."""
        return self.text.split("\n")

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each line stands, whatever number it begins with."""
        found: dict[str, list[int]] = {}
        for at, line in enumerate(self.lines):
            places = found.setdefault(_bare(line), [])
            places.append(at)
        return found


@dataclass(frozen=True, slots=True)
class Delta:
    """A text by reference to others."""

    bases: tuple[Base, ...]
    """Those that runs are of, in the order of their numbers."""
    parts: tuple[Run | Own, ...]
    """In the order of the text."""

    def whole(self) -> str:
        """The text again."""
        return "\n".join(line for part in self.parts for line in _lines(part, self.bases))

    @property
    def own_lines(self) -> int:
        """Lines that are the text's own."""
        return sum(len(part.lines) for part in self.parts if isinstance(part, Own))


def delta_of(text: str, bases: Sequence[Base]) -> Delta | None:
    """`text` by reference to some of `bases` (oldest first), or None where they have no run of its lines."""
    lines = text.split("\n")
    parts = list(_parts(lines, bases))
    weights = Counter[int]()
    for part in parts:
        if isinstance(part, Run):
            weights[part.base] += sum(map(len, bases[part.base].lines[part.first : part.end]))
    used = sorted(base for base, _ in weights.most_common(MAX_BASES))
    if not used:
        return None
    chosen = tuple(bases[base] for base in used)
    if len(weights) > 1:
        parts = list(_parts(lines, chosen))
        named = sorted({part.base for part in parts if isinstance(part, Run)})
        chosen = tuple(chosen[base] for base in named)
        used = named
    number = {base: nth for nth, base in enumerate(used)}
    numbered = [p._replace(base=number[p.base]) if isinstance(p, Run) else p for p in parts]
    found = Delta(chosen, tuple(_joined(_with_context(numbered, chosen))))
    return found if found.whole() == text else None


def nearest(text: str, bases: Sequence[Base], most: int) -> list[Base]:
    """Those of `bases` with the most lines in common with `text`, in the order given."""
    if not bases:
        return []
    lines = set(map(_bare, text.split("\n")))
    shared = [len(lines & base.places.keys()) for base in bases]
    chosen = sorted(range(len(bases)), key=lambda nth: (-shared[nth], -nth))[:most]
    return [bases[nth] for nth in sorted(chosen) if shared[nth] >= _RUN_LINES]


def renumbered(line: str, shift: int) -> str | None:
    """`line` with the number that it begins with moved, in the same columns; None where it has none."""
    found = _NUMBERED.match(line)
    number = int(found[2]) + shift if found else -1
    if found is None or number < 0:
        return None
    width = len(found[1]) + len(found[2]) if found[1] and "\t" not in found[1] else 0
    prefix = f"{number:>{width}}" if width else f"{found[1]}{number}"
    return f"{prefix}{line[found.end(2) :]}"


def _parts(lines: list[str], bases: Sequence[Base]) -> Iterator[Run | Own]:
    own: list[str] = []
    at = 0
    follows: Run | None = None
    while at < len(lines):
        run = _longest(lines, at, bases, follows, len(own))
        if run is None:
            own.append(lines[at])
            at += 1
            continue
        if own:
            yield Own(tuple(own))
            own = []
        yield run
        at += run.length
        follows = run
    if own:
        yield Own(tuple(own))


def _longest(lines: list[str], at: int, bases: Sequence[Base], follows: Run | None, since: int) -> Run | None:
    """The longest run that begins here; of equal ones that which goes on behind `follows`, or the newest.

    `since`: lines between `follows` and here; where as many were replaced, it goes on so far behind.
    """
    bare = _bare(lines[at])
    best: Run | None = None
    best_rank = (0, False, 0)
    for number, base in enumerate(bases):
        places = base.places.get(bare, [])
        for first in (*places[-_PLACES:], *_aligned(places, number, follows, since)):
            run = _run(lines, at, base, number, first)
            goes_on = follows is not None and follows.base == number and first >= follows.end
            rank = (run.length, goes_on, number)
            if rank > best_rank and _is_long(lines, at, run.length):
                best, best_rank = run, rank
    return best


def _aligned(places: list[int], number: int, follows: Run | None, since: int) -> Iterator[int]:
    """The place behind `follows` where as many lines were replaced as are new, if the line stands there."""
    if len(places) > _PLACES and follows is not None and follows.base == number:
        wanted = follows.end + since
        nearest_at = bisect_left(places, wanted)
        if nearest_at < len(places) and places[nearest_at] == wanted:
            yield wanted


def _run(lines: list[str], at: int, base: Base, number: int, first: int) -> Run:
    """How far the text goes on from line `at` as the base does from `first`."""
    shift = _shift(base.lines[first], lines[at])
    most = min(len(lines) - at, len(base.lines) - first)
    theirs = base.lines
    count = 0
    while count < most and (
        theirs[first + count] == lines[at + count]
        if not shift
        else renumbered(theirs[first + count], shift) == lines[at + count]
    ):
        count += 1
    return Run(number, first, count, shift)


def _shift(before: str, after: str) -> int:
    """By how much the number at the beginning of a line has moved."""
    if before == after:
        return 0
    one, other = _NUMBERED.match(before), _NUMBERED.match(after)
    return int(other[2]) - int(one[2]) if one and other else 0


def _is_long(lines: list[str], at: int, count: int) -> bool:
    return count >= _RUN_LINES and sum(len(line) + 1 for line in lines[at : at + count]) >= _RUN_CHARS


def _bare(line: str) -> str:
    found = _NUMBERED.match(line)
    return line[found.end() :] if found else line


def _lines(part: Run | Own, bases: Sequence[Base]) -> Iterator[str]:
    if isinstance(part, Own):
        yield from part.lines
        return
    for line in bases[part.base].lines[part.first : part.end]:
        moved = renumbered(line, part.shift) if part.shift else line
        assert moved is not None
        yield moved


def _with_context(parts: list[Run | Own], bases: Sequence[Base]) -> Iterator[Run | Own]:
    """With the lines next to new ones shown again."""
    for nth, part in enumerate(parts):
        if isinstance(part, Own) or part.length < _CONTEXT_FROM:
            yield part
            continue
        before = _CONTEXT_LINES * (nth > 0 and isinstance(parts[nth - 1], Own))
        after = _CONTEXT_LINES * (nth + 1 < len(parts) and isinstance(parts[nth + 1], Own))
        shown = list(_lines(part, bases))
        if before:
            yield Own(tuple(shown[:before]))
        yield part._replace(first=part.first + before, length=part.length - before - after)
        if after:
            yield Own(tuple(shown[-after:]))


def _joined(parts: Iterator[Run | Own]) -> Iterator[Run | Own]:
    """With neighbouring lines of the text's own in one part."""
    own: list[str] = []
    for part in parts:
        if isinstance(part, Own):
            own += part.lines
            continue
        if own:
            yield Own(tuple(own))
            own = []
        yield part
    if own:
        yield Own(tuple(own))
