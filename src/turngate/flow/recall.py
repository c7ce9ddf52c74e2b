"""Recall: what was shortened and is not in view any more, and what in view is stale.

A shortened result needs no mention while its own marker stands in the history. After the history was cut it
does: once, newest first, as a delta by event number, with the rest in the catalogue.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from turngate.events import LABEL_CHARS, one_line
from turngate.flow.state import FileUse, Item
from turngate.flow.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turngate.events import ToolEvent
    from turngate.flow.state import FlowState

HEADER = "[recall]"
MAX_ITEMS, MAX_FILES = 200, 100
ITEM_LINES, PATHS_LISTED = 8, 8
#: An agent that edits what it reads makes reads stale all the time, so they are named together after a rest.
STALE_REST_TURNS = 10
#: A marker id has at most as many digits as the hash.
ID_CHARS = 64
STALE = "STALE"
_SEQ, _EPOCH = attrgetter("seq"), attrgetter("epoch")


def recorded(
    state: FlowState, event: ToolEvent, item: Item | None
) -> tuple[tuple[FileUse, ...], tuple[Item, ...]]:
    """Files and items once an event, numbered already, has used a file or left something behind a marker."""
    files, items = state.files, state.items
    path = event.wrote or event.read
    if path:
        old = next((use for use in files if use.path == path), FileUse(path))
        others = tuple(use for use in files if use.path != path)
        files = (*others, _used(old, event))[-MAX_FILES:]
    if item is not None:
        new = Item(
            one_line(item.id, ID_CHARS),
            one_line(item.label, LABEL_CHARS),
            one_line(item.shown, LABEL_CHARS),
            event.read,
            event.seq,
            state.epoch,
        )
        items = (*(known for known in items if known.id != new.id), new)[-MAX_ITEMS:]
    return files, items


def render_recall(state: FlowState, *, every_turn: bool = True) -> str:
    """What there is to tell, or ""."""
    lines = [*_written(state), *_stale(state, every_turn=every_turn), *_items(state, every_turn=every_turn)]
    return "\n".join([HEADER, *lines]) if lines else ""


def tell_recall(state: FlowState, _: str) -> FlowState:
    """Mark all of it as told."""
    told = replace(state, recall_told=state.seq, written=())
    if not _stale(state, every_turn=False):
        return told
    files = tuple(replace(use, told=True) if use.stale and not use.told else use for use in state.files)
    return replace(told, files=files, stale_turn=state.turn_counter)


def catalogue(state: FlowState) -> str:
    """All that is remembered of what was shortened, newest first, a line each."""
    wrote = _wrote(state, state.items)
    return "\n".join(_line(item, wrote) for item in reversed(state.items))


def _used(use: FileUse, event: ToolEvent) -> FileUse:
    if event.wrote:
        return replace(use, wrote_seq=event.seq)
    return replace(use, read_seq=event.seq, told=False)


def _written(state: FlowState) -> list[str]:
    if not state.written:
        return []
    return [f"written before earlier turns left view: {listed(list(state.written[::-1]), PATHS_LISTED)}"]


def _stale(state: FlowState, *, every_turn: bool) -> list[str]:
    rests = state.stale_turn is not None and state.turn_counter - state.stale_turn < STALE_REST_TURNS
    if not state.switches.stale_read or (rests and not every_turn):
        return []
    found = [use for use in reversed(state.files) if use.wrote_seq > use.read_seq > 0]
    paths = [use.path for use in found if every_turn or not use.told]
    return [f"{STALE}, written since you read it: {listed(paths, PATHS_LISTED)}"] if paths else []


def _items(state: FlowState, *, every_turn: bool) -> list[str]:
    epoch = state.epoch + 1 if state.switches.recall_in_view else state.epoch
    told = 0 if every_turn else state.recall_told
    # Items are in the order of their events, and so of their epochs.
    first = bisect_right(state.items, told, key=_SEQ)
    last = bisect_left(state.items, epoch, key=_EPOCH)
    if first >= last:
        return []
    newest = state.items[max(first, last - ITEM_LINES) : last][::-1]
    wrote = _wrote(state, newest)
    more = last - first - len(newest)
    rest = [f"and {more:,} more; turngate_search finds them by their words"] if more > 0 else []
    return ["can be had back:", *[_line(item, wrote) for item in newest], *rest]


def _wrote(state: FlowState, items: Iterable[Item]) -> dict[str, int]:
    """The paths of `items` that were written, each with the event that last did."""
    paths = {item.path for item in items if item.path}
    if not paths or not state.switches.stale_read:
        return {}
    return {use.path: use.wrote_seq for use in state.files if use.path in paths}


def _line(item: Item, wrote: dict[str, int]) -> str:
    shown = f" ({item.shown} shown)" if item.shown else ""
    stale = f" {STALE}" if item.path and wrote.get(item.path, 0) > item.seq else ""
    return f"- {item.id} {item.label}{shown}{stale}"
