"""What is read from and written to the tables: plain functions over a connection.

A session id may be any string, of any length and lone surrogates included; a database's text and its keys may
not. `name` and `unname` translate.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from turngate.store.base import Asked, Original, Saving, ShortHash, to_bytes, to_text
from turngate.store.codec import unpack

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

#: Lengths of marker ids, shortest first; the full hash stands behind the last.
ID_LENGTHS = (16, 20, 24, 28, 32, 40, 48, 56, 64)
#: Ancestors looked at; a chain of subagents is a handful deep.
MAX_ANCESTORS = 64
#: Parameters per statement stay well below SQLite's limit.
_CHUNK = 500
_SHA256_HEX = 64
#: Longer names are cut: an entry of PostgreSQL's B-tree holds 2,704 bytes, a key has two names, and a
#: character takes up to four bytes.
MAX_NAME_CHARS = 300
_HEAD_CHARS = 200

#: Sessions whose content `?` may see: itself and its ancestors. UNION drops repeats, so a cycle ends.
SCOPE = f"""WITH RECURSIVE scope(id) AS (
    SELECT ? UNION SELECT parent FROM session JOIN scope USING (id) WHERE parent IS NOT NULL
    LIMIT {MAX_ANCESTORS})"""

_ORIGINAL_COLUMNS = (
    "content.marker, content.sha256, content.codec, content.data, content.size, content.redacted"
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A content on its way in."""

    sha256: str
    """The hash of its bytes."""
    size: int
    """Bytes before compression."""
    codec: str
    """How `packed` is compressed."""
    packed: bytes
    """The bytes to lay down."""
    redacted: bool
    """Whether secrets were replaced."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """That a session saw a content."""

    session: str
    """The session's id."""
    turn: int
    """The turn in which."""
    how: str
    """`stored`, `retrieved`, `searched`."""
    call_id: str = ""
    """The host's id of the tool call."""
    kind: str = ""
    """Kind of output."""
    tool: str = ""
    """The tool."""
    call: str = ""
    """What brought the content about."""


class Blob(bytes):
    """A text that is no text to a database; told from content by its type."""


def name(text: str) -> str | bytes:
    """A name (of a session, a call, a tool) as keys can hold it: of a long one its beginning and hash."""
    return free(text if len(text) <= MAX_NAME_CHARS else f"{text[:_HEAD_CHARS]}…{_digest(text)}")


def free(text: str) -> str | bytes:
    """`text` as a database can hold it: lone surrogates make it a blob."""
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return Blob(to_bytes(text))


def _digest(text: str) -> str:
    return hashlib.sha256(to_bytes(text)).hexdigest()


def unname(value: object) -> str:
    """The inverse of `name`."""
    return to_text(value) if isinstance(value, bytes) else str(value)


def load(conn: Connection, ref: str, session: str | None) -> Original | None:
    """The content of that marker id or full hash which this session may see.

    Raises:
        StoreCorruptError: what is stored is not the content of that hash.
    """
    column = "sha256" if len(ref) == _SHA256_HEX else "marker"
    row = _find(conn, column, ref, session)
    if row is None and column == "sha256":
        row = _find(conn, "marker", ref, session)
    return None if row is None else _original(row)


def load_key(conn: Connection, key: int) -> Original | None:
    """The content of that row."""
    row = conn.execute(
        f"SELECT {_ORIGINAL_COLUMNS}, kind, tool FROM content WHERE key = ?",
        (key,),
    ).fetchone()
    return None if row is None else _original(row)


def _find(conn: Connection, column: str, ref: str, session: str | None) -> tuple[object, ...] | None:
    query = f"SELECT {_ORIGINAL_COLUMNS}, kind, tool FROM content WHERE {column} = ?"
    if session is None:
        row = conn.execute(query, (name(ref),)).fetchone()
    else:
        query = f"{SCOPE} {query} AND key IN (SELECT content FROM sighting JOIN scope ON session = scope.id)"
        row = conn.execute(query, (name(session), name(ref))).fetchone()
    return None if row is None else tuple(row)


def _original(row: tuple[object, ...]) -> Original:
    marker, sha256, codec, packed, size, redacted, kind, tool = row
    data = unpack(str(codec), packed, size=int(str(size)), sha256=str(sha256))
    return Original(str(marker), str(sha256), data, bool(redacted), unname(kind), unname(tool))


def known(conn: Connection, refs: Iterable[str], session: str) -> dict[str, str]:
    """Those of `refs` that the session may see, with their full hashes."""
    wanted = list(dict.fromkeys(refs))
    found: dict[str, str] = {}
    for at in range(0, len(wanted), _CHUNK):
        chunk = [name(ref) for ref in wanted[at : at + _CHUNK]]
        marks = ",".join("?" * len(chunk))
        rows = conn.execute(
            f"""{SCOPE} SELECT marker, sha256 FROM content
            WHERE (marker IN ({marks}) OR sha256 IN ({marks}))
            AND key IN (SELECT content FROM sighting JOIN scope ON session = scope.id)""",
            (name(session), *chunk, *chunk),
        )
        for marker, sha256 in rows:
            found |= {marker: sha256, sha256: sha256}
    return {ref: found[ref] for ref in wanted if ref in found}


def add(
    conn: Connection, arrival: Arrival, sighting: Sighting, *, short_hash: ShortHash, data: bytes, now: float
) -> tuple[str, bool]:
    """Lay a content down with its marker id and its sighting; returns the id and whether it is new."""
    row = conn.execute("SELECT key, marker FROM content WHERE sha256 = ?", (arrival.sha256,)).fetchone()
    if row is None:
        marker = _free_id(conn, arrival.sha256, data, short_hash)
        key = conn.execute(
            """INSERT INTO content
            (sha256, marker, size, kind, tool, redacted, stored_at, used_at, codec, data)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key""",
            (
                arrival.sha256, marker, arrival.size, name(sighting.kind), name(sighting.tool),
                int(arrival.redacted), now, now, arrival.codec, arrival.packed,
            ),
        ).fetchall()[0][0]  # fmt: skip
    else:
        key, marker = row
        if arrival.redacted:
            conn.execute("UPDATE content SET redacted = 1 WHERE key = ?", (key,))
    see(conn, key, sighting, now)
    return marker, row is None


def holds(conn: Connection, sha256: str) -> bool:
    """Whether a content of that hash is there, damaged or not."""
    return conn.execute("SELECT 1 FROM content WHERE sha256 = ?", (sha256,)).fetchone() is not None


def note(conn: Connection, sha256: str, sighting: Sighting, now: float) -> bool:
    """Record a sighting of a content that is there; False when it is not."""
    row = conn.execute("SELECT key, kind, tool FROM content WHERE sha256 = ?", (name(sha256),)).fetchone()
    if row is not None:
        key, kind, tool = row
        see(conn, key, replace(sighting, kind=unname(kind), tool=unname(tool)), now)
    return row is not None


def asked(conn: Connection) -> list[Asked]:
    """How much of what was shortened was asked for. What was stored without a kind was not shortened."""
    rows = conn.execute(
        """SELECT kind, tool, count(*), sum(EXISTS (
            SELECT 1 FROM sighting AS back WHERE back.session = first.session
            AND back.content = first.content AND back.how IN ('retrieved', 'searched')))
        FROM (SELECT DISTINCT session, content, kind, tool FROM sighting
            WHERE how = 'stored' AND kind <> '') AS first
        GROUP BY kind, tool ORDER BY kind, tool"""
    )
    return [Asked(unname(kind), unname(tool), int(count), int(back)) for kind, tool, count, back in rows]


def sessions_of(conn: Connection, sha256: str) -> list[str]:
    """The sessions that saw a content."""
    rows = conn.execute(
        "SELECT DISTINCT session FROM sighting JOIN content ON content = key WHERE sha256 = ?",
        (name(sha256),),
    )
    return [unname(session) for (session,) in rows]


def turn(conn: Connection, session: str) -> int:
    """The session's turn; 0 before the first."""
    row = conn.execute("SELECT turn FROM session WHERE id = ?", (name(session),)).fetchone()
    return int(row[0]) if row else 0


def repair(conn: Connection, arrival: Arrival) -> None:
    """Replace damaged bytes by good ones."""
    conn.execute(
        "UPDATE content SET codec = ?, data = ?, size = ? WHERE sha256 = ?",
        (arrival.codec, arrival.packed, arrival.size, arrival.sha256),
    )


def _free_id(conn: Connection, sha256: str, data: bytes, short_hash: ShortHash) -> str:
    for length in ID_LENGTHS:
        marker = short_hash(data, length)
        if conn.execute("SELECT 1 FROM content WHERE marker = ?", (marker,)).fetchone() is None:
            return marker
    return sha256


def see(conn: Connection, key: int, sighting: Sighting, now: float) -> None:
    """Record a sighting; session and content count as used now."""
    touch(conn, sighting.session, now)
    conn.execute("UPDATE content SET used_at = ? WHERE key = ? AND used_at < ?", (now, key, now))
    conn.execute(
        """INSERT INTO sighting (session, content, turn, how, call_id, kind, tool, call, at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (session, content, turn, how, call_id) DO UPDATE SET at = excluded.at
        WHERE sighting.at < excluded.at""",
        (
            name(sighting.session), key, sighting.turn, sighting.how, name(sighting.call_id),
            name(sighting.kind), name(sighting.tool), free(sighting.call), now,
        ),
    )  # fmt: skip


def save(conn: Connection, session: str, saving: Saving) -> None:
    """Add to the session's sums."""
    conn.execute(
        """INSERT INTO saving (session, results, came_in, shown, had_back) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (session) DO UPDATE SET
            results = saving.results + excluded.results, came_in = saving.came_in + excluded.came_in,
            shown = saving.shown + excluded.shown, had_back = saving.had_back + excluded.had_back""",
        (name(session), saving.results, saving.came_in, saving.shown, saving.had_back),
    )


def touch(conn: Connection, session: str, now: float) -> None:
    """Mark a session as used, and make it known if it is not."""
    conn.execute(
        """INSERT INTO session (id, used_at) VALUES (?, ?)
        ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at WHERE session.used_at < excluded.used_at""",
        (name(session), now),
    )


def adopt(conn: Connection, session: str, parent: str, now: float) -> None:
    """Give a session its parent, unless it has one: a scope never changes hands."""
    touch(conn, parent, now)
    conn.execute(
        "UPDATE session SET parent = ? WHERE id = ? AND parent IS NULL AND id <> ?",
        (name(parent), name(session), name(parent)),
    )


def next_turn(conn: Connection, session: str, now: float) -> int:
    """Count the session's turn up."""
    touch(conn, session, now)
    row = conn.execute("UPDATE session SET turn = turn + 1 WHERE id = ? RETURNING turn", (name(session),))
    return int(row.fetchall()[0][0])


def last_sighting(conn: Connection, sha256: str, scope: str | None) -> tuple[str, int, str, str]:
    """Session, turn, kind and tool of the latest sighting that a session may know of."""
    query = """SELECT session, turn, sighting.kind, sighting.tool FROM sighting JOIN content ON content = key
        WHERE sha256 = ? """
    latest = "ORDER BY at DESC, turn DESC LIMIT 1"
    if scope is None:
        row = conn.execute(query + latest, (sha256,)).fetchone()
    else:
        row = conn.execute(
            f"{SCOPE} {query} AND session IN (SELECT id FROM scope) {latest}", (name(scope), sha256)
        ).fetchone()
    session, turn_number, kind, tool = row or ("", 0, "", "")
    return unname(session), int(turn_number), unname(kind), unname(tool)
