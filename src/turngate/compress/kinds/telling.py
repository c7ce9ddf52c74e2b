"""Tell formats, and the kinds they belong to, by a sample's lines and by what the call leads one to expect.

A line is compared with the patterns that its first character admits, and with the few that any admits. Either
are one regular expression, so a line is looked at three times at most, however many formats there are. A call
raises what it names and lowers what that needs, but where no line looks like it, it counts for nothing:
commands fail, and print other things than their name says.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from turngate.compress.call import Sample
from turngate.compress.kinds.formats import FORMATS, Format


@dataclass(frozen=True, slots=True)
class Trust:
    """How far the share of a kind's lines in a sample can be trusted."""

    #: Below this share it says nothing.
    least_share: float
    #: The confidence is `base` and `slope` for each whole share, up to `most`.
    base: float
    slope: float
    most: float = 0.9


#: Kinds that are told by their lines. Reports have many lines of other make, and so have traces.
TRUST = {
    "trace": Trust(0.25, 0.5, 0.4),
    "log": Trust(0.4, 0.5, 0.4),
    "search": Trust(0.7, 0.0, 0.8),
    "listing": Trust(0.6, 0.5, 0.4),
    "report": Trust(0.25, 0.45, 1.0, 0.85),
    "table": Trust(0.6, 0.5, 0.2),
}
#: What the call names needs this part of the least share, and is so much surer.
NAMED_SHARE, NAMED_CONFIDENCE = 0.5, 0.1
#: A first line that only one format has.
OPENS_CONFIDENCE = 0.75
#: A format is named if so many lines, and this part of its kind's lines, have its looks; of the general kind,
#: to which any line belongs, this part of all lines.
NAME_LEAST_LINES, NAME_LEAST_PART = 2, 0.4
GENERAL, GENERAL_LEAST_SHARE = "text", 0.6
#: What stands before that which a place's patterns are compared with: a path, which may begin with a drive.
_PATH = r"(?![\d\[(])(?:[A-Za-z]:)?[^\s:(]++(?=[:(])"
#: A pattern's indentation, and the one thing that has to stand first: a class, an escape or a character.
_INDENT = re.compile(r"\\s[*+]")
_FIRST = re.compile(r"(\[(?:\\.|[^\]\\])*\]|\\.|[^\\\[(.^$])(?![*?]|\{0)")
_NOTHING = r"(?!)"
#: A class of more characters says little.
FIRST_MOST = 26
_CANDIDATES = [chr(code) for code in range(33, 127)]
_PART = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?:|.")


@dataclass(frozen=True, slots=True)
class Lines:
    """Patterns as one expression, of which the last group says which one fits.

    The groups stand behind their patterns and are empty, so that the engine sees what a pattern begins with,
    and skips it at the price of a comparison.
    """

    found: re.Pattern[str]
    #: By the group's number, the formats that a line counts for.
    rows: tuple[tuple[Format, ...], ...]


def _lines(patterns: dict[str, list[Format]], before: str = "") -> Lines:
    found = re.compile(f"{before}(?:{'|'.join(f'{pattern}()' for pattern in patterns) or _NOTHING})")
    return Lines(found, ((), *map(tuple, patterns.values())))


def _patterns(field: str) -> dict[str, list[Format]]:
    """The patterns of one field of all rows, in order, with their rows."""
    out: dict[str, list[Format]] = defaultdict(list)
    for row in FORMATS:
        for line in getattr(row, field).split("\n"):
            if pattern := line.strip():
                out[pattern].append(row)
    return out


@cache
def _places() -> Lines:
    return _lines(_patterns("places"), _PATH)


@cache
def _opens() -> Lines:
    return _lines(_patterns("opens"))


@cache
def _first_characters() -> dict[str, str]:
    """For each pattern the characters that what it fits can begin with, behind blanks; "" for any."""
    return {pattern: "".join(sorted(_firsts(pattern))) for pattern in _patterns("lines")}


def _firsts(pattern: str) -> set[str]:
    out: set[str] = set()
    for start in _starts(_INDENT.sub("", pattern, count=1)):
        first = _FIRST.match(start)
        if first is None:
            return set()
        out |= _admitted(first[1])
    return out if len(out) <= FIRST_MOST else set()


def _starts(pattern: str) -> Iterator[str]:
    """`pattern` from its beginning, or from those of the alternatives that it opens with."""
    depth = 0
    for part in _PART.finditer(pattern):
        depth += part[0].startswith("(")
        if depth == 0 or part[0] in {"(?:", "|"}:
            yield pattern[part.end() * (depth > 0) :]
        depth -= part[0] == ")"
        if depth == 0:
            if pattern[part.end() : part.end() + 1] in {"?", "*"}:
                yield ""
            return


def _admitted(first: str) -> set[str]:
    if len(first) == 1:
        return {first}
    found = re.compile(first)
    return {c for c in (*_CANDIDATES, *first) if found.match(c)}


@cache
def _beginning(character: str) -> Lines:
    """The patterns for lines that begin with `character`."""
    firsts = _first_characters()
    return _lines({p: rows for p, rows in _patterns("lines").items() if character in firsts[p]})


@cache
def _any() -> Lines:
    """The patterns for lines that begin with any character."""
    firsts = _first_characters()
    return _lines({p: rows for p, rows in _patterns("lines").items() if not firsts[p]})


@cache
def _by_word() -> dict[str, list[Format]]:
    out: dict[str, list[Format]] = defaultdict(list)
    for row in FORMATS:
        for word in row.words.split(", "):
            out[word].append(row)
    return out


@cache
def _of_kind(kind: str) -> tuple[Format, ...]:
    return tuple(row for row in FORMATS if row.kind == kind)


def _rows_of(line: str) -> tuple[Format, ...]:
    """The formats that have such a line; `line` isn't blank."""
    for lines in (_places(), _beginning(line.lstrip()[0]), _any()):
        if match := lines.found.match(line):
            return lines.rows[match.lastindex or 0]
    return ()


@dataclass(frozen=True, slots=True)
class Told:
    """What a sample's lines and its call say."""

    #: How many lines of the sample look like each format, by name, and like each kind.
    formats: Counter[str]
    kinds: Counter[str]
    lines: int
    #: The format that the first line opens, if any.
    opened: Format | None
    #: The formats that the call leads one to expect, and their kinds.
    named: frozenset[str]
    named_kinds: frozenset[str]

    def confidence(self, kind: str) -> float:
        """How sure the lines make one of `kind`, 0 to 1."""
        raised = NAMED_CONFIDENCE if kind in self.named_kinds else 0.0
        if self.opened is not None and self.opened.kind == kind:
            return OPENS_CONFIDENCE + raised
        trust = TRUST.get(kind)
        share = self.kinds[kind] / self.lines
        if trust is None or not share or share < trust.least_share * (NAMED_SHARE if raised else 1.0):
            return 0.0
        return min(trust.most, trust.base + trust.slope * share) + raised

    def raised(self, kind: str, confidence: float) -> float:
        """The `confidence` that `kind` has by its structure, raised if the call names it."""
        return confidence + NAMED_CONFIDENCE if confidence and kind in self.named_kinds else confidence

    def format(self, kind: str, head: str) -> str:
        """The name of the format within `kind`; empty when that isn't sure."""
        if self.opened is not None and self.opened.kind == kind:
            return self.opened.name
        best = max(_of_kind(kind), key=self._weight, default=None)
        if best is not None and self._is_sure(best):
            return best.name
        marked = [row for row in _of_kind(kind) if any(map(head.__contains__, row.marks))]
        return max(marked, key=self._weight).name if marked else ""

    def _weight(self, row: Format) -> float:
        """The lines of a format; what the call names weighs twice."""
        named = row.name in self.named
        return self.formats[row.name] * (2 if named else 1) + named

    def _is_sure(self, row: Format) -> bool:
        count = self.formats[row.name]
        if row.kind == GENERAL:
            return count >= GENERAL_LEAST_SHARE * self.lines
        least = 1 if row.name in self.named else NAME_LEAST_LINES
        return count >= max(least, NAME_LEAST_PART * self.kinds[row.kind])


def tell(sample: Sample) -> Told:
    """What the lines of `sample` and its call say of its format."""
    found = Counter([_rows_of(line) for line in sample.lines])
    formats: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for rows, count in found.items():
        for row in rows:
            formats[row.name] += count
        for kind in {row.kind for row in rows}:
            kinds[kind] += count
    opened = _opens().found.match(sample.lines[0]) if sample.lines else None
    named = list(_named(sample.words)) if sample.words else []
    return Told(
        formats=formats,
        kinds=kinds,
        lines=max(1, len(sample.lines)),
        opened=_opens().rows[opened.lastindex or 0][0] if opened else None,
        named=frozenset(row.name for row in named),
        named_kinds=frozenset(row.kind for row in named),
    )


def _named(words: frozenset[str]) -> Iterator[Format]:
    for word in words:
        yield from _by_word().get(word, ())
