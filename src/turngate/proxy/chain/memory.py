"""What a process remembers of the histories that it served: all of it stands in the store, too. Bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from turngate.proxy.chain.reading import common_messages

if TYPE_CHECKING:
    from turngate.proxy.chain.held import Held
    from turngate.proxy.chain.reading import Reading
    from turngate.proxy.chain.replies import Reply
    from turngate.store.ledger import Entry

K = TypeVar("K")
V = TypeVar("V")

#: With the bare process below 60 MB, this leaves room under the limit of 120 MB.
SNAPSHOT_BYTES: Final = 16 * 1024**2
HELD_BYTES: Final = 6 * 1024**2
REPLY_BYTES: Final = 2 * 1024**2
#: What a message's places take in memory, about.
_NODE_BYTES: Final = 1_500
#: Conversations of one scope that a request is compared with.
_CANDIDATES: Final = 32
#: Decisions that wait for the store to come back; older ones go first.
WAITING: Final = 10_000


class Bounded(Generic[K, V]):
    """The entries used last, up to a weight in bytes; safe from any thread."""

    def __init__(self, most_bytes: int, weight: Callable[[V], int]) -> None:
        self._most = most_bytes
        self._weight = weight
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._total = 0

    def get(self, key: K) -> V | None:
        """The entry, which counts as used now."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: K, value: V) -> list[V]:
        """Add or replace an entry; returns those that went for it."""
        with self._lock:
            gone = self._entries.pop(key, None)
            self._total += self._weight(value) - (self._weight(gone) if gone is not None else 0)
            self._entries[key] = value
            out = []
            while self._total > self._most and len(self._entries) > 1:
                _, old = self._entries.popitem(last=False)
                self._total -= self._weight(old)
                out.append(old)
            return out

    def pop(self, key: K) -> None:
        """Remove an entry, if it is there."""
        with self._lock:
            gone = self._entries.pop(key, None)
            self._total -= self._weight(gone) if gone is not None else 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A request as it was sent, from which the next one of its conversation is read on."""

    root: bytes
    """Key above its first message."""
    hint: str
    """The session that the client named."""
    reading: Reading
    """The client's request."""
    out: bytes
    """What was sent."""
    out_ends: tuple[int, ...]
    """Offset after each message in `out`."""
    first: int
    """Index of the first message of the chain."""
    keys: tuple[bytes, ...]
    """Key of each message."""
    digests: tuple[bytes, ...]
    """Digest of each."""
    roles: tuple[str, ...]
    """Role of each."""
    tool: bytes
    """Our tool as it stood in the request; empty where it did not."""
    rooted_tool: bytes
    """Our tool as the conversation is offered it."""
    policy: str
    """Version of the policy at its root."""
    session: str
    """Its session in the store."""

    @property
    def weight(self) -> int:
        """Bytes in memory, about."""
        # The messages' places keep the bytes that they were read from, beside the body.
        return 2 * len(self.reading.body) + len(self.out) + _NODE_BYTES * len(self.keys)


class Memory:
    """Shared by all requests of a process."""

    def __init__(self) -> None:
        #: By key: how a message is sent.
        self.held: Bounded[bytes, Held] = Bounded(HELD_BYTES, lambda held: held.weight)
        #: By key of the reply: what the client did not see of it.
        self.replies: Bounded[bytes, Reply] = Bounded(REPLY_BYTES, lambda reply: 400 + len(reply.before))
        self._waiting: OrderedDict[bytes, Entry] = OrderedDict()
        self._snapshots: Bounded[bytes, Snapshot] = Bounded(SNAPSHOT_BYTES, lambda snapshot: snapshot.weight)
        self._by_scope: dict[tuple[bytes, str], OrderedDict[bytes, None]] = {}
        self._lock = threading.Lock()

    def nearest(self, root: bytes, hint: str, body: bytes) -> tuple[Snapshot, int] | None:
        """The request that has most messages in common with `body`, and how many."""
        with self._lock:
            tips = list(reversed(self._by_scope.get((root, hint), ())))[:_CANDIDATES]
        best: tuple[Snapshot, int] | None = None
        for tip in tips:
            snapshot = self._snapshots.get(tip)
            common = common_messages(body, snapshot.reading) if snapshot is not None else 0
            if snapshot is not None and common > (best[1] if best else 0):
                best = snapshot, common
                if common == len(snapshot.keys):
                    break
        return best

    def remember(self, snapshot: Snapshot, instead_of: Snapshot | None) -> None:
        """Keep a request, perhaps in the place of the one that it extends."""
        name = (snapshot.root, snapshot.hint)
        with self._lock:
            tips = self._by_scope.setdefault(name, OrderedDict())
            if instead_of is not None and instead_of.keys[-1] != snapshot.keys[-1]:
                self._snapshots.pop(instead_of.keys[-1])
                tips.pop(instead_of.keys[-1], None)
            for gone in self._snapshots.put(snapshot.keys[-1], snapshot):
                self._forget(gone)
            tips[snapshot.keys[-1]] = None
            tips.move_to_end(snapshot.keys[-1])

    def _forget(self, snapshot: Snapshot) -> None:
        name = (snapshot.root, snapshot.hint)
        tips = self._by_scope.get(name)
        if tips is not None:
            tips.pop(snapshot.keys[-1], None)
            if not tips:
                del self._by_scope[name]

    def wait(self, name: bytes, entry: Entry) -> None:
        """Keep what could not be written."""
        with self._lock:
            self._waiting.setdefault(name, entry)
            while len(self._waiting) > WAITING:
                self._waiting.popitem(last=False)

    def waiting(self) -> list[tuple[bytes, Entry]]:
        """What could not be written yet, oldest first."""
        with self._lock:
            return list(self._waiting.items())

    def written(self, name: bytes) -> None:
        """It could."""
        with self._lock:
            self._waiting.pop(name, None)
