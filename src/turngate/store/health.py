"""What is wrong with a store, and what to do about it. Only reads."""

from __future__ import annotations

import sqlite3
from sqlite3 import Connection
from typing import TYPE_CHECKING

from turngate.errors import StoreCorruptError, StoreError
from turngate.store import records
from turngate.store.base import Problem
from turngate.store.connections import Connections
from turngate.store.guard import store_errors
from turngate.store.limits import in_view_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from turngate.settings import StoreSettings
    from turngate.store.disk import Disk

_OTHERS = 0o077
#: Pending contents up to this many are the normal state between two searches.
_MANY_PENDING = 1_000


def check(
    where: str, settings: StoreSettings, connections: Connections, disk: Disk, now: float
) -> list[Problem]:
    """All that is wrong; empty for a store that does not exist yet."""
    problems: list[Problem] = []
    try:
        with store_errors(where), connections.reader() as conn:
            problems += [*connections.damage(conn), *_contents(conn)]
            problems += _limits(conn, disk, settings, now)
            problems += _pending(conn)
    except StoreError as error:
        problems.append(
            Problem(str(error), "see the message; until then results pass unshortened", severe=True)
        )
    return problems


def permissions(path: Path) -> Iterator[Problem]:
    """Whether others can read the file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if path.is_file() and mode & _OTHERS:
        yield Problem(f"{path} can be read by other users", f"run: chmod 600 {path}", severe=False)


def _contents(conn: Connection) -> Iterator[Problem]:
    for (key,) in conn.execute("SELECT key FROM content ORDER BY key"):
        try:
            records.load_key(conn, key)
        except StoreCorruptError as error:
            yield Problem(str(error), "run the command again whose output it was", severe=True)
        except sqlite3.DatabaseError as error:
            yield Problem(f"content {key} cannot be read: {error}", "see the damage above", severe=True)


def _limits(conn: Connection, disk: Disk, settings: StoreSettings, now: float) -> Iterator[Problem]:
    in_view, used = in_view_bytes(conn, settings, now), disk.bytes()
    if in_view > settings.max_bytes:
        yield Problem(
            f"what live sessions have in view takes {in_view:,} bytes, more than the limit of "
            f"{settings.max_bytes:,}: new results pass unshortened",
            "raise store.max_bytes or lower store.live_days",
            severe=True,
        )
    elif used > settings.max_bytes:
        yield Problem(
            f"the store takes {used:,} bytes, more than its limit of {settings.max_bytes:,}",
            "run: turngate gc",
            severe=False,
        )


def _pending(conn: Connection) -> Iterator[Problem]:
    (count,) = conn.execute("SELECT count(*) FROM content WHERE indexed = 0").fetchone()
    if count > _MANY_PENDING:
        yield Problem(
            f"{count:,} contents are not in the search index yet",
            "the next search brings them in",
            severe=False,
        )
