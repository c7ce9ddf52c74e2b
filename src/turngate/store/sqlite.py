"""The store in one SQLite file, for any number of processes on one machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from turngate.settings import StoreSettings
from turngate.store.connections import Connections
from turngate.store.disk import SqliteDisk
from turngate.store.health import permissions
from turngate.store.lexicon import Fts5
from turngate.store.redact import redact
from turngate.store.relational import Clock, RelationalStore, short_hash

if TYPE_CHECKING:
    from pathlib import Path

    from turngate.store.base import Problem, Redactor, ShortHash


class SqliteStore(RelationalStore):
    """Originals in one SQLite file; safe across forks, too. Only a write makes the file.

    Args:
        path: the database file.
        settings: limits and timeouts.
        short_hash: makes marker ids; tests force collisions with it.
        clock: seconds since the epoch.
        redactor: replaces secrets in what is indexed, and with ``settings.redact`` in what is stored.
    """

    def __init__(
        self,
        path: Path,
        settings: StoreSettings | None = None,
        *,
        short_hash: ShortHash = short_hash,
        clock: Clock = time.time,
        redactor: Redactor = redact,
    ) -> None:
        self.path = path
        known = settings or StoreSettings()
        connections = Connections(path, busy_timeout_ms=known.busy_timeout_ms, max_bytes=known.max_bytes)
        super().__init__(
            connections,
            Fts5(),
            SqliteDisk(path, connections),
            known,
            where=str(path),
            short_hash=short_hash,
            clock=clock,
            redactor=redactor,
        )

    def check(self) -> list[Problem]:
        """What is wrong with the store, without changing it; reads every content."""
        return [*permissions(self.path), *super().check()]


__all__ = ["Clock", "SqliteStore", "short_hash"]
