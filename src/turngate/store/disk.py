"""How much room a database takes, and how it gives some back."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Final, Protocol

from turngate.store.connections import PAGE_BYTES, Connections, disk_bytes

if TYPE_CHECKING:
    from pathlib import Path
    from sqlite3 import Connection

#: Pages given back by one transaction.
_BATCH_PAGES: Final = 2_000


class Disk(Protocol):
    """The room that a store takes."""

    def bytes(self) -> int:
        """All that it takes now; what the limit is compared with."""
        ...

    def used_bytes(self) -> int:
        """What it would take if it gave back all that it could."""
        ...

    def shrink(self) -> None:
        """Give back what can be given back."""
        ...


class SqliteDisk:
    """A SQLite file with its log."""

    def __init__(self, path: Path, connections: Connections) -> None:
        self._path = path
        self._connections = connections

    def bytes(self) -> int:
        """Size of the files."""
        return disk_bytes(self._path)

    def used_bytes(self) -> int:
        """Pages in use."""
        return self._connections.maintain(_used_bytes)

    def shrink(self) -> None:
        """Give free pages and the log back to the file system; readers that are in the way are no fault."""
        with contextlib.suppress(sqlite3.OperationalError):
            while self._connections.maintain(_give_back):
                pass
            self._connections.maintain(
                lambda conn: conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            )


def _used_bytes(conn: Connection) -> int:
    (pages,) = conn.execute("PRAGMA page_count").fetchone()
    return (int(pages) - _free_pages(conn)) * PAGE_BYTES


def _give_back(conn: Connection) -> bool:
    """Return some free pages to the file system; whether trying again would return more."""
    before = _free_pages(conn)
    conn.execute(f"PRAGMA incremental_vacuum({_BATCH_PAGES})").fetchall()
    return 0 < _free_pages(conn) < before


def _free_pages(conn: Connection) -> int:
    return int(conn.execute("PRAGMA freelist_count").fetchone()[0])
