"""The ledger's tables: what each message of a conversation was sent as, and which requests were made.

Everything is keyed by content (a chain of hashes), so forks, retries and replicas meet in the same rows: what
is there first stays, and whoever comes later reads it back. Rows that a live session needs are kept.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from turngate.errors import StoreCorruptError
from turngate.store import codec, records
from turngate.store.guard import store_errors

if TYPE_CHECKING:
    from sqlite3 import Connection

    from turngate.store.base import Redactor
    from turngate.store.connections import Connections
    from turngate.store.limits import Limits

#: Parameters per statement stay well below SQLite's limit.
_CHUNK = 500
#: Smaller values are laid down as they are. A session of 2,000 turns has as many of them to read at once, and
#: opening a frame of zstd takes ten times as long as checking the hash of a few kilobytes.
_PACKED_FROM_BYTES = 4096
#: What a row of each table takes on disk beside its values, for the size limit; rounded up.
_ROW_BYTES = 400
#: The walk to the root ends here; no conversation has so many messages.
_MAX_DEPTH = 1_000_000

PathSteps = tuple[str | int, ...]
Call = tuple[str, str]
"""Id of a tool call, and hash of a text of its result as it came."""


@dataclass(frozen=True, slots=True)
class EditRow:
    """One value that stands in what was sent, in place of what the client has or beside it."""

    op: str
    """What is done with the value; the ledger's word."""
    path: PathSteps
    """Where in the message."""
    sha256: str
    """The value's hash."""
    origin: str = ""
    """Full hash of the stored original that the value stands for; "" if there is none."""


_NOTHING = EditRow("", (), "")
"""Says that a session has nothing to add."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A message at its place in a history, and what it was sent as."""

    key: bytes
    """Hash of the parent's key and `digest`."""
    parent: bytes
    """Key of the message before it, or of the root."""
    digest: bytes
    """Hash of the message's canonical form."""
    role: str
    """Its role."""
    policy: str
    """Version of the policy that decided."""
    epoch: int
    """The epoch in which it was first sent."""
    edits: tuple[EditRow, ...] = ()
    """Empty: it was sent as the client has it."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the store holds of a node."""

    policy: str
    """Version of the policy that decided."""
    epoch: int
    """The epoch in which it was first sent."""
    edits: tuple[EditRow, ...] = ()
    """Empty: it was sent as the client has it."""


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """What became of one text of a tool result, wherever it stands."""

    sha256: str
    """Hash of the value; "": it passed whole."""
    origin: str = ""
    """Full hash of the stored original."""


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One request of a session, and how its prefix compares with those before."""

    session: str
    """The session, or the ledger's name for a scope without one."""
    tip: bytes
    """Key of its last message."""
    depth: int
    """How many messages of the chain it had."""
    tools: bytes
    """Hash of the tools."""
    system: bytes
    """Hash of the system prompt."""
    epoch: int
    """The session's epoch."""
    policy: str
    """Version of the policy in force."""
    turn: int = 0
    """The session's turn."""
    reason: str = ""
    """Why its prefix broke; "": it did not."""
    place: int = -1
    """Index of the message where it broke; -1 for what stands before the messages."""
    detail: str = ""
    """The break in words."""
    seq: int = 0
    """Its number in the session, from 1; given by the store."""
    at: float = 0.0
    """Unix time; given by the store."""


@dataclass(frozen=True, slots=True)
class Page:
    """What the ledger's tables hold of a history."""

    nodes: dict[bytes, Held]
    """By key; a key that is missing was never decided."""
    attached: dict[bytes, tuple[EditRow, ...]]
    """By key: what belongs to the session. A key that is missing was never decided in this session."""
    values: dict[str, bytes]
    """By hash; a value that is missing was decided and is lost."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one request adds; written in one transaction."""

    scope: bytes
    """The root's key."""
    owner: str
    """Whose request it is: a session, or the ledger's name for a scope without one."""
    session: str = ""
    """The session that attachments belong to; "" where none is known."""
    nodes: tuple[NodeRow, ...] = ()
    """Messages decided now."""
    attached: tuple[tuple[bytes, tuple[EditRow, ...]], ...] = ()
    """Attachments decided now, by node."""
    decisions: tuple[tuple[str, str, DecisionRow], ...] = ()
    """(call, hash of the text as it came, decision)."""
    values: Mapping[str, bytes] = field(default_factory=dict)
    """The values that these rows name, by hash."""
    request: RequestRow | None = None
    """The request itself."""


class LedgerStore(Protocol):
    """The ledger's part of a store. Every method may raise a `StoreError`, and nothing else on purpose."""

    def load(self, keys: Sequence[bytes], *, session: str = "") -> Page:
        """What is recorded under these keys, in the order of their messages; perhaps of others, too."""
        ...

    def decisions(
        self, scope: bytes, wanted: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], DecisionRow]:
        """Those (call, content hash) that were decided in this scope."""
        ...

    def values(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """Those values that are there."""
        ...

    def record(self, entry: Entry) -> Page:
        """Write what is not there yet, durably; returns what is there now under the entry's keys."""
        ...

    def requests(self, session: str, *, limit: int = 16, broken: bool = False) -> list[RequestRow]:
        """The session's latest requests, newest first; with `broken` those whose prefix broke."""
        ...

    def chain(self, tip: bytes) -> list[NodeRow]:
        """The node `tip` and all before it, oldest first, without their edits."""
        ...

    def redacted(self, text: str) -> str:
        """`text` as it may be laid down: the same object, unless the store replaces secrets."""
        ...


class RelationalLedger:
    """`LedgerStore` in the database of a `RelationalStore`."""

    def __init__(
        self,
        where: str,
        connections: Connections,
        limits: Limits,
        *,
        clock: Callable[[], float],
        redactor: Redactor | None,
    ) -> None:
        """`redactor`: None where secrets may be laid down."""
        self._where = where
        self._connections = connections
        self._limits = limits
        self._clock = clock
        self._redactor = redactor

    def load(self, keys: Sequence[bytes], *, session: str = "") -> Page:
        """What is recorded under these keys."""
        with store_errors(self._where), self._connections.reader() as conn:
            return _load(conn, keys, session)

    def decisions(
        self, scope: bytes, wanted: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], DecisionRow]:
        """Those (call, content hash) that were decided in this scope."""
        found = {}
        query = "SELECT value, origin FROM ledger_decision WHERE scope = ? AND call = ? AND content = ?"
        with store_errors(self._where), self._connections.reader() as conn:
            for call, content in wanted:
                row = conn.execute(query, (scope, records.name(call), content)).fetchone()
                if row is not None:
                    found[call, content] = DecisionRow(*row)
        return found

    def values(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """Those values that are there."""
        with store_errors(self._where), self._connections.reader() as conn:
            return dict(_values(conn, dict.fromkeys(hashes)))

    def record(self, entry: Entry) -> Page:
        """Write what is not there yet, durably; returns what is there now under the entry's keys.

        Raises:
            StoreFullError: the limit is reached and all that could go is in view of live sessions.
            StoreUnavailableError: the file cannot be written just now.
        """
        now = self._clock()
        packed = {sha256: (len(data), *_pack(data)) for sha256, data in entry.values.items()}
        rows = len(entry.nodes) + len(entry.attached) + len(entry.decisions) + 1
        size = sum(len(data) for _, _, data in packed.values()) + rows * _ROW_BYTES
        keys = [node.key for node in entry.nodes] + [key for key, _ in entry.attached]

        def job(conn: Connection) -> Page:
            _write(conn, entry, packed, now)
            return _load(conn, keys, entry.session)

        with store_errors(self._where):
            self._limits.make_room(size, now)
            return self._connections.write(job)

    def requests(self, session: str, *, limit: int = 16, broken: bool = False) -> list[RequestRow]:
        """The session's latest requests, newest first; with `broken` those whose prefix broke."""
        query = (
            "SELECT session, tip, depth, tools, system, epoch, policy, turn, reason, place, detail, seq, at "
            "FROM ledger_request WHERE session = ? AND (reason <> '' OR ? = 0) ORDER BY seq DESC LIMIT ?"
        )
        with store_errors(self._where), self._connections.reader() as conn:
            rows = conn.execute(query, (records.name(session), int(broken), limit)).fetchall()
        return [RequestRow(records.unname(row[0]), *row[1:]) for row in rows]

    def chain(self, tip: bytes) -> list[NodeRow]:
        """The node `tip` and all before it, oldest first, without their edits."""
        query = f"""WITH RECURSIVE chain(key, parent, digest, role, policy, epoch, n) AS (
            SELECT key, parent, digest, role, policy, epoch, 0 FROM ledger_node WHERE key = ?
            UNION ALL SELECT node.key, node.parent, node.digest, node.role, node.policy, node.epoch, n + 1
            FROM ledger_node AS node JOIN chain ON node.key = chain.parent LIMIT {_MAX_DEPTH})
            SELECT key, parent, digest, role, policy, epoch FROM chain ORDER BY n DESC"""
        with store_errors(self._where), self._connections.reader() as conn:
            return [NodeRow(*row) for row in conn.execute(query, (tip,))]

    def redacted(self, text: str) -> str:
        """`text` as it may be laid down: the same object, unless the store replaces secrets."""
        if self._redactor is None:
            return text
        clean = self._redactor(text)
        return text if clean == text else clean


def forget(conn: Connection, *, live: str, live_since: float, older_than: float) -> None:
    """Remove what was written before `older_than` and no live session needs.

    Args:
        conn: inside a transaction.
        live: a recursive table ``live(id)`` of the sessions that are live, which reads ``:live_since``.
        live_since: requests since then count as live, whoever made them.
        older_than: Unix time.
    """
    times = {"live_since": live_since, "older_than": older_than}
    # No request ends with a reply that waits for its echo; what it answers does.
    pinned = "at >= :live_since OR session IN (SELECT id FROM live WHERE id IS NOT NULL)"
    conn.execute(
        f"""{live}, kept(key) AS (
            SELECT tip FROM ledger_request WHERE {pinned}
            UNION SELECT node.parent FROM ledger_node AS node JOIN kept ON node.key = kept.key)
        DELETE FROM ledger_node WHERE at < :older_than AND key NOT IN (SELECT key FROM kept)
        AND NOT (role = 'reply' AND parent IN (SELECT key FROM kept))""",
        times,
    )
    conn.execute(f"{live} DELETE FROM ledger_request WHERE at < :older_than AND NOT ({pinned})", times)
    conn.execute("DELETE FROM ledger_edit WHERE node NOT IN (SELECT key FROM ledger_node)")
    conn.execute(
        f"""{live} DELETE FROM ledger_decision WHERE at < :older_than AND at < :live_since
        AND owner NOT IN (SELECT id FROM live WHERE id IS NOT NULL)
        AND value NOT IN (SELECT value FROM ledger_edit)""",
        times,
    )
    conn.execute(
        """DELETE FROM ledger_value WHERE sha256 NOT IN
        (SELECT value FROM ledger_edit UNION SELECT value FROM ledger_decision)"""
    )


def _pack(data: bytes) -> tuple[str, bytes]:
    return codec.pack(data) if len(data) >= _PACKED_FROM_BYTES else (codec.RAW, data)


def _write(conn: Connection, entry: Entry, packed: Mapping[str, tuple[int, str, bytes]], now: float) -> None:
    records.touch(conn, entry.owner, now)
    keys = {sha256: _write_value(conn, sha256, laid) for sha256, laid in packed.items()}
    for node in entry.nodes:
        done = conn.execute(
            "INSERT INTO ledger_node VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (node.key, node.parent, node.digest, node.role, node.policy, node.epoch, now),
        )
        if done.rowcount:
            _write_edits(conn, node.key, "", node.edits, keys)
    for key, edits in entry.attached:
        _write_edits(conn, key, entry.session, edits or (_NOTHING,), keys)
    conn.executemany(
        "INSERT INTO ledger_decision VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (entry.scope, records.name(call), content, row.sha256, row.origin, records.name(entry.owner), now)
            for call, content, row in entry.decisions
        ],
    )
    if entry.request is not None:
        _write_request(conn, entry.request, now)


def _write_value(conn: Connection, sha256: str, laid: tuple[int, str, bytes]) -> int:
    """Lay a value down, also in the place of a damaged one; returns its key."""
    rows = conn.execute(
        """INSERT INTO ledger_value (sha256, size, codec, data) VALUES (?, ?, ?, ?)
        ON CONFLICT (sha256) DO UPDATE SET size = excluded.size, codec = excluded.codec, data = excluded.data
        RETURNING key""",
        (sha256, *laid),
    )
    return int(rows.fetchall()[0][0])


def _write_edits(
    conn: Connection, node: bytes, session: str, edits: tuple[EditRow, ...], keys: Mapping[str, int]
) -> None:
    """All of them, unless somebody was first."""
    whose = records.name(session)
    for place, edit in enumerate(edits):
        done = conn.execute(
            "INSERT INTO ledger_edit VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                node, whose, place, edit.op, json.dumps(edit.path), edit.sha256, keys.get(edit.sha256, 0),
                edit.origin,
            ),
        )  # fmt: skip
        if not done.rowcount:
            return


def _write_request(conn: Connection, row: RequestRow, now: float) -> None:
    session = records.name(row.session)
    conn.execute(
        """INSERT INTO ledger_request
        SELECT ?, coalesce(max(seq), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
        FROM ledger_request WHERE session = ?""",
        (
            session, row.turn, row.tip, row.depth, row.tools, row.system, row.epoch, row.policy,
            row.reason, row.place, row.detail, now, session,
        ),
    )  # fmt: skip


#: A history is walked from its last known message back, which takes one query however long it is.
_WALK = f"""WITH RECURSIVE found(key, parent, policy, epoch) AS (
    SELECT key, parent, policy, epoch FROM ledger_node WHERE key = ?
    UNION ALL SELECT node.key, node.parent, node.policy, node.epoch
    FROM ledger_node AS node JOIN found ON node.key = found.parent LIMIT {_MAX_DEPTH})"""
_PICK = """WITH found(key, policy, epoch) AS (
    SELECT key, policy, epoch FROM ledger_node WHERE key IN ({marks}))"""
_WITH_EDITS = """SELECT found.key, policy, epoch, edit.session, edit.op, edit.path, edit.value, edit.origin,
    size, codec, data FROM found
    LEFT JOIN ledger_edit AS edit ON edit.node = found.key AND edit.session IN ('', ?)
    LEFT JOIN ledger_value AS value ON value.key = edit.value_key"""


def _load(conn: Connection, keys: Sequence[bytes], session: str) -> Page:
    if not keys:
        return Page({}, {}, {})
    whose = records.name(session)
    if len(keys) <= _CHUNK:
        pick = _PICK.format(marks=",".join("?" * len(keys)))
        rows = conn.execute(pick + _WITH_EDITS, (*keys, whose))
    else:
        known = bisect_left(range(len(keys)), True, key=lambda at: not _is_known(conn, keys[at]))
        rows = conn.execute(_WALK + _WITH_EDITS, (keys[known - 1] if known else b"", whose))
    page = _page(rows, session)
    lost = {row.sha256 for edits in _all_edits(page) for row in edits} - page.values.keys()
    page.values.update(_values(conn, lost))
    return page


def _all_edits(page: Page) -> Iterator[tuple[EditRow, ...]]:
    for node in page.nodes.values():
        yield node.edits
    yield from page.attached.values()


def _is_known(conn: Connection, key: bytes) -> bool:
    return conn.execute("SELECT 1 FROM ledger_node WHERE key = ?", (key,)).fetchone() is not None


def _page(rows: Iterable[tuple[Any, ...]], session: str) -> Page:
    """The page that rows make; those of one node stand one behind the other."""
    nodes: dict[bytes, Held] = {}
    attached: dict[bytes, tuple[EditRow, ...]] = {}
    values: dict[str, bytes] = {}
    plain: dict[tuple[str, int], Held] = {}
    for key, policy, epoch, whose, op, path, value, origin, *laid in rows:
        if key not in nodes:
            # Most messages are as they came; they share what is held of them.
            nodes[key] = plain.get((policy, epoch)) or plain.setdefault((policy, epoch), Held(policy, epoch))
        if not op:
            if op is not None and session:
                attached[key] = ()
            continue
        edit = EditRow(op, _path(path), value, origin)
        if whose == "":
            nodes[key] = Held(policy, epoch, (*nodes[key].edits, edit))
        elif session:
            attached[key] = (*attached.get(key, ()), edit)
        if value not in values and (data := _unpacked(value, *laid)) is not None:
            values[value] = data
    return Page(nodes, attached, values)


@lru_cache(maxsize=4096)
def _path(spelled: str) -> PathSteps:
    """A path as it is laid down; the same few come again and again."""
    return tuple(json.loads(spelled))


def _values(conn: Connection, hashes: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    query = "SELECT size, codec, data FROM ledger_value WHERE sha256 = ?"
    for sha256 in hashes:
        row = conn.execute(query, (sha256,)).fetchone()
        data = _unpacked(sha256, *row) if row is not None else None
        if data is not None:
            yield sha256, data


def _unpacked(sha256: str, size: object, used: object, data: object) -> bytes | None:
    """The value; None when it is missing or damaged: then it is lost, which the ledger tells and mends."""
    if used is None:
        return None
    try:
        return codec.unpack(str(used), data, size=int(str(size)), sha256=sha256)
    except StoreCorruptError:
        return None
