"""Lines that are all filled up with blanks to one width: the blanks go, and a note says the width."""

from __future__ import annotations

import re
from collections.abc import Sequence

from turngate.compress.notes import Notes

LEAST_LINES = 8
#: Fewer blanks, on average, aren't worth a note.
LEAST_BLANKS = 4
_NOTE = re.compile(r" ?each line is filled with blanks to (\d+) columns\]")


def fold(lines: Sequence[str], notes: Notes) -> list[str] | None:
    """`lines` without the blanks at their ends; None where they aren't all filled up to one width."""
    widths = {len(line) for line in lines if line}
    if len(lines) < LEAST_LINES or len(widths) != 1:
        return None
    short = [line.rstrip(" ") for line in lines]
    if sum(map(len, lines)) - sum(map(len, short)) < LEAST_BLANKS * len(lines):
        return None
    return [notes.filled(widths.pop()), *short]


def unfold(lines: Sequence[str], notes: Notes) -> list[str]:
    """The lines that `fold` was given."""
    out: list[str] = []
    width = 0
    for line in lines:
        said = _NOTE.fullmatch(notes.body(line))
        if said:
            width = int(said[1])
        else:
            out.append(line.ljust(width) if line else line)
    return out
