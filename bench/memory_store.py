"""A store in memory with as much of the protocol as the window uses, for tens of thousands of cases."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from turngate.errors import StoreConflictError, UnknownContentError
from turngate.store import Original, Stored
from turngate.store.ledger import DecisionRow, Entry, Page

if TYPE_CHECKING:
    from collections.abc import Iterable


class MemoryStore:
    """Contents, states, decisions; nothing is ever lost."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.states: dict[tuple[str, str], tuple[bytes, int]] = {}
        self.rows: dict[tuple[bytes, str, str], DecisionRow] = {}
        self.kept: dict[str, bytes] = {}

    @property
    def ledger(self) -> MemoryStore:
        return self

    def put(self, data: bytes, **_: Any) -> Stored:
        sha256 = hashlib.sha256(data).hexdigest()
        new = sha256[:16] not in self.contents
        self.contents[sha256[:16]] = data
        return Stored(sha256[:16], sha256, len(data), new, redacted=False)

    def get(self, ref: str, *, session: str | None = None) -> Original:
        del session
        if ref not in self.contents:
            raise UnknownContentError(ref)
        data = self.contents[ref]
        return Original(ref, hashlib.sha256(data).hexdigest(), data, redacted=False, kind="", tool="")

    def known(self, refs: Iterable[str], *, session: str) -> dict[str, str]:
        del session
        return {ref: ref for ref in refs if ref in self.contents}

    def turn(self, session: str) -> int:
        del session
        return 0

    def load_state(self, session: str, room: str) -> tuple[bytes | None, int]:
        return self.states.get((session, room), (None, 0))

    def save_state(self, session: str, room: str, body: bytes, expected_version: int) -> int:
        if self.load_state(session, room)[1] != expected_version:
            raise StoreConflictError(session)
        self.states[session, room] = (body, expected_version + 1)
        return expected_version + 1

    def record(self, entry: Entry) -> Page:
        self.kept |= entry.values
        for call, content, row in entry.decisions:
            self.rows.setdefault((entry.scope, call, content), row)
        return Page({}, {}, {})

    def decisions(
        self, scope: bytes, wanted: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], DecisionRow]:
        found = {key: self.rows.get((scope, *key)) for key in wanted}
        return {key: row for key, row in found.items() if row is not None}

    def values(self, hashes: Iterable[str]) -> dict[str, bytes]:
        return {each: self.kept[each] for each in hashes if each in self.kept}

    def redacted(self, text: str) -> str:
        return text
