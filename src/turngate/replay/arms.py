"""The policies that are compared. An arm says of every request how each message would have been sent."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

import orjson

from turngate import marker
from turngate.events import label
from turngate.flow import FlowKeeper
from turngate.gate import Gate
from turngate.replay.shelf import Shelf
from turngate.replay.weigh import message_tokens
from turngate.wire import VIEWS, Message, Path, ToolResult, View, Wire, splice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from turngate.ingress import Arrival
    from turngate.replay.recorded import Entry
    from turngate.session import Session
    from turngate.settings import Settings
    from turngate.store import Store

HEAD_TAIL_CHARS: Final = 5_000
"""First and last characters that ``head-tail`` keeps: hosts commonly cut at 10,000 characters a result."""

MASK_KEEPS: Final = 5
"""Newest observations that ``mask`` leaves: the best value of SWE-agent's and JetBrains' experiments."""

MASKED: Final = "[Old tool output omitted to save context.]"


@dataclass(frozen=True, slots=True)
class Change:
    """A text of a tool result that an arm sends otherwise."""

    call: str
    """The call it answers, in a few words."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as an arm sends it."""

    raw: bytes
    digest: bytes
    tokens: int
    blocks: int
    changes: tuple[Change, ...] = ()
    """What was changed of its tool results."""


Decide: TypeAlias = Callable[[ToolResult, str, "Mapping[str, str]"], str]
"""What a policy makes of one text of a tool result, given the texts that stand before its message by the id
of the call that they answer; the same object if nothing."""


class Arm(Protocol):
    """One policy over one conversation. Requests are asked for in their order."""

    @property
    def faults(self) -> Mapping[str, int]:
        """Faults inside the policy, by class; what they met was sent as recorded."""
        ...

    def request(self, entries: Sequence[Entry], size: int) -> tuple[int, list[Shown]]:
        """How the request of ``entries[:size]`` is sent.

        Returns:
            How many messages of the request before are kept as they were, and all messages after those.
        """
        ...


class Sheet:
    """One conversation's messages as they can be sent; arms share it, and with it what they leave alone."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._entries: Sequence[Entry] | None = None
        self._view = View(wire, ())
        self._plain: dict[bytes, Shown] = {}
        self.holders: list[int] = []
        """For each tool result, the index of its message."""

    def view(self, entries: Sequence[Entry]) -> View:
        """The view of all entries; made once for each list."""
        if self._entries is not entries:
            self._entries = entries
            self._view = VIEWS[self._wire]([entry.message for entry in entries])
            self.holders = [result.message for result in self._view.results]
        return self._view

    def message(
        self,
        entry: Entry,
        results: Sequence[ToolResult],
        decide: Decide | None,
        in_view: Mapping[str, str] = MappingProxyType({}),
    ) -> Shown:
        """One message, with what ``decide`` makes of its tool results."""
        changes = {} if decide is None else dict(_decided(results, decide, in_view))
        if not changes:
            if entry.raw not in self._plain:
                self._plain[entry.raw] = self._shown(entry.raw, entry.message, entry.blocks)
            return self._plain[entry.raw]
        raw = splice(entry.raw, {path[1:]: change.after for path, change in changes.items()})
        return self._shown(raw, _loads(raw), entry.blocks, tuple(changes.values()))

    def made(self, message: Mapping[str, Any]) -> Shown:
        """A message that was not recorded."""
        content = message.get("content")
        blocks = len(content) if isinstance(content, list) else 1
        return self._shown(orjson.dumps(message), message, max(1, blocks))

    def _shown(
        self, raw: bytes, message: Mapping[str, Any], blocks: int, changes: tuple[Change, ...] = ()
    ) -> Shown:
        size = message_tokens(message, self._wire)
        return Shown(raw, hashlib.sha256(raw).digest(), size, blocks, changes)


def _decided(
    results: Sequence[ToolResult], decide: Decide, in_view: Mapping[str, str]
) -> Iterator[tuple[Path, Change]]:
    """Each text that was changed, with its path."""
    for result in results:
        for part in result.parts:
            after = decide(result, part.text, in_view)
            if after is not part.text:
                call = label(result.tool or "tool", result.args)
                yield part.path, Change(call, part.text, after)


class _Ingress:
    """Decides on each message once, when it is first seen, and sends it so ever after."""

    def __init__(self, sheet: Sheet, decide: Decide | None, session: Session | None = None) -> None:
        self._sheet = sheet
        self._decide = decide
        self._session = session
        self._done: dict[bytes, Shown] = {}
        self._sent: tuple[Sequence[Entry], int] = ((), 0)
        self._standing: dict[str, str] = {}
        """What stands in the request, by the id of the call that it answers."""

    @property
    def faults(self) -> Mapping[str, int]:
        """Those that the gate has let pass."""
        return self._session.stats().faults if self._session is not None else {}

    def request(self, entries: Sequence[Entry], size: int) -> tuple[int, list[Shown]]:
        """Append what is new."""
        before = self._sent[1]
        kept, self._sent = _kept(self._sent, entries, size), (entries, size)
        view = self._sheet.view(entries)
        self._standing = (
            {
                call: text
                for i in range(kept)
                for call, text in _standing(view.messages[i], self._done[entries[i].raw])
            }
            if kept < before
            else self._standing
        )
        return kept, [self._message(entries[i], view.messages[i]) for i in range(kept, size)]

    def _message(self, entry: Entry, message: Message) -> Shown:
        known = self._done.get(entry.raw)
        if known is None and self._session is not None and message.role == "assistant":
            self._session.next_turn()
        if known is None or not _refers_to(known, self._standing):
            known = self._sheet.message(entry, message.results, self._decide, self._standing)
            self._done[entry.raw] = known
        self._standing.update(_standing(message, known))
        return known


class _Mask:
    """Replaces all but the newest observations; which these are changes with every request."""

    faults: Mapping[str, int] = MappingProxyType({})

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._sent: tuple[Sequence[Entry], int] = ((), 0)
        self._border = 0
        """Observations before this message are masked."""
        self._done: dict[tuple[bytes, bool], Shown] = {}

    def request(self, entries: Sequence[Entry], size: int) -> tuple[int, list[Shown]]:
        """Send again from the first observation on that is masked by now."""
        view = self._sheet.view(entries)
        holders = self._sheet.holders
        count = bisect_left(holders, size)
        border = holders[count - MASK_KEEPS] if count > MASK_KEEPS else 0
        kept = _kept(self._sent, entries, size)
        low, high = sorted((border, self._border))
        moved = holders[bisect_left(holders, low) : bisect_left(holders, high)]
        kept = min([kept, *moved[:1]])
        self._sent, self._border = (entries, size), border
        return kept, [
            self._message(entries[i], view.messages[i], masked=i < border) for i in range(kept, size)
        ]

    def _message(self, entry: Entry, message: Message, *, masked: bool) -> Shown:
        key = (entry.raw, masked)
        if key not in self._done:
            self._done[key] = self._sheet.message(entry, message.results, _masked if masked else None)
        return self._done[key]


def _standing(message: Message, shown: Shown) -> Iterator[tuple[str, str]]:
    """The text that stands for each call which the message answers with one text."""
    changed = {change.before: change.after for change in shown.changes}
    for result in message.results:
        if len(result.parts) == 1:
            text = result.parts[0].text
            yield result.call_id, changed.get(text, text)


def _refers_to(shown: Shown, standing: Mapping[str, str]) -> bool:
    """Whether all results that this one is shown by reference to stand in the request."""
    marks = [marker.parse(change.after) for change in shown.changes]
    return all(value in standing for mark in marks if mark for key, value in mark.fields if key == "of")


def _loads(raw: bytes) -> Mapping[str, Any]:
    value: Mapping[str, Any] = orjson.loads(raw)
    return value


def _kept(sent: tuple[Sequence[Entry], int], entries: Sequence[Entry], size: int) -> int:
    """How many messages the request before and this one have in common."""
    before, count = sent
    count = min(count, size)
    if before is entries:
        return count
    return next((i for i in range(count) if before[i].raw != entries[i].raw), count)


def _head_tail(_: ToolResult | None, text: str, *_more: object) -> str:
    left_out = len(text) - 2 * HEAD_TAIL_CHARS
    if left_out <= 0:
        return text
    return f"{text[:HEAD_TAIL_CHARS]}\n[… {left_out:,} characters left out …]\n{text[-HEAD_TAIL_CHARS:]}"


def _masked(_: ToolResult, text: str, *_more: object) -> str:
    return MASKED if len(text) > len(MASKED) else text


def _none(sheet: Sheet, _: Settings) -> Arm:
    return _Ingress(sheet, None)


def _first_and_last(sheet: Sheet, _: Settings) -> Arm:
    return _Ingress(sheet, _head_tail)


def _mask(sheet: Sheet, _: Settings) -> Arm:
    return _Mask(sheet)


class _NoBlocks(FlowKeeper):
    """Takes no note of what blocks are made from: a replay renders none, and results don't depend on it."""

    def result(self, arrival: Arrival, shown: str) -> None:
        """Nothing to note."""

    def at_turn(self, turn: int) -> None:
        """Nothing to note."""


def _turngate(sheet: Sheet, settings: Settings) -> Arm:
    """The gate itself, with a store that is gone with the replay."""
    store = cast("Store", Shelf())
    session = Gate(store, settings).session("replay")
    session.flow = _NoBlocks(session.id, settings, lambda: store)

    def decide(result: ToolResult, text: str, in_view: Mapping[str, str]) -> str:
        return session.tool_result(
            name=result.tool,
            text=text,
            args=result.args,
            failed=result.failed,
            call_id=result.call_id,
            in_view=in_view,
        )

    return _Ingress(sheet, decide, session)


ARMS: Final[Mapping[str, Callable[[Sheet, Settings], Arm]]] = {
    "none": _none,
    "head-tail": _first_and_last,
    "mask": _mask,
    "turngate": _turngate,
}
"""Name -> how to begin it."""
