"""The block of a turn: every section in order under one hard limit, and a report of what became of each.

`build_turn_context` renders and changes nothing; `commit` is what makes it part of the session. Injected text
stays in the history, so a section is rendered when it is new, when it has changed, and after an epoch took it
away; `every_turn` is for hosts that don't keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from turngate.flow.directives import build_directive_context
from turngate.flow.nudges import purge_expired_nudges, render_nudges, tell_nudges
from turngate.flow.orientation import build_first_turn_injection
from turngate.flow.recall import render_recall, tell_recall
from turngate.flow.report import Outcome, Past, Report, SectionReport
from turngate.flow.signals import enter_phase
from turngate.flow.state import FlowState, Shown
from turngate.flow.tasks import forget_tasks, render_tasks, tell_tasks
from turngate.flow.text import cut, digest, harmless, size

if TYPE_CHECKING:
    from turngate.flow.directives import Library

#: Blocks that are kept, those with nothing in them aside, and how many bytes of the newest ones' texts.
KEPT_REPORTS, KEPT_TEXT_BYTES = 100, 16_000


class _Render(Protocol):
    def __call__(self, state: FlowState, *, every_turn: bool) -> str: ...


@dataclass(frozen=True, slots=True)
class _Section:
    """A kind of section."""

    name: str
    #: Its text, or "" where it has nothing to say.
    render: _Render
    #: The state once a text of it stands in the history, where its parts know what was told.
    #: None: it is one whole, said again when its text has changed.
    tell: Callable[[FlowState, str], FlowState] | None = None
    #: Dropped whole when the block is too large.
    low: bool = False


def _orientation(state: FlowState, *, every_turn: bool) -> str:  # noqa: ARG001 - the first turn is the first turn
    return build_first_turn_injection(state)


def _directives(state: FlowState, *, every_turn: bool) -> str:
    return build_directive_context(state, again=not every_turn and _shown(state, "directives") is not None)


#: In the order of the block; the lowest are the last.
SECTIONS: tuple[_Section, ...] = (
    _Section("orientation", _orientation),
    _Section("directives", _directives),
    _Section("nudges", render_nudges, tell_nudges),
    _Section("background tasks", render_tasks, tell_tasks, low=True),
    _Section("recall", render_recall, tell_recall, low=True),
)
_BY_NAME = {section.name: section for section in SECTIONS}
#: Which gives way first when what must stay is too large.
CUT_ORDER = ("directives", "orientation", "nudges", "background tasks", "recall")


@dataclass(frozen=True, slots=True)
class Part:
    """A section on its way into a block."""

    section: str
    """Its name."""
    full: str
    """Its text before the limit."""
    text: str
    """What of it is in the block."""
    full_bytes: int
    """Size of `full`."""
    shown_bytes: int
    """Size of `text`."""
    digest: int = 0
    """Of what it says, however it is introduced."""
    outcome: Outcome = "kept"
    """What became of it."""
    reason: str = ""
    """Why, where it is not whole."""


@dataclass(frozen=True, slots=True)
class Block:
    """What to inject into a turn."""

    text: str
    """The block; "" where there is nothing to say."""
    report: Report
    """What became of each section."""
    parts: tuple[Part, ...] = ()
    """The sections, for `commit`."""


def build_turn_context(state: FlowState, *, every_turn: bool | None = None) -> Block:
    """The block of the state's turn. Pure: the same state gives the same bytes, and is not changed.

    Args:
        state: everything it depends on.
        every_turn: whether also to say what stands in the history; None: as the settings have it.
    """
    always = state.switches.every_turn if every_turn is None else every_turn
    parts = [part for section in SECTIONS if (part := _part(state, section, every_turn=always))]
    parts = _within(parts, state.flow_budget_chars)
    text = "\n".join(part.text for part in parts if part.text)
    return Block(text, _report(state, text, parts), tuple(parts))


def commit(state: FlowState, block: Block) -> FlowState:
    """The state once `block` stands in the history."""
    for part in block.parts:
        if part.text:
            state = _told_of(state, part)
    return _remember(state, Past(state.turn_counter, block.report, block.text))


def begin_turn(state: FlowState, turn_counter: int, library: Library | None = None) -> FlowState:
    """The state in that turn: what has expired is gone, and the phase's directive is in place."""
    from_now = replace(state, turn_counter=turn_counter) if turn_counter != state.turn_counter else state
    clean = forget_tasks(purge_expired_nudges(from_now))
    return clean if library is None else enter_phase(clean, library)


def _part(state: FlowState, section: _Section, *, every_turn: bool) -> Part | None:
    if section.tell is None:
        return _whole_part(state, section, every_turn=every_turn)
    return _kept(section, harmless(section.render(state, every_turn=every_turn)), 0)


def _whole_part(state: FlowState, section: _Section, *, every_turn: bool) -> Part | None:
    """A section that is said again only when what it says, however it is introduced, has changed."""
    plain = harmless(section.render(state, every_turn=True))
    mark, before = digest(plain), _shown(state, section.name)
    if every_turn or before is None:
        return _kept(section, plain, mark)
    if before.digest == mark and before.done:
        since = f"in view since turn {before.turn + 1}"
        return Part(section.name, plain, "", size(plain), 0, mark, "in view", since) if plain else None
    return _kept(section, harmless(section.render(state, every_turn=False)), mark)


def _kept(section: _Section, text: str, mark: int) -> Part | None:
    length = size(text)
    return Part(section.name, text, text, length, length, mark) if text else None


def _within(parts: list[Part], budget_bytes: int) -> list[Part]:
    """The parts, dropped from the bottom and then cut until all fit."""
    total = _total(parts)
    if total <= budget_bytes:
        return parts
    why = f"the sections came to {total:,} bytes, the limit is {budget_bytes:,}"
    # One that can't fit at all must not cost the others their place.
    parts = [_shorter(part, budget_bytes, why) if part.shown_bytes > budget_bytes else part for part in parts]
    total = _total(parts)
    while total > budget_bytes:
        live = [at for at, part in enumerate(parts) if part.text]
        if len(live) < 2 or not _BY_NAME[parts[live[-1]].section].low:  # noqa: PLR2004 - the last one is cut
            break
        parts[live[-1]] = _with_text(parts[live[-1]], "", why)
        total = _total(parts)
    for name in CUT_ORDER:
        for at, part in enumerate(parts):
            if total > budget_bytes and part.section == name and part.text:
                parts[at] = _shorter(part, part.shown_bytes - (total - budget_bytes), why)
                total = _total(parts)
    return parts


def _shorter(part: Part, limit_bytes: int, why: str) -> Part:
    return _with_text(part, cut(part.full, limit_bytes, part.section), why)


def _with_text(part: Part, text: str, why: str) -> Part:
    outcome: Outcome = "cut" if text else "dropped"
    return replace(part, text=text, shown_bytes=size(text), outcome=outcome, reason=why)


def _total(parts: list[Part]) -> int:
    sizes = [part.shown_bytes for part in parts if part.text]
    return sum(sizes) + max(0, len(sizes) - 1)


def _report(state: FlowState, text: str, parts: list[Part]) -> Report:
    sections = tuple(
        SectionReport(part.section, part.outcome, part.full_bytes, part.shown_bytes, part.reason)
        for part in parts
    )
    return Report(state.turn_counter, state.epoch, state.flow_budget_chars, size(text), sections)


def _shown(state: FlowState, section: str) -> Shown | None:
    return next((shown for shown in state.shown if shown.section == section), None)


def _told_of(state: FlowState, part: Part) -> FlowState:
    tell = _BY_NAME[part.section].tell
    if tell is None:
        return _mark(state, part)
    told = tell(state, part.text)
    # Where not even the first of its lines fits, there is no use in coming back to it every turn.
    return tell(state, part.full) if part.outcome == "cut" and told == state else told


def _mark(state: FlowState, part: Part) -> FlowState:
    """The section stands in the history. One that was cut, but would fit alone, gets one more chance."""
    before = _shown(state, part.section)
    again = before is not None and before.digest == part.digest
    done = part.outcome == "kept" or again or part.full_bytes > state.flow_budget_chars
    others = tuple(shown for shown in state.shown if shown.section != part.section)
    return replace(state, shown=(*others, Shown(part.section, part.digest, state.turn_counter, done)))


def _remember(state: FlowState, past: Past) -> FlowState:
    """Keep the block; of older ones with nothing in them nothing, of long ones' texts the newest."""
    older = state.blocks[:-1] if state.blocks and _dull(state.blocks[-1]) else state.blocks
    left = KEPT_TEXT_BYTES - past.report.bytes
    kept = [past]
    for each in reversed(older[1 - KEPT_REPORTS :]):
        left -= each.report.bytes
        kept.append(each if left >= 0 or each.text is None else replace(each, text=None))
    return replace(state, blocks=tuple(reversed(kept)))


def _dull(past: Past) -> bool:
    """Whether nothing was said and nothing was lost."""
    return not past.text and all(row.outcome == "in view" for row in past.report.sections)
