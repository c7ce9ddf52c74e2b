"""Originals in memory, for replays: they look at sessions and must leave nothing behind."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from turngate.errors import StoreConflictError, UnknownContentError
from turngate.store import Asked, Original, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable

_ID_CHARS = 16


class Shelf:
    """As much of a :class:`turngate.store.Store` as a session needs to shorten and to give back.

    There is one conversation only, so whose content it is and when it was seen do not matter.
    """

    def __init__(self) -> None:
        self._contents: dict[str, Original] = {}
        self._turns: dict[str, int] = {}
        self._states: dict[str, tuple[bytes, int]] = {}

    def put(self, data: bytes, *, kind: str = "", tool: str = "", **_: object) -> Stored:
        """Keep `data` under the beginning of its hash."""
        sha256 = hashlib.sha256(data).hexdigest()
        ref = sha256[:_ID_CHARS]
        new = ref not in self._contents
        if new:
            self._contents[ref] = Original(ref, sha256, data, redacted=False, kind=kind, tool=tool)
        return Stored(ref, sha256, len(data), new=new, redacted=False)

    def get(self, ref: str, **_: object) -> Original:
        """The content of that id or full hash."""
        found = self._contents.get(ref[:_ID_CHARS])
        if found is None or ref not in {found.id, found.sha256}:
            text = f"nothing of id {ref[:64]!r} was shortened in this replay; check the id"
            raise UnknownContentError(text)
        return found

    def known(self, refs: Iterable[str], **_: object) -> dict[str, str]:
        """Those of `refs` that are here."""
        return {ref: self._contents[ref].sha256 for ref in refs if ref in self._contents}

    def asked(self) -> list[Asked]:
        """A replay shows what a new installation would."""
        return []

    def note(self, *_: object, **__: object) -> None:
        """Nothing to note."""

    def open_session(self, *_: object, **__: object) -> None:
        """There is nothing to open."""

    def next_turn(self, session: str) -> int:
        """Count up."""
        self._turns[session] = self.turn(session) + 1
        return self._turns[session]

    def turn(self, session: str) -> int:
        """The turn; 0 before the first."""
        return self._turns.get(session, 0)

    def load_state(self, _: str, room: str) -> tuple[bytes | None, int]:
        """The state and its version."""
        return self._states.get(room, (None, 0))

    def save_state(self, session: str, room: str, body: bytes, expected_version: int) -> int:
        """Keep the state."""
        if self.load_state(session, room)[1] != expected_version:
            raise StoreConflictError("the state was saved by another in the meantime; load it again")
        self._states[room] = (body, expected_version + 1)
        return expected_version + 1

    def close(self) -> None:
        """Nothing to let go of."""
