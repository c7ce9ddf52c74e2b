"""The edge where SQLite's errors become turngate's: none of them leaves the store."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turngate.errors import StoreCorruptError, StoreError, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class _Answer:
    raises: type[StoreError]
    #: Completed by "the store at PATH …".
    says: str


_UNAVAILABLE, _CORRUPT = StoreUnavailableError, StoreCorruptError
_DAMAGED = _Answer(
    _CORRUPT,
    "is damaged; move the file away (a new one is made), or recover it with `sqlite3 FILE .recover`",
)
_LOCKED = _Answer(_UNAVAILABLE, "is locked by another process; try again, or raise store.busy_timeout_ms")
_UNREACHABLE = _Answer(
    _UNAVAILABLE, "cannot be opened; check that it is a file, that its folder can be written, or set data_dir"
)
_READ_ONLY = _Answer(_UNAVAILABLE, "is read-only; make the file and its folder writable, or set data_dir")
#: By SQLite's primary result code, https://sqlite.org/rescode.html
_ANSWERS: dict[int, _Answer] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_FULL: _Answer(_UNAVAILABLE, "cannot grow, the disk is full; free some space"),
    sqlite3.SQLITE_IOERR: _Answer(_UNAVAILABLE, "cannot be read or written; check the disk"),
    sqlite3.SQLITE_CANTOPEN: _UNREACHABLE,
    sqlite3.SQLITE_PERM: _UNREACHABLE,
    sqlite3.SQLITE_AUTH: _UNREACHABLE,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_TOOBIG: _Answer(_UNAVAILABLE, "cannot take a single content of this size"),
}
_OTHER = _Answer(_UNAVAILABLE, "failed; `turngate doctor` checks it")
_PRIMARY_CODE = 0xFF


def primary_code(error: BaseException) -> int:
    """SQLite's primary result code, or -1 where the driver itself objected."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else int(code) & _PRIMARY_CODE


def is_busy(error: BaseException) -> bool:
    """Whether another connection held the lock, so that trying again may help."""
    return _ANSWERS.get(primary_code(error)) is _LOCKED


@contextmanager
def store_errors(where: str) -> Iterator[None]:
    """Turn the errors of SQLite and of the file system into `StoreError`."""
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError) as error:
        answer = _UNREACHABLE if isinstance(error, OSError) else _ANSWERS.get(primary_code(error), _OTHER)
        reason = getattr(error, "strerror", None) or error
        raise answer.raises(f"the store at {where} {answer.says} ({reason})") from error
