"""An arm within a window: what its requests become when they must fit, and what each compaction was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from turngate.replay.shelf import Shelf
from turngate.store.ledger import DecisionRow, Entry, Page
from turngate.window import Window
from turngate.window.compaction import plan_data

if TYPE_CHECKING:
    from turngate.replay.arms import Arm, Sheet, Shown
    from turngate.replay.recorded import Entry as Recorded
    from turngate.replay.recorded import Transcript
    from turngate.settings import WindowSettings
    from turngate.store import Store
    from turngate.window import Compaction, Fitted

_NO_PAGE: Final = Page({}, {}, {})


@dataclass(frozen=True, slots=True)
class Compacted:
    """One compaction of a replay."""

    message: int
    """Index of the message that answers the request before which it was made."""
    notice: Compaction
    """What was done."""
    plan: Mapping[str, Any]
    """What was planned for which messages, and why."""


class Windowed:
    """Another arm's requests, fitted before each call."""

    def __init__(self, arm: Arm, sheet: Sheet, transcript: Transcript, settings: WindowSettings) -> None:
        self._arm = arm
        self._sheet = sheet
        self._head = _beside(transcript)
        self._shelf = WindowShelf()
        store = cast("Store", self._shelf)
        self._window = Window("replay", lambda: store, settings, model=transcript.model, wire=transcript.wire)
        self._came: list[Shown] = []
        self._values: list[Mapping[str, Any]] = []
        self._sent: list[Shown] = []
        self.compacted: list[Compacted] = []
        """The compactions so far."""
        self.over = 0
        """Requests that were still too large."""

    @property
    def faults(self) -> Mapping[str, int]:
        """Those of the arm."""
        return self._arm.faults

    def request(self, entries: Sequence[Recorded], size: int) -> tuple[int, list[Shown]]:
        """The arm's request, fitted: how many messages are kept of the one before, and all after those."""
        kept, new = self._arm.request(entries, size)
        self._came[kept:] = new
        self._values[kept:] = [orjson.loads(shown.raw) for shown in new]
        fitted = self._window.fit({**self._head, "messages": self._values})
        self.over += fitted.over
        self._note(fitted, size)
        known = {id(value): shown for value, shown in zip(self._values, self._came, strict=True)}
        sent = [known.get(id(message)) or self._sheet.made(message) for message in fitted.messages]
        pairs = zip(self._sent, sent, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0].digest == pair[1].digest, pairs))
        self._sent = sent
        return same, sent[same:]

    def hidden(self, holds: Callable[[str], bool]) -> str | None:
        """A text that went out of view here, for which `holds` is true."""
        return self._shelf.first(holds)

    def _note(self, fitted: Fitted, size: int) -> None:
        notice = fitted.compaction
        if notice is not None and notice.method != "none" and fitted.plan is not None:
            self.compacted.append(Compacted(size, notice, plan_data(fitted.plan)))


def _beside(transcript: Transcript) -> dict[str, Any]:
    """Tools and system prompt, as a request has them."""
    found: dict[str, Any] = {}
    for element in transcript.head:
        found.setdefault(element.kind, []).append(orjson.loads(element.raw))
    return found


class WindowShelf(Shelf):
    """A shelf that keeps what a window keeps: its epochs."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[tuple[bytes, str, str], DecisionRow] = {}
        self._kept: dict[str, bytes] = {}

    def first(self, holds: Callable[[str], bool]) -> str | None:
        """The first content for which `holds` is true."""
        return next((text for each in self._contents.values() if holds(text := each.text)), None)

    @property
    def ledger(self) -> WindowShelf:
        """It is its own ledger."""
        return self

    def record(self, entry: Entry) -> Page:
        """Keep decisions and values; what is there first stays."""
        self._kept |= entry.values
        for call, content, row in entry.decisions:
            self._rows.setdefault((entry.scope, call, content), row)
        return _NO_PAGE

    def decisions(
        self, scope: bytes, wanted: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], DecisionRow]:
        """Those that were kept."""
        found = {key: self._rows.get((scope, *key)) for key in wanted}
        return {key: row for key, row in found.items() if row is not None}

    def values(self, hashes: Iterable[str]) -> dict[str, bytes]:
        """Those that were kept."""
        return {each: self._kept[each] for each in hashes if each in self._kept}

    def redacted(self, text: str) -> str:
        """Nothing is replaced: nothing leaves the replay."""
        return text
