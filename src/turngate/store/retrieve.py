"""Parts of an original: whole, lines, grep, pages, JSON paths, and passages that answer a question. Pure.

Whole is byte-identical; so is every range of lines, every page and every JSON value. Lines are counted as in
`turngate.store.lines`, from 1, both ends included.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from turngate.errors import RetrieveError
from turngate.marker import find_all
from turngate.store.jsonpath import PathError, find_values
from turngate.store.lines import line_count, line_starts
from turngate.store.passages import Passage, rank, scan, weights
from turngate.store.pattern import Finder, compile_pattern
from turngate.store.question import ask

#: Hosts offload results from about 50,000 characters on; a page with its note stays well below.
PAGE_CHARS = 39_000
MAX_DEPTH = 5
#: What `expand` may grow a text to: nested markers can multiply.
MAX_EXPANDED_CHARS = 32_000_000
#: How long one grep may take before it answers with what it has.
_GREP_SECONDS = 5.0
#: Passages of a question are ranked up to so many pages.
_MAX_QUERY_PAGES = 20
_RANGE_CHARS = 24
_NO_WORD = "it has no word of the query"

Lookup = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was asked for."""

    text: str
    """It."""
    total_lines: int
    """Lines of the whole original."""
    first_line: int
    """The first line of the original in `text`, from 1; 0 where `text` is not a range of lines."""
    last_line: int
    """The last one; 0 likewise."""
    more: bool
    """Whether there is more of what was asked for: another page, or matches not looked for."""
    note: str = ""
    """What a reader must know beside the text; empty when `text` is just what was asked for."""
    page: int = 1
    """Which page this is."""
    pages: int = 1
    """How many there are; of passages, how many are known of."""
    found: bool = True
    """False where no line matches the pattern, or the text has no word of the query."""


def select(
    text: str,
    *,
    lines: tuple[int, int] | None = None,
    pattern: str | None = None,
    context: int = 2,
    page: int | None = None,
    path: str | None = None,
    query: str | None = None,
    page_chars: int = PAGE_CHARS,
) -> Retrieved:
    """The part of `text` that is asked for, and of that one page, if `page` is given.

    At most one of `lines`, `pattern`, `path` and `query`; without any, all of it. A `query` always answers by
    pages, the first one by default. A page has at most `page_chars` characters.

    Raises:
        RetrieveError: two ways at once, or one that cannot be followed.
    """
    ways = {"lines": lines, "pattern": pattern, "path": path, "query": query}
    given = [way for way, value in ways.items() if value is not None]
    if len(given) > 1:
        raise RetrieveError(f"{' and '.join(given)} cannot be combined; ask with one of them")
    if query is not None:
        return passages(text, query, page=page or 1, size=page_chars)
    if lines is not None:
        found = line_range(text, *lines)
    elif pattern is not None:
        found = grep(text, pattern, context=context)
    elif path is not None:
        found = json_path(text, path)
    else:
        found = whole(text)
    return found if page is None else _page_of(found, page, size=page_chars)


def whole(text: str) -> Retrieved:
    """All of it."""
    total = line_count(text)
    return Retrieved(text, total, min(1, total), total, more=False)


def line_range(text: str, first: int, last: int) -> Retrieved:
    """Lines `first` to `last`; where the text ends before `last`, up to its end.

    Raises:
        RetrieveError: the range is empty or starts outside of the text.
    """
    starts = line_starts(text)
    total = max(0, len(starts) - 1)
    if not 1 <= first <= total or last < first:
        raise RetrieveError(f"no lines {first} to {last}: lines run from 1 to {total}, first before last")
    end = min(last, total)
    note = "" if last <= total else f"the text ends at line {total}"
    return Retrieved(text[starts[first - 1] : starts[end]], total, first, end, more=False, note=note)


def page(text: str, number: int, *, size: int = PAGE_CHARS) -> Retrieved:
    """Page `number`, from 1. Pages end at line ends, except inside a line longer than a page.

    Raises:
        RetrieveError: there is no such page.
    """
    return _page_of(whole(text), number, size=size)


def grep(text: str, pattern: str, *, context: int = 2) -> Retrieved:
    """Lines that match a regular expression, with `context` lines around each.

    Each group of lines stands under a line that names it. Matching is per line; a line over 2,000 characters
    is looked at in overlapping pieces.

    Raises:
        RetrieveError: the pattern is malformed, or its time could grow without bound.
    """
    finder = compile_pattern(pattern)
    if context < 0:
        raise RetrieveError(f"context is {context}; it counts lines, from 0")
    starts = line_starts(text)
    total = max(0, len(starts) - 1)
    matching, stopped = _matching(text, starts, finder)
    groups = list(_groups(matching, context, total))
    shown = "\n".join(_named(text, starts, first, last) for first, last in groups)
    note = f"{len(matching):,} of {total:,} line{'s' * (total != 1)} match{'es' * (len(matching) == 1)}"
    if stopped:
        note += f"; the search stopped after line {stopped}, ask for a smaller part or a simpler pattern"
    return Retrieved(shown, total, *_bounds(groups), more=bool(stopped), note=note, found=bool(matching))


def json_path(text: str, path: str) -> Retrieved:
    """The values at a JSON path, one a line, as they are spelled.

    Raises:
        RetrieveError: the path or the text cannot be followed, or there is no value there.
    """
    try:
        spans = find_values(text, path)
    except PathError as error:
        raise RetrieveError(str(error)) from error
    if not spans:
        raise RetrieveError(f"no value at {path}; ask for the path above it, or for words of it with a query")
    starts = line_starts(text)
    lines = (bisect_right(starts, spans[0][0]), bisect_right(starts, spans[-1][1] - 1))
    note = "" if len(spans) == 1 else f"{len(spans)} values"
    shown = "\n".join(text[start:end] for start, end in spans)
    return Retrieved(shown, line_count(text), *lines, more=False, note=note)


def passages(text: str, query: str, *, page: int = 1, size: int = PAGE_CHARS) -> Retrieved:
    """Passages that answer `query`, best first, each under a line that names its lines.

    A text of one page is given whole: nothing can be missed in it.
    """
    question = ask(query)
    found = scan(text, question)
    answers = found.answers or question.head or question.tail
    if len(text) <= size:
        note = f"all of it, which fits on a page{'' if answers else f'; {_NO_WORD}'}"
        return replace(_page_of(whole(text), page, size=size), note=note, found=answers)
    starts = line_starts(text)
    parts: list[str] = []
    for batch in _page_loads(rank(found, question, weights([found], question)), size):
        parts.append("\n".join(_passage(text, starts, passage) for passage in batch))
        if len(parts) > page:
            break
    if not 1 <= page <= len(parts) or page > _MAX_QUERY_PAGES:
        raise RetrieveError(f"no page {page} for this query; ask for page 1, or by lines or pattern")
    more = len(parts) > page and page < _MAX_QUERY_PAGES
    note = "passages by relevance, best first" if answers else _NO_WORD
    note += "; the next page goes on" if more else ""
    total = max(0, len(starts) - 1)
    return Retrieved(parts[page - 1], total, 0, 0, more, note, page, len(parts), answers)


def expand(text: str, lookup: Lookup, *, depth: int = MAX_DEPTH) -> str:
    """`text` with every marker that `lookup` knows replaced by its content, and theirs, `depth` levels down.

    A marker within its own content, one too deep, and one that `lookup` does not know stay as they are.
    Nothing is written back.
    """
    return _expanded(text, lookup, depth, frozenset(), [MAX_EXPANDED_CHARS - len(text)])


def _expanded(text: str, lookup: Lookup, depth: int, above: frozenset[str], room: list[int]) -> str:
    parts, at = [], 0
    for marker in find_all(text) if depth > 0 else ():
        inner = None if marker.hash in above else lookup(marker.hash)
        if inner is None or len(inner) > room[0]:
            continue
        room[0] -= len(inner)
        start, end = marker.span
        parts += [text[at:start], _expanded(inner, lookup, depth - 1, above | {marker.hash}, room)]
        at = end
    return "".join((*parts, text[at:])) if parts else text


def _page_of(found: Retrieved, number: int, *, size: int = PAGE_CHARS) -> Retrieved:
    cuts = _page_cuts(found.text, size)
    pages = max(1, len(cuts) - 1)
    if not 1 <= number <= pages:
        raise RetrieveError(f"no page {number}: pages run from 1 to {pages}")
    if pages == 1:
        return found
    start, end = cuts[number - 1], cuts[number]
    first, last = found.first_line, found.last_line
    # A verbatim range numbers its pages' lines; a list of groups names them in the text.
    if last and last - first + 1 == line_count(found.text):
        first += found.text.count("\n", 0, start)
        last = first + line_count(found.text[start:end]) - 1
    return replace(
        found, text=found.text[start:end], first_line=first, last_line=last,
        more=number < pages or found.more, page=number, pages=pages,
    )  # fmt: skip


def _page_cuts(text: str, size: int) -> list[int]:
    cuts = [0]
    while cuts[-1] < len(text):
        end = cuts[-1] + size
        at_line = text.rfind("\n", cuts[-1], end) + 1 if end < len(text) else 0
        cuts.append(min(len(text), at_line if at_line > cuts[-1] else end))
    return cuts


def _page_loads(ranked: Iterator[Passage], size: int) -> Iterator[list[Passage]]:
    """Passages by pages of about `size` characters, names of lines included."""
    load: list[Passage] = []
    room = size
    for passage in ranked:
        start = passage.start
        while start < passage.end:
            if room <= 2 * _RANGE_CHARS:
                yield load
                load, room = [], size
            end = min(passage.end, start + room - _RANGE_CHARS)
            load.append(replace(passage, start=start, end=end))
            room -= end - start + _RANGE_CHARS
            start = end
    if load:
        yield load


def _passage(text: str, starts: list[int], passage: Passage) -> str:
    first = bisect_right(starts, passage.start)
    last = bisect_right(starts, passage.end - 1)
    return f"{_range_line(first, last)}\n{text[passage.start : passage.end].rstrip(chr(10))}"


def _range_line(first: int, last: int) -> str:
    return f"[line {first}]" if first == last else f"[lines {first}-{last}]"


def _named(text: str, starts: list[int], first: int, last: int) -> str:
    return f"{_range_line(first, last)}\n{text[starts[first - 1] : starts[last]].removesuffix(chr(10))}"


def _matching(text: str, starts: list[int], finder: Finder) -> tuple[list[int], int]:
    """Numbers of matching lines, and the line after which time was up; 0 when it was not."""
    deadline = time.monotonic() + _GREP_SECONDS
    found = []
    for number, (start, end) in enumerate(pairwise(starts), 1):
        if finder(text[start:end].removesuffix("\n")):
            found.append(number)
        if time.monotonic() > deadline and number < len(starts) - 1:
            return found, number
    return found, 0


def _groups(matching: list[int], context: int, total: int) -> Iterator[tuple[int, int]]:
    """Ranges of lines around matches; ranges that touch are one."""
    first = last = 0
    for number in matching:
        if last and number - context <= last + 1:
            last = min(total, number + context)
            continue
        if last:
            yield first, last
        first, last = max(1, number - context), min(total, number + context)
    if last:
        yield first, last


def _bounds(groups: list[tuple[int, int]]) -> tuple[int, int]:
    return (groups[0][0], groups[-1][1]) if groups else (0, 0)
