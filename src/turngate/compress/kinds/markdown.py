"""Markdown: headings carry the structure."""

from __future__ import annotations

import re

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, Ways, shorten_lines
from turngate.compress.units import Units

_HEADING = re.compile(r"#{1,6} \S")
_FENCE_OR_LINK = re.compile(r"^(?:```|[-*] |\d+\. |> )|\]\(", re.MULTILINE)
_HEADING_ROW = re.compile(rb"#{1,6} \S")
HEADING = 1.6
AFTER_BLANK = 0.4
LEAST_HEADINGS = 2
CONFIDENCE = 0.6


def recognise(sample: Sample) -> float:
    """Headings, and something else that only Markdown has."""
    headings = sum(1 for line in sample.lines if line[0] == "#" and _HEADING.match(line))
    return CONFIDENCE if headings >= LEAST_HEADINGS and _FENCE_OR_LINK.search(sample.head) else 0.0


def shorten(doc: Doc) -> Shown:
    """The lines of a document."""
    return shorten_lines(doc, WAYS)


def _bonus(units: Units, total: list[float]) -> None:
    blank = True
    for index, row in enumerate(units.rows):
        if _HEADING_ROW.match(row):
            total[index] += HEADING
        elif blank and row.strip():
            total[index] += AFTER_BLANK
        blank = not row.strip()


WAYS = Ways(bonus=_bonus)
