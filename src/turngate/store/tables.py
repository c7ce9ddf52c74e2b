"""The row of a table with the largest or smallest value of a column. Pure."""

from __future__ import annotations

import csv
import math
from itertools import pairwise
from typing import TYPE_CHECKING

from turngate.store.lines import line_starts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.store.question import Extreme

_DELIMITERS = ("\t", ",", ";", "|")
#: Rows that share the extreme value are shown up to this many.
_MAX_TIES = 3


def extreme_rows(text: str, extreme: Extreme) -> list[tuple[int, int]]:
    """Where the rows stand, if `text` is a table with a heading line and has that column."""
    head = text[: text.find("\n")].lower()
    delimiter = max(_DELIMITERS, key=head.count)
    names = [name.strip(' "\ufeff') for name in head.split(delimiter)]
    columns = [name for name in names if name and extreme.column.startswith(name)]
    if len(names) == 1 or not columns:
        return []
    wanted = names.index(max(columns, key=len))
    values = [
        (extreme.sign * value, start, end)
        for value, start, end in _values(text, delimiter, wanted, len(names))
    ]
    best = max((value for value, _, _ in values), default=None)
    return [(start, end) for value, start, end in values if value == best][:_MAX_TIES]


def _values(text: str, delimiter: str, wanted: int, width: int) -> Iterator[tuple[float, int, int]]:
    """Numbers of one column, with the places of their rows; rows of another shape are left out."""
    starts = line_starts(text)
    for start, end in pairwise(starts[1:]):
        line = text[start:end].rstrip("\r\n")
        cells = _cells(line, delimiter)
        if len(cells) == width:
            value = _number(cells[wanted])
            if not math.isnan(value):
                yield value, start, end


def _cells(line: str, delimiter: str) -> list[str]:
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except csv.Error:
        return []


def _number(cell: str) -> float:
    try:
        return float(cell.strip().replace(",", ""))
    except ValueError:
        return math.nan
