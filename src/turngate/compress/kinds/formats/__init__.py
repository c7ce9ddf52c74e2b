r"""The formats of output, a row each: what their lines look like, and which calls give them.

A format belongs to a kind, and the kind says how a text is shortened. Where a format needs no rules of its
own, which measurement showed for most, its row is all there is to it: the row names what was seen, and its
lines count for its kind. Adding a format is adding a row.

Patterns are matched at a line's start. What may be indented begins with `\s*`, what has to be with `\s+`. An
opening begins with certain characters. A line counts for the first pattern that fits: first of those that
begin with certain characters, then of those that say what stands behind the first word, then of the rest, in
the order of the table. A pattern that stands in several rows counts for each of them. None captures, and
none repeats a repetition that may give back what it took: no line must take long.
"""

from __future__ import annotations

from turngate.compress.kinds.formats.data import CHANGES, GENERAL, LISTINGS, LOGS, STRUCTURED, TABLES
from turngate.compress.kinds.formats.row import Format
from turngate.compress.kinds.formats.tools import COMPILERS, PACKAGES, TESTS, TRACES

__all__ = ["FORMATS", "Format"]

FORMATS: tuple[Format, ...] = (
    *CHANGES,
    *TRACES,
    *TESTS,
    *COMPILERS,
    *PACKAGES,
    *LOGS,
    *LISTINGS,
    *TABLES,
    *STRUCTURED,
    *GENERAL,
)
