"""Connections to PostgreSQL with the face of those to SQLite, so that the same statements run on both."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeVar

from turngate.errors import StoreUnavailableError
from turngate.store.base import Problem, to_bytes
from turngate.store.pg_schema import SCHEMA, migrate
from turngate.store.records import Blob

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as missing:
    raise StoreUnavailableError(
        "a store in PostgreSQL needs the extra `postgres`; run: pip install 'turngate[postgres]'"
    ) from missing

T = TypeVar("T")

#: How long a request waits for a connection; after that the store counts as away.
_WAIT_SECONDS: Final = 1.0
_CONNECT_SECONDS: Final = 2
_MOST_CONNECTIONS: Final = 10
#: How often a write that another replica got in the way of is tried.
_TRIES: Final = 6
_PAUSE_SECONDS: Final = 0.01
#: Texts that PostgreSQL cannot hold (NUL, lone surrogates) stand as hex behind this, a private character.
_ESCAPE: Final = "\uf8ff"

#: "TGWR" in ASCII: shared by writers, taken alone by whoever removes.
_WRITERS: Final = 0x54475752

_PLACE: Final = re.compile(r"'(?:[^']|'')*'|\?|:(live_since|older_than)\b|%")
_ANCHOR: Final = re.compile(r"SELECT \? UNION")
_GUARD: Final = re.compile(r"\s+LIMIT \d+\)")
_GOT_IN_THE_WAY = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)


class Rows:
    """What a statement answers."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor
        #: Rows that the statement changed.
        self.rowcount = cursor.rowcount

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(_decoded, self._cursor)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        row = self._cursor.fetchone()
        return None if row is None else _decoded(row)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        return list(self)


class PgConnection:
    """One connection, with the part of `sqlite3.Connection` that the store uses."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Run a statement in SQLite's spelling."""
        return Rows(self.raw.execute(_translated(sql).encode(), _encoded(parameters)))

    def executemany(self, sql: str, many: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each."""
        if many:
            with self.raw.cursor() as cursor:
                cursor.executemany(_translated(sql).encode(), [_encoded(each) for each in many])


class PgConnections:
    """A bounded pool. Usable again after `close`, and after the server was away."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._pool: ConnectionPool[psycopg.Connection[Any]] | None = None
        self._migrated = False
        self._together = threading.local()
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error as fault:
            raise StoreUnavailableError(
                "store.url is no address of PostgreSQL; write postgresql://user@host:port/database"
            ) from fault
        #: The address without credentials.
        self.where = (
            f"postgresql://{parts.get('host', '')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
        )

    def write(self, job: Callable[[Any], T], *, alone: bool = False) -> T:
        """Run `job` in a transaction, `alone` beside no other writer; it is on disk when this returns."""
        stack = getattr(self._together, "stack", None)
        if stack is not None:
            return self._jointly(job, stack)
        for attempt in range(_TRIES):
            try:
                with self._errors(), self._connection() as conn, conn.raw.transaction():
                    _take_turn(conn.raw, alone=alone)
                    return job(conn)
            except _Again:
                time.sleep(_PAUSE_SECONDS * 2**attempt)
        raise StoreUnavailableError(
            f"the store at {self.where} is busy: other replicas were faster each time"
        )

    def maintain(self, job: Callable[[Any], T]) -> T:
        """Run `job` without a transaction around it."""
        with self._errors(), self._connection() as conn:
            return job(conn)

    @contextmanager
    def reader(self) -> Iterator[Any]:
        """A connection to read with."""
        if self.begun:
            with self._errors():
                yield self._together.conn
            return
        with self._errors(), self._connection() as conn:
            yield conn

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make this thread's writes one transaction, begun with the first and on disk at the end."""
        with self._errors(), ExitStack() as stack:
            self._together.stack = stack
            self._together.conn = None
            try:
                yield
            finally:
                self._together.stack = None
                stack.callback(setattr, self._together, "conn", None)

    @property
    def begun(self) -> bool:
        """Whether this thread is inside a transaction of several writes."""
        return getattr(self._together, "conn", None) is not None

    @staticmethod
    def damage(_: Any) -> Iterator[Problem]:
        """PostgreSQL checks its own files."""
        return iter(())

    def close(self) -> None:
        """Let go of all connections."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _jointly(self, job: Callable[[Any], T], stack: ExitStack) -> T:
        if self._together.conn is None:
            conn = stack.enter_context(self._connection())
            stack.enter_context(conn.raw.transaction())
            _take_turn(conn.raw, alone=False)
            self._together.conn = conn
        joined: PgConnection = self._together.conn
        for attempt in range(_TRIES):
            try:
                with self._errors(), joined.raw.transaction():
                    return job(joined)
            except _Again:
                time.sleep(_PAUSE_SECONDS * 2**attempt)
        raise StoreUnavailableError(
            f"the store at {self.where} is busy: other replicas were faster each time"
        )

    @contextmanager
    def _connection(self) -> Iterator[PgConnection]:
        pool = self._opened()
        with pool.connection() as raw:
            if not self._migrated:
                migrate(raw)
                self._migrated = True
            yield PgConnection(raw)

    def _opened(self) -> ConnectionPool[psycopg.Connection[Any]]:
        with self._lock:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._url,
                    min_size=0,
                    max_size=_MOST_CONNECTIONS,
                    timeout=_WAIT_SECONDS,
                    kwargs={"autocommit": True, "connect_timeout": _CONNECT_SECONDS},
                    configure=_configure,
                    check=ConnectionPool.check_connection,
                    name="turngate",
                    open=False,
                )
                self._pool.open()
            return self._pool

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the driver's errors into ours. No message of the server is passed on: it may quote values."""
        try:
            yield
        except _GOT_IN_THE_WAY as fault:
            raise _Again(f"the store at {self.where} is busy ({type(fault).__name__}); try again") from fault
        except PoolTimeout as fault:
            raise StoreUnavailableError(
                f"the store at {self.where} gives no connection; check that the server is up, or store.url"
            ) from fault
        except psycopg.Error as fault:
            raise StoreUnavailableError(
                f"the store at {self.where} failed ({type(fault).__name__}); `turngate doctor` checks it"
            ) from fault


class _Again(StoreUnavailableError):  # noqa: N818 - what to do about it
    """Another replica was faster."""


def _take_turn(raw: psycopg.Connection[Any], *, alone: bool) -> None:
    """Keep writers and whoever removes apart until the transaction ends: what one saw, the other removes."""
    raw.execute(f"SELECT pg_advisory_xact_lock{'' if alone else '_shared'}({_WRITERS})")


def _configure(raw: psycopg.Connection[Any]) -> None:
    raw.execute(f"SET search_path TO {SCHEMA}")


@lru_cache(maxsize=512)
def _translated(sql: str) -> str:
    """A statement in PostgreSQL's spelling."""
    sql = _GUARD.sub(")", _ANCHOR.sub("SELECT CAST(? AS TEXT) UNION", sql))
    return _PLACE.sub(_placed, sql)


def _placed(found: re.Match[str]) -> str:
    word = found[0]
    if word.startswith("'"):
        return word.replace("%", "%%")
    if word == "?":
        return "%s"
    return "%%" if word == "%" else f"%({found[1]})s"


def _encoded(parameters: Sequence[Any] | Mapping[str, Any]) -> Any:
    if isinstance(parameters, Mapping):
        return {key: _value(each) for key, each in parameters.items()}
    return [_value(each) for each in parameters]


def _value(value: Any) -> Any:
    if isinstance(value, Blob):
        return _ESCAPE + value.hex()
    if isinstance(value, str) and ("\0" in value or value.startswith(_ESCAPE)):
        return _ESCAPE + to_bytes(value).hex()
    return int(value) if isinstance(value, bool) else value


def _decoded(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row as SQLite would answer it: sums are whole numbers."""
    return tuple(map(_plain, row))


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_ESCAPE):
        return bytes.fromhex(value[1:])
    return int(value) if isinstance(value, Decimal) else value
