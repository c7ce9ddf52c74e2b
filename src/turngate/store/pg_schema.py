"""The tables in PostgreSQL, and the ordered steps that lead to them; many replicas may start at once."""

from __future__ import annotations

from typing import Any, Final

from turngate.errors import StoreUnavailableError

#: Tables of ours stand apart from anybody else's.
SCHEMA: Final = "turngate"
#: "TGST" in ASCII: whoever holds this lock runs the steps.
_LOCK: Final = 0x54475354

_BASE: Final = """
CREATE TABLE content (
    key BIGSERIAL PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    marker TEXT NOT NULL UNIQUE,
    size BIGINT NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    redacted BIGINT NOT NULL,
    stored_at DOUBLE PRECISION NOT NULL,
    used_at DOUBLE PRECISION NOT NULL,
    indexed BIGINT NOT NULL DEFAULT 0,
    codec TEXT NOT NULL,
    data BYTEA NOT NULL
);
-- It is compressed already.
ALTER TABLE content ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX content_pending ON content (key) WHERE indexed = 0;
CREATE TABLE session (
    id TEXT PRIMARY KEY,
    parent TEXT,
    turn BIGINT NOT NULL DEFAULT 0,
    used_at DOUBLE PRECISION NOT NULL
);
CREATE TABLE sighting (
    session TEXT NOT NULL,
    content BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    how TEXT NOT NULL,
    call_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    call TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session, content, turn, how, call_id)
);
CREATE INDEX sighting_content ON sighting (content);
CREATE TABLE words (content BIGINT PRIMARY KEY, word TSVECTOR NOT NULL);
CREATE INDEX words_word ON words USING GIN (word);
CREATE TABLE session_state (
    session TEXT NOT NULL,
    room TEXT NOT NULL,
    version BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (session, room)
);
CREATE TABLE ledger_node (
    key BYTEA PRIMARY KEY,
    parent BYTEA NOT NULL,
    digest BYTEA NOT NULL,
    role TEXT NOT NULL,
    policy TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL
);
CREATE TABLE ledger_edit (
    node BYTEA NOT NULL,
    session TEXT NOT NULL,
    place BIGINT NOT NULL,
    op TEXT NOT NULL,
    path TEXT NOT NULL,
    value TEXT NOT NULL,
    value_key BIGINT NOT NULL,
    origin TEXT NOT NULL,
    PRIMARY KEY (node, session, place)
);
CREATE TABLE ledger_decision (
    scope BYTEA NOT NULL,
    call TEXT NOT NULL,
    content TEXT NOT NULL,
    value TEXT NOT NULL,
    origin TEXT NOT NULL,
    owner TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (scope, call, content)
);
CREATE TABLE ledger_value (
    key BIGSERIAL PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    size BIGINT NOT NULL,
    codec TEXT NOT NULL,
    data BYTEA NOT NULL
);
CREATE TABLE ledger_request (
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    tip BYTEA NOT NULL,
    depth BIGINT NOT NULL,
    tools BYTEA NOT NULL,
    system BYTEA NOT NULL,
    epoch BIGINT NOT NULL,
    policy TEXT NOT NULL,
    reason TEXT NOT NULL,
    place BIGINT NOT NULL,
    detail TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session, seq)
);
CREATE TABLE saving (
    session TEXT PRIMARY KEY,
    results BIGINT NOT NULL,
    came_in BIGINT NOT NULL,
    shown BIGINT NOT NULL,
    had_back BIGINT NOT NULL
);
-- A session that is forgotten leaves its sums to the session '', and its documents go.
CREATE FUNCTION session_ended() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM session_state WHERE session = old.id;
    INSERT INTO saving SELECT '', results, came_in, shown, had_back FROM saving WHERE session = old.id
    ON CONFLICT (session) DO UPDATE SET
        results = saving.results + excluded.results, came_in = saving.came_in + excluded.came_in,
        shown = saving.shown + excluded.shown, had_back = saving.had_back + excluded.had_back;
    DELETE FROM saving WHERE session = old.id;
    RETURN old;
END $$;
CREATE TRIGGER session_end AFTER DELETE ON session FOR EACH ROW EXECUTE FUNCTION session_ended();
"""

#: Name -> statements. A step that was released is never edited; a change is a new step.
MIGRATIONS: Final[tuple[tuple[str, str], ...]] = (("0001_base", _BASE),)


def migrate(conn: Any) -> tuple[str, ...]:
    """Run the steps that are pending, and return their names; replicas that start together take turns.

    Raises:
        StoreUnavailableError: the tables are a newer turngate's.
    """
    with conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        conn.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        conn.execute(
            "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, at TIMESTAMPTZ DEFAULT now())"
        )
        done = {name for (name,) in conn.execute("SELECT name FROM migration").fetchall()}
        unknown = done - {name for name, _ in MIGRATIONS}
        if unknown:
            raise StoreUnavailableError(
                f"this store was written by a newer turngate (it has {min(unknown)!r}); upgrade turngate"
            )
        pending = [(name, sql) for name, sql in MIGRATIONS if name not in done]
        for name, sql in pending:
            conn.execute(sql)
            conn.execute("INSERT INTO migration (name) VALUES (%s)", (name,))
    return tuple(name for name, _ in pending)
