"""What the window must remember: epochs in the ledger's tables, the rest as the session's state.

An epoch is what a compaction made of the first messages of a history, kept under the key of the last of them
and the epoch before: whoever comes with the same messages gets the same bytes, in whatever process. The first
one to write it wins.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from turngate.errors import StoreConflictError
from turngate.ledger.canonical import child_key, digest, root_key
from turngate.store.ledger import DecisionRow, Entry
from turngate.window.record.frame import Span
from turngate.window.units import SYSTEM_ROLES, Message

if TYPE_CHECKING:
    from turngate.store import Store
    from turngate.wire import Wire

ROOM: Final = "window"
_EPOCH: Final = "window:epoch"
_SUMMARY: Final = "window:summary"
#: Epochs that are looked for; older ones stay in the store, but no client comes back to them.
_MOST_EPOCHS: Final = 200
_TRIES: Final = 5
#: Remembered digests of messages: a history repeats all but the newest.
_REMEMBERED: Final = 20_000

Item: TypeAlias = "int | dict[str, Any]"
"""A message as the client has it, by index, or one that stands there instead."""

_log = logging.getLogger("turngate.window")


@dataclass(frozen=True, slots=True)
class Epoch:
    """What the first messages of a history were made into."""

    cover: int
    """How many of the client's messages it is for; those behind them are sent as they come."""
    items: tuple[Item, ...]
    """What is sent for them."""
    removed: int
    """How many messages of the conversation are out of view."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The plan, and what came of it, as data."""


@dataclass(frozen=True, slots=True)
class State:
    """What a session's window keeps between requests. Tokens are as estimated, uncorrected."""

    last_compacted_index: int = 0
    """How many messages of this conversation are out of view; never falls."""
    epochs: tuple[tuple[int, str, str], ...] = ()
    """Of each epoch, oldest first: cover, key of the last message it covers, and its name."""
    compactions: int = 0
    """How many there were."""
    floor_tokens: float = 0.0
    """No optional compaction, and none that made no progress before, below this many tokens."""
    latched: str = ""
    """Why a needed compaction waits until then; "" if it does not."""
    letting_drop: bool = False
    """Whether every request from now on lets the provider drop thinking whose prefix changed."""
    summary: str = ""
    """Name of the latest summary's note; see `Book.note_summary`."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """What reported usage says about the estimates, by model."""


@dataclass(frozen=True, slots=True)
class SummaryNote:
    """What belongs to a summary that stands in a history."""

    text: str
    """Its message's text, to know it by."""
    facts: Mapping[str, Any]
    """What it says, as data; a later one begins with it."""
    prose: str
    """What a model wrote; "" if none did."""
    spans: tuple[Span, ...]
    """All that was stored, oldest first."""


class Chain:
    """Keys of messages: each stands for the message and all before it, leading system prompts left out."""

    def __init__(self, wire: Wire) -> None:
        self._root = root_key("", wire)
        self._known: dict[bytes, bytes] = {}

    def keys(self, messages: Sequence[Message]) -> Iterator[bytes]:
        """The key of each message."""
        key, leading = self._root, True
        for message in messages:
            leading = leading and message.get("role") in SYSTEM_ROLES
            if not leading:
                key = child_key(key, self._digest(message))
            yield key

    def _digest(self, message: Message) -> bytes:
        try:
            name = hashlib.blake2b(orjson.dumps(message), digest_size=16).digest()
        except TypeError:  # lone surrogates, numbers beyond 64 bits
            return digest(message)
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[name] = digest(message)
        return known


class Book:
    """The window's part of a store, for one session. Every method may raise a `StoreError`."""

    def __init__(self, store: Callable[[], Store], session: str, wire: Wire) -> None:
        self._store = store
        self._session = session
        self._scope = root_key(session, wire)
        self._epochs: dict[str, Epoch] = {}

    def load(self) -> State:
        """The session's state."""
        return self._load()[0]

    def change(self, update: Callable[[State], State]) -> State:
        """Save what `update` makes of the state; it is called again if another process was faster."""
        for left in range(_TRIES - 1, -1, -1):
            known, version = self._load()
            new = update(known)
            try:
                self._store().save_state(self._session, ROOM, orjson.dumps(asdict(new)), version)
            except StoreConflictError:
                if not left:
                    raise
            else:
                return new
        raise AssertionError

    def find(self, state: State, keys: Sequence[bytes]) -> Epoch | None:
        """The newest epoch that these messages begin with."""
        for cover, key, name in reversed(state.epochs):
            if 0 < cover <= len(keys) and keys[cover - 1].hex() == key:
                found = self._epochs.get(name) or self._recall_epoch(name)
                if found is not None:
                    self._epochs[name] = found
                    return found
                _log.warning("an epoch of session %s is no longer in the store", self._session)
        return None

    def record(self, name: str, epoch: Epoch) -> Epoch:
        """Keep an epoch; returns the one that is there now, which may be another's."""
        self._put(_EPOCH, name, asdict(epoch))
        self._epochs[name] = self._recall_epoch(name) or self._made(self.clean(asdict(epoch)))
        return self._epochs[name]

    def note_summary(self, ref: str, note: SummaryNote) -> str:
        """Keep what belongs to a summary whose marker has the id `ref`; returns the note's name."""
        name = _note_name(ref, note.text)
        self._put(_SUMMARY, name, asdict(note))
        return name

    def summary(self, ref: str, text: str) -> SummaryNote | None:
        """What belongs to the summary of this text, whose marker has the id `ref`."""
        return self.note(_note_name(ref, text))

    def note(self, name: str) -> SummaryNote | None:
        """The note of that name."""
        data = self._get(_SUMMARY, name)
        if data is None:
            return None
        spans = tuple((int(a), int(b), str(c), int(d), str(e)) for a, b, c, d, e in data["spans"])
        return SummaryNote(data["text"], data["facts"], data["prose"], spans)

    def clean(self, value: Any) -> Any:
        """A JSON value as it may be kept: the same, unless the store replaces secrets."""
        return _each_string(value, self._store().ledger.redacted)

    def _load(self) -> tuple[State, int]:
        body, version = self._store().load_state(self._session, ROOM)
        if body is None:
            return State(), version
        data = orjson.loads(body)
        epochs = tuple((int(cover), str(key), str(name)) for cover, key, name in data.pop("epochs"))
        return State(**data, epochs=epochs[-_MOST_EPOCHS:]), version

    def _recall_epoch(self, name: str) -> Epoch | None:
        data = self._get(_EPOCH, name)
        return None if data is None else self._made(data)

    @staticmethod
    def _made(data: Mapping[str, Any]) -> Epoch:
        return replace(Epoch(**data), items=tuple(data["items"]))

    def _put(self, kind: str, name: str, value: Any) -> None:
        data = json.dumps(self.clean(value)).encode()
        sha256 = hashlib.sha256(data).hexdigest()
        row = (kind, name, DecisionRow(sha256))
        self._store().ledger.record(
            Entry(self._scope, self._session, decisions=(row,), values={sha256: data})
        )

    def _get(self, kind: str, name: str) -> Any:
        ledger = self._store().ledger
        row = ledger.decisions(self._scope, [(kind, name)]).get((kind, name))
        data = ledger.values([row.sha256]).get(row.sha256) if row else None
        return None if data is None else json.loads(data)


def _each_string(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every string in it changed; names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_string(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each_string(item, change) for item in value]
    return value


def epoch_name(key: bytes, before: Sequence[tuple[int, str, str]]) -> str:
    """The name of an epoch that ends with this key and follows those: the same for whoever makes it next."""
    previous = before[-1][2] if before else ""
    return hashlib.sha256(key + previous.encode()).hexdigest()


def _note_name(ref: str, text: str) -> str:
    return f"{ref}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
