"""Tell formats, and the kinds they belong to, by a sample's lines and by what the call leads one to expect.

A call raises what it names and lowers what that needs, but where no line looks like it, it counts for
nothing: commands fail, and print other things than their name says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from turngate.compress.call import Sample
from turngate.compress.kinds.formats import FORMATS, Format
from turngate.compress.kinds.formats.match import formats_of, opened_by


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
OPENS_CONFIDENCE = 0.85
#: A format is named if so many lines, and this part of its kind's lines, have its looks; of the general kind,
#: to which any line belongs, this part of all lines.
NAME_LEAST_LINES, NAME_LEAST_PART = 2, 0.4
GENERAL, GENERAL_LEAST_SHARE = "text", 0.6
NONE: frozenset[str] = frozenset()
#: Marks are looked for so far.
MARKS_CHARS = 3_000
#: These lines are looked at first, and where they tell it plainly, they are enough. They have no period, lest
#: the text's hides half of it.
FEW = (0, 1, 3, 6, 8, 11, 13, 14)


@cache
def _by_word() -> dict[str, list[Format]]:
    out: dict[str, list[Format]] = defaultdict(list)
    for row in FORMATS:
        for word in filter(None, row.words.split(", ")):
            out[word].append(row)
    return out


@cache
def _marked(kind: str) -> tuple[Format, ...]:
    return tuple(row for row in FORMATS if row.kind == kind and row.marks)


@dataclass(frozen=True, slots=True)
class Told:
    """What a sample's lines and its call say."""

    #: How many lines of the sample look like each format, and like each kind.
    formats: dict[Format, int]
    kinds: dict[str, int]
    lines: int
    #: The format that the first line opens, if any.
    opened: Format | None
    #: The formats that the call leads one to expect, and their kinds.
    named: frozenset[str]
    named_kinds: frozenset[str]

    def confidence(self, kind: str) -> float:
        """How sure the lines make one of `kind`, 0 to 1."""
        raised = self.raised(kind)
        if self.opened is not None and self.opened.kind == kind:
            return OPENS_CONFIDENCE
        trust = TRUST.get(kind)
        if trust is None or kind not in self.kinds:
            return 0.0
        share = self.kinds[kind] / self.lines
        if share < trust.least_share * (NAMED_SHARE if raised else 1.0):
            return 0.0
        return min(trust.most, trust.base + trust.slope * share) + raised

    def raised(self, kind: str) -> float:
        """How much surer the call makes one of `kind`."""
        return NAMED_CONFIDENCE if kind in self.named_kinds else 0.0

    def format(self, kind: str, head: str) -> str:
        """The name of the format within `kind`; empty when that isn't sure."""
        if self.opened is not None and self.opened.kind == kind:
            return self.opened.name
        best = max((row for row in self.formats if row.kind == kind), key=self._weight, default=None)
        if best is not None and self._is_sure(best):
            return best.name
        begins = head[:MARKS_CHARS]
        marked = [row for row in _marked(kind) if any(map(begins.__contains__, row.marks))]
        return max(marked, key=self._weight).name if marked else ""

    def _weight(self, row: Format) -> float:
        """The lines of a format; what the call names weighs twice."""
        named = row.name in self.named
        return self.formats.get(row, 0) * (2 if named else 1) + named

    def _is_sure(self, row: Format) -> bool:
        count = self.formats.get(row, 0)
        if row.kind == GENERAL:
            return count >= GENERAL_LEAST_SHARE * self.lines
        least = 1 if row.name in self.named else NAME_LEAST_LINES
        return count >= max(least, NAME_LEAST_PART * self.kinds.get(row.kind, 0))


def tell(sample: Sample) -> Told:
    """What the lines of `sample` and its call say of its format."""
    found, lines = _counted(sample.lines)
    formats: dict[Format, int] = {}
    kinds: dict[str, int] = {}
    for rows, count in found.items():
        for row in rows:
            formats[row] = formats.get(row, 0) + count
        for kind in {row.kind for row in rows}:
            kinds[kind] = kinds.get(kind, 0) + count
    named = tuple(_named(sample.words)) if sample.words else ()
    return Told(
        formats=formats,
        kinds=kinds,
        lines=lines,
        opened=opened_by(sample.lines[0]) if sample.lines else None,
        named=frozenset([row.name for row in named]) if named else NONE,
        named_kinds=frozenset([row.kind for row in named]) if named else NONE,
    )


def _counted(lines: tuple[str, ...]) -> tuple[dict[tuple[Format, ...], int], int]:
    """How many lines have which formats, and how many were looked at: some, where these are plain."""
    few = [formats_of(lines[at]) for at in FEW if at < len(lines)]
    if len(few) == len(FEW) and _is_plain(few):
        return Counter(few), len(few)
    rest = [formats_of(line) for at, line in enumerate(lines) if at not in FEW]
    return Counter([*few, *rest]), max(1, len(lines))


def _is_plain(few: list[tuple[Format, ...]]) -> bool:
    """Whether all lines but one are alike, or all but one have no format."""
    return len(few) - few.count(()) <= 1 or max(map(few.count, few)) >= len(few) - 1


def _named(words: frozenset[str]) -> Iterator[Format]:
    for word in words:
        yield from _by_word().get(word, ())
