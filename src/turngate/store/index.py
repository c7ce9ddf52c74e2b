"""The search index: which words each content has. Filled behind the writes, never before them.

A content without an entry is found all the same, only slower: it counts as a candidate, and its text is read.
So an index that cannot be written costs time, not answers.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import zlib
from dataclasses import dataclass
from functools import partial
from sqlite3 import Connection
from typing import TYPE_CHECKING

from turngate.errors import StoreCorruptError, StoreError
from turngate.store import records
from turngate.store.connections import Connections
from turngate.store.lines import line_count, split_lines
from turngate.store.words import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.store.base import Original, Redactor
    from turngate.store.disk import Disk
    from turngate.store.lexicon import Lexicon
    from turngate.store.question import Question

_log = logging.getLogger("turngate.store")

#: Contents brought in by one transaction: bounds how long a search holds up writers.
_BATCH = 16
_PENDING = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A content that may answer."""

    key: int
    """Its row."""
    size: int
    """Bytes."""
    named: float
    """Share of the weight of the question's words that the call which brought it about has."""


@dataclass(frozen=True, slots=True)
class _Entry:
    key: int
    words: str
    #: What `content.indexed` is once this is in: never 0, negative when words are missing.
    mark: int


class Index:
    """The index of one store."""

    def __init__(
        self, lexicon: Lexicon, disk: Disk, connections: Connections, redactor: Redactor, *, max_bytes: int
    ) -> None:
        self.lexicon = lexicon
        self._disk = disk
        self._connections = connections
        self._redactor = redactor
        self._max_bytes = max_bytes

    def readable(self, text: str) -> str:
        """`text` as the index and a search see it: without secrets, line for line."""
        clean = self._redactor(text)
        if clean is text or line_count(clean) == line_count(text):
            return clean
        # A redactor that joins or adds lines is applied line by line.
        return "\n".join(self._redactor(line).replace("\n", " ") for line in split_lines(text))

    def drain(self, scope: str | None) -> int:
        """Bring in what is pending, or what of it a session may see; returns how many contents that were."""
        count, after = 0, 0
        while self._disk.bytes() < self._max_bytes:
            with self._connections.reader() as conn:
                keys = _pending_keys(conn, scope, after)
                entries = list(self._entries(conn, keys))
            if not keys:
                break
            count += self._connections.write(partial(self._insert, entries=entries))
            after = keys[-1]
        return count

    def try_drain(self, scope: str | None) -> None:
        """`drain`, or as much of it as the disk allows."""
        try:
            self.drain(scope)
        except (sqlite3.Error, StoreError, OSError) as error:
            _log.warning("the search index stays behind: %s", error)

    def forget(self, conn: Connection, key: int) -> bool:
        """Take a content out; False when the index has to be made anew, since its entry can't be named."""
        (mark,) = conn.execute("SELECT indexed FROM content WHERE key = ?", (key,)).fetchone()
        if mark == _PENDING:
            return True
        entry = next(self._entries(conn, [key]), None)
        if entry is None or entry.mark != mark:
            return False
        self.lexicon.remove(conn, key, entry.words)
        return True

    def reset(self, conn: Connection) -> None:
        """Empty the index; everything is pending again."""
        self.lexicon.clear(conn)
        conn.execute("UPDATE content SET indexed = 0")

    def _insert(self, conn: Connection, *, entries: list[_Entry]) -> int:
        """Bring entries in, unless another process was faster."""
        count = 0
        for entry in entries:
            claimed = conn.execute(
                "UPDATE content SET indexed = ? WHERE key = ? AND indexed = 0", (entry.mark, entry.key)
            )
            if claimed.rowcount:
                self.lexicon.add(conn, entry.key, entry.words)
                count += 1
        return count

    def _entries(self, conn: Connection, keys: list[int]) -> Iterator[_Entry]:
        for key in keys:
            try:
                original = records.load_key(conn, key)
            except StoreCorruptError as error:
                _log.warning("not indexed: %s", error)
                continue
            if original is not None:
                yield self._entry(key, original)

    def _entry(self, key: int, original: Original) -> _Entry:
        words, complete = vocabulary(self.readable(original.text))
        # Lone surrogates never get here: they are no word characters.
        joined = " ".join(words)
        mark = 1 + zlib.crc32(joined.encode())
        return _Entry(key, joined, mark if complete else -mark)


def candidates(
    conn: Connection, lexicon: Lexicon, question: Question, scope: str | None, limit: int
) -> list[Candidate]:
    """Contents in scope with words of the question, by the weight of these; of equals the newest first."""
    rows = {key: (mark, size, used) for key, mark, size, used in conn.execute(*_in_scope(scope))}
    calls = _calls(conn, scope)
    scores, named, total = dict.fromkeys(rows, 0.0), dict.fromkeys(rows, 0.0), 1e-9
    unsure = [key for key, (mark, _, _) in rows.items() if mark <= _PENDING]
    for term in question.terms:
        having = rows.keys() & lexicon.having(conn, term.word, whole=term.whole)
        called = {key for key, call in calls.items() if term.word in call}
        weight = term.boost * math.log(1 + (len(rows) + 1) / (len(having | called) + 0.5))
        total += weight
        for key in called:
            named[key] += weight
        for key in having | called:
            scores[key] += weight
        for key in unsure:
            scores[key] += 0.0 if key in having else weight / 2
    ranked = sorted(rows, key=lambda key: (scores[key] + named[key], rows[key][2], key), reverse=True)
    if question.terms and not (question.head or question.tail or question.paths):
        ranked = [key for key in ranked if scores[key] > 0]
    return [Candidate(key, rows[key][1], named[key] / total) for key in ranked[:limit]]


def _calls(conn: Connection, scope: str | None) -> dict[int, str]:
    """What brought each content in scope about, lowercase."""
    query = "SELECT content, call FROM sighting WHERE call <> ''"
    if scope is None:
        rows = conn.execute(query)
    else:
        rows = conn.execute(
            f"{records.SCOPE} {query} AND session IN (SELECT id FROM scope)", (records.name(scope),)
        )
    calls: dict[int, str] = {}
    for key, call in rows:
        calls[key] = f"{calls.get(key, '')} {records.unname(call).lower()}"
    return calls


def _in_scope(scope: str | None) -> tuple[str, tuple[str | bytes, ...]]:
    query = "SELECT key, indexed, size, used_at FROM content"
    if scope is None:
        return query, ()
    seen = "key IN (SELECT content FROM sighting JOIN scope ON session = scope.id)"
    return f"{records.SCOPE} {query} WHERE {seen}", (records.name(scope),)


def _pending_keys(conn: Connection, scope: str | None, after: int) -> list[int]:
    where = "indexed = 0 AND key > ?"
    if scope is None:
        rows = conn.execute(f"SELECT key FROM content WHERE {where} ORDER BY key LIMIT {_BATCH}", (after,))
    else:
        rows = conn.execute(
            f"""{records.SCOPE} SELECT key FROM content WHERE {where}
            AND key IN (SELECT content FROM sighting JOIN scope ON session = scope.id)
            ORDER BY key LIMIT {_BATCH}""",
            (records.name(scope), after),
        )
    return [key for (key,) in rows]
