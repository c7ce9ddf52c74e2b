"""The store of a gate, opened when it is needed, and left alone for a while after it could not be reached."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turngate.store import Asked, Store

#: The pause after the store was unavailable: as long as the default busy timeout.
REST_SECONDS = 5.0
#: How old counts over all sessions may be: counting takes longer the more the store holds, and they matter to
#: sessions that begin.
COUNTS_SECONDS = 60.0


class StoreAccess:
    """The store, opened when it is first needed, with a pause after it could not be reached.

    Without the pause, a locked database would hold up every single result for the whole busy timeout.
    """

    def __init__(self, opener: Callable[[], Store], clock: Callable[[], float] = time.monotonic) -> None:
        self._opener = opener
        self._clock = clock
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._rests_until = -math.inf
        self._counts: list[Asked] = []
        self._counts_until = -math.inf

    def store(self) -> Store:
        """The store.

        Raises:
            StoreError: it cannot be opened; the next call tries again.
        """
        with self._lock:
            if self._store is None:
                self._store = self._opener()
            return self._store

    @property
    def resting(self) -> bool:
        """Whether new originals should not be tried yet."""
        return self._clock() < self._rests_until

    def rest(self) -> None:
        """Begin a pause."""
        self._rests_until = self._clock() + REST_SECONDS

    def asked(self) -> list[Asked]:
        """What the store counts over all sessions, as of a minute ago at most, or of our last question.

        Raises:
            StoreError: it cannot be read.
        """
        now = self._clock()
        if now >= self._counts_until:
            self._counts = self.store().asked()
            self._counts_until = now + COUNTS_SECONDS
        return self._counts

    def count_again(self) -> None:
        """Something was asked for: what was counted before is out of date."""
        self._counts_until = -math.inf

    def close(self) -> None:
        """Close the store, if it was opened."""
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            store.close()
