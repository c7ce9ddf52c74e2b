"""What a store does, over the tables of a relational database: the same for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from turngate.errors import StoreConflictError, StoreCorruptError, UnknownContentError
from turngate.settings import StoreSettings
from turngate.store import codec, records, state
from turngate.store.base import (
    Asked,
    GcReport,
    Hit,
    Original,
    Problem,
    Redactor,
    Saving,
    ShortHash,
    Stored,
    StoreStats,
    decode,
)
from turngate.store.guard import store_errors
from turngate.store.health import check
from turngate.store.index import Index
from turngate.store.ledger import RelationalLedger
from turngate.store.limits import Limits, statistics
from turngate.store.records import Arrival, Sighting
from turngate.store.search import search

if TYPE_CHECKING:
    from sqlite3 import Connection

    from turngate.store.connections import Connections
    from turngate.store.disk import Disk
    from turngate.store.lexicon import Lexicon

Clock = Callable[[], float]

#: Enough to tell one call from another; a file that is written whole is no name for its result.
_MAX_CALL_CHARS = 2_000


def short_hash(data: bytes, length: int) -> str:
    """The first `length` hex digits of the content's hash."""
    return codec.digest(data)[:length]


class RelationalStore:
    """Originals in a database. Thread-safe, and safe beside other processes.

    Nothing is opened before the first call, so a store whose database is away can be made, and works as soon
    as it is back.
    """

    def __init__(
        self,
        connections: Connections,
        lexicon: Lexicon,
        disk: Disk,
        settings: StoreSettings,
        *,
        where: str,
        short_hash: ShortHash,
        clock: Clock,
        redactor: Redactor,
    ) -> None:
        """Bring the parts together; `where` says in messages which database it is."""
        self.settings = settings
        self.where = where
        self._short_hash = short_hash
        self._clock = clock
        self._redactor = redactor
        self._connections = connections
        self._disk = disk
        self._index = Index(lexicon, disk, connections, redactor, max_bytes=settings.max_bytes)
        self._limits = Limits(where, settings, connections, self._index, disk)
        #: What was sent: the ledger's tables.
        self.ledger = RelationalLedger(
            where,
            connections,
            self._limits,
            clock=clock,
            redactor=redactor if settings.redact else None,
        )

    def put(
        self,
        data: bytes,
        *,
        session: str,
        turn: int = 0,
        kind: str = "",
        tool: str = "",
        call_id: str = "",
        call: str = "",
        saving: Saving | None = None,
    ) -> Stored:
        """Store `data`; it is durable when this returns.

        Args:
            data: the exact bytes.
            session: who sees it.
            turn: when.
            kind: kind of output.
            tool: the tool it came from.
            call_id: the host's id of the tool call.
            call: what brought it about, such as the tool's name and arguments; a search finds the content by
                these words too. Secrets in it are always replaced, and a long one is cut.
            saving: what is added to the session's sums, with the content or not at all.

        Raises:
            StoreFullError: the limit is reached and all that could go is in view of live sessions.
            StoreUnavailableError: the file cannot be written just now.
            StoreCorruptError: the file is damaged.
        """
        data, redacted = self._without_secrets(data)
        sha256, now = codec.digest(data), self._clock()
        sighting = Sighting(
            session, turn, "stored", call_id, kind, tool, self._redactor(call)[:_MAX_CALL_CHARS]
        )
        with store_errors(self.where):
            held, damaged = self._held(sha256)
            packed = None if held else codec.pack(data)
            if packed:
                self._limits.make_room(len(packed[1]), now)

            def job(conn: Connection) -> tuple[str, bool]:
                # What was held may have been collected since; then it is laid down after all.
                needed = damaged or not records.holds(conn, sha256)
                used, laid = (packed or codec.pack(data)) if needed else ("", b"")
                arrival = Arrival(sha256, len(data), used, laid, redacted)
                if damaged:
                    records.repair(conn, arrival)
                if saving:
                    records.save(conn, session, saving)
                return records.add(conn, arrival, sighting, short_hash=self._short_hash, data=data, now=now)

            marker, new = self._connections.write(job)
        return Stored(marker, sha256, len(data), new, redacted)

    def get(self, ref: str, *, session: str | None = None) -> Original:
        """The content whose marker id or full SHA-256 is exactly `ref`; checked against its hash.

        Raises:
            UnknownContentError: there is none that this session may see.
            StoreCorruptError: it is damaged; the message names the hash.
        """
        with store_errors(self.where), self._connections.reader() as conn:
            original = records.load(conn, ref, session)
        if original is None:
            where = "" if session is None else f" that session {session!r} may see"
            raise UnknownContentError(f"the store holds no content {ref!r}{where}; search for words of it")
        return original

    def known(self, refs: Iterable[str], *, session: str) -> dict[str, str]:
        """Those of `refs` that this session may see, each with its full hash."""
        with store_errors(self.where), self._connections.reader() as conn:
            return records.known(conn, refs, session)

    def search(
        self,
        query: str,
        *,
        session: str | None,
        limit: int = 10,
        all_sessions: bool = False,
        limit_chars: int = 8_000,
    ) -> list[Hit]:
        """Contents that answer `query`, best first, with at most `limit_chars` characters of lines.

        Reads what the index reads: where secrets were replaced for it, they are in the lines.
        """
        scope = None if all_sessions else session
        with store_errors(self.where):
            return search(
                self._connections, self._index, query, scope=scope, limit=limit, limit_chars=limit_chars
            )

    def note(self, session: str, sha256: str, *, turn: int, how: str, saving: Saving | None = None) -> None:
        """Record that `session` saw a content in another way than storing it; from then on it may see it.

        Raises:
            UnknownContentError: there is no such content.
        """
        now = self._clock()

        def job(conn: Connection) -> bool:
            if saving:
                records.save(conn, session, saving)
            return records.note(conn, sha256, Sighting(session, turn, how), now)

        with store_errors(self.where):
            noted = self._connections.write(job)
        if not noted:
            raise UnknownContentError(f"the store holds no content {sha256!r} to note")

    def asked(self) -> list[Asked]:
        """By kind and tool, over all sessions: how much of what was shortened was asked for."""
        with store_errors(self.where), self._connections.reader() as conn:
            return records.asked(conn)

    def sessions_of(self, sha256: str) -> list[str]:
        """The sessions that saw a content."""
        with store_errors(self.where), self._connections.reader() as conn:
            return records.sessions_of(conn, sha256)

    @contextmanager
    def together(self) -> Iterator[None]:
        """A block in which this thread's writes are one transaction: durable when it ends, or none of them.

        Raises:
            StoreUnavailableError: the file cannot be written just now.
        """
        with store_errors(self.where), self._connections.together():
            yield

    def open_session(self, id: str, *, parent: str | None = None) -> None:  # noqa: A002 - the contract's name
        """Make a session known. The first parent it is given stays its parent."""
        now = self._clock()

        def job(conn: Connection) -> None:
            records.touch(conn, id, now)
            if parent is not None:
                records.adopt(conn, id, parent, now)

        with store_errors(self.where):
            self._connections.write(job)

    def next_turn(self, session: str) -> int:
        """Count up the session's turn, and return it; the first is 1."""
        now = self._clock()
        with store_errors(self.where):
            return self._connections.write(lambda conn: records.next_turn(conn, session, now))

    def turn(self, session: str) -> int:
        """The session's turn; 0 before the first."""
        with store_errors(self.where), self._connections.reader() as conn:
            return records.turn(conn, session)

    def touch(self, session: str) -> None:
        """Mark the session as used now."""
        now = self._clock()
        with store_errors(self.where):
            self._connections.write(lambda conn: records.touch(conn, session, now))

    def load_state(self, session: str, room: str) -> tuple[bytes | None, int]:
        """What a room keeps for the session, and its version; (None, 0) before it was first saved."""
        with store_errors(self.where), self._connections.reader() as conn:
            return state.load_state(conn, session, room)

    def save_state(self, session: str, room: str, body: bytes, expected_version: int) -> int:
        """Keep `body` for the session; it is durable when this returns. Returns its version.

        Raises:
            StoreConflictError: it is no longer of the version expected.
        """
        now = self._clock()
        with store_errors(self.where):
            version = self._connections.write(
                lambda conn: state.save_state(conn, session, room, body, expected_version, now=now)
            )
        if version is None:
            raise StoreConflictError(
                f"the state {room!r} of session {session!r} is not of version {expected_version} any more; "
                "load it again and repeat the change"
            )
        return version

    def drain(self) -> int:
        """Bring everything pending into the search index; returns how many contents that were.

        A search does so by itself; a host that is idle may do it earlier.
        """
        with store_errors(self.where):
            return self._index.drain(None)

    def gc(self, *, now: float | None = None) -> GcReport:
        """Enforce age and size limits; never removes what is in view of a live session."""
        with store_errors(self.where):
            return self._limits.collect(self._clock() if now is None else now)

    def stats(self, *, session: str | None = None) -> StoreStats:
        """Counts and sizes, of everything or of what one session may see."""
        with store_errors(self.where), self._connections.reader() as conn:
            return statistics(conn, self._disk, session)

    def check(self) -> list[Problem]:
        """What is wrong with the store, without changing it; reads every content."""
        return check(self.where, self.settings, self._connections, self._disk, self._clock())

    def close(self) -> None:
        """Let go of files; a later call opens them again."""
        self._connections.close()

    def _held(self, sha256: str) -> tuple[bool, bool]:
        """Whether the content is stored intact, and whether it is stored but damaged."""
        try:
            with self._connections.reader() as conn:
                return records.load(conn, sha256, None) is not None, False
        except StoreCorruptError:
            return False, True

    def _without_secrets(self, data: bytes) -> tuple[bytes, bool]:
        """What is to be stored, and whether it differs from `data`."""
        if not self.settings.redact:
            return data, False
        text, errors = decode(data)
        clean = self._redactor(text)
        return (data, False) if clean == text else (clean.encode("utf-8", errors), True)
