"""Originals in memory, for replays: they look at sessions and must leave nothing behind."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from turngate.errors import UnknownContentError
from turngate.store import Original, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable

_ID_CHARS = 16


class Shelf:
    """As much of a :class:`turngate.store.Store` as a session needs to shorten and to give back."""

    def __init__(self) -> None:
        self._contents: dict[str, Original] = {}
        self._turns: dict[str, int] = {}

    def put(
        self,
        data: bytes,
        *,
        session: str,  # noqa: ARG002 - the protocol's parameters; one conversation needs no scope
        turn: int = 0,  # noqa: ARG002
        kind: str = "",
        tool: str = "",
        call_id: str = "",  # noqa: ARG002
        call: str = "",  # noqa: ARG002
    ) -> Stored:
        """Keep `data` under the beginning of its hash."""
        sha256 = hashlib.sha256(data).hexdigest()
        ref = sha256[:_ID_CHARS]
        new = ref not in self._contents
        if new:
            self._contents[ref] = Original(ref, sha256, data, redacted=False, kind=kind, tool=tool)
        return Stored(ref, sha256, len(data), new=new, redacted=False)

    def get(self, ref: str, *, session: str | None = None) -> Original:  # noqa: ARG002
        """The content of that id or full hash."""
        found = self._contents.get(ref[:_ID_CHARS])
        if found is None or ref not in {found.id, found.sha256}:
            raise UnknownContentError(
                f"nothing of id {ref[:64]!r} was shortened in this replay; check the id"
            )
        return found

    def known(self, refs: Iterable[str], *, session: str) -> dict[str, str]:  # noqa: ARG002
        """Those of `refs` that are here."""
        return {ref: self._contents[ref].sha256 for ref in refs if ref in self._contents}

    def note(self, session: str, sha256: str, *, turn: int, how: str) -> None:
        """Nothing to note."""

    def open_session(self, id: str, *, parent: str | None = None) -> None:  # noqa: A002 - its name
        """There is one conversation only."""

    def next_turn(self, session: str) -> int:
        """Count up."""
        self._turns[session] = self.turn(session) + 1
        return self._turns[session]

    def turn(self, session: str) -> int:
        """The turn; 0 before the first."""
        return self._turns.get(session, 0)

    def close(self) -> None:
        """Nothing to let go of."""
