"""What a session remembers of the results that it has shown, and what that makes of a new one.

It is kept in the store, so that a session decides after a restart as it would have without.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from turngate import across
from turngate.across import Base, Entry, Memory, memory
from turngate.across.memory import shown_digest
from turngate.across.shown import referable
from turngate.errors import StoreConflictError, StoreCorruptError, UnknownContentError
from turngate.events import label, tool_event
from turngate.store import redact

if TYPE_CHECKING:
    from turngate.across.memory import InView, Standing
    from turngate.ingress import Arrival
    from turngate.store import Store

#: Under this name the store keeps it.
ROOM: Final = "across"
#: Results of fewer tokens are neither remembered nor replaced: a marker takes about fifty.
LEAST_TOKENS: Final = 100
#: Texts whose lines are compared: long and short enough to be worth it.
LEAST_LINES: Final = 8
MOST_CHARS: Final = 256 * 1024
#: The newest whole results whose lines are looked at, and those of them, with the most lines in common, that
#: are compared.
_LOOKED_AT, _COMPARED = 32, 6
#: Bytes that the texts take which a process keeps to compare with.
_CACHED_BYTES: Final = 12 * 1024**2
#: How often a change is tried anew because another process was faster.
_TRIES: Final = 8
_LABEL_CHARS: Final = 60


class _Texts:
    """Texts used last, by call and hash, shared by all sessions of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bases: OrderedDict[tuple[str, str, str], Base] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[str, str, str], make: Callable[[], Base | None]) -> Base | None:
        """The text of that key, made if it isn't at hand."""
        with self._lock:
            if key in self._bases:
                self._bases.move_to_end(key)
                return self._bases[key]
        made = make()
        if made is not None:
            with self._lock:
                self._bytes += 0 if key in self._bases else made.weight
                self._bases[key] = made
                while self._bytes > _CACHED_BYTES and len(self._bases) > 1:
                    self._bytes -= self._bases.popitem(last=False)[1].weight
        return made


_texts = _Texts()


class Earlier:
    """The results that one session has shown; safe from any thread."""

    def __init__(self, session: str, store: Callable[[], Store]) -> None:
        self._session = session
        self._store = store
        self._lock = threading.Lock()
        self._known: tuple[Memory, int] | None = None
        #: Calls whose results have left the window, though that could not be kept.
        self._left: set[str] = set()

    def remember(self, entry: Entry) -> None:
        """Take note of a result; durable when this returns.

        Raises:
            StoreError: it cannot be kept; then it is not referred to.
        """
        self._change(lambda known: known.add(entry))

    def left(self, calls: Collection[str] | None) -> None:
        """The results of these calls, or all, have left the window.

        Raises:
            StoreError: it cannot be kept; this process knows all the same.
        """
        with self._lock:
            known = self._known[0].entries if self._known is not None else ()
            self._left |= {each.call for each in known} if calls is None else set(calls)
        self._change(lambda known: known.leave(calls))
        with self._lock:
            self._left.clear()

    def standing(self, arrival: Arrival, in_view: InView | None) -> Standing:
        """What stood in view when this result arrived.

        Raises:
            StoreError: it cannot be read.
        """
        with self._lock:
            known = self._load()[0]
            if self._left:
                known.leave(self._left)
            return known.standing(arrival.call_id, content_hash(arrival), in_view)

    def bases(self, standing: Standing, text: str) -> list[Base]:
        """Whole results of which `text` has lines, oldest first."""
        if not is_base(text):
            return []
        found = [base for each in standing.whole(_LOOKED_AT) if (base := self._base(each)) is not None]
        return across.nearest(text, found, _COMPARED)

    def _base(self, entry: Entry) -> Base | None:
        def make() -> Base | None:
            try:
                original = self._store().get(entry.sha256, session=self._session)
            except (UnknownContentError, StoreCorruptError):
                return None
            return None if original.redacted else Base(entry.call, entry.label, original.text)

        return _texts.get((entry.call, entry.label, entry.sha256), make)

    def _load(self) -> tuple[Memory, int]:
        body, version = self._store().load_state(self._session, ROOM)
        if self._known is None or self._known[1] != version:
            try:
                known = Memory() if body is None else memory.decode(body)
            except ValueError:
                # Another version's: nothing is referred to rather than something wrong.
                known = Memory()
            self._known = (known, version)
        return self._known

    def _change(self, change: Callable[[Memory], bool]) -> None:
        with self._lock:
            for _ in range(_TRIES):
                known, version = self._load()
                if not change(known):
                    return
                # Until it is on disk it counts for nothing.
                self._known = None
                try:
                    saved = self._store().save_state(self._session, ROOM, known.encode(), version)
                except StoreConflictError:
                    continue
                self._known = (known, saved)
                return
        raise StoreConflictError(f"others change session {self._session!r} all the time; try again")


def content_hash(arrival: Arrival) -> str:
    """The hash of what came in."""
    return hashlib.sha256(arrival.stored_form()).hexdigest()


def is_compared(arrival: Arrival, passed: str) -> bool:
    """Whether a result that passes for the reason `passed` ("": it doesn't) is compared with earlier ones.

    Of the tools whose results pass whole these are the ones that read files: what memory, skills and our own
    retrieval answer was asked for word for word.
    """
    if not referable(arrival.call_id):
        return False
    return passed in {"", "small"} or (
        passed == "skipped tool" and tool_event(arrival.name, arrival.args).verb == "read"
    )


def entry_of(
    arrival: Arrival,
    shown: str,
    form: memory.Form,
    *,
    tokens: int,
    of: tuple[str, ...] = (),
    kept: bool = False,
) -> Entry:
    """What is remembered of a result; `kept`: its text is in the store, to compare others with."""
    return Entry(
        call=arrival.call_id,
        sha256=content_hash(arrival),
        form=form,
        label=label_of(arrival),
        tokens=tokens,
        lines=arrival.text.count("\n") + 1 if kept else 0,
        shown="" if shown is arrival.text else shown_digest(shown),
        of=of,
    )


def label_of(arrival: Arrival) -> str:
    """The call in a few words, without secrets."""
    return redact(label(arrival.name, arrival.args))[:_LABEL_CHARS]


def is_base(text: str) -> bool:
    """Whether other results may be compared with this one line by line."""
    return text.count("\n") + 1 >= LEAST_LINES and len(text) <= MOST_CHARS


__all__ = ["ROOM", "Earlier", "entry_of", "is_base", "is_compared", "label_of"]
