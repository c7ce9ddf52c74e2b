"""Tables: CSV, TSV, and the bar-separated tables of databases."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import repeat
from operator import contains

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, Ways, shorten_lines
from turngate.compress.units import Units

SEPARATORS = ("\t", "|", ",", ";")
RECOGNISE_LINES = 40
LEAST_LINES = 6
LEAST_SHARE = 0.85
CONFIDENCE = 0.7
HEADER = 3.0
MAXIMUM, MINIMUM = 2.0, 1.0
RARE_VALUE, RARE_VALUE_MOST_SHARE = 1.2, 0.01
#: A column of categories has few distinct values.
CATEGORY_MOST_DISTINCT_SHARE = 0.05
NUMERIC_LEAST_SHARE = 0.8
MOST_COLUMNS = 40
#: A row of numbers says nothing new by its form, but its values are data: it is shown where there is room.
ROW = 0.6
_NUMBER = re.compile(rb"\s*-?\d[\d_]*(?:\.\d+)?\s*\Z")


def separator(lines: tuple[str, ...] | list[str]) -> str:
    """The separator of which most of the first lines have the same number; empty when there is none."""
    lines = lines[:RECOGNISE_LINES]
    if len(lines) < LEAST_LINES:
        return ""
    for mark in SEPARATORS:
        if not any(map(contains, lines[:LEAST_LINES], repeat(mark))):
            continue
        counts = sorted([line.count(mark) for line in lines])
        count = counts[len(counts) // 2]
        if count and counts.count(count) >= LEAST_SHARE * len(lines):
            return mark
    return ""


def recognise(sample: Sample) -> float:
    """The same number of separators in most of the first lines."""
    return CONFIDENCE if separator(sample.lines) else 0.0


def shorten(doc: Doc) -> Shown:
    """The rows of a table."""
    return shorten_lines(doc, WAYS)


def _bonus(units: Units, total: list[float]) -> None:
    head = [row.decode("utf-8", "replace") for row in units.rows[: RECOGNISE_LINES * 2] if row.strip()]
    mark = separator(head)
    if not mark or units.lines is not None:
        return
    for index in range(len(total)):
        total[index] += ROW
    total[0] += HEADER
    split = [row.split(mark.encode()) for row in units.rows]
    width = Counter(map(len, split)).most_common(1)[0][0]
    rows = [index for index, cells in enumerate(split) if len(cells) == width]
    for column in range(min(width, MOST_COLUMNS)):
        for index, value in _column([(index, split[index][column]) for index in rows]):
            total[index] += value


def _column(cells: list[tuple[int, bytes]]) -> Iterator[tuple[int, float]]:
    """What stands out in one column: the extremes of numbers, the rare values of categories."""
    numbers = [(float(cell.replace(b"_", b"")), index) for index, cell in cells if _NUMBER.match(cell)]
    if len(numbers) >= NUMERIC_LEAST_SHARE * len(cells):
        yield max(numbers, key=lambda pair: (pair[0], -pair[1]))[1], MAXIMUM
        yield min(numbers)[1], MINIMUM
        return
    counts = Counter(cell for _, cell in cells)
    if len(counts) > max(2, CATEGORY_MOST_DISTINCT_SHARE * len(cells)):
        return
    rare = {cell for cell, count in counts.items() if count <= RARE_VALUE_MOST_SHARE * len(cells)}
    for index, cell in cells:
        if cell in rare:
            yield index, RARE_VALUE


WAYS = Ways(bonus=_bonus)
