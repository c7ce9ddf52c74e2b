"""For those who only want a function: trim, clear, validate; no session, no store. Pure.

What comes in is never altered. What comes out is a new list, or the very one where nothing had to change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from turngate.errors import TurngateError
from turngate.window.measure import Sizes
from turngate.window.offload import leaves, replaced
from turngate.window.units import SYSTEM_ROLES, Message, Unit, shapes, units
from turngate.wire import Path, Violation, Wire, sniff, violations
from turngate.wire.view import blocks, message_list, string

StandIn: TypeAlias = Callable[[str], str]
"""What to show for a text that is cleared, such as a marker under which it was stored."""

CLEARED: Final = "[cleared]"


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A list that was trimmed."""

    messages: list[Message]
    """What is left."""
    dropped: int
    """How many messages went. Tell `Window.dropped`, so that the model is told that earlier turns exist."""
    met: bool
    """Whether the budget is met. System messages and the newest user message stay in any case."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """A list in which results were cleared."""

    messages: Sequence[Message]
    """The list; the very object given where nothing was cleared."""
    call_ids: tuple[str, ...] = ()
    """The calls whose results were cleared, oldest first."""
    tokens: float = 0.0
    """By how much lighter it is."""


def trim(
    messages: Sequence[Message],
    budget_tokens: float | None = None,
    *,
    max_messages: int | None = None,
    wire: Wire | None = None,
    sizes: Sizes | None = None,
) -> Trimmed:
    """The newest exchanges that fit; whole ones only, so that no call loses a result.

    Promises: valid in, valid out. All system messages and the newest user message stay, and so does a call
    that still waits for its result. Behind the system messages the list begins with a user message, if it
    has one. The budget holds for all messages, the newest user message included; where what must stay exceeds
    it, `Trimmed.met` is False. `max_messages` counts all but system messages.

    Raises:
        WireError: it is no list of messages.
    """
    known = _wire(messages, wire)
    parts = units(messages, known, sizes or Sizes())
    newest = next((at for at in range(len(parts) - 1, -1, -1) if parts[at].user), None)
    fixed = {
        at for at, unit in enumerate(parts) if unit.system or unit.compaction or unit.open or at == newest
    }
    room = _Room(
        budget_tokens if budget_tokens is not None else float("inf"),
        max_messages if max_messages is not None else len(messages),
    )
    for at in fixed:
        room.take(parts[at])
    kept = _newest_that_fit(parts, fixed, room)
    kept = _from_first_user(parts, kept, fixed)
    out = [message for at in sorted(kept) for message in messages[parts[at].first : parts[at].end]]
    return Trimmed(out, len(messages) - len(out), room.fits(messages=out, sizes=sizes or Sizes()))


@dataclass(slots=True)
class _Room:
    """What is left of a budget."""

    tokens: float
    messages: int
    most_tokens: float = 0.0
    most_messages: int = 0

    def __post_init__(self) -> None:
        self.most_tokens, self.most_messages = self.tokens, self.messages

    def take(self, unit: Unit) -> bool:
        """Take a unit's share; False if that is more than there was."""
        self.tokens -= unit.tokens
        self.messages -= 0 if unit.system else unit.messages
        return self.tokens >= 0 and self.messages >= 0

    def fits(self, messages: Sequence[Message], sizes: Sizes) -> bool:
        """Whether a list is within the budget."""
        own = sum(message.get("role") not in SYSTEM_ROLES for message in messages)
        return sizes.messages(messages) <= self.most_tokens and own <= self.most_messages


def _newest_that_fit(parts: Sequence[Unit], fixed: set[int], room: _Room) -> set[int]:
    kept = set(fixed)
    for at in range(len(parts) - 1, -1, -1):
        if at in fixed:
            continue
        if not room.take(parts[at]):
            break
        kept.add(at)
    return kept


def _from_first_user(parts: Sequence[Unit], kept: set[int], fixed: set[int]) -> set[int]:
    """Without what stands before the first user message."""
    first = next((at for at in sorted(kept) if parts[at].user), None)
    if first is None:
        return kept
    return {at for at in kept if at >= first or at in fixed}


def clear_tool_results(
    messages: Sequence[Message],
    *,
    keep: int = 3,
    at_least: float = 0,
    inputs: bool = False,
    errors: bool = True,
    skip_tools: Container[str] = (),
    stand_in: StandIn = lambda _: CLEARED,
    wire: Wire | None = None,
    sizes: Sizes | None = None,
) -> Cleared:
    """Old results of tools replaced by stand-ins; everything else of their messages stays.

    Promises: the newest `keep` results stay. A result becomes shorter or stays. What is cleared is the oldest
    results, all of them, so that the next clearing clears these and more. Unless this makes the list lighter
    by `at_least` tokens, nothing is cleared, since the prompt cache would be lost for too little.

    Args:
        messages: the list.
        keep: results that stay; not negative.
        at_least: tokens.
        inputs: clear the arguments of the same calls, too.
        errors: False: results that the wire marks as failed stay.
        skip_tools: names of tools whose results stay.
        stand_in: what to show for a text.
        wire: the format; guessed if not given.
        sizes: how tokens are counted.

    Raises:
        TurngateError: `keep` is negative.
        WireError: it is no list of messages.
    """
    if keep < 0:
        raise TurngateError(f"keep is {keep}; give the number of results that stay, 0 or more")
    known, count = _wire(messages, wire), sizes or Sizes()
    names = _names(messages, known)
    old = _old_results(messages, known, keep)
    wanted = [
        (at, call_id)
        for at, call_id, failed in old
        if (errors or not failed) and names.get(call_id, "") not in skip_tools
    ]
    ids = {call_id for _, call_id in wanted}
    out: list[Message] = list(messages)
    for at in sorted({at for at, _ in wanted}):
        out[at] = _cleared(out[at], known, ids, stand_in)
    if inputs:
        out = [_without_inputs(message, known, ids) for message in out]
    less = sum(count.message(a) - count.message(b) for a, b in zip(messages, out, strict=True) if a is not b)
    if less <= 0 or less < at_least:
        return Cleared(messages)
    return Cleared(out, tuple(dict.fromkeys(call_id for _, call_id in wanted)), less)


def _old_results(messages: Sequence[Message], wire: Wire, keep: int) -> list[tuple[int, str, bool]]:
    """Message, call and whether it failed, of each result but the newest."""
    found: list[tuple[int, str, bool]] = []
    for at, message in enumerate(messages):
        if wire == "chat":
            found += [(at, call_id, False) for call_id in shapes([message], wire)[0].results]
        else:
            results = [b for _, b in blocks(message.get("content")) if b.get("type") == "tool_result"]
            found += [(at, string(b.get("tool_use_id")), b.get("is_error") is True) for b in results]
    return found[: max(0, len(found) - keep)]


def _cleared(message: Message, wire: Wire, ids: set[str], stand_in: StandIn) -> Message:
    changes: dict[Path, Any] = {}
    for leaf in leaves(message, wire):
        if leaf.what == "result" and leaf.call_id in ids:
            shown = stand_in(leaf.text)
            if len(shown) < len(leaf.text):
                changes[leaf.path] = shown
    return replaced(message, changes) if changes else message


def _without_inputs(message: Message, wire: Wire, ids: set[str]) -> Message:
    empty: Any = {} if wire == "anthropic" else "{}"
    changes = {
        leaf.path: empty
        for leaf in leaves(message, wire)
        if leaf.what == "arguments" and leaf.call_id in ids and len(leaf.text) > len(json.dumps(empty))
    }
    return replaced(message, changes) if changes else message


def validate(messages: Sequence[Message] | Mapping[str, Any], *, wire: Wire | None = None) -> list[Violation]:
    """What the provider would refuse; empty for a list that it accepts. Takes a whole request, too."""
    return violations(messages, wire or sniff(messages) or "chat")


def _names(messages: Sequence[Message], wire: Wire) -> dict[str, str]:
    """Tools by the ids of their calls."""
    return {
        leaf.call_id: leaf.name
        for message in messages
        for leaf in leaves(message, wire)
        if leaf.what == "arguments"
    }


def _wire(messages: Sequence[Message], wire: Wire | None) -> Wire:
    message_list(messages)
    return wire or sniff(messages, ("chat", "anthropic")) or "chat"
