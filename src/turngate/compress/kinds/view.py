"""Numbered views of a file, and the views that an edit echoes.

A view was asked for to be read, and edits need it to the letter: shortening views costs eight points of the
facts that agents needed later, so they pass. After an edit only the surroundings of what was written are
news.
"""

from __future__ import annotations

import re
from itertools import pairwise

from turngate.compress.call import Call, Doc
from turngate.compress.lines import Shown, show
from turngate.compress.units import whole_lines

_NUMBERED = re.compile(rb"^ *(\d+)(?:[:|\t]|\xe2\x86\x92| {1,2}|$)", re.MULTILINE)
_NUMBER = re.compile(rb" *(\d+)(?:[:|\t]|\xe2\x86\x92| {1,2}|$)")
#: A line of which nothing but its number stands.
_BARE = re.compile(rb"^ *\d+[:|\t]? *$", re.MULTILINE)
#: A file has blank lines; with more of them the text is a row of numbers.
BARE_MOST_SHARE = 0.5
LEAST_SHARE = 0.8
LEAST_LINES = 8
#: A look at the beginning tells most texts that are no views.
PEEK_BYTES = 1_500
EDIT_VERBS = frozenset({"edit", "insert", "replace", "write", "patch", "update", "append", "create"})
#: Lines shown on each side of a line that the call wrote.
AROUND_LINES = 6
#: Shorter lines ("}", "else:") stand everywhere.
WRITTEN_LEAST_CHARS = 6
#: A longer view is no view to read: it is shortened like any text.
MOST_BYTES = 60_000


def is_view(data: bytes) -> bool:
    """Whether most lines begin with consecutive numbers."""
    if not _looks_numbered(data[:PEEK_BYTES].split(b"\n")):
        return False
    numbers = [int(number[:18]) for number in _NUMBERED.findall(data)]
    if len(_BARE.findall(data)) > BARE_MOST_SHARE * len(numbers):
        return False
    consecutive = sum(1 for a, b in pairwise(numbers) if b == a + 1) + 1
    return len(numbers) >= LEAST_LINES and consecutive >= LEAST_SHARE * (data.count(b"\n") + 1)


def _looks_numbered(rows: list[bytes]) -> bool:
    """Whether the first lines may be those of a view: half as many as there must be, and most in sequence."""
    numbers = [int(match[1][:18]) for match in map(_NUMBER.match, rows) if match]
    consecutive = sum(1 for a, b in pairwise(numbers) if b == a + 1)
    return len(numbers) >= LEAST_SHARE / 2 * len(rows) and consecutive >= (len(numbers) - 1) / 2


def is_edit(call: Call) -> bool:
    """Whether the tool's name or an argument says that a file was changed."""
    return not EDIT_VERBS.isdisjoint(call.verbs())


def shorten_echo(doc: Doc) -> Shown | None:
    """The surroundings of what the call wrote, and all that isn't file; None where none of it is found."""
    written = {
        line.strip().encode("utf-8", "surrogatepass")
        for text in doc.call.texts
        for line in text.split("\n")
        if len(line.strip()) >= WRITTEN_LEAST_CHARS
    }
    units = whole_lines(doc.data)
    rows = units.rows
    bare = [_NUMBER.sub(b"", row, count=1).strip() for row in rows]
    hits = [index for index, row in enumerate(bare) if row in written]
    if not hits:
        return None
    kept = {index for index, row in enumerate(rows) if row.strip() and not _NUMBER.match(row)}
    for hit in hits:
        kept.update(range(max(0, hit - AROUND_LINES), min(len(rows), hit + AROUND_LINES + 1)))
    return show(units, sorted(kept), doc.notes)
