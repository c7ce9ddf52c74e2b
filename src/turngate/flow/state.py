"""What the block of a turn is made from: frozen values, and the functions that lead from one to the next.

`FlowState.turn_counter` is 0 in the first turn. A session counts its turns from 1, so its counter is its turn
less one: -1 before the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from turngate import events as happenings
from turngate.events import ToolEvent, WindowStats
from turngate.flow.orientation import SHIPPED_SESSION_INJECT
from turngate.flow.report import Past
from turngate.settings import FlowSettings

#: The block's limit where the settings don't say otherwise.
BUDGET_BYTES = 4_000
ALL_DEFAULTS = FlowSettings()


@dataclass(frozen=True, slots=True)
class Directive:
    """A standing instruction."""

    name: str
    """The file's name without ``.md``."""
    body: str
    """Its lines as they are injected."""


@dataclass(frozen=True, slots=True)
class Nudge:
    """A short note with a time to live."""

    text: str
    """One line."""
    key: str
    """A later nudge of the same key takes its place."""
    pushed: int
    """The turn counter when it was pushed; it renders from the next turn on."""
    expires: int | None
    """The last turn in which it renders; None: it stays."""
    told_epoch: int = -1
    """The epoch in whose history it stands; -1: none."""


@dataclass(frozen=True, slots=True)
class Task:
    """Something that runs beside the conversation."""

    id: str
    """The host's name for it."""
    status: str
    """As the host puts it."""
    text: str
    """A line about it."""
    turn: int
    """When it was last heard of."""
    told_epoch: int = -1
    """The epoch in whose history this state of it stands; -1: none."""


@dataclass(frozen=True, slots=True)
class Item:
    """A result that was shortened and can be had back."""

    id: str
    """Its marker id."""
    label: str
    """The call that brought it."""
    shown: str = ""
    """How much of it was shown, in its own units."""
    path: str = ""
    """The file that it is, or ""."""
    seq: int = 0
    """The number of its event."""
    epoch: int = 0
    """The epoch in which it came; its marker is in view while that lasts."""


@dataclass(frozen=True, slots=True)
class FileUse:
    """A file that was read or written."""

    path: str
    """Its path, normalised."""
    read_seq: int = 0
    """The event that last read it; 0: none."""
    wrote_seq: int = 0
    """The event that last wrote it; 0: none."""
    told: bool = False
    """Whether it was already said that what was read is stale."""

    @property
    def stale(self) -> bool:
        """Whether it was written since it was read."""
        return 0 < self.read_seq < self.wrote_seq


@dataclass(frozen=True, slots=True)
class Shown:
    """A section that stands in this epoch's history."""

    section: str
    """Which."""
    digest: int
    """Of its text in full."""
    turn: int
    """When it was injected."""
    done: bool = True
    """False: it was cut for want of room, and is worth injecting once more."""


@dataclass(frozen=True, slots=True)
class FlowState:
    """Everything the block of a turn depends on."""

    flow_budget_chars: int = BUDGET_BYTES
    """The block's limit: bytes of UTF-8, whatever the name."""
    session_inject: str = SHIPPED_SESSION_INJECT
    """The first turn's orientation; "": none."""
    switches: FlowSettings = ALL_DEFAULTS
    """What is on."""
    configured: tuple[Directive, ...] = ()
    """The directives that a session begins with, and that `reset` leads back to."""
    turn_counter: int = 0
    """Turns completed: 0 in the first."""
    epoch: int = 0
    """How often the history was cut."""
    epoch_seq: int = 0
    """The last event before the history was last cut."""
    seq: int = 0
    """Events recorded."""
    directives: tuple[Directive, ...] = ()
    """Those that are active, in order."""
    latched: bool = False
    """Whether directives were changed by hand, so that nothing else changes them."""
    phase: str = ""
    """What the agent was doing in the last turn: ``exploring``, ``editing``, ``verifying`` or ""."""
    nudges: tuple[Nudge, ...] = ()
    """Oldest first."""
    tasks: tuple[Task, ...] = ()
    """Oldest first."""
    events: tuple[ToolEvent, ...] = ()
    """The last ones, oldest first."""
    items: tuple[Item, ...] = ()
    """The last results that were shortened, oldest first."""
    files: tuple[FileUse, ...] = ()
    """The last files used, oldest first."""
    signalled: tuple[tuple[str, int], ...] = ()
    """The last nudges that telemetry brought: key and event."""
    recall_told: int = 0
    """Recall has told of everything up to this event, in this epoch."""
    stale_turn: int | None = None
    """The turn in which stale reads were last named, in this epoch."""
    written: tuple[str, ...] = ()
    """What was written before the history was cut, until recall has told of it."""
    checkpoint_seq: int = 0
    """The last checkpoint's event."""
    shown: tuple[Shown, ...] = ()
    """Sections that stand in this epoch's history."""
    blocks: tuple[Past, ...] = ()
    """The last blocks, oldest first."""


def turn_window(state: FlowState, n: int) -> WindowStats:
    """Sums over the events of the last `n` turns, the present one included."""
    return happenings.turn_window(state.events, state.turn_counter, n)


def open_epoch(state: FlowState) -> FlowState:
    """The history was cut: what was injected has left view, and so have the markers of shortened results."""
    written = _written_since(state, state.checkpoint_seq) if state.switches.checkpoint else ()
    return replace(
        state,
        epoch=state.epoch + 1,
        epoch_seq=state.seq,
        shown=(),
        recall_told=0,
        stale_turn=None,
        written=written,
        checkpoint_seq=state.seq,
        files=tuple(replace(use, read_seq=0) for use in state.files),
    )


def take_checkpoint(state: FlowState) -> tuple[FlowState, tuple[str, ...]]:
    """The files written since the last checkpoint, and the state in which this one is the last."""
    return replace(state, checkpoint_seq=state.seq), _written_since(state, state.checkpoint_seq)


def _written_since(state: FlowState, seq: int) -> tuple[str, ...]:
    return tuple(use.path for use in state.files if use.wrote_seq > seq)
