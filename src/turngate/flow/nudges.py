"""Nudges: pushed in one turn, rendered in the next, gone when their time is over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from turngate.events import one_line
from turngate.flow.state import Nudge

if TYPE_CHECKING:
    from turngate.flow.state import FlowState

MAX_STORED, MAX_RENDERED = 4, 2
TEXT_CHARS, KEY_CHARS = 300, 80
#: No conversation has more turns.
MAX_TTL_TURNS = 1_000_000


def push_nudge(state: FlowState, text: str, ttl_turns: int | None = 1, *, key: str = "") -> FlowState:
    """Store a nudge that renders from the next turn on, in `ttl_turns` turns; None: permanently.

    One of the same key (else: the same text) gives way to it. Of more than four, the oldest goes.
    """
    line = one_line(text, TEXT_CHARS)
    if not line or (ttl_turns is not None and ttl_turns < 1):
        return state
    name = one_line(key, KEY_CHARS) or line
    expires = None if ttl_turns is None else state.turn_counter + min(ttl_turns, MAX_TTL_TURNS)
    # A nudge that is only renewed need not be told again.
    told = next((old.told_epoch for old in state.nudges if (old.key, old.text) == (name, line)), -1)
    others = tuple(old for old in state.nudges if old.key != name)
    nudge = Nudge(line, name, state.turn_counter, expires, told)
    return replace(state, nudges=(*others, nudge)[-MAX_STORED:])


def purge_expired_nudges(state: FlowState) -> FlowState:
    """Without the nudges whose last turn is over; called after the counter has moved on."""
    kept = tuple(nudge for nudge in state.nudges if not _expired(nudge, state))
    return state if len(kept) == len(state.nudges) else replace(state, nudges=kept)


def render_nudges(state: FlowState, *, every_turn: bool = True) -> str:
    """The two newest active nudges, the older one first; without `every_turn`, those not in view already."""
    return "\n".join(_line(nudge) for nudge in _due(state, every_turn=every_turn))


def tell_nudges(state: FlowState, shown: str) -> FlowState:
    """Mark those whose line is in `shown`."""
    lines = set(shown.split("\n"))
    nudges = tuple(
        replace(nudge, told_epoch=state.epoch) if _line(nudge) in lines else nudge for nudge in state.nudges
    )
    return replace(state, nudges=nudges)


def _due(state: FlowState, *, every_turn: bool) -> list[Nudge]:
    active = [
        nudge
        for nudge in state.nudges
        if nudge.pushed < state.turn_counter
        and not _expired(nudge, state)
        and (every_turn or nudge.told_epoch != state.epoch)
    ]
    return active[-MAX_RENDERED:]


def _expired(nudge: Nudge, state: FlowState) -> bool:
    return nudge.expires is not None and nudge.expires < state.turn_counter


def _line(nudge: Nudge) -> str:
    return f"[nudge: {nudge.text}]"
