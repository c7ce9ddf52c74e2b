"""The one place that composes what is injected into a turn.

The block has five sections in a fixed order (orientation, directives, nudges, background tasks, recall) under
one hard limit. Rendering is pure; committing is a call of its own. A host uses `Session.turn_block`; the
functions here are what it is made of.
"""

from turngate.events import WindowStats, error_sig, normalize_args_sig
from turngate.flow.assembler import Block, begin_turn, build_turn_context, commit
from turngate.flow.directives import (
    Library,
    Listing,
    add_directive,
    build_directive_context,
    discover,
    list_directives,
    load_directive,
    remove_directive,
    reset_directives,
    swap_directives,
)
from turngate.flow.keeper import FlowKeeper, initial_state, past_blocks
from turngate.flow.nudges import purge_expired_nudges, push_nudge, render_nudges
from turngate.flow.orientation import SHIPPED_SESSION_INJECT, build_first_turn_injection
from turngate.flow.recall import catalogue
from turngate.flow.report import Past, Report, SectionReport
from turngate.flow.signals import observe, phase_of
from turngate.flow.state import (
    Directive,
    FlowState,
    Item,
    Nudge,
    Task,
    open_epoch,
    take_checkpoint,
    turn_window,
)
from turngate.flow.tasks import set_task

__all__ = [
    "SHIPPED_SESSION_INJECT",
    "Block",
    "Directive",
    "FlowKeeper",
    "FlowState",
    "Item",
    "Library",
    "Listing",
    "Nudge",
    "Past",
    "Report",
    "SectionReport",
    "Task",
    "WindowStats",
    "add_directive",
    "begin_turn",
    "build_directive_context",
    "build_first_turn_injection",
    "build_turn_context",
    "catalogue",
    "commit",
    "discover",
    "error_sig",
    "initial_state",
    "list_directives",
    "load_directive",
    "normalize_args_sig",
    "observe",
    "open_epoch",
    "past_blocks",
    "phase_of",
    "purge_expired_nudges",
    "push_nudge",
    "remove_directive",
    "render_nudges",
    "reset_directives",
    "set_task",
    "swap_directives",
    "take_checkpoint",
    "turn_window",
]
