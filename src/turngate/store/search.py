"""Search: the index names contents that may answer, their lines decide."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from heapq import merge
from typing import TYPE_CHECKING

from turngate.errors import StoreCorruptError
from turngate.store import records
from turngate.store.base import Hit, Original
from turngate.store.index import Candidate, Index, candidates
from turngate.store.lines import line_count, line_starts
from turngate.store.passages import Passage, Scan, rank, scan, strengths, weights
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
#: What a passage counts for by the kind of its content: a transcript of earlier messages names calls and
#: quotes results, but the results themselves are stored, too, and answer better.
_KIND_SHARES = {"transcript": 0.6}
#: Beside an answer that has all that the question names, a passage of at most this share of its score is
#: weak, and not shown. Measured: the answers to questions that quote a line score 0.99 of the best or more.
_WEAK_SHARE = 0.5
#: How fast that share falls when the best has only a part of it: at 0.8 a third of it is left. Words alone
#: tell little then, and answers were found at 0.16 of the best.
_SURE_POWER = 5
#: A line matches when it has this share of what the best line of its content has.
_MATCH_SHARE = 0.6
#: Matching lines that are named of a run of lines.
_NAMED_MATCHES = 3
#: Cost in characters of naming a hit and of naming a passage's lines.
_HIT_CHARS, _RANGE_CHARS = 120, 40
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
    #: Of its units, see `strengths`.
    strengths: dict[int, float] = field(default_factory=dict)


def search(
    connections: Connections, index: Index, query: str, *, scope: str | None, limit: int, limit_chars: int
) -> list[Hit]:
    """The hits of one search; see `Store.search`."""
    question = ask(query)
    index.try_drain(scope)
    with connections.reader() as conn:
        chosen = candidates(conn, index.lexicon, question, scope, _MAX_READ)
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
    """Hand out the characters to the best passages of all contents, down to the first weak one."""
    term_weights = weights([each.scan for each in found], question)
    for each in found:
        each.strengths = strengths(each.scan, question, term_weights)
    sure = max((share for each in found for share in each.strengths.values()), default=0.0)
    weak = _WEAK_SHARE * sure**_SURE_POWER
    streams = [
        _stream(
            number,
            rank(each.scan, question, term_weights),
            _KIND_SHARES.get(each.original.kind, 1.0),
            _CALL_SHARE * each.named**2 * sum(term_weights),
        )
        for number, each in enumerate(found)
    ]
    left, best, shown = limit_chars, 0.0, 0
    for negative, number, passage in merge(*streams, key=lambda item: item[:2]):
        each, best = found[number], best or -negative
        if -negative <= weak * best:
            break
        if not each.passages:
            if shown >= limit or -negative < _MIN_SHARE * best or left < 2 * _HIT_CHARS:
                continue
            each.score = -negative
            shown += 1
            left -= _HIT_CHARS
        if left < 2 * _RANGE_CHARS:
            break
        left -= _extend(each.passages, _fitted(passage, left))


def _stream(
    number: int, ranked: Iterator[Passage], share: float, bonus: float
) -> Iterator[tuple[float, int, Passage]]:
    """A content's passages, best first, with what orders them among those of all contents."""
    for passage in ranked:
        yield -share * passage.score - bonus, number, passage


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
    """As much of a passage as `left` characters hold, with what it was chosen for."""
    room = max(0, left - _RANGE_CHARS)
    start = passage.start
    if passage.end - start > room and passage.at - start > room // 2:
        start = passage.at
    return replace(passage, start=start, end=min(passage.end, start + room))


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
        matches=_matches(found),
    )


def _matches(found: _Found) -> tuple[tuple[int, float], ...]:
    """The lines that match among those shown, best first, each with its share."""
    shares: dict[int, float] = {}
    for passage in found.passages:
        for unit in _units(found.scan.starts, passage):
            share = found.strengths.get(unit, 0.0)
            number = bisect_right(found.lines, found.scan.starts[unit])
            shares[number] = max(shares.get(number, 0.0), share)
    least = _MATCH_SHARE * max(shares.values(), default=0.0)
    pinned = {bisect_right(found.lines, pin.at) for pin in found.scan.pinned if pin.exact}
    best_first = sorted(shares, key=lambda number: (number not in pinned, -shares[number]))
    return tuple((number, round(shares[number], 3)) for number in best_first if shares[number] >= least > 0)


def _units(starts: list[int], passage: Passage) -> range:
    """The units that a passage touches."""
    return range(bisect_right(starts, passage.start) - 1, bisect_left(starts, passage.end))


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
    """Hits as text: for each its id and where it came from, then lines under their numbers, the best first.

    Where only some lines of a run match, the line that names the run says which.
    """
    parts: list[str] = []
    for hit in hits:
        lines = f"{hit.total_lines} line{'s' * (hit.total_lines != 1)}"
        origin = ", ".join(part for part in (hit.tool, hit.kind, f"turn {hit.turn}", lines) if part)
        parts.append(f"{hit.id} ({origin})")
        parts += _ranges(hit)
    text = "\n".join(parts)
    return text if len(text) <= limit_chars else text[: limit_chars - 1] + _ELLIPSIS


def _ranges(hit: Hit) -> Iterator[str]:
    """Each run of consecutive lines under a line that names it."""
    matching = [number for number, _ in hit.matches]
    for run in line_runs(hit.lines):
        first, last = run[0][0], run[-1][0]
        where = f"line {first}" if first == last else f"lines {first}-{last}"
        best = [number for number in matching if first <= number <= last][: _NAMED_MATCHES + 1]
        if best and len(best) <= min(_NAMED_MATCHES, last - first):
            where += f"; {', '.join(map(str, sorted(best)))} match{'es' * (len(best) == 1)}"
        yield f"[{where}]"
        yield from (line for _, line in run)


def best_lines(hit: Hit, count: int) -> list[list[tuple[int, str]]]:
    """The `count` lines of a hit that tell most, by runs of consecutive lines, the best run first.

    These are its matching lines and, where there is room, those nearest to the best of them.
    """
    lines, none = hit.lines, len(hit.matches)
    place = {number: nth for nth, (number, _) in enumerate(hit.matches)}
    best = min((number for number, _ in lines), key=lambda number: place.get(number, none), default=0)

    def nearness(at: int) -> tuple[int, int, bool]:
        number = lines[at][0]
        return place.get(number, none), abs(number - best), number < best

    chosen = sorted(sorted(range(len(lines)), key=nearness)[:count])
    found = line_runs(lines[at] for at in chosen)
    return sorted(found, key=lambda run: min(place.get(number, none) for number, _ in run))


def line_runs(lines: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Numbered lines by stretches whose numbers follow one another, in the order given."""
    run: list[tuple[int, str]] = []
    for number, text in lines:
        if run and number != run[-1][0] + 1:
            yield run
            run = []
        run.append((number, text))
    if run:
        yield run
