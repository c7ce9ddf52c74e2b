"""A session's documents: JSON in the store, changed by whoever is first, again and again until it holds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import orjson

from turngate.errors import StoreConflictError, StoreUnavailableError

T = TypeVar("T")

Document = dict[str, Any]
Change = Callable[[Document], tuple[Document | None, T]]
"""From what is there to what is to be there (None: leave it) and an answer. May run several times."""

#: Each try that fails means that another one succeeded; so many in a row is no coincidence.
_TRIES = 100


class States(Protocol):
    """Where documents are kept; a `Store` is one."""

    def load_state(self, session: str, room: str) -> tuple[bytes | None, int]:
        """What a room keeps for the session, and its version; (None, 0) before it was first saved."""
        ...

    def save_state(self, session: str, room: str, body: bytes, expected_version: int) -> int:
        """Keep `body`, durably, if the version is still the expected one."""
        ...


class MemoryStates:
    """`States` of a process, for hosts without a store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], tuple[bytes, int]] = {}

    def load_state(self, session: str, room: str) -> tuple[bytes | None, int]:
        """See `States`."""
        with self._lock:
            return self._kept.get((session, room), (None, 0))

    def save_state(self, session: str, room: str, body: bytes, expected_version: int) -> int:
        """See `States`."""
        with self._lock:
            _, version = self._kept.get((session, room), (None, 0))
            if version != expected_version:
                raise StoreConflictError("another saved it in the meantime; load it again")
            self._kept[session, room] = (body, version + 1)
            return version + 1


def load(states: States, session: str, room: str) -> Document:
    """The document; {} where there is none.

    Raises:
        StoreError: it cannot be read.
    """
    return _parse(states.load_state(session, room)[0])


def change(states: States, session: str, room: str, step: Change[T]) -> T:
    """Change a document; whoever else does so at the same time comes before or after, never between.

    Raises:
        StoreError: it cannot be read or written.
    """
    for _ in range(_TRIES):
        body, version = states.load_state(session, room)
        document, answer = step(_parse(body))
        if document is None:
            return answer
        try:
            states.save_state(session, room, orjson.dumps(document), version)
        except StoreConflictError:
            continue
        return answer
    raise StoreUnavailableError(f"the {room} of a session are changed all the time; try again")


def _parse(body: bytes | None) -> Document:
    return dict(orjson.loads(body)) if body else {}
