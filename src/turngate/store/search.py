"""Search: the index names contents that may answer, their lines decide."""

from __future__ import annotations

import logging
from bisect import bisect_right
from dataclasses import dataclass, replace
from heapq import merge
from typing import TYPE_CHECKING

from turngate.errors import StoreCorruptError
from turngate.store import records
from turngate.store.base import Hit, Original
from turngate.store.index import Candidate, Index, candidates
from turngate.store.lines import line_count, line_starts
from turngate.store.passages import Passage, Scan, rank, scan, weights
from turngate.store.question import Question, ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from sqlite3 import Connection

    from turngate.store.connections import Connections

_log = logging.getLogger("turngate.store")

#: Contents whose text is read, and how much text in all: bounds time and memory of one search.
_MAX_READ = 40
_MAX_READ_BYTES = 96 * 1024**2
#: A content whose best passage is this weak beside the best of all is not shown.
_MIN_SHARE = 0.12
#: What it adds to a content's passages, as a share of the question's weight, when its call is what it names.
_CALL_SHARE = 1.5
#: Cost in characters of naming a hit and of naming a passage's lines.
_HIT_CHARS, _RANGE_CHARS = 120, 24
_ELLIPSIS = "…"


@dataclass(slots=True)
class _Found:
    """A content that was read."""

    original: Original
    scan: Scan
    #: Start of each line, and the text's end.
    lines: list[int]
    passages: list[Passage]
    #: Share of the question's weight that its call has.
    named: float
    #: Of its best passage that is shown, what its call adds included.
    score: float = 0.0


def search(
    connections: Connections, index: Index, query: str, *, scope: str | None, limit: int, limit_chars: int
) -> list[Hit]:
    """The hits of one search; see `Store.search`."""
    question = ask(query)
    index.try_drain(scope)
    with connections.reader() as conn:
        chosen = candidates(conn, question, scope, _MAX_READ)
        found = list(_read(conn, index, question, chosen))
        _choose(found, question, limit, limit_chars)
        hits = [_hit(conn, scope, each) for each in found if each.passages]
    return sorted(hits, key=lambda hit: -hit.score)


def _read(
    conn: Connection, index: Index, question: Question, chosen: Iterable[Candidate]
) -> Iterator[_Found]:
    budget = _MAX_READ_BYTES
    for candidate in chosen:
        if candidate.size > budget:
            continue
        budget -= candidate.size
        try:
            original = records.load_key(conn, candidate.key)
        except StoreCorruptError as error:
            _log.warning("not searched: %s", error)
            continue
        if original is not None:
            text = index.readable(original.text)
            yield _Found(original, scan(text, question), line_starts(text), [], candidate.named)


def _choose(found: list[_Found], question: Question, limit: int, limit_chars: int) -> None:
    """Hand out the characters to the best passages of all contents."""
    term_weights = weights([each.scan for each in found], question)
    streams = [
        _stream(
            number, rank(each.scan, question, term_weights), _CALL_SHARE * each.named**2 * sum(term_weights)
        )
        for number, each in enumerate(found)
    ]
    left, best, shown = limit_chars, 0.0, 0
    for negative, number, passage in merge(*streams, key=lambda item: item[:2]):
        each, best = found[number], best or -negative
        if not each.passages:
            if shown >= limit or -negative < _MIN_SHARE * best or left < 2 * _HIT_CHARS:
                continue
            each.score = -negative
            shown += 1
            left -= _HIT_CHARS
        if left < 2 * _RANGE_CHARS:
            break
        left -= _extend(each.passages, _fitted(passage, left))


def _stream(number: int, ranked: Iterator[Passage], bonus: float) -> Iterator[tuple[float, int, Passage]]:
    """A content's passages, best first, with what orders them among those of all contents."""
    for passage in ranked:
        yield -passage.score - bonus, number, passage


def _extend(chosen: list[Passage], more: Passage) -> int:
    """Add a passage, to one that it touches if there is one; returns the characters that costs."""
    for at, passage in enumerate(chosen):
        if more.start == passage.end:
            chosen[at] = replace(passage, end=more.end)
            return more.end - more.start
        if more.end == passage.start:
            chosen[at] = replace(passage, start=more.start)
            return more.end - more.start
    chosen.append(more)
    return more.end - more.start + _RANGE_CHARS


def _fitted(passage: Passage, left: int) -> Passage:
    return replace(passage, end=min(passage.end, passage.start + max(0, left - _RANGE_CHARS)))


def _hit(conn: Connection, scope: str | None, found: _Found) -> Hit:
    session, turn, kind, tool = records.last_sighting(conn, found.original.sha256, scope)
    return Hit(
        id=found.original.id,
        sha256=found.original.sha256,
        session=session,
        turn=turn,
        kind=kind,
        tool=tool,
        total_lines=line_count(found.scan.text),
        lines=tuple(piece for passage in found.passages for piece in _pieces(found, passage)),
        score=found.score,
    )


def _pieces(found: _Found, passage: Passage) -> Iterator[tuple[int, str]]:
    """The lines of a passage, with their numbers; where a line is cut, an ellipsis says so."""
    text, starts = found.scan.text, found.lines
    number = bisect_right(starts, passage.start)
    while number < len(starts) and starts[number - 1] < passage.end:
        start, end = starts[number - 1], starts[number]
        body_end = end - 1 if text[end - 1] == "\n" else end
        left, right = max(start, passage.start), min(body_end, passage.end)
        before, after = _ELLIPSIS * (left > start), _ELLIPSIS * (right < body_end)
        yield number, f"{before}{text[left:right]}{after}"
        number += 1


def render_hits(hits: Iterable[Hit], limit_chars: int = 8_000) -> str:
    """Hits as text: for each its id and where it came from, then lines under their numbers."""
    parts: list[str] = []
    for hit in hits:
        origin = ", ".join(
            part for part in (hit.tool, hit.kind, f"turn {hit.turn}", f"{hit.total_lines} lines") if part
        )
        parts.append(f"{hit.id} ({origin})")
        parts += _ranges(hit.lines)
    text = "\n".join(parts)
    return text if len(text) <= limit_chars else text[: limit_chars - 1] + _ELLIPSIS


def _ranges(lines: tuple[tuple[int, str], ...]) -> Iterator[str]:
    """Each run of consecutive lines under a line that names it."""
    run: list[tuple[int, str]] = []
    for number, text in (*lines, (-1, "")):
        if run and number != run[-1][0] + 1:
            first, last = run[0][0], run[-1][0]
            yield f"[line {first}]" if first == last else f"[lines {first}-{last}]"
            yield from (line for _, line in run)
            run = []
        run.append((number, text))
