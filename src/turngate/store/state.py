"""What a session's rooms keep between turns: one document per session and room, with optimistic locking.

A document is bytes to the store; each room bounds the size of its own. It goes when its session is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.store.records import name, touch

if TYPE_CHECKING:
    from sqlite3 import Connection

#: The version of a document that was never saved.
NO_VERSION = 0


def load_state(conn: Connection, session: str, room: str) -> tuple[bytes | None, int]:
    """The document and its version; (None, 0) where there is none."""
    row = conn.execute(
        "SELECT body, version FROM session_state WHERE session = ? AND room = ?", (name(session), name(room))
    ).fetchone()
    return (None, NO_VERSION) if row is None else (bytes(row[0]), int(row[1]))


def save_state(
    conn: Connection, session: str, room: str, body: bytes, expected_version: int, *, now: float
) -> int | None:
    """The new version; None, and nothing is changed, where the document is not of the version expected."""
    touch(conn, session, now)
    if expected_version == NO_VERSION:
        done = conn.execute(
            """INSERT INTO session_state (session, room, version, body) VALUES (?, ?, ?, ?)
            ON CONFLICT (session, room) DO NOTHING""",
            (name(session), name(room), NO_VERSION + 1, body),
        )
    else:
        done = conn.execute(
            """UPDATE session_state SET version = version + 1, body = ?
            WHERE session = ? AND room = ? AND version = ?""",
            (body, name(session), name(room), expected_version),
        )
    return expected_version + 1 if done.rowcount else None
