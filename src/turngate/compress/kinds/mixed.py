"""Outputs of several commands in one text: each part is chosen from as what it is, within its share.

A text is taken apart where a header says that something else follows or where a diff begins, and only if one
of the parts has a structure of its own. Lines are chosen part by part; notes count over the whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import sqrt
from operator import itemgetter
from typing import Protocol

from turngate.compress.call import Call, Doc, Sample, sample_of
from turngate.compress.exact.repeats import Repeat
from turngate.compress.kinds import diff, html, markdown, search, table
from turngate.compress.lines import PLAIN, Shown, Ways, best, shorten_lines
from turngate.compress.units import Units

#: A line that says what follows: `$ command`, `==> file <==`, `=== step ===`, `--- step ---`, `### step ###`.
_HEADER = re.compile(rb"^(?:\$ \S.*|==> .+ <==|(={3,}|-{3,}|#{3,}) .+ \1)$", re.MULTILINE)
_DIFF = b"diff --git "
#: What headers begin with; cheaper to look for than their pattern.
_OPENINGS = (b"$ ", b"==", b"---", b"###")
#: Of each opening of a header or a diff so many bytes, by which most texts are told to have none.
_beginning = itemgetter(slice(2))
_BEGINS = frozenset(map(_beginning, (*_OPENINGS, _DIFF)))
#: The first line that neither a diff nor a commit has.
_DIFF_ENDS = re.compile(
    rb"""^(?![ +\-@\\\r\n]|\Z
        |(?:diff|index|new|deleted|old|(?:dis)?similarity|rename|copy|Binary|GIT|literal|delta|commit)[ ]
        |Author|Commit|Date|Merge)""",
    re.MULTILINE | re.VERBOSE,
)
#: With more of them, headers are a report's own.
MOST_PARTS = 24
#: A shorter part isn't looked at.
LEAST_BYTES = 300
#: Kinds of documents, in which a header belongs to the text.
_DOCUMENTS = frozenset({"html", "markdown"})
#: Kinds for which a text is taken apart.
_TELLING = frozenset({"diff", "html", "table", "markdown"})
#: How the lines of kinds are handled; all others by the general method.
WAYS: dict[str, Ways] = {
    "diff": diff.WAYS,
    "html": html.WAYS,
    "table": table.WAYS,
    "markdown": markdown.WAYS,
    "search": search.WAYS,
}


class _Found(Protocol):
    """What a sample was recognised as."""

    @property
    def name(self) -> str: ...


Recognise = Callable[[Sample], _Found]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text, up to the next one."""

    #: The byte that it begins at, and the one after its header.
    start: int
    body: int
    kind: str

    @property
    def is_headed(self) -> bool:
        """Whether its first line is a header."""
        return self.body > self.start


def parts_of(data: bytes, kind: str, recognise: Recognise) -> list[Part]:
    """The parts of a text that was taken for `kind` as a whole; none where it is of one piece."""
    if kind in _DOCUMENTS and not _HEADER.match(data):
        return []
    if _BEGINS.isdisjoint(map(_beginning, data.split(b"\n"))):
        return []
    starts = sorted({0, *_headers(data), *_diff_edges(data)})
    if not 1 < len(starts) <= MOST_PARTS:
        return []
    parts: list[Part] = []
    for start, end in pairwise([*starts, len(data)]):
        part = _part(data, start, end, recognise)
        before = parts[-1] if parts else None
        if before and not part.is_headed and not data[before.body : start].strip():
            parts[-1] = replace(before, kind=part.kind)
        elif not before or part.is_headed or part.kind in _TELLING or before.kind in _TELLING:
            parts.append(part)
    return parts if len(parts) > 1 and any(part.kind in _TELLING for part in parts) else []


def _lines_with(data: bytes, opening: bytes, at: int = 0) -> Iterator[int]:
    """Where lines with this opening begin, from the line at `at` on."""
    if data.startswith(opening, at):
        yield at
    at = data.find(b"\n" + opening, at)
    while at >= 0:
        yield at + 1
        at = data.find(b"\n" + opening, at + 1)


def _headers(data: bytes) -> Iterator[int]:
    return (at for opening in _OPENINGS for at in _lines_with(data, opening) if _HEADER.match(data, at))


def _diff_edges(data: bytes) -> Iterator[int]:
    """Where diffs, with the commits that they belong to, begin and end."""
    at = _diff_end(data, 0) if data.startswith(b"commit ") else 0
    while (start := next(_lines_with(data, _DIFF, at), -1)) >= 0:
        yield start
        at = _diff_end(data, start)
        if at < len(data):
            yield at


def _diff_end(data: bytes, at: int) -> int:
    found = _DIFF_ENDS.search(data, data.find(b"\n", at) + 1 or len(data))
    return found.start() if found else len(data)


def _part(data: bytes, start: int, end: int, recognise: Recognise) -> Part:
    header = _HEADER.match(data, start, end)
    body = min(end, header.end() + 1) if header else start
    kind = recognise(sample_of(data[body:end], Call())).name if end - body >= LEAST_BYTES else "text"
    # Documents have headings of that form; what a report prints under its rules is none.
    is_under_rule = header is not None and header[1] is not None
    return Part(start, body, "text" if is_under_rule and kind == "markdown" else kind)


def shorten(doc: Doc, parts: list[Part]) -> Shown:
    """The lines of all parts."""
    return shorten_lines(doc, Ways(choose=partial(_choose, parts)))


def _choose(
    parts: list[Part], doc: Doc, units: Units, again: list[Repeat], budget_tokens: float
) -> list[int]:
    """The best units of each part. Budgets grow with the square root of a size, and so do shares of one."""
    lines = [doc.data.count(b"\n", 0, part.start) for part in parts]
    firsts = lines if units.lines is None else [bisect_left(units.lines, line) for line in lines]
    ranges = list(pairwise([*firsts, len(units.rows)]))
    sizes = [sum(units.tokens[first:end]) for first, end in ranges]
    weight = sum(map(sqrt, sizes))
    kept: list[int] = []
    # The smallest first: what they leave goes to the others.
    for number in sorted(range(len(parts)), key=sizes.__getitem__):
        first, end = ranges[number]
        if first == end:
            continue
        share = min(budget_tokens * sqrt(sizes[number]) / weight, sizes[number])
        weight -= sqrt(sizes[number])
        own = [_moved(repeat, lines[number]) for repeat in again if _is_within(repeat, units, first, end)]
        ways = WAYS.get(parts[number].kind, PLAIN)
        chosen = [first + index for index in best(doc, _slice(units, first, end), own, share, ways)]
        budget_tokens -= min(share, sum(map(units.tokens.__getitem__, chosen)))
        kept += [first, *chosen] if parts[number].is_headed and chosen[0] != first else chosen
    return sorted(kept)


def _is_within(repeat: Repeat, units: Units, first: int, end: int) -> bool:
    """Whether the lines of a repetition, and those that they repeat, are of the units `first` to `end`."""
    return units.line_of(first) <= repeat.start - repeat.period and repeat.end - 1 <= units.line_of(end - 1)


def _moved(repeat: Repeat, lines: int) -> Repeat:
    return replace(repeat, start=repeat.start - lines, end=repeat.end - lines)


def _slice(units: Units, first: int, end: int) -> Units:
    """The units `first` to `end`, as those of a text."""
    rows = units.rows[first:end]
    blob = b"\n".join(rows)
    if units.lines is None:
        return Units(rows, blob, None, rows)
    start, last = units.lines[first], units.lines[end - 1]
    return Units(rows, blob, [line - start for line in units.lines[first:end]], units.whole[start : last + 1])
