"""What a store of originals is: the protocol, its records, and how text and bytes become each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from turngate.store.ledger import LedgerStore

#: Replaces secrets by ``[redacted:kind]``. Must keep line breaks, so that line numbers stay true.
Redactor = Callable[[str], str]
#: ``(content, length) -> id`` of so many lowercase hex digits.
ShortHash = Callable[[bytes, int], str]

REDACTED_NOTE = "secrets were replaced before this was stored; it is not the original byte for byte"


def to_bytes(text: str) -> bytes:
    """UTF-8; lone surrogates, which JSON can carry, survive."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """The text of `data`: the inverse of `to_bytes`; bytes that are not UTF-8 become lone surrogates."""
    return decode(data)[0]


def decode(data: bytes) -> tuple[str, str]:
    """The text of `data` and the error handler with which `encode` turns it into the same bytes again."""
    try:
        return data.decode("utf-8", "surrogatepass"), "surrogatepass"
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), "surrogateescape"


@dataclass(frozen=True, slots=True)
class Stored:
    """The answer to a put; what it says is on disk."""

    id: str
    """The marker id: 16 hex digits, more for a later content whose shorter ids were taken."""
    sha256: str
    """The content's hash, 64 hex digits."""
    size: int
    """Bytes of the stored content."""
    new: bool
    """Whether the store did not hold this content before."""
    redacted: bool
    """Whether secrets were replaced, so that the stored content is not the original."""


@dataclass(frozen=True, slots=True)
class Original:
    """Content as it was stored, checked against its hash."""

    id: str
    """The marker id."""
    sha256: str
    """The hash of `data`."""
    data: bytes
    """The bytes that were put in."""
    redacted: bool
    """Whether secrets were replaced before it was stored."""
    kind: str
    """Kind of output, as first stored."""
    tool: str
    """The tool it came from, as first stored."""

    @property
    def text(self) -> str:
        """`data` as text."""
        return to_text(self.data)


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored content that answers a search, with the lines that answer."""

    id: str
    """The marker id."""
    sha256: str
    """The content's hash."""
    session: str
    """A session in scope that saw it."""
    turn: int
    """The latest turn in which that session saw it."""
    kind: str
    """Kind of output."""
    tool: str
    """The tool it came from."""
    total_lines: int
    """Lines of the whole content."""
    lines: tuple[tuple[int, str], ...]
    """1-based numbers and texts of matching lines and their neighbours, best passage first. An over-long
    line is given in pieces, each marked with `…` where it was cut."""
    score: float
    """Larger is better; comparable within one search only."""
    matches: tuple[tuple[int, float], ...] = ()
    """Numbers of those of `lines` that match, best first, each with the share of what was asked for that it
    has by itself, 0 to 1. The other lines are their neighbours, or an end of the text that was asked for."""


@dataclass(frozen=True, slots=True)
class GcReport:
    """What a `gc` removed and what it left."""

    removed: int
    """Contents removed."""
    removed_bytes: int
    """Their size before compression."""
    freed_bytes: int
    """By how much the files on disk shrank."""
    disk_bytes: int
    """Size of the files on disk now."""
    over_limit: bool
    """Whether what live sessions have in view exceeds the limit by itself."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Estimated tokens kept out of view, and what came back of them."""

    results: int = 0
    """Results that were shortened."""
    came_in: int = 0
    """Tokens of their originals."""
    shown: int = 0
    """Tokens that were shown for them, markers included."""
    had_back: int = 0
    """Tokens of what was retrieved or searched."""

    @property
    def tokens(self) -> int:
        """Saved, net; may be negative."""
        return self.came_in - self.shown - self.had_back


@dataclass(frozen=True, slots=True)
class Asked:
    """How often something was asked for of what was shortened as one kind, from one tool."""

    kind: str
    """Kind of output."""
    tool: str
    """The tool."""
    shortened: int
    """Results that were shortened, each content once a session."""
    asked: int
    """Of these, how many were retrieved, or were a search's best answer, in their session."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Counts and sizes, of all sessions or of what one session may see."""

    contents: int
    """Distinct contents."""
    content_bytes: int
    """Their size before compression."""
    stored_bytes: int
    """Their size after compression."""
    sightings: int
    """How often a session saw a content."""
    sessions: int
    """Sessions: all, or the one asked for and its ancestors."""
    pending: int
    """Contents that are not in the search index yet."""
    disk_bytes: int
    """Size of the files on disk, index included; always of the whole store."""
    saving: Saving
    """What all processes together saved, or the session by itself."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something `check` found."""

    what: str
    """What is wrong."""
    remedy: str
    """What to do about it."""
    severe: bool
    """False: worth knowing. True: originals are lost, or new ones cannot be taken."""


class Store(Protocol):
    """Content-addressed originals. Every method may raise a `StoreError`, and nothing else on purpose.

    A session sees what it or one of its ancestors stored or noted; ``session=None`` sees everything.
    """

    @property
    def ledger(self) -> LedgerStore:
        """What was sent."""
        ...

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

        `call` is what brought it about, such as a tool's name and arguments: a search finds it by that too.
        `saving` is added to the session's sums.
        """
        ...

    def get(self, ref: str, *, session: str | None = None) -> Original:
        """The content whose marker id or full SHA-256 is exactly `ref`."""
        ...

    def known(self, refs: Iterable[str], *, session: str) -> dict[str, str]:
        """Those of `refs` that this session may see, each with its full hash."""
        ...

    def asked(self) -> list[Asked]:
        """By kind and tool, over all sessions: how much of what was shortened was asked for."""
        ...

    def sessions_of(self, sha256: str) -> list[str]:
        """The sessions that saw a content."""
        ...

    def search(
        self,
        query: str,
        *,
        session: str | None,
        limit: int = 10,
        all_sessions: bool = False,
        limit_chars: int = 8_000,
    ) -> list[Hit]:
        """Contents that answer `query`, best first, with at most `limit_chars` characters of lines."""
        ...

    def note(self, session: str, sha256: str, *, turn: int, how: str, saving: Saving | None = None) -> None:
        """Record that `session` saw a content in another way than storing it (`retrieved`, `searched`).

        `saving` is added to the session's sums.
        """
        ...

    def together(self) -> AbstractContextManager[None]:
        """A block in which this thread's writes are one transaction: durable when it ends, or none of them.

        Within it, each write counts for this thread at once. Others wait from the first of them to the end.
        """
        ...

    def open_session(self, id: str, *, parent: str | None = None) -> None:  # noqa: A002 - the contract's name
        """Make a session known. The first parent it is given stays its parent."""
        ...

    def next_turn(self, session: str) -> int:
        """Count up the session's turn, and return it; the first is 1."""
        ...

    def turn(self, session: str) -> int:
        """The session's turn; 0 before the first."""
        ...

    def touch(self, session: str) -> None:
        """Mark the session as used now."""
        ...

    def load_state(self, session: str, room: str) -> tuple[bytes | None, int]:
        """What a room keeps for the session, and its version; (None, 0) before it was first saved."""
        ...

    def save_state(self, session: str, room: str, body: bytes, expected_version: int) -> int:
        """Keep `body` for the session; it is durable when this returns. Returns its version.

        Raises:
            StoreConflictError: it is no longer of the version expected.
        """
        ...

    def gc(self, *, now: float | None = None) -> GcReport:
        """Enforce age and size limits; never removes what is in view of a live session."""
        ...

    def stats(self, *, session: str | None = None) -> StoreStats:
        """Counts and sizes."""
        ...

    def check(self) -> list[Problem]:
        """What is wrong with the store, without changing it."""
        ...

    def close(self) -> None:
        """Let go of files; a later call opens them again."""
        ...
