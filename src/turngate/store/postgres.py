"""The store in PostgreSQL, for replicas on any number of machines. Needs the extra ``postgres``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from turngate.settings import StoreSettings
from turngate.store.pg_connections import PgConnections
from turngate.store.pg_parts import PgDisk, TextSearch
from turngate.store.redact import redact
from turngate.store.relational import Clock, RelationalStore, short_hash

if TYPE_CHECKING:
    from turngate.store.base import Redactor, ShortHash


class PostgresStore(RelationalStore):
    """Originals in PostgreSQL. Its tables stand in a schema of their own, made by whoever comes first.

    Args:
        url: ``postgresql://user:password@host:port/database``.
        settings: limits.
        short_hash: makes marker ids; tests force collisions with it.
        clock: seconds since the epoch.
        redactor: replaces secrets in what is indexed, and with ``settings.redact`` in what is stored.
    """

    def __init__(
        self,
        url: str,
        settings: StoreSettings | None = None,
        *,
        short_hash: ShortHash = short_hash,
        clock: Clock = time.time,
        redactor: Redactor = redact,
    ) -> None:
        known = settings or StoreSettings()
        connections = PgConnections(url)
        super().__init__(
            connections,  # type: ignore[arg-type] # the same face over another driver
            TextSearch(),
            PgDisk(connections),
            known,
            where=connections.where,
            short_hash=short_hash,
            clock=clock,
            redactor=redactor,
        )
