"""Match a line with those patterns of the table that it may fit.

A line is compared with the few patterns that its beginning admits, one after the other, and then with all
others at once. Each is compiled when a line first comes to it, so that a new process pays for few. A
beginning is a line's first characters behind blanks; where the first is a digit, it is "0" and what follows
the number: "0-" of a date, "0:" of a time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from turngate.compress.kinds.formats import FORMATS, Format

#: The first word of a line, which may be a path with a drive; numbers and what stands in brackets are none.
_WORD = r"\s*+(?![\d\[(])(?:[A-Za-z]:[\\/])?[^\s:(=]++"
#: A pattern's indentation, and the one thing that has to stand first: a class, an escape or a character.
_INDENT = re.compile(r"^\\s[*+]")
_FIRST = re.compile(r"(\[(?:\\.|[^\]\\])*\]|\\.|[^\\\[().^$|])(?![*?]|\{0)")
#: Characters that stand for themselves, and once.
_LITERAL = re.compile(r"(?:[A-Za-z :<>=/'\"-](?![*?+{]))*")
_BEGINNING_CHARS = 3
#: A number that a pattern begins with.
_NUMBER = re.compile(r"(?:\\d(?:\{[\d,]+\}|\+\+?)?)+")
_DIGITS = "0123456789"
#: The beginning of any number.
_ANY_NUMBER = "0*"
_PART = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?:|.")
#: A class of more characters says little.
FIRST_MOST = 26
_CANDIDATES = ["\t", *map(chr, range(32, 127))]

Formats = tuple[Format, ...]


class _Pattern:
    """A pattern and the formats that have it; it is compiled when it is first matched."""

    __slots__ = ("formats", "match", "text")

    def __init__(self, text: str, formats: Formats) -> None:
        self.text = text
        self.formats = formats
        self.match: Callable[[str], re.Match[str] | None] = self._compile

    def _compile(self, line: str) -> re.Match[str] | None:
        # An indentation is taken whole, lest blank lines take long.
        self.match = re.compile(_whole_indent(self.text)).match
        return self.match(line)


def formats_of(line: str) -> Formats:
    """The formats that have such a line; `line` isn't blank."""
    return _beginning_so(line, "lines") or _beginning_anyhow(line)


def opened_by(line: str) -> Format | None:
    """The format of which `line`, which isn't blank, is the first."""
    found = _beginning_so(line, "opens")
    return found[0] if found else None


def _beginning_so(line: str, field: str) -> Formats:
    """The formats of the first pattern that fits, of those that can because of the line's beginning."""
    bare = line.lstrip()
    beginning = bare[:_BEGINNING_CHARS]
    if beginning[0] in _DIGITS:
        beginning = "0" + bare.lstrip(_DIGITS)[:1]
    for pattern in _admitting(beginning, len(bare) < len(line), field):
        if pattern.match(line):
            return pattern.formats
    return ()


def _beginning_anyhow(line: str) -> Formats:
    """The formats of the first pattern that fits, of those that don't depend on the line's beginning."""
    match, formats = _merged()
    found = match(line)
    return formats[found.lastindex or 0] if found else ()


@lru_cache(maxsize=4096)
def _admitting(beginning: str, indented: bool, field: str) -> tuple[_Pattern, ...]:
    """The patterns that a line can fit if it begins so."""
    own = {beginning, _ANY_NUMBER} if beginning[0] == "0" else {beginning[0]}
    return tuple(
        pattern
        for pattern in _patterns(field)
        if not own.isdisjoint(_firsts(pattern.text)) and _may_stand(pattern.text, beginning, indented)
    )


@cache
def _merged() -> tuple[Callable[[str], re.Match[str] | None], tuple[Formats, ...]]:
    """Those patterns as one expression, of which the last group says which one fits, and the groups' formats.

    First those that stand behind a line's first word, then those that any line may fit. The groups stand
    behind their patterns and are empty, so that the engine sees what a pattern begins with, and skips it at
    the price of a comparison.
    """
    behind = _patterns("behind")
    rest = [pattern for pattern in _patterns("lines") if not _firsts(pattern.text)]
    words = f"{_WORD}(?:{'|'.join(f'{pattern.text}()' for pattern in behind)})"
    found = re.compile("|".join([words, *(f"{_whole_indent(pattern.text)}()" for pattern in rest)]))
    return found.match, ((), *(pattern.formats for pattern in (*behind, *rest)))


def _whole_indent(pattern: str) -> str:
    return _INDENT.sub(lambda indent: f"{indent[0]}+", pattern)


@cache
def _patterns(field: str) -> tuple[_Pattern, ...]:
    """The patterns of one field of all rows, in order, each once."""
    out: dict[str, list[Format]] = defaultdict(list)
    for row in FORMATS:
        for line in getattr(row, field).split("\n"):
            if pattern := line.strip():
                out[pattern].append(row)
    return tuple(_Pattern(text, tuple(rows)) for text, rows in out.items())


def _may_stand(pattern: str, beginning: str, indented: bool) -> bool:
    """Whether a line that begins so can fit a pattern that admits its first character."""
    if not (pattern.startswith(r"\s*") or pattern.startswith(r"\s+") == indented):
        return False
    words = _words_of(pattern)
    return not words or any(word.startswith(beginning) or beginning.startswith(word) for word in words)


@cache
def _words_of(pattern: str) -> tuple[str, ...]:
    """What any line that `pattern` fits begins with, behind its indentation; nothing where it doesn't say."""
    starts = map(_LITERAL.match, _starts(_INDENT.sub("", pattern)))
    words = [start[0] for start in starts if start]
    return tuple(words) if all(words) else ()


@cache
def _firsts(pattern: str) -> frozenset[str]:
    """The first characters of what `pattern` fits, with "0" and more for a number; none for any."""
    out: set[str] = set()
    for start in _starts(_INDENT.sub("", pattern)):
        number = _NUMBER.match(start)
        first = _FIRST.match(start, number.end() if number else 0)
        if first is None and number is None:
            return frozenset()
        admitted = _admitted(first[1]) if first else frozenset()
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


@cache
def _admitted(first: str) -> frozenset[str]:
    if len(first) == 1:
        return frozenset(first)
    found = re.compile(first)
    return frozenset(c for c in (*_CANDIDATES, *first) if found.match(c))
