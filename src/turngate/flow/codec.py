"""The state as bytes and back: JSON, compressed. What settings and directives say is not in it."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import orjson

from turngate.events import ToolEvent
from turngate.flow.report import Past, Report, SectionReport
from turngate.flow.state import FileUse, FlowState, Item, Nudge, Shown, Task

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from turngate.flow.directives import Library

#: Of the form of the bytes; another version's are not read.
VERSION = 1
#: It is written every turn: this level takes a sixth of the space in a few hundredths of a millisecond.
LEVEL = 1
#: More than any state takes, so that damage cannot ask for any amount of memory.
MOST_BYTES = 4_000_000

_PLAIN = (
    "turn_counter",
    "epoch",
    "epoch_seq",
    "seq",
    "latched",
    "phase",
    "recall_told",
    "stale_turn",
    "checkpoint_seq",
)
#: Fields that are rows of a dataclass, written as lists in the order of its fields.
_ROWS: dict[str, type] = {
    "nudges": Nudge,
    "tasks": Task,
    "events": ToolEvent,
    "items": Item,
    "files": FileUse,
    "shown": Shown,
}
_VALUES = {
    kind: attrgetter(*(field.name for field in fields(kind))) for kind in (*_ROWS.values(), SectionReport)
}


def encode(state: FlowState) -> bytes:
    """The state, as it is kept."""
    table: dict[str, Any] = {name: getattr(state, name) for name in _PLAIN}
    table |= {name: list(map(_VALUES[kind], getattr(state, name))) for name, kind in _ROWS.items()}
    data = orjson.dumps(
        table
        | {
            "version": VERSION,
            "directives": [each.name for each in state.directives],
            "written": state.written,
            "signalled": state.signalled,
            "blocks": list(map(_past_row, state.blocks)),
        }
    )
    return zstd.compress(data, LEVEL)


def decode(data: bytes, base: FlowState, library: Library) -> FlowState:
    """The state, with what `base` has of the settings, and the texts that `library` has for its directives.

    Raises:
        ValueError: these are no state of this version.
    """
    table = _table(data)
    rows: dict[str, Any] = {name: tuple(kind(*row) for row in table[name]) for name, kind in _ROWS.items()}
    return replace(
        base,
        **{name: table[name] for name in _PLAIN},
        **rows,
        directives=library.pick(table["directives"]),
        written=tuple(table["written"]),
        signalled=tuple((key, seq) for key, seq in table["signalled"]),
        blocks=tuple(map(_past, table["blocks"])),
    )


def blocks_of(data: bytes) -> tuple[Past, ...]:
    """The blocks that a saved state remembers, oldest first.

    Raises:
        ValueError: these are no state of this version.
    """
    return tuple(map(_past, _table(data)["blocks"]))


def _table(data: bytes) -> dict[str, Any]:
    try:
        table = orjson.loads(zstd.ZstdDecompressor().decompress(data, max_length=MOST_BYTES))
    except zstd.ZstdError as error:
        raise ValueError("a flow state that is damaged") from error
    if not isinstance(table, dict) or table.get("version") != VERSION or "blocks" not in table:
        raise ValueError("a flow state of another version")
    return table


def _past_row(past: Past) -> list[Any]:
    report = past.report
    figures = [report.turn_counter, report.epoch, report.budget_bytes, report.bytes]
    return [past.turn_counter, past.text, *figures, list(map(_VALUES[SectionReport], report.sections))]


def _past(row: list[Any]) -> Past:
    turn, text, counter, epoch, budget, size, sections = row
    rows = tuple(SectionReport(*each) for each in sections)
    return Past(turn, Report(counter, epoch, budget, size, rows), text)
