"""What became of each section of a block, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["kept", "cut", "dropped", "in view"]


@dataclass(frozen=True, slots=True)
class SectionReport:
    """What became of one section."""

    section: str
    """``orientation``, ``directives``, ``nudges``, ``background tasks`` or ``recall``."""
    outcome: Outcome
    """``kept`` whole, ``cut``, ``dropped``, or not needed because it is ``in view`` already."""
    full_bytes: int
    """Its size before the limit was applied."""
    shown_bytes: int
    """Its size in the block."""
    reason: str = ""
    """Why it is not whole in the block; "" where it is."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a block came about."""

    turn_counter: int
    """The turn: 0 is the first."""
    epoch: int
    """How often the history had been cut before."""
    budget_bytes: int
    """The limit."""
    bytes: int
    """Size of the block."""
    sections: tuple[SectionReport, ...] = ()
    """Those that had something to say, in their order."""


@dataclass(frozen=True, slots=True)
class Past:
    """A block that was committed: the last one, and earlier ones that held something."""

    turn_counter: int
    """Its turn: 0 is the first."""
    report: Report
    """How it came about."""
    text: str | None
    """The block; None where it is too long ago to be kept."""
