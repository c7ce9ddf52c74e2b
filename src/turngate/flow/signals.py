"""What telemetry is good for: recording an event, and the nudges and directives that follow from it.

Each consumer has its switch in ``[flow]`` and says only what is certain: that an error came back, that a call
gave the same result as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from turngate.events import RING, ToolEvent
from turngate.flow.nudges import push_nudge
from turngate.flow.recall import recorded

if TYPE_CHECKING:
    from turngate.flow.directives import Library
    from turngate.flow.state import FlowState, Item

#: How many events a loop is looked for in.
WINDOW_EVENTS = 12
LOOP_ERRORS = 3
#: A repeated result below this size costs less than the nudge; polling is often so.
REPEAT_BYTES = 500
#: A nudge of one key comes again only after so many events.
REST_EVENTS = 12
MAX_SIGNALLED = 16
PHASE_TURNS = 3
#: Phase -> the directive that goes with it.
PHASE_DIRECTIVES = {"exploring": "explore", "editing": "edit", "verifying": "verify"}
LABEL_CHARS, ERROR_CHARS = 60, 120

Signal = tuple[str, str]
"""Key and text of a nudge."""


def observe(state: FlowState, event: ToolEvent, item: Item | None = None) -> FlowState:
    """Record a call that was answered, and the item behind its marker, if it was shortened."""
    numbered = replace(event, seq=state.seq + 1, turn=state.turn_counter)
    files, items = recorded(state, numbered, item)
    happened = (*state.events, numbered)[-RING:]
    state = replace(state, seq=numbered.seq, events=happened, files=files, items=items)
    for switch, consumer in CONSUMERS:
        signal = consumer(state, numbered) if getattr(state.switches, switch) else None
        state = _signalled(state, signal) if signal else state
    return state


def error_loop(state: FlowState, event: ToolEvent) -> Signal | None:
    """The same error for the third time among the last calls."""
    same = sum(not past.ok and past.error_sig == event.error_sig for past in state.events[-WINDOW_EVENTS:])
    if event.ok or same < LOOP_ERRORS:
        return None
    what = event.error[:ERROR_CHARS] or event.label[:LABEL_CHARS]
    text = f"the same error came {same} times lately; find its cause before trying again: {what}"
    return f"error:{event.error_sig:x}", text


def repeated_call(state: FlowState, event: ToolEvent) -> Signal | None:
    """The same call with the same result, which is in view, and nothing written in between."""
    if not event.ok or event.wrote or event.size_bytes < REPEAT_BYTES:
        return None
    for past in reversed(state.events[-WINDOW_EVENTS:-1]):
        if past.wrote or past.seq <= state.epoch_seq:
            return None
        if (past.sig, past.result_sig) == (event.sig, event.result_sig):
            text = f"{event.label[:LABEL_CHARS]} gave the same result as before; use the one above"
            return f"repeat:{event.sig:x}", text
    return None


#: Switch in ``[flow]`` -> what looks at each event. Stale reads and checkpoints are recall's.
CONSUMERS: tuple[tuple[str, Callable[[FlowState, ToolEvent], Signal | None]], ...] = (
    ("error_loop", error_loop),
    ("repeated_call", repeated_call),
)


def phase_of(state: FlowState) -> str:
    """What the agent has been doing in the last turns, or "" where nothing tells."""
    since = state.turn_counter - PHASE_TURNS
    verbs = ["write" if event.wrote else event.verb for event in state.events if event.turn > since]
    if "write" in verbs:
        after = verbs[len(verbs) - verbs[::-1].index("write") :]
        return "verifying" if "check" in after else "editing"
    looked = verbs.count("read") + verbs.count("search")
    return "exploring" if looked > verbs.count("check") else "verifying" if "check" in verbs else ""


def enter_phase(state: FlowState, library: Library) -> FlowState:
    """Swap in the directive of a phase that has lasted two turns, unless directives were set by hand."""
    found = phase_of(state)
    lasting = bool(found) and found == state.phase
    state = state if found == state.phase else replace(state, phase=found)
    if not lasting or state.latched or not state.switches.phase:
        return state
    ours = set(PHASE_DIRECTIVES.values())
    others = tuple(each for each in state.directives if each.name not in ours)
    wanted = (*others, *library.pick([PHASE_DIRECTIVES[found]]))
    return state if wanted == state.directives else replace(state, directives=wanted)


def _signalled(state: FlowState, signal: Signal) -> FlowState:
    key, text = signal
    last = dict(state.signalled).get(key)
    if last is not None and state.seq - last < REST_EVENTS:
        return state
    others = tuple(pair for pair in state.signalled if pair[0] != key)
    state = replace(state, signalled=(*others, (key, state.seq))[-MAX_SIGNALLED:])
    return push_nudge(state, text, key=key)
