"""What a process remembers of its ledgers, so that a request reads only what is new to it from the store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from turngate.ledger.history import Reader

if TYPE_CHECKING:
    from turngate.ledger.edits import Edit
    from turngate.ledger.footprint import Sent
    from turngate.wire import Wire

K = TypeVar("K")
V = TypeVar("V")

#: Messages remembered: several sessions of 2,000 turns; at 2 kB a shortened result about 40 MB at most.
REMEMBERED: Final = 20_000


class Recent(Generic[K, V]):
    """The entries used last; safe from any thread."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The entry, which counts as used now."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        """Add or replace an entry; the one unused longest goes when there are too many."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self._size:
                self._entries.popitem(last=False)


class Memory:
    """Shared by the ledgers of a process.

    All but one thing in it is in the store, too: which messages went out as they came because the store could
    not take them. They must stay so when it is back.
    """

    def __init__(self) -> None:
        #: By key: what a message is sent as.
        self.sent: Recent[bytes, Sent] = Recent()
        #: By session and key: what is added to it.
        self.attached: Recent[tuple[str, bytes], tuple[Edit, ...]] = Recent()
        #: Keys (with a session, for additions) of messages that went out as they came, unrecorded.
        self.unrecorded: Recent[tuple[str, bytes], bool] = Recent()
        self._readers: dict[Wire, Reader] = {}

    def reader(self, wire: Wire) -> Reader:
        """The reader of a wire."""
        return self._readers.setdefault(wire, Reader(wire))
