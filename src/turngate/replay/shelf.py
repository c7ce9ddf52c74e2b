"""A store in memory, for replays: they look at sessions and must leave nothing behind."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from turngate.errors import UnknownContentError
from turngate.store import GcReport, Hit, Original, Problem, Stored, StoreStats

if TYPE_CHECKING:
    from collections.abc import Iterable

_ID_CHARS = 16


class Shelf:
    """A :class:`turngate.store.Store` of one conversation, which is gone with it. It searches nothing."""

    def __init__(self) -> None:
        self._contents: dict[str, Original] = {}
        self._turns: dict[str, int] = {}
        self._states: dict[tuple[str, str], tuple[bytes, int]] = {}

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

    def search(
        self,
        query: str,  # noqa: ARG002
        *,
        session: str | None,  # noqa: ARG002
        limit: int = 10,  # noqa: ARG002
        all_sessions: bool = False,  # noqa: ARG002
        limit_chars: int = 8_000,  # noqa: ARG002
    ) -> list[Hit]:
        """Nothing: a replay has no index."""
        return []

    def note(self, session: str, sha256: str, *, turn: int, how: str) -> None:
        """Nothing to note."""

    def open_session(self, id: str, *, parent: str | None = None) -> None:  # noqa: A002 - the protocol's name
        """There is one conversation only."""

    def next_turn(self, session: str) -> int:
        """Count up."""
        self._turns[session] = self.turn(session) + 1
        return self._turns[session]

    def turn(self, session: str) -> int:
        """The turn; 0 before the first."""
        return self._turns.get(session, 0)

    def touch(self, session: str) -> None:
        """Nothing ages here."""

    def load_state(self, session: str, room: str) -> tuple[bytes | None, int]:
        """What was saved last, and how often it was."""
        return self._states.get((session, room), (None, 0))

    def save_state(self, session: str, room: str, body: bytes, expected_version: int) -> int:  # noqa: ARG002
        """Keep `body`; nobody else could have saved in between."""
        version = self.load_state(session, room)[1] + 1
        self._states[session, room] = (body, version)
        return version

    def gc(self, *, now: float | None = None) -> GcReport:  # noqa: ARG002
        """Nothing is removed."""
        return GcReport(0, 0, 0, 0, over_limit=False)

    def stats(self, *, session: str | None = None) -> StoreStats:  # noqa: ARG002
        """Counts and sizes."""
        size = sum(len(original.data) for original in self._contents.values())
        return StoreStats(len(self._contents), size, size, len(self._contents), len(self._turns), 0, 0)

    def check(self) -> list[Problem]:
        """Nothing can be wrong with it."""
        return []

    def close(self) -> None:
        """Nothing to let go of."""
