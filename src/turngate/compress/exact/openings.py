"""Lines that begin alike: what they begin with is said once, above them.

Paths below one directory, hits of one file, a common indentation. It takes a place apart from its line
(`src/app.py:12:` becomes `12:`), so it is used only where everything fits then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import AnyStr

from turngate.compress.notes import Notes

#: Shorter openings, or of fewer lines, save less than their note costs.
LEAST_CHARS = 4
#: Longer ones are no paths, and would take long to look at.
MOST_CHARS = 1_000
LEAST_LINES = 8
#: Groups of fewer lines, on average, aren't worth their notes.
LEAST_GROUP_LINES = 3
#: After these an opening may end: it is said whole, not "every line begins with 1".
_ENDS = "/\\: \t"
#: The file of a hit (`a/b.py:12:`), or the directory of a path that stands alone on its line.
_HEAD = re.compile(r"[^\s:]+:(?=\d+[:-])|[^\s:]*/(?=[^\s/:]*\Z)")
#: An indentation, or a path; dates are none.
_OPENING = re.compile(r"[ \t]*(?:(?!\d)[^\s\[\](){}<>\"'=,;]*[/\\][^\s\[\](){}<>\"'=,;]*[ \t]?)?")
_HEAD_BYTES = re.compile(_HEAD.pattern.encode())
_NOTE = re.compile(r" ?each line (?:begins: (.*)|is indented by (\d+) (blank|tab)s more)\]", re.DOTALL)


def common_chars(lines: Sequence[AnyStr]) -> int:
    """How many characters (bytes, of bytes) all `lines` begin with."""
    first, last = min(lines), max(lines)
    differing = (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return next(differing, min(len(first), len(last)))


def heads_bytes(rows: Iterable[bytes]) -> int:
    """How long the files or directories are, together, that the rows name first; 0 where one names none."""
    size = 0
    for row in rows:
        found = _HEAD_BYTES.match(row)
        if not found:
            return 0
        size += found.end()
    return size


def fold_common(lines: Sequence[str], notes: Notes) -> list[str] | None:
    """`lines` without the path or indentation that all but empty ones begin with; None where there is none.

    Words are no such opening: of a log's lines that begin alike, most say so little that they may be hidden.
    """
    told = [line for line in lines if line]
    if len(told) < LEAST_LINES:
        return None
    opening = told[0][: common_chars(told)]
    while opening and opening[-1] not in _ENDS:
        opening = opening[:-1]
    if not LEAST_CHARS <= len(opening) <= MOST_CHARS or not _OPENING.fullmatch(opening):
        return None
    return [notes.opening(opening), *[line[len(opening) :] for line in lines]]


def fold_heads(lines: Sequence[str], notes: Notes) -> list[str] | None:
    """`lines` in groups below the file or the directory that each line of a group names first."""
    heads = [found[0] if (found := _HEAD.match(line)) else "" for line in lines]
    if not all(heads):
        return None
    groups = [(head, len(list(group))) for head, group in groupby(heads)]
    if len(lines) < LEAST_GROUP_LINES * len(groups):
        return None
    out: list[str] = []
    at = 0
    for head, count in groups:
        out.append(notes.opening(head))
        out += [line[len(head) :] for line in lines[at : at + count]]
        at += count
    return out


def unfold(lines: Sequence[str], notes: Notes) -> list[str]:
    """The lines that `fold_common` or `fold_heads` was given."""
    out: list[str] = []
    opening = ""
    for line in lines:
        said = _NOTE.fullmatch(notes.body(line))
        if said:
            opening = (" " if said[3] == "blank" else "\t") * int(said[2]) if said[2] else said[1]
        else:
            out.append(opening + line if line else line)
    return out
