"""Diffs and commits with patches: heads, hunks, and both ends of every change."""

from __future__ import annotations

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, Ways, shorten_lines
from turngate.compress.units import Units

_HUNK = "\n@@ -"
_MARKS = ("\n+++ ", "\n--- ", "diff --git ", "\nIndex: ")
CONFIDENCE = 0.9
HEAD = 3.0
HUNK = 1.2
CHANGE, CHANGE_NEAR, CHANGE_FAR = 1.5, 0.35, 0.65
CONTEXT = -0.3
_HEADS = (b"diff ", b"+++ ", b"--- ", b"commit ", b"Index: ")


def recognise(sample: Sample) -> float:
    """Two marks of a unified diff, one of them a hunk."""
    if _HUNK not in sample.head:
        return 0.0
    return CONFIDENCE if any(map(sample.head.__contains__, _MARKS)) or sample.head.count(_HUNK) > 1 else 0.0


def shorten(doc: Doc) -> Shown:
    """The lines of a diff."""
    return shorten_lines(doc, WAYS)


def _bonus(units: Units, total: list[float]) -> None:
    rows = units.rows
    start = 0
    while start < len(rows):
        row = rows[start]
        end = start + 1
        if row.startswith(_HEADS):
            total[start] += HEAD
        elif row.startswith(b"@@"):
            total[start] += HUNK
        elif row[:1] in {b"+", b"-"}:
            while end < len(rows) and rows[end][:1] == row[:1] and not rows[end].startswith(_HEADS):
                end += 1
            for index in range(start, end):
                distance = min(index - start, end - 1 - index)
                total[index] += CHANGE * (CHANGE_NEAR + CHANGE_FAR / (1 + distance))
        else:
            total[start] += CONTEXT
        start = end


WAYS = Ways(bonus=_bonus, places=False)
