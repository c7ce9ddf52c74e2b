"""Blobs: long unbroken runs of letters and digits, such as base64. Their insides say nothing.

Each piece of one is as rare and as new as a text can be, so without this rule they would fill the budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from turngate.compress.units import Units

#: Base64 is wrapped at 64 (PEM, RFC 7468) or 76 characters (MIME, RFC 2045).
LEAST_BYTES = 60
#: Base64 has a slash among 64 characters on average; a path has many more.
SLASH_MOST_SHARE = 1 / 12
_RUN = re.compile(rb"[A-Za-z0-9+/=_-]+\Z")
_RUN_TEXT = re.compile(r"(?:data:[\w/+.-]{3,60};base64,)?[A-Za-z0-9+/=_-]+\Z")


def is_blob(text: str) -> bool:
    """Whether a string is a blob, at most with the head of a data URL."""
    return bool(_RUN_TEXT.match(text)) and text.count("/") <= SLASH_MOST_SHARE * len(text)


def insides(units: Units, among: Iterable[int]) -> list[int]:
    """Those `among` the units that are inside a blob: pieces amid a line, or lines between others as long."""
    rows = units.rows
    runs = [
        index
        for index in among
        if len(row := rows[index]) >= LEAST_BYTES and b" " not in row and _is_run(row)
    ]
    last = len(rows) - 1
    return [
        index
        for index in runs
        if 0 < index < last and (_is_within_line(units, index) or _is_among_like(rows, index))
    ]


def _is_within_line(units: Units, index: int) -> bool:
    """Whether the units on both sides are parts of the same line."""
    lines = units.lines
    return lines is not None and lines[index - 1] == lines[index] == lines[index + 1]


def _is_among_like(rows: list[bytes], index: int) -> bool:
    """Whether the lines on both sides are such runs, too, and as long."""
    before, row, after = rows[index - 1 : index + 2]
    return len(before) == len(row) >= len(after) and _is_run(before) and _is_run(after)


def _is_run(row: bytes) -> bool:
    return bool(_RUN.match(row)) and row.count(b"/") <= SLASH_MOST_SHARE * len(row)
