"""The tables, and the ordered steps that lead to them.

Each step runs in one transaction with the record that it ran, so a fault leaves neither. A step that was
released is never edited; a change is a new step.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turngate.errors import StoreUnavailableError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

#: "TGST" in ASCII: tells our file from any other program's database.
APPLICATION_ID = 0x54475354


@dataclass(frozen=True, slots=True)
class Migration:
    """A named step."""

    name: str
    """Recorded when the step has run; never reused."""
    statements: tuple[str, ...]
    """SQL, run in order."""


_BASE = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    # The key is never reused, so a stale entry of the index can never point at other content.
    """CREATE TABLE content (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        sha256 TEXT NOT NULL UNIQUE,
        marker TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        kind TEXT NOT NULL,
        tool TEXT NOT NULL,
        redacted INTEGER NOT NULL,
        stored_at REAL NOT NULL,
        used_at REAL NOT NULL,
        indexed INTEGER NOT NULL DEFAULT 0,
        codec TEXT NOT NULL,
        data BLOB NOT NULL
    )""",
    "CREATE INDEX content_pending ON content (key) WHERE indexed = 0",
    """CREATE TABLE session (
        id TEXT PRIMARY KEY,
        parent TEXT,
        turn INTEGER NOT NULL DEFAULT 0,
        used_at REAL NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE sighting (
        session TEXT NOT NULL,
        content INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        how TEXT NOT NULL,
        call_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        tool TEXT NOT NULL,
        call TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (session, content, turn, how, call_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX sighting_content ON sighting (content)",
    # Which words a content has, nothing else: the index of a log stays a fraction of the log. The words come
    # cut and folded (`turngate.store.words`), so the tokenizer only has to part them at blanks.
    "CREATE VIRTUAL TABLE words USING fts5(word, content='', columnsize=0, detail=none, tokenize='ascii')",
)

_SESSION_STATE = (
    """CREATE TABLE session_state (
        session TEXT NOT NULL,
        room TEXT NOT NULL,
        version INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (session, room)
    )""",
    """CREATE TRIGGER session_state_end AFTER DELETE ON session
    BEGIN DELETE FROM session_state WHERE session = old.id; END""",
)

_LEDGER = (
    """CREATE TABLE ledger_node (
        key BLOB PRIMARY KEY,
        parent BLOB NOT NULL,
        digest BLOB NOT NULL,
        role TEXT NOT NULL,
        policy TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        at REAL NOT NULL
    ) WITHOUT ROWID""",
    # Edits of a node itself have the session ''. A row without op: the session has nothing to add.
    """CREATE TABLE ledger_edit (
        node BLOB NOT NULL,
        session TEXT NOT NULL,
        place INTEGER NOT NULL,
        op TEXT NOT NULL,
        path TEXT NOT NULL,
        value TEXT NOT NULL,
        value_key INTEGER NOT NULL,
        origin TEXT NOT NULL,
        PRIMARY KEY (node, session, place)
    ) WITHOUT ROWID""",
    """CREATE TABLE ledger_decision (
        scope BLOB NOT NULL,
        call TEXT NOT NULL,
        content TEXT NOT NULL,
        value TEXT NOT NULL,
        origin TEXT NOT NULL,
        owner TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (scope, call, content)
    ) WITHOUT ROWID""",
    # Found by its key, which is as good as the hash and faster; a value that was mended has another.
    """CREATE TABLE ledger_value (
        key INTEGER PRIMARY KEY,
        sha256 TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        codec TEXT NOT NULL,
        data BLOB NOT NULL
    )""",
    """CREATE TABLE ledger_request (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        tip BLOB NOT NULL,
        depth INTEGER NOT NULL,
        tools BLOB NOT NULL,
        system BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        policy TEXT NOT NULL,
        reason TEXT NOT NULL,
        place INTEGER NOT NULL,
        detail TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (session, seq)
    ) WITHOUT ROWID""",
)

_SAVING = (
    # Estimated tokens: of what came in and was stored, of what was shown for it, and of what was had back.
    """CREATE TABLE saving (
        session TEXT PRIMARY KEY,
        results INTEGER NOT NULL,
        came_in INTEGER NOT NULL,
        shown INTEGER NOT NULL,
        had_back INTEGER NOT NULL
    ) WITHOUT ROWID""",
    # A session that is forgotten leaves its sums to the session ''.
    """CREATE TRIGGER saving_end AFTER DELETE ON session
    BEGIN
        INSERT INTO saving SELECT '', results, came_in, shown, had_back FROM saving WHERE session = old.id
        ON CONFLICT (session) DO UPDATE SET
            results = results + excluded.results, came_in = came_in + excluded.came_in,
            shown = shown + excluded.shown, had_back = had_back + excluded.had_back;
        DELETE FROM saving WHERE session = old.id;
    END""",
)

MIGRATIONS: tuple[Migration, ...] = (
    Migration("0001_base", _BASE),
    Migration("0002_session_state", _SESSION_STATE),
    Migration("0003_ledger", _LEDGER),
    Migration("0004_saving", _SAVING),
)


@contextmanager
def transaction(conn: sqlite3.Connection) -> Iterator[None]:
    """A write transaction: commits at the end, and keeps the first error when it has to roll back."""
    conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def applied(conn: sqlite3.Connection) -> tuple[str, ...]:
    """Names of the steps that have run. Only reads."""
    if not _has_tables(conn, "name = 'migration'"):
        return ()
    return tuple(name for (name,) in conn.execute("SELECT name FROM migration ORDER BY rowid"))


def pending(conn: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> tuple[Migration, ...]:
    """Steps that have yet to run. Only reads.

    Raises:
        StoreUnavailableError: the file is another program's, or a newer turngate's.
    """
    # Asked first: another connection may run the first step between the two questions.
    in_use = _has_tables(conn, "1")
    done = applied(conn)
    if in_use and not done:
        raise StoreUnavailableError(
            "this file is a database of another program; name another data_dir, or move the file away"
        )
    unknown = [name for name in done if name not in {step.name for step in migrations}]
    if unknown:
        raise StoreUnavailableError(
            f"this store was written by a newer turngate (it has {unknown[0]!r}); upgrade turngate, "
            "or name another data_dir"
        )
    return tuple(step for step in migrations if step.name not in done)


def migrate(conn: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> tuple[str, ...]:
    """Run the steps that are pending, and return their names."""
    names = [step.name for step in migrations]
    if len(set(names)) != len(names):
        raise ValueError(f"two migrations of one name: {names}")
    return tuple(step.name for step in pending(conn, migrations) if _apply(conn, step))


def _apply(conn: sqlite3.Connection, step: Migration) -> bool:
    """Run one step unless another process was faster."""
    with transaction(conn):
        conn.execute("CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, at REAL NOT NULL)")
        if step.name in applied(conn):
            return False
        for statement in step.statements:
            conn.execute(statement)
        conn.execute("INSERT INTO migration VALUES (?, ?)", (step.name, time.time()))
    return True


def _has_tables(conn: sqlite3.Connection, condition: str) -> bool:
    query = f"SELECT 1 FROM sqlite_schema WHERE type = 'table' AND {condition} LIMIT 1"
    return conn.execute(query).fetchone() is not None
