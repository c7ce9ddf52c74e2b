"""The cut: which exchanges stay, which are shortened where they stand, which go into the summary. Pure.

The plan is data with a reason for every step, so that it can be printed, recorded and repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from turngate.window.units import Unit

Action: TypeAlias = Literal["keep", "offload", "summarise"]
"""``offload``: its long texts go to the store, a marker and an excerpt stay where they stood."""

Shrunk: TypeAlias = Callable[[Unit], float]
"""What a unit would weigh once its long texts are offloaded."""

#: Fewer tokens by less than this share is no progress, whatever the number of messages.
LEAST_PROGRESS_SHARE: Final = 0.05

#: What the newest exchanges get in any case, beside what must stay, as far as the limit allows.
LEAST_TAIL_SHARE: Final = 0.15

BOUND: Final = "signed thinking of the turn in progress is bound to it"
SYSTEM: Final = "a system message"
NATIVE: Final = "the provider's own compaction"
PINNED: Final = "pinned"
NEWEST_REQUEST: Final = "the newest user message"
SPOKEN: Final = "a user spoke in it"
OPEN: Final = "a call in it waits for its result"
NEWEST: Final = "the newest exchange"
RECENT: Final = "recent"
OLDER: Final = "older than what stays"
OLD_SUMMARY: Final = "the summary so far"

EXHAUSTED: Final = "nothing is left to take out"
WAITS: Final = "waits for the end of the turn, to whose start signed thinking is bound"

#: In units that stay for one of these reasons, results of tools may be offloaded when the limit is missed.
_MAY_SHRINK: Final = frozenset({SPOKEN, OPEN, NEWEST, RECENT})


@dataclass(frozen=True, slots=True)
class Target:
    """What a cut aims at, in tokens of messages (tools and a system prompt beside them not counted)."""

    limit_tokens: float
    """What the messages may weigh at most."""
    aim_tokens: float
    """What they should weigh after the cut, if the newest exchanges get their least share."""
    summary_tokens: float
    """What a summary is counted with."""
    keep_messages: int | None = None
    """At most so many of the newest messages stay (what must stay not counted); None: as many as fit."""


class Step(NamedTuple):
    """What becomes of one unit."""

    first: int
    """Index of its first message."""
    end: int
    """Index after its last message."""
    action: Action
    """What is done."""
    reason: str
    """Why."""
    tokens: float
    """What it weighs now."""
    after_tokens: float
    """What of it stays in the list, the summary not counted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a history."""

    steps: tuple[Step, ...]
    """One for each unit, in order."""
    before_tokens: float
    """What the messages weigh now."""
    after_tokens: float
    """What they will weigh, the summary counted with what it may take."""
    limit_tokens: float
    """What they may weigh."""
    why: str = ""
    """Why nothing can be done, or why the limit is missed; "" when all is well."""

    @property
    def changes(self) -> bool:
        """Whether anything is done at all."""
        return any(step.action != "keep" for step in self.steps)

    @property
    def summarised(self) -> tuple[int, ...]:
        """Indexes of the messages that go into the summary."""
        return tuple(
            i for step in self.steps if step.action == "summarise" for i in range(step.first, step.end)
        )

    @property
    def met(self) -> bool:
        """Whether the messages will be within the limit."""
        return self.after_tokens <= self.limit_tokens

    @property
    def progress_share(self) -> float:
        """By which share of the tokens the list becomes lighter; negative if heavier."""
        return 1 - self.after_tokens / self.before_tokens if self.before_tokens else 0.0


def unchanged(parts: Sequence[Unit], limit_tokens: float, why: str = "") -> Plan:
    """The plan that leaves everything as it is."""
    steps = tuple(Step(u.first, u.end, "keep", why or "it fits", u.tokens, u.tokens) for u in parts)
    total = sum(unit.tokens for unit in parts)
    return Plan(steps, total, total, limit_tokens, why)


def plan(
    parts: Sequence[Unit],
    target: Target,
    shrunk: Shrunk,
    *,
    pinned: Mapping[int, str] | None = None,
    bound: int = 0,
    old_summary: int | None = None,
) -> Plan:
    """What to do with a history that has outgrown its limit; in linear time.

    Args:
        parts: the history.
        target: what to aim at.
        shrunk: the weight of a unit once offloaded; asked of few units.
        pinned: indexes of messages that stay as they are, with the reason.
        bound: messages before this index must not change, since signed thinking after them is bound to them.
        old_summary: index of the summary of an earlier cut; it becomes part of the new one.
    """
    if not parts:
        return unchanged(parts, target.limit_tokens, "there are no messages")
    cut = _Cut(parts, target, shrunk, old_summary)
    cut.fix(_fixed(parts, pinned or {}, bound, old_summary))
    if bound:
        # A record would have to stand before what is bound; so nothing goes, until the turn is over.
        cut.keep_all()
    cut.fill_tail()
    cut.press()
    return cut.plan()


def _fixed(
    parts: Sequence[Unit], pinned: Mapping[int, str], bound: int, old_summary: int | None
) -> dict[int, str]:
    """Places of units that stay, with the reason."""
    fixed = {place: reason for place, unit in enumerate(parts) if (reason := _why_fixed(unit, bound))}
    if pinned:
        for place, unit in enumerate(parts):
            reason = next((pinned[at] for at in range(unit.first, unit.end) if at in pinned), "")
            if reason:
                fixed[place] = reason
    others = [at for at in range(len(parts) - 1, -1, -1) if parts[at].first != old_summary]
    newest = next((at for at in others if parts[at].asked), -1)
    spoken = next((at for at in others if at > newest and parts[at].spoken), -1)
    for place in (newest, spoken):
        if place >= 0:
            fixed.setdefault(place, NEWEST_REQUEST if parts[place].user else SPOKEN)
    return fixed


def _why_fixed(unit: Unit, bound: int) -> str:
    if unit.first < bound:
        return BOUND
    if unit.system:
        return SYSTEM
    if unit.compaction:
        return NATIVE
    return OPEN if unit.open else ""


class _Cut:
    """A plan in the making."""

    def __init__(
        self, parts: Sequence[Unit], target: Target, shrunk: Shrunk, old_summary: int | None
    ) -> None:
        self._parts = parts
        self._target = target
        self._shrunk = shrunk
        self._old = old_summary
        self._done: list[tuple[Action, str, float] | None] = [None] * len(parts)
        self._after = target.summary_tokens
        self._aim = target.aim_tokens
        self._tail: list[int] = []

    def fix(self, reasons: dict[int, str]) -> None:
        """Keep what must stay."""
        for place, reason in reasons.items():
            self._set(place, "keep", reason, self._parts[place].tokens)
        last = len(self._parts) - 1
        if self._done[last] is None:
            self._set(last, "keep", NEWEST, self._parts[last].tokens)
            self._tail.append(last)

    def keep_all(self) -> None:
        """Let nothing go."""
        for place, unit in enumerate(self._parts):
            if self._done[place] is None:
                self._set(place, "keep", RECENT, unit.tokens)

    def fill_tail(self) -> None:
        """Keep the newest of the others, one after the other, as far as the aim and the number allow."""
        kept = sum(self._parts[place].messages for place in self._tail)
        least = self._after + LEAST_TAIL_SHARE * self._target.limit_tokens
        self._aim = min(self._target.limit_tokens, max(self._target.aim_tokens, least))
        full = False
        for place in range(len(self._parts) - 1, -1, -1):
            if self._done[place] is not None:
                continue
            unit = self._parts[place]
            full = full or not self._take(place, kept)
            if full:
                self._set(place, "summarise", self._why_gone(unit), 0.0)
            else:
                kept += unit.messages
                self._tail.append(place)

    def _take(self, place: int, kept: int) -> bool:
        """Keep a unit in the tail, whole or offloaded; False if it has no room there."""
        unit, most = self._parts[place], self._target.keep_messages
        if unit.first == self._old or (most is not None and kept + unit.messages > most):
            return False
        room = self._aim - self._after
        if unit.tokens <= room:
            self._set(place, "keep", RECENT, unit.tokens)
            return True
        light = self._shrunk(unit)
        if light > room or light >= unit.tokens:
            return False
        self._set(place, "offload", "recent, and too large for what is left", light)
        return True

    def press(self) -> None:
        """Where the limit is still missed: offload in what stays, as far as that is allowed."""
        self._need_summary()
        for place in range(len(self._parts)):
            done = self._done[place]
            if self._over() and done is not None and done[0] == "keep" and done[1] in _MAY_SHRINK:
                light = self._shrunk(self._parts[place])
                if light < self._parts[place].tokens:
                    self._set(place, "offload", f"{done[1]}, and too large", light)

    def _need_summary(self) -> None:
        """Count no new summary where there is nothing new to summarise."""
        gone = [place for place, done in enumerate(self._done) if done and done[0] == "summarise"]
        if all(self._parts[place].first == self._old for place in gone):
            self._after -= self._target.summary_tokens
            for place in gone:
                self._set(place, "keep", OLD_SUMMARY, self._parts[place].tokens)

    def _over(self) -> bool:
        return self._after > self._target.limit_tokens

    def _why_gone(self, unit: Unit) -> str:
        return OLD_SUMMARY if unit.first == self._old else OLDER

    def _set(self, place: int, action: Action, reason: str, after: float) -> None:
        known = self._done[place]
        self._after += after - (known[2] if known else 0.0)
        self._done[place] = (action, reason, after)

    def plan(self) -> Plan:
        """The plan, or the one that changes nothing where this would not help."""
        steps = tuple(
            Step(unit.first, unit.end, *done[:2], unit.tokens, done[2])
            for unit, done in zip(self._parts, self._done, strict=True)
            if done is not None
        )
        before = sum(unit.tokens for unit in self._parts)
        made = Plan(steps, before, self._after, self._target.limit_tokens)
        if not made.changes:
            bound = any(step.reason == BOUND for step in steps)
            return unchanged(self._parts, self._target.limit_tokens, WAITS if bound else EXHAUSTED)
        if made.progress_share < LEAST_PROGRESS_SHARE:
            why = f"no progress: it would take out {max(0.0, made.progress_share):.1%}"
            why = why if before <= made.limit_tokens else f"{why}; {_too_heavy(made)}"
            return unchanged(self._parts, self._target.limit_tokens, why)
        if not made.met:
            return Plan(steps, before, self._after, self._target.limit_tokens, _too_heavy(made))
        return made


def _too_heavy(made: Plan) -> str:
    """What keeps the list above its limit, heaviest first."""
    weights: dict[str, float] = {}
    for step in made.steps:
        if step.action != "summarise":
            weights[step.reason] = weights.get(step.reason, 0.0) + step.after_tokens
    heavy = sorted(weights.items(), key=lambda item: -item[1])[:3]
    named = ", ".join(f"{weight:,.0f} for {reason}" for reason, weight in heavy)
    return f"over the limit of {made.limit_tokens:,.0f} tokens by what must stay: {named}"
