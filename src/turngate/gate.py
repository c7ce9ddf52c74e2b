"""The gate: a store, settings, and the sessions that pass through it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from turngate import settings as settings_module
from turngate.session import Session, StoreAccess
from turngate.settings import STORE_FILE, Settings
from turngate.store import SqliteStore, Store, open_store
from turngate.tally import Stats, Tally

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

#: Sessions kept when nobody else holds them: the state of a session is small, but a proxy sees many.
KEPT_SESSIONS = 1_000
#: A path that ends so is the database itself; any other is the folder it lies in.
DATABASE_SUFFIXES = (".sqlite3", ".sqlite", ".db")


class Gate:
    """Hands out sessions; safe from any thread. A context manager: leaving it closes the store."""

    def __init__(
        self, store: Store | None = None, settings: Settings | None = None, *, path: Path | None = None
    ) -> None:
        """`open` is the usual way; here any `Store` will do, or else the database at `path`."""
        self.settings = settings or Settings()
        #: The database, unless a store was given.
        self.path = path or self.settings.store_path
        #: Whether the database was named here: then no URL of the settings counts.
        self._named = path is not None
        #: How many sessions stay in memory when nobody else holds them.
        self.kept_sessions = KEPT_SESSIONS
        #: Whether new sessions take note of what is called, for the blocks of their turns. A door that
        #: injects nothing can do without.
        self.injects = True
        self._access = StoreAccess(self._open if store is None else lambda: store)
        self._tally = Tally()
        self._lock = threading.Lock()
        self._sessions: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._recent: OrderedDict[str, Session] = OrderedDict()

    @classmethod
    def open(cls, path: Path | str | None = None, settings: Settings | None = None) -> Gate:
        """A gate whose store is a SQLite database. The database is opened, or created, at its first use.

        Args:
            path: the folder of the database, or the database itself if it ends in ``.sqlite3`` or ``.db``.
                None: as the settings say.
            settings: None: those of file and environment.

        Raises:
            SettingsError: settings were to be loaded and have a fault.
        """
        known = settings or settings_module.load()
        return cls(settings=known, path=None if path is None else _database(Path(path)))

    @property
    def store(self) -> Store:
        """The store of originals.

        Raises:
            StoreError: it cannot be opened.
        """
        return self._access.store()

    def session(self, id: str, parent: str | None = None) -> Session:  # noqa: A002 - the vocabulary's word
        """The session of that id: the same object for the same id. The first parent that is named stays."""
        with self._lock:
            session = self._sessions.get(id)
            if session is None:
                session = Session(
                    id,
                    parent=parent,
                    settings=self.settings,
                    access=self._access,
                    whole=self._tally,
                    injects=self.injects,
                )
                self._sessions[id] = session
            elif parent is not None:
                session.adopt(parent)
            self._recent[id] = session
            self._recent.move_to_end(id)
            while len(self._recent) > self.kept_sessions:
                self._recent.popitem(last=False)
            return session

    def stats(self) -> Stats:
        """What all sessions of this gate saved since the process began."""
        return self._tally.stats()

    def close(self) -> None:
        """Close the store, after sessions have written what waits; the next use opens it again."""
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.flush()
        self._access.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> Store:
        return (
            SqliteStore(self.path, self.settings.store)
            if self._named
            else open_store(self.settings.store, self.path)
        )


def _database(path: Path) -> Path:
    return path if path.suffix in DATABASE_SUFFIXES else path / STORE_FILE
