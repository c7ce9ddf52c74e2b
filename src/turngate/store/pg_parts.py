"""What PostgreSQL does in its own way: full text, and how much room is taken."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from turngate.store.pg_connections import PgConnections

#: For so long a sum of sizes is taken as it was.
_SIZE_SECONDS: Final = 10.0
#: What a row of any table takes beside its values, rounded up.
_ROW_BYTES: Final = 200
_SIZE: Final = f"""SELECT
    (SELECT coalesce(sum(octet_length(data) + {_ROW_BYTES}), 0) FROM content)
    + (SELECT coalesce(sum(octet_length(data) + {_ROW_BYTES}), 0) FROM ledger_value)
    + (SELECT pg_total_relation_size('words'))"""


class TextSearch:
    """A `tsvector` of words that are cut and folded already, with a GIN index."""

    def having(self, conn: Any, word: str, *, whole: bool) -> set[int]:
        """Rows with the word."""
        quoted = "'" + word.replace("\\", "\\\\").replace("'", "''") + "'" + ("" if whole else ":*")
        rows = conn.execute("SELECT content FROM words WHERE word @@ CAST(? AS tsquery)", (quoted,))
        return {key for (key,) in rows}

    def add(self, conn: Any, key: int, words: str) -> None:
        """Bring in a row. One with more words than a `tsvector` holds is read by each search instead."""
        try:
            with conn.raw.transaction():
                conn.execute(
                    """INSERT INTO words (content, word) VALUES (?, array_to_tsvector(?))
                    ON CONFLICT (content) DO UPDATE SET word = excluded.word""",
                    (key, words.split(" ") if words else []),
                )
        except psycopg.errors.ProgramLimitExceeded:
            conn.execute("UPDATE content SET indexed = -abs(indexed) WHERE key = ?", (key,))

    def remove(self, conn: Any, key: int, words: str) -> None:  # noqa: ARG002 - SQLite needs them
        """Take a row out."""
        conn.execute("DELETE FROM words WHERE content = ?", (key,))

    def clear(self, conn: Any) -> None:
        """Take all out."""
        conn.execute("DELETE FROM words")

    def tidy(self, conn: Any) -> None:
        """PostgreSQL's own vacuum does it."""


class PgDisk:
    """Bytes of what is stored; what PostgreSQL keeps free for later does not count."""

    def __init__(self, connections: PgConnections) -> None:
        self._connections = connections
        self._lock = threading.Lock()
        self._known: tuple[float, int] | None = None

    def bytes(self) -> int:
        """All that is stored, as of the last seconds."""
        with self._lock:
            known = self._known
        if known is None or time.monotonic() - known[0] > _SIZE_SECONDS:
            return self.used_bytes()
        return known[1]

    def used_bytes(self) -> int:
        """The same, as of now."""
        with self._connections.reader() as conn:
            (size,) = conn.execute(_SIZE).fetchone()
        with self._lock:
            self._known = time.monotonic(), int(size)
        return int(size)

    def shrink(self) -> None:
        """PostgreSQL's own vacuum does it; only the size is looked up again."""
        with self._lock:
            self._known = None
