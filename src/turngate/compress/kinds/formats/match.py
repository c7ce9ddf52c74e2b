"""Match a line with all patterns of the table at once.

A line is compared with the patterns that its beginning admits, and if none of them fits, with those that any
admits. Either are one regular expression, so a line is looked at twice at most, however many formats there
are. They are compiled when they are first needed. A beginning is a line's first character behind blanks;
where that is a digit, it is "0" and what follows the number: "0-" of a date, "0:" of a time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from turngate.compress.kinds.formats import FORMATS, Format

#: The first word of a line, which may be a path with a drive; numbers and what stands in brackets are none.
_WORD = r"\s*+(?![\d\[(])(?:[A-Za-z]:[\\/])?[^\s:(=]++"
#: A pattern's indentation, and the one thing that has to stand first: a class, an escape or a character.
_INDENT = re.compile(r"^\\s[*+]")
_FIRST = re.compile(r"(\[(?:\\.|[^\]\\])*\]|\\.|[^\\\[().^$|])(?![*?]|\{0)")
#: A number that a pattern begins with.
_NUMBER = re.compile(r"(?:\\d(?:\{[\d,]+\}|\+\+?)?)+")
_DIGITS = "0123456789"
#: The beginning of any number.
_ANY_NUMBER = "0*"
_PART = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?:|.")
_NOTHING = r"(?!)"
#: A class of more characters says little.
FIRST_MOST = 26
_CANDIDATES = ["\t", *map(chr, range(32, 127))]


@dataclass(frozen=True, slots=True)
class Expression:
    """Patterns as one expression, of which the last group says which one fits.

    The groups stand behind their patterns and are empty, so that the engine sees what a pattern begins with,
    and skips it at the price of a comparison.
    """

    match: Callable[[str], re.Match[str] | None]
    #: By the group's number, the formats that a line counts for.
    rows: tuple[tuple[Format, ...], ...]


def formats_of(line: str) -> tuple[Format, ...]:
    """The formats that have such a line; `line` isn't blank."""
    bare = line.lstrip()
    first = bare[0]
    if first in _DIGITS:
        first = "0" + bare.lstrip(_DIGITS)[:1]
    if first not in _known():
        first = _ANY_NUMBER if first[0] == "0" else ""
    expression = _beginning(first, len(bare) < len(line))
    match = expression.match(line)
    if match is None:
        expression = _any()
        match = expression.match(line)
        if match is None:
            return ()
    return expression.rows[match.lastindex or 0]


def opened_by(line: str) -> Format | None:
    """The format of which `line` is the first."""
    match = _opens().match(line)
    return _opens().rows[match.lastindex or 0][0] if match else None


@cache
def _beginning(first: str, indented: bool) -> Expression:
    """What lines can be that begin so; nothing for one that no pattern begins with."""
    either = {first, _ANY_NUMBER} if first.startswith("0") else {first}
    firsts = _firsts()
    return _expression(
        [p for p in firsts if not either.isdisjoint(firsts[p]) and _may_stand(p, indented=indented)]
    )


@cache
def _any() -> Expression:
    """What lines can be that begin with any character."""
    firsts = _firsts()
    return _expression([p for p in firsts if not firsts[p]], _patterns("behind"))


@cache
def _opens() -> Expression:
    return _expression(_patterns("opens"), field="opens")


def _expression(patterns: Iterable[str], behind: Iterable[str] = (), field: str = "lines") -> Expression:
    """One expression of `patterns`, before them those that stand `behind` a line's first word."""
    words = f"{_WORD}(?:{'|'.join(map(_compilable, behind))})" if behind else _NOTHING
    found = re.compile("|".join([words, *map(_compilable, patterns)]))
    rows = [*(_patterns("behind")[p] for p in behind), *(_patterns(field)[p] for p in patterns)]
    return Expression(found.match, ((), *map(tuple, rows)))


def _compilable(pattern: str) -> str:
    """`pattern` with its group, and with an indentation that is taken whole, lest blank lines take long."""
    return _INDENT.sub(lambda indent: f"{indent[0]}+", pattern) + "()"


@cache
def _patterns(field: str) -> dict[str, list[Format]]:
    """The patterns of one field of all rows, in order, with their rows."""
    out: dict[str, list[Format]] = defaultdict(list)
    for row in FORMATS:
        for line in getattr(row, field).split("\n"):
            if pattern := line.strip():
                out[pattern].append(row)
    return out


def _may_stand(pattern: str, *, indented: bool) -> bool:
    return pattern.startswith(r"\s*") or pattern.startswith(r"\s+") == indented


@cache
def _firsts() -> dict[str, frozenset[str]]:
    """For each pattern the beginnings of what it fits; none for any."""
    return {pattern: _firsts_of(pattern) for pattern in _patterns("lines")}


@cache
def _known() -> frozenset[str]:
    """The beginnings that tell anything."""
    return frozenset().union(*_firsts().values())


def _firsts_of(pattern: str) -> frozenset[str]:
    out: set[str] = set()
    for start in _starts(_INDENT.sub("", pattern)):
        number = _NUMBER.match(start)
        first = _FIRST.match(start, number.end() if number else 0)
        if first is None and number is None:
            return frozenset()
        admitted = _admitted(first[1]) if first else set()
        if number:
            out |= {f"0{character}" for character in admitted} or {_ANY_NUMBER}
        else:
            out |= {_ANY_NUMBER if character in _DIGITS else character for character in admitted}
    return frozenset(out if len(out) <= FIRST_MOST else ())


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
