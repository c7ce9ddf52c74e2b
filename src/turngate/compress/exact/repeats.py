"""Lines that repeat the lines just above them: written as a count.

A block of up to eight lines that comes again and again is shown once, and a note says how many lines follow
that are its lines in turn. Nothing is lost: from the block and the number the lines come back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import and_, eq

from turngate.compress.notes import Notes

#: The longest block that is looked for, in lines. On recorded outputs longer ones hardly occur.
MOST_PERIOD = 8
#: What a note costs, in bytes of text and in tokens; a repetition of less is shown as it is.
NOTE_BYTES = 60
NOTE_TOKENS = 12.0
#: Fewer blank lines cost no more than their note.
BLANK_LEAST_LINES = 20

#: Of a gap that does not all repeat, so many lines must.
PART_LEAST_LINES = 20
#: With fewer lines that occur twice, nothing is looked for.
LEAST_DOUBLES_SHARE = 0.02
_NONE = bytes(MOST_PERIOD)
_ZEROS, _ONES = re.compile(rb"\x00+"), re.compile(rb"\x01+")
_AGAIN = re.compile(r" ?(\d+) more lines? repeats? the (?:one|(\d)) above\]")
_BLANK = re.compile(r" ?(\d+) blank lines\]")


@dataclass(frozen=True, slots=True)
class Repeat:
    """The lines `start` to `end` (0-based, the end excluded), each equal to the one `period` lines above."""

    start: int
    end: int
    period: int


def find(rows: Sequence[bytes]) -> list[Repeat]:
    """Repetitions worth a note, ascending; none overlaps another or the block that another repeats."""
    if len(rows) - len(set(rows)) <= LEAST_DOUBLES_SHARE * len(rows):
        return []
    found = [
        (-size, start + period, end + period, period)
        for start, end, period in _candidates(rows)
        if (size := _bytes(rows, start, end)) > NOTE_BYTES
    ]
    return _apart(sorted(found), len(rows)) if found else []


def _candidates(rows: Sequence[bytes]) -> Iterator[tuple[int, int, int]]:
    """All runs (start, end, period) of lines that equal those a period below.

    A byte stands for each line, so that one exclusive or compares all of them; what it finds is compared
    exactly, since different lines may have the same byte.
    """
    codes = bytes(map(and_, map(hash, rows), repeat(0xFF)))
    number = int.from_bytes(codes, "little")
    for period in range(1, min(MOST_PERIOD, len(rows) - 1) + 1):
        size = len(rows) - period
        differ = ((number >> 8 * period) ^ (number & ((1 << 8 * size) - 1))).to_bytes(size, "little")
        at = differ.find(_NONE[:period])
        while at >= 0:
            end = _run_end(differ, at)
            yield from _exactly(rows, at, end, period)
            at = differ.find(_NONE[:period], end)


def _run_end(differ: bytes, at: int) -> int:
    found = _ZEROS.match(differ, at)
    return found.end() if found else at


def _exactly(rows: Sequence[bytes], start: int, end: int, period: int) -> Iterator[tuple[int, int, int]]:
    """The runs between the lines `start` and `end` that are equal indeed to those a `period` below."""
    if rows[start:end] == rows[start + period : end + period]:
        yield start, end, period
        return
    same = bytes(map(eq, rows[start:end], rows[start + period : end + period]))
    for run in _ONES.finditer(same):
        if run.end() - run.start() >= period:
            yield start + run.start(), start + run.end(), period


def _bytes(rows: Sequence[bytes], start: int, end: int) -> int:
    return sum(map(len, rows[start:end])) + end - start


def _apart(repeats: list[tuple[int, int, int, int]], size: int) -> list[Repeat]:
    """Of `repeats`, best first, those that neither overlap nor hide what another one repeats."""
    shown, hidden = b"\1", b"\2"
    state = bytearray(size)
    taken: list[Repeat] = []
    for _, start, end, period in repeats:
        if hidden in state[start - period : start] or any(state[start:end]):
            continue
        state[start - period : start] = shown * period
        state[start:end] = hidden * (end - start)
        taken.append(Repeat(start, end, period))
    return sorted(taken, key=lambda repeat: repeat.start)


def told(
    rows: Sequence[bytes], gaps: Iterable[tuple[int, int]], parted: set[int], notes: Notes
) -> dict[int, tuple[int, str]]:
    """What can be said exactly of hidden lines: blanks, and what repeats the lines shown above.

    By the first line of each of the `gaps` (1-based ranges) of which there is something to say: the last line
    that it is true of, which may be the gap's or one before, and the note. Lines that are `parted` (0-based)
    are shown only in part, so nothing repeats them.
    """
    out: dict[int, tuple[int, str]] = {}
    before = 0
    for first, last in gaps:
        start = first - 1
        row = rows[start]
        if not row and last - start >= BLANK_LEAST_LINES and not any(rows[start:last]):
            out[first] = last, notes.blank(last - start)
        elif row in rows[max(before, start - MOST_PERIOD) : start]:
            end, period = _again(rows, start, last, before)
            if period and parted.isdisjoint(range(start - period, start)):
                out[first] = end, notes.again(end - start, period)
        before = last
    return out


def _again(rows: Sequence[bytes], start: int, last: int, before: int) -> tuple[int, int]:
    """How far, from `start`, hidden lines repeat those after `before`, and their period; 0 where they don't.

    All of the lines to `last`, or so many that it is worth two notes.
    """
    for period in range(1, min(MOST_PERIOD, start - before, last - start) + 1):
        above = start - period
        if rows[start : start + period] != rows[above:start]:
            continue
        end = next((at for at in range(start, last) if rows[at] != rows[at - period]), last)
        if _bytes(rows, start, end) > NOTE_BYTES and (end == last or end - start >= PART_LEAST_LINES):
            return end, period
    return start, 0


def fold(lines: list[str], repeats: Iterable[Repeat], notes: Notes) -> list[str]:
    """`lines` with a note in the place of each repetition."""
    out: list[str] = []
    at = 0
    for again in repeats:
        out += lines[at : again.start]
        count = again.end - again.start
        blank = again.period == 1 and not lines[again.start]
        out.append(notes.blank(count) if blank else notes.again(count, again.period))
        at = again.end
    return out + lines[at:]


def unfold(lines: list[str], notes: Notes) -> list[str]:
    """The lines that `fold` was given."""
    out: list[str] = []
    for line in lines:
        body = notes.body(line)
        again, blank = _AGAIN.fullmatch(body), _BLANK.fullmatch(body)
        if again and out:
            count, block = int(again[1]), out[-int(again[2] or 1) :]
            out += (block * (count // len(block) + 1))[:count]
        elif blank:
            out += [""] * int(blank[1])
        else:
            out.append(line)
    return out
