"""Age and size: what may go, what must stay, and how much room there is.

In view counts everything that a live session saw. A session is live when it or a descendant was used within
``live_days``: a child works on what its parent was shown. What is in view is never removed.
"""

from __future__ import annotations

import threading
from sqlite3 import Connection
from typing import TYPE_CHECKING

from turngate.errors import StoreFullError
from turngate.store import ledger, records
from turngate.store.base import GcReport, Saving, StoreStats
from turngate.store.connections import Connections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.settings import StoreSettings
    from turngate.store.disk import Disk
    from turngate.store.index import Index

DAY_SECONDS = 86_400
#: Collecting for space goes on until so much of the limit is used, so that it is not needed again at once.
LOW_WATER_SHARE = 0.9
#: A full store is looked over again after so long; until then a put only compares sizes.
_RETRY_SECONDS = 60.0
#: Contents removed by one transaction.
_BATCH = 32
#: From this share of contents removed on, merging the index anew is worth its time.
_MERGE_SHARE = 0.25

_LIVE = """WITH RECURSIVE live(id) AS (
    SELECT id FROM session WHERE used_at >= :live_since
    UNION SELECT parent FROM session JOIN live USING (id) WHERE parent IS NOT NULL)"""
_OUT_OF_VIEW = "key NOT IN (SELECT content FROM sighting JOIN live ON session = live.id)"


class Limits:
    """Enforces the limits of one store."""

    def __init__(
        self, where: str, settings: StoreSettings, connections: Connections, index: Index, disk: Disk
    ) -> None:
        self._where = where
        self._disk = disk
        self._settings = settings
        self._connections = connections
        self._index = index
        self._lock = threading.Lock()
        #: Until when collecting is known to be no use.
        self._full_until = 0.0

    def make_room(self, size_bytes: int, now: float) -> None:
        """See to it that `size_bytes` more fit.

        Raises:
            StoreFullError: they don't, whatever is removed.
        """
        # In the middle of a transaction nothing can be removed; the next one will find the store too full.
        if self._fits(size_bytes) or self._connections.begun:
            return
        with self._lock:
            if now >= self._full_until and not self._fits(size_bytes):
                self._remove(now, size_bytes)
                self._full_until = 0.0 if self._fits(size_bytes) else now + _RETRY_SECONDS
        if not self._fits(size_bytes):
            raise StoreFullError(
                f"the store at {self._where} is at its limit of {self._settings.max_bytes:,} bytes, and all "
                "that it holds is in view of sessions used lately; raise store.max_bytes or lower "
                "store.live_days"
            )

    def collect(self, now: float) -> GcReport:
        """Enforce age, then size."""
        before = self._disk.bytes()
        with self._lock:
            removed, removed_bytes = self._remove(now, 0)
            self._full_until = 0.0
        after = self._disk.bytes()
        return GcReport(
            removed, removed_bytes, max(0, before - after), after, after > self._settings.max_bytes
        )

    def _fits(self, size_bytes: int) -> bool:
        return self._disk.bytes() + size_bytes <= self._settings.max_bytes

    def _remove(self, now: float, size_bytes: int) -> tuple[int, int]:
        """Remove what is too old, then what is in the way of `size_bytes` more; returns count and bytes."""
        self._disk.shrink()
        live_since = _live_since(self._settings, now)
        oldest = now - self._settings.max_age_days * DAY_SECONDS
        with self._connections.reader() as conn:
            (total,) = conn.execute("SELECT count(*) FROM content").fetchone()
            aged = _victims(conn, live_since, older_than=oldest)
        sizes = [self._drop(batch, live_since) for batch in _batches(aged)]
        self._forget_sent(live_since, oldest)
        if not self._fits(size_bytes):
            self._forget_sent(live_since, now)
            with self._connections.reader() as conn:
                rest = _victims(conn, live_since, older_than=None)
            target = int(self._settings.max_bytes * LOW_WATER_SHARE) - size_bytes
            for batch in _batches(rest):
                sizes.append(self._drop(batch, live_since))
                if self._disk.used_bytes() <= target:
                    break
        removed = sum(count for count, _ in sizes)
        self._connections.write(lambda conn: _forget_sessions(conn, min(live_since, oldest)), alone=True)
        if removed and removed >= _MERGE_SHARE * total:
            self._connections.write(self._index.lexicon.tidy)
        self._disk.shrink()
        return removed, sum(size for _, size in sizes)

    def _drop(self, keys: list[int], live_since: float) -> tuple[int, int]:
        return self._connections.write(
            lambda conn: self._drop_in(conn, _still_out_of_view(conn, keys, live_since)), alone=True
        )

    def _drop_in(self, conn: Connection, keys: list[int]) -> tuple[int, int]:
        forgotten = [self._index.forget(conn, key) for key in keys]
        size = 0
        for key in keys:
            size += conn.execute("SELECT size FROM content WHERE key = ?", (key,)).fetchone()[0]
            conn.execute("DELETE FROM sighting WHERE content = ?", (key,))
            conn.execute("DELETE FROM content WHERE key = ?", (key,))
        if not all(forgotten):
            self._index.reset(conn)
        return len(keys), size

    def _forget_sent(self, live_since: float, older_than: float) -> None:
        self._connections.write(
            lambda conn: ledger.forget(conn, live=_LIVE, live_since=live_since, older_than=older_than),
            alone=True,
        )


def in_view_bytes(conn: Connection, settings: StoreSettings, now: float) -> int:
    """Compressed bytes that must stay."""
    query = f"{_LIVE} SELECT coalesce(sum(length(data)), 0) FROM content WHERE NOT ({_OUT_OF_VIEW})"
    (total,) = conn.execute(query, {"live_since": _live_since(settings, now)}).fetchone()
    return int(total)


def statistics(conn: Connection, disk: Disk, session: str | None) -> StoreStats:
    """Counts and sizes, of everything or of what one session may see."""
    scope, seen = "", "1 = 1"
    arguments: tuple[str | bytes, ...] = ()
    if session is not None:
        scope = records.SCOPE
        seen = "key IN (SELECT content FROM sighting JOIN scope ON session = scope.id)"
        arguments = (records.name(session),)
    of_session = "session IN (SELECT id FROM scope)" if session is not None else "1 = 1"
    contents, size, stored, pending = conn.execute(
        f"""{scope} SELECT count(*), coalesce(sum(size), 0), coalesce(sum(length(data)), 0),
        coalesce(sum(CASE WHEN indexed = 0 THEN 1 ELSE 0 END), 0) FROM content WHERE {seen}""",
        arguments,
    ).fetchone()
    (sightings,) = conn.execute(
        f"{scope} SELECT count(*) FROM sighting WHERE {of_session}",
        arguments,
    ).fetchone()
    of_id = "id IN (SELECT id FROM scope)" if session is not None else "1 = 1"
    (sessions,) = conn.execute(
        f"{scope} SELECT count(*) FROM session WHERE {of_id}",
        arguments,
    ).fetchone()
    of_own, own = ("session = ?", arguments) if session is not None else ("1 = 1", ())
    saving = conn.execute(
        f"""SELECT coalesce(sum(results), 0), coalesce(sum(came_in), 0), coalesce(sum(shown), 0),
        coalesce(sum(had_back), 0) FROM saving WHERE {of_own}""",
        own,
    ).fetchone()
    return StoreStats(contents, size, stored, sightings, sessions, pending, disk.bytes(), Saving(*saving))


def _live_since(settings: StoreSettings, now: float) -> float:
    return now - settings.live_days * DAY_SECONDS


def _still_out_of_view(conn: Connection, keys: list[int], live_since: float) -> list[int]:
    """Those of `keys` that no session came to see since they were chosen."""
    marks = ",".join(map(str, keys))
    query = f"{_LIVE} SELECT key FROM content WHERE key IN ({marks}) AND {_OUT_OF_VIEW}"
    return [key for (key,) in conn.execute(query, {"live_since": live_since})]


def _victims(conn: Connection, live_since: float, *, older_than: float | None) -> list[int]:
    """Contents that may go, longest unused first."""
    too_old = "" if older_than is None else "AND used_at < :older_than"
    rows = conn.execute(
        f"{_LIVE} SELECT key FROM content WHERE {_OUT_OF_VIEW} {too_old} ORDER BY used_at, key",
        {"live_since": live_since, "older_than": older_than},
    )
    return [key for (key,) in rows]


def _batches(keys: list[int]) -> Iterator[list[int]]:
    for at in range(0, len(keys), _BATCH):
        yield keys[at : at + _BATCH]


def _forget_sessions(conn: Connection, unused_since: float) -> None:
    """Sessions unused for so long that have nothing left to see and are nobody's parent."""
    conn.execute(
        f"""{_LIVE}, seeing(id) AS (
            SELECT session FROM sighting UNION SELECT id FROM live
            UNION SELECT session.id FROM session JOIN seeing ON parent = seeing.id)
        DELETE FROM session WHERE id NOT IN (SELECT id FROM seeing)
        AND id NOT IN (SELECT parent FROM session WHERE parent IS NOT NULL)""",
        {"live_since": unused_since},
    )
