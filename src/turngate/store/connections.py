"""Connections to one database file: any number that read, one that writes, none that outlives a fork.

All writes go through `Connections.write`: threads queue their jobs, whoever holds the lock runs all that are
waiting in one transaction, and nobody returns before that transaction is on disk. So concurrent commits share
one flush. Between processes SQLite's own lock and busy timeout decide.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from turngate.errors import StoreUnavailableError
from turngate.store import schema
from turngate.store.base import Problem
from turngate.store.guard import is_busy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

FILE_MODE, DIRECTORY_MODE, _OTHERS = 0o600, 0o700, 0o077
PAGE_BYTES = 4096
#: SQLite's default (https://sqlite.org/wal.html#automatic_checkpoint), for stores that are not tiny.
_CHECKPOINT_PAGES = 1000
#: Jobs that may share one transaction: bounds how long the first of them waits.
_BATCH_JOBS = 64
#: Idle readers kept; more threads than this open and close their own.
_IDLE_READERS = 8
#: How long a fork waits for reads that are under way.
_FORK_WAIT_SECONDS = 5.0
_RETRY_SECONDS = 0.02


class _Ticket(Generic[T]):
    """A write that waits for its transaction."""

    __slots__ = ("done", "error", "job", "result")

    def __init__(self, job: Callable[[sqlite3.Connection], T]) -> None:
        self.job = job
        self.done = False
        self.error: BaseException | None = None
        self.result: T | None = None

    def run(self, conn: sqlite3.Connection, *, alone: bool) -> None:
        """Do the job; a fault undoes this job only, unless SQLite gave up the whole transaction."""
        if alone:
            self.result = self.job(conn)
            return
        conn.execute("SAVEPOINT job")
        try:
            self.result = self.job(conn)
        except Exception as error:  # handed to the thread that asked, by `answer`
            if not conn.in_transaction:
                raise
            conn.execute("ROLLBACK TO job")
            self.error = error
        conn.execute("RELEASE job")

    def fail(self, error: BaseException) -> None:
        """Take `error` as the outcome; an interrupt hits one thread, the others are told of it."""
        if not isinstance(error, Exception):
            error = StoreUnavailableError("the write was interrupted; try again")
        self.error, self.done = error, True

    def answer(self) -> T:
        """The job's result."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value] # None only where T is None


class Connections:
    """All connections of one store in this process. Opens on first use; usable again after `close`."""

    def __init__(self, path: Path, *, busy_timeout_ms: int, max_bytes: int) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_ms / 1000
        self._checkpoint_pages = min(_CHECKPOINT_PAGES, max(16, max_bytes // 16 // PAGE_BYTES))
        self._queue: deque[_Ticket[Any]] = deque()
        self._write_lock = threading.RLock()
        self._pool = threading.Condition()
        #: Of a thread whose writes are to be one transaction: the stack that ends it.
        self._together = threading.local()
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._reading = 0
        #: Device and inode of the file that the open connections belong to.
        self._file: tuple[int, int] | None = None
        _ALIVE.add(self)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make this thread's writes one transaction, which begins with the first and is on disk at the end.

        What is raised inside undoes all of them. Other writers wait from the first write to the end.
        """
        with ExitStack() as stack:
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

    def _join(self, stack: ExitStack) -> sqlite3.Connection:
        """The transaction of this thread's writes, begun if it was not."""
        if self._together.conn is None:
            stack.enter_context(self._write_lock)
            stack.enter_context(self._renewed_after_faults())
            conn = self._open_writer()
            stack.enter_context(schema.transaction(conn))
            self._together.conn = conn
        joined: sqlite3.Connection = self._together.conn
        return joined

    @contextmanager
    def _renewed_after_faults(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # Whatever the connection has become, the next write starts on a fresh one.
            if not is_busy(error):
                self._close_writer()
            raise

    def write(self, job: Callable[[sqlite3.Connection], T], *, alone: bool = False) -> T:  # noqa: ARG002 - it always is
        """Run `job` in a transaction, perhaps with others; it is on disk when this returns."""
        stack = getattr(self._together, "stack", None)
        if stack is not None:
            joint = _Ticket(job)
            joint.run(self._join(stack), alone=False)
            return joint.answer()
        ticket = _Ticket(job)
        self._queue.append(ticket)
        with self._write_lock:
            while not ticket.done:
                self._run_batch()
        return ticket.answer()

    @staticmethod
    def damage(conn: sqlite3.Connection) -> Iterator[Problem]:
        """What SQLite itself finds wrong with the file."""
        for (message,) in conn.execute("PRAGMA quick_check(5)"):
            if message != "ok":
                yield Problem(
                    f"the database is damaged: {message}",
                    "copy what is left with `sqlite3 FILE .recover`, then move the file away",
                    severe=True,
                )

    def maintain(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run `job` on the writing connection without a transaction around it."""
        with self._write_lock:
            return job(self._open_writer())

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with, this thread's alone. Without a file, an empty store."""
        if self.begun:
            yield self._together.conn
            return
        self._follow_file()
        with self._pool:
            self._reading += 1
            conn = self._idle.pop() if self._idle else None
        opened_file = self._file
        try:
            conn = conn or self._open_reader()
            yield conn
        except BaseException:
            if conn is not None:
                conn.close()
                conn = None
            raise
        finally:
            self._give_back(conn, opened_file)

    def close(self) -> None:
        """Close every idle connection; those in use close when they come back."""
        with self._write_lock:
            self._close_writer()
        with self._pool:
            self._file = None
            for conn in self._idle:
                conn.close()
            self._idle.clear()

    def _run_batch(self) -> None:
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH_JOBS))]
        try:
            conn = self._open_writer()
            with schema.transaction(conn):
                for ticket in batch:
                    ticket.run(conn, alone=len(batch) == 1)
        except BaseException as error:
            # Whatever the connection has become, the next write starts on a fresh one.
            if not is_busy(error):
                self._close_writer()
            for ticket in batch:
                ticket.fail(error)
            if not isinstance(error, Exception):
                raise
        for ticket in batch:
            ticket.done = True

    def _open_writer(self) -> sqlite3.Connection:
        self._follow_file()
        if self._writer is None:
            _create(self._path)
            self._writer = self._connect(self._path.absolute().as_uri())
            self._remember_file()
        return self._writer

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open_reader(self) -> sqlite3.Connection:
        if not self._path.exists():
            conn = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            schema.migrate(conn)
            return conn
        if not _writable(self._path):
            return self._connect_read_only()
        conn = self._connect(self._path.absolute().as_uri())
        self._remember_file()
        return conn

    def _give_back(self, conn: sqlite3.Connection | None, opened_file: tuple[int, int] | None) -> None:
        with self._pool:
            self._reading -= 1
            current = opened_file is not None and opened_file == self._file
            if conn is not None and current and len(self._idle) < _IDLE_READERS:
                self._idle.append(conn)
            elif conn is not None:
                conn.close()
            self._pool.notify_all()

    def _connect(self, uri: str) -> sqlite3.Connection:
        deadline = time.monotonic() + self._busy_timeout_seconds
        while True:
            try:
                return self._connect_once(uri)
            except sqlite3.OperationalError as error:
                # Turning on WAL and recovering it after a crash ignore the busy timeout.
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
                time.sleep(_RETRY_SECONDS)

    def _connect_once(self, uri: str) -> sqlite3.Connection:
        conn = self._bare(uri)
        try:
            # Later it would be a write, and it must come before anything else is in the file.
            is_empty = conn.execute("PRAGMA page_count").fetchone()[0] == 0
            for pragma in (
                *(("auto_vacuum = INCREMENTAL",) if is_empty else ()),
                "journal_mode = WAL",
                "synchronous = FULL",
                f"wal_autocheckpoint = {self._checkpoint_pages}",
                f"journal_size_limit = {self._checkpoint_pages * PAGE_BYTES}",
            ):
                conn.execute(f"PRAGMA {pragma}").fetchall()
            schema.migrate(conn)
        except BaseException:
            conn.close()
            raise
        return conn

    def _connect_read_only(self) -> sqlite3.Connection:
        """A store on a read-only disk can still give its originals back."""
        uri = f"file:{quote(str(self._path.absolute()))}?mode=ro"
        wal = self._path.with_name(self._path.name + "-wal")
        # `immutable` would ignore what is still in the log only.
        if not wal.exists() or wal.stat().st_size == 0:
            uri += "&immutable=1"
        conn = self._bare(uri)
        try:
            pending = schema.pending(conn)
        except BaseException:
            conn.close()
            raise
        if pending:
            conn.close()
            raise StoreUnavailableError("this store needs an upgrade and is read-only; make it writable")
        return conn

    def _bare(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(
            uri, uri=True, timeout=self._busy_timeout_seconds, isolation_level=None, check_same_thread=False
        )

    def _follow_file(self) -> None:
        """Let go of connections to a file that was moved away or replaced."""
        if self._file is not None and _identity(self._path) != self._file:
            self.close()

    def _remember_file(self) -> None:
        with self._pool:
            self._file = self._file or _identity(self._path)

    def before_fork(self) -> None:
        """Finish what is under way and close: SQLite's locks do not survive a fork."""
        self._write_lock.acquire()
        with self._pool:
            self._pool.wait_for(lambda: self._reading == 0, timeout=_FORK_WAIT_SECONDS)
        self.close()

    def after_fork(self, *, child: bool) -> None:
        """Go on. In the child the threads that were reading or waiting to write do not exist."""
        if child:
            self._queue.clear()
            self._reading = 0
        self._write_lock.release()


_ALIVE: weakref.WeakSet[Connections] = weakref.WeakSet()
_PAUSED: list[Connections] = []


def _before_fork() -> None:
    for connections in list(_ALIVE):
        connections.before_fork()
        _PAUSED.append(connections)


def _after_fork(*, child: bool) -> None:
    while _PAUSED:
        _PAUSED.pop().after_fork(child=child)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=partial(_after_fork, child=False),
        after_in_child=partial(_after_fork, child=True),
    )


def disk_bytes(path: Path) -> int:
    """Bytes on disk: the database, its write-ahead log and that log's index."""
    total = 0
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            total += os.stat(f"{path}{suffix}").st_size  # noqa: PTH116 - on the way of every write, and faster
    return total


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _create(path: Path) -> None:
    """An empty file that only its owner can read; SQLite gives the log the same mode."""
    if not path.exists():
        path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, FILE_MODE))
    elif path.is_file() and path.stat().st_mode & _OTHERS and os.name == "posix":
        with contextlib.suppress(PermissionError):
            path.chmod(FILE_MODE)
