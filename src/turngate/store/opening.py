"""Which database a store is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from turngate.errors import StoreUnavailableError
from turngate.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from turngate.settings import StoreSettings
    from turngate.store.base import Store

_SERVERS: Final = ("postgresql://", "postgres://")


def open_store(settings: StoreSettings, path: Path) -> Store:
    """The store that the settings name: at their URL, else the SQLite file at `path`.

    Raises:
        StoreUnavailableError: the URL names no database that is known, or its extra is missing.
    """
    if not settings.url:
        return SqliteStore(path, settings)
    if not settings.url.startswith(_SERVERS):
        raise StoreUnavailableError("store.url names no database that is known; write postgresql://…")
    # Only who uses it needs the driver.
    from turngate.store.postgres import PostgresStore  # noqa: PLC0415

    return PostgresStore(settings.url, settings)
