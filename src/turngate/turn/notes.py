"""One-shot notes from a host: popped, never peeked, and then part of the history for good.

A note is bound to one user message before it is sent: `NoteBox.claim` ties it to the message's key, durably,
and the ledger (or the turn's record) sends it with that message ever after. So a crash between the pop and
the sending leaves the note with its message, and the retry sends it. Where no retry comes, because the user
wrote another message, it is claimed anew after `LEASE_SECONDS`, unless it stands in the history.

So in any history that the model sees, a note stands exactly once. For the session as a whole the side chosen
is "at least once": the model may be told again when the first telling was sent, the crash came before that
was confirmed, and the user then took that message out of the history.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from turngate.turn import documents
from turngate.turn.content import SEPARATOR, sanitise
from turngate.turn.documents import Document, States

GATEWAY_ATTRIBUTE: Final = "_gateway_turn_context_notes"
"""Where a gateway of Hermes leaves the notes for an agent's next turn."""

ROOM: Final = "notes"
#: A claim that is neither confirmed nor dropped after so long was made by a process that is gone.
LEASE_SECONDS: Final = 60.0
#: Notes that may wait; a host that posts more forgets to take turns, and the oldest go.
MAX_WAITING: Final = 100
#: Claims that are remembered, so that a late retry is answered as before.
MAX_CLAIMS: Final = 64
#: Agents remembered whose notes could not be cleared.
_MAX_STUCK: Final = 64

_log = logging.getLogger("turngate.turn")
_pop_lock = threading.Lock()


class _Stuck:
    """What was delivered of notes that could not be cleared, by agent."""

    def __init__(self) -> None:
        self._weak: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        #: Agents that can't be referred to weakly; held, so that none of them passes its identity on.
        self._held: OrderedDict[int, tuple[Any, str]] = OrderedDict()

    def get(self, agent: Any) -> str:
        try:
            return self._weak.get(agent, "")
        except TypeError:
            return self._held.get(id(agent), (None, ""))[1]

    def put(self, agent: Any, notes: str) -> None:
        try:
            self._weak[agent] = notes
        except TypeError:
            self._held[id(agent)] = (agent, notes)
            if len(self._held) > _MAX_STUCK:
                self._held.popitem(last=False)


_stuck = _Stuck()


def consume_gateway_turn_context_notes(agent: Any) -> str:
    """Pop the notes off the agent; "" when there are none.

    One caller gets them, however many ask at once. Where they can't be cleared (a read-only attribute), they
    are delivered once all the same: the same text is not returned again until the attribute held another.
    """
    with _pop_lock:
        notes = _read(agent)
        if not notes:
            if _stuck.get(agent):
                _stuck.put(agent, "")
            return ""
        if _stuck.get(agent) == notes:
            return ""
        try:
            setattr(agent, GATEWAY_ATTRIBUTE, "")
        except Exception as fault:  # noqa: BLE001 - a host's attribute may be anything; the turn goes on
            _log.debug("notes of the gateway cannot be cleared: %s", type(fault).__name__)
        if _read(agent) == notes:
            _stuck.put(agent, notes)
        return notes


def give_back_gateway_notes(agent: Any, notes: str) -> None:
    """Put popped notes back before any that came since, for a turn that was not sent with them."""
    with _pop_lock:
        if _stuck.get(agent) == notes:
            _stuck.put(agent, "")
            return
        since = _read(agent)
        setattr(agent, GATEWAY_ATTRIBUTE, SEPARATOR.join(filter(None, (notes, since))))


def _read(agent: Any) -> str:
    try:
        notes = getattr(agent, GATEWAY_ATTRIBUTE, "")
    except Exception as fault:  # noqa: BLE001 - as above
        _log.debug("notes of the gateway cannot be read: %s", type(fault).__name__)
        return ""
    return notes if isinstance(notes, str) else ""


@dataclass(frozen=True, slots=True)
class Note:
    """A one-shot note."""

    id: str
    """Tells it from the session's others."""
    text: str
    """What it says."""


Told: TypeAlias = Mapping[str, Collection[str]]
"""By key of a message: the ids of the notes that are sent beside it."""

_NOT_TOLD: Final[Told] = MappingProxyType({})


class NoteBox:
    """A session's notes, in the store; for any number of threads, processes and replicas."""

    def __init__(self, states: States, session: str, *, clock: Callable[[], float] = time.time) -> None:
        """`clock`: seconds since the epoch."""
        self._states = states
        self._session = session
        self._clock = clock

    def post(self, text: str) -> None:
        """Leave a note for the next turn.

        Raises:
            StoreError: it could not be kept; the host still has it.
        """
        clean = sanitise(text)
        if clean.strip():
            documents.change(self._states, self._session, ROOM, lambda doc: (_posted(doc, clean), None))

    def claim(self, key: str, told: Told = _NOT_TOLD) -> tuple[Note, ...]:
        """The notes for the user message of that key: all that wait, or those that it was given before.

        Args:
            key: the message at its place in a history.
            told: the notes (by id) that are sent beside the messages before it, by key: these are delivered.

        Raises:
            StoreError: the notes cannot be read or written; they keep waiting.
        """
        now = self._clock()
        return documents.change(self._states, self._session, ROOM, lambda doc: _claimed(doc, key, told, now))

    def confirm(self, key: str, sent: Collection[str]) -> None:
        """The provider took the request that ends with this message: the notes `sent` (ids) are delivered.

        If those of its claim were not among them, they wait again.
        """
        documents.change(self._states, self._session, ROOM, lambda doc: (_confirmed(doc, key, sent), None))

    def drop(self, key: str) -> None:
        """The message was sent without its notes: they wait again."""
        documents.change(self._states, self._session, ROOM, lambda doc: (_dropped(doc, key), None))


# A document is {"last": number, "waiting": [[id, text], …],
#                "claims": {key: {"at": seconds, "notes": [[id, text], …], "done": bool}}}.


def _posted(doc: Document, text: str) -> Document:
    number = doc.get("last", 0) + 1
    waiting = [*doc.get("waiting", ()), [f"note:{number}", text]]
    if len(waiting) > MAX_WAITING:
        _log.warning("more than %d notes wait for a turn; the oldest are let go", MAX_WAITING)
    return doc | {"last": number, "waiting": waiting[-MAX_WAITING:]}


def _claimed(doc: Document, key: str, told: Told, now: float) -> tuple[Document | None, tuple[Note, ...]]:
    claims = dict(doc.get("claims", {}))
    if key in claims:
        return None, _notes(claims[key]["notes"])
    notes: list[list[str]] = []
    settled = False
    for other, claim in list(claims.items()):
        if claim["done"]:
            continue
        if _were_sent(claim, told.get(other, ())):
            claims[other] = claim | {"done": True}
            settled = True
        elif now - claim["at"] >= LEASE_SECONDS:
            notes += claim["notes"]
            del claims[other]
    notes += doc.get("waiting", ())
    if not notes and not settled:
        return None, ()
    if notes:
        claims[key] = {"at": now, "notes": notes, "done": False}
    return doc | {"waiting": [], "claims": _bounded(claims)}, _notes(notes)


def _notes(pairs: Iterable[Sequence[str]]) -> tuple[Note, ...]:
    return tuple(Note(*pair) for pair in pairs)


def _were_sent(claim: Document, sent: Collection[str]) -> bool:
    return all(note_id in sent for note_id, _ in claim["notes"])


def _bounded(claims: Document) -> Document:
    """The latest claims; of those too many, only such as are done go."""
    done = [key for key, claim in claims.items() if claim["done"]]
    excess = set(done[: max(0, len(claims) - MAX_CLAIMS)])
    return {key: claim for key, claim in claims.items() if key not in excess}


def _confirmed(doc: Document, key: str, sent: Collection[str]) -> Document | None:
    claims = doc.get("claims", {})
    if key not in claims or claims[key]["done"]:
        return None
    if not _were_sent(claims[key], sent):
        return _dropped(doc, key)
    return doc | {"claims": claims | {key: claims[key] | {"done": True}}}


def _dropped(doc: Document, key: str) -> Document | None:
    claims = dict(doc.get("claims", {}))
    claim = claims.pop(key, None)
    if claim is None or claim["done"]:
        return None
    return doc | {"waiting": [*claim["notes"], *doc.get("waiting", ())], "claims": claims}
