"""One request with all that is known of it, and what is to be done with it. Reads nothing, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict

from turngate.settings import WindowSettings
from turngate.window import compaction
from turngate.window.book import Epoch, State, SummaryNote
from turngate.window.budget import Limits, Pace, Verdict, limits, weigh
from turngate.window.cut import PINNED, Plan, plan, unchanged
from turngate.window.measure import Sizes
from turngate.window.models import CachePrices, thinking_bound
from turngate.window.notices import Compaction, Trigger
from turngate.window.record.facts import Facts
from turngate.window.record.frame import LISTED_SPANS
from turngate.window.record.summary import Style
from turngate.window.request import Place, Request
from turngate.window.thinking import Rules, rules
from turngate.window.units import Message, Shape, Unit
from turngate.wire import Wire

#: A text that stays shortened keeps about so much of the limit, within these tokens.
_EXCERPT_SHARE: Final = 0.02
_EXCERPT_TOKENS: Final = (80, 800)
#: The first request is quoted whole as long as it takes no more than this share of the limit.
FIRST_REQUEST_SHARE: Final = 0.5
#: The recent pace is that of so many calls.
_PACE_CALLS: Final = 8
#: The record's frame: its marker, what it says of itself, its end; and a line for each part that it lists.
_FRAME_TOKENS: Final = 150
_SPAN_TOKENS: Final = 35


class Wishes(TypedDict, total=False):
    """What a host may ask of one fitting."""

    model: str
    """The model, if the request does not name it."""
    force: bool
    """Compact now, whatever it costs, as after a refusal for length."""
    pinned: Iterable[int]
    """Indexes of messages that stay as they are."""
    recalled: int
    """Lines of recall and memory that the host renders beside the messages."""
    let_drop: bool
    """Let the provider drop thinking whose prefix changed, from now on; only for a host that sends
    `Fitted.headers`."""
    cold: bool
    """Whether the prompt cache has expired; without it, judged by the time since the last request."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A request that fits, or the statement that it does not."""

    request: Any
    """In the form it came in; the very object where nothing is ours in it."""
    messages: Sequence[Message]
    """Its messages."""
    tokens: int
    """What they weigh: an estimate, corrected by what was reported of this model."""
    limits: Limits | None = None
    """The room; None if the request could not be read."""
    plan: Plan | None = None
    """What was planned now; None if nothing had to be."""
    verdict: Verdict | None = None
    """Of a compaction that need not be: whether it pays."""
    compaction: Compaction | None = None
    """The compaction that was made now, or was tried."""
    epochs: int = 0
    """Compactions of this session so far (what `turngate.ledger` calls the epoch)."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that the request needs."""
    why: str = ""
    """In a sentence: why it is as it is."""
    over: bool = False
    """Whether the messages still weigh more than they may."""


@dataclass(frozen=True, slots=True)
class Case:
    """One request, with all that is known of it. Tokens are estimates, uncorrected."""

    request: Request
    """What came."""
    wire: Wire
    """Its format."""
    model: str
    """The model."""
    state: State
    """The session's state."""
    keys: Sequence[bytes]
    """The key of each message that came."""
    epoch: Epoch | None
    """The epoch that is replayed."""
    sent: Sequence[Place]
    """The list that would be sent."""
    shapes: Sequence[Shape]
    """Of its messages."""
    units: Sequence[Unit]
    """Of its messages."""
    limits: Limits
    """The room."""
    factor: float
    """By which an estimate is corrected for the model."""
    old: tuple[int, SummaryNote] | None
    """The record of an earlier compaction in the list, and what belongs to it."""
    drop: bool
    """Whether the provider is to drop thinking whose prefix changed."""
    recalled: int
    """Lines of recall and memory beside the messages."""

    @property
    def messages(self) -> list[Message]:
        """The list that would be sent."""
        return [place.message for place in self.sent]

    @property
    def tokens(self) -> float:
        """What it weighs."""
        return sum(unit.tokens for unit in self.units)

    @property
    def old_index(self) -> int | None:
        """Where the earlier record stands."""
        return None if self.old is None else self.old[0]


@dataclass(frozen=True, slots=True)
class Job:
    """A compaction that is decided on; between its halves a model may write the summary."""

    case: Case
    """The request."""
    trigger: Trigger
    """Why."""
    plan: Plan
    """How."""
    verdict: Verdict | None
    """Whether it pays, if it need not be."""
    stay: compaction.Stay
    """What stays."""
    removed: compaction.Removed | None
    """What went; None if texts were only put away."""
    gone: tuple[Message, ...]
    """The messages that went."""
    strip: bool
    """Whether thinking is taken out of what stays."""
    style: Style
    """How a summary is asked for."""
    writes: bool
    """Whether a model is asked."""
    begun: float
    """When it began, by the window's clock."""


def room_for(settings: WindowSettings, request: Request, model: str, sizes: Sizes, factor: float) -> Limits:
    """The limits in estimated tokens, as messages are measured, with the estimate's correction taken off."""
    beside = request.beside_tokens(sizes)
    room = limits(settings, model=model, beside_tokens=factor * beside)
    return replace(
        room,
        beside_tokens=beside,
        hard_tokens=room.hard_tokens / factor,
        soft_tokens=room.soft_tokens / factor,
    )


def trigger(case: Case, *, force: bool) -> tuple[Trigger | None, str]:
    """Why a compaction is looked at, or why not."""
    weight, room, floor = case.tokens, case.limits, case.state.floor_tokens
    if force:
        return "forced", ""
    if weight > room.hard_tokens:
        return "hard", ""
    if weight <= room.soft_tokens:
        return None, "it fits"
    if weight < floor:
        return None, f"over the soft threshold; waits until the messages weigh {floor:,.0f} tokens"
    return "soft", ""


def thinking_rules(case: Case) -> Rules:
    """What signed thinking demands."""
    bound = case.wire == "anthropic" and thinking_bound(case.model) != "never"
    return rules(case.shapes, bound=bound, drop=case.drop)


def excerpt_tokens(room: Limits) -> float:
    """What stays in view of a text that is put away."""
    least, most = _EXCERPT_TOKENS
    return min(max(_EXCERPT_SHARE * room.hard_tokens, least), most)


def make_plan(
    case: Case,
    settings: WindowSettings,
    sizes: Sizes,
    offloader: compaction.Offloader,
    *,
    soft: bool,
    pinned: Iterable[int],
) -> Plan:
    """The plan for a request that is too large, or large enough."""
    hard = case.limits.hard_tokens
    if hard <= 0:
        why = "tools and system prompt leave no room for messages; shorten them, or set a larger window"
        return unchanged(case.units, hard, why)
    target = case.limits.target(settings.keep_recent_messages, soft=soft)
    listed = len(case.old[1].spans) + 1 if case.old else 0
    frame = _FRAME_TOKENS + _SPAN_TOKENS * min(listed, LISTED_SPANS)
    extra = _first_request_tokens(case, sizes) + frame
    demands = thinking_rules(case)
    return plan(
        case.units,
        replace(target, summary_tokens=target.summary_tokens + extra),
        offloader.shrunk,
        pinned={**dict.fromkeys(_moved(pinned, case.sent), PINNED), **demands.pinned},
        bound=demands.bound,
        old_summary=case.old_index,
    )


def weighed(
    case: Case, made: Plan, sizes: Sizes, *, prices: CachePrices, cold: bool, by_model: bool
) -> Verdict:
    """Whether the plan pays, when it need not be carried out."""
    calls = [at for at, shape in enumerate(case.shapes) if shape.role == "assistant"]
    recent = calls[-_PACE_CALLS:]
    grown = sizes.messages(case.messages[recent[0] :]) if recent else case.tokens
    changed = next((at for at, step in enumerate(made.steps) if step.action != "keep"), 0)
    gone = sum(step.tokens for step in made.steps if step.action == "summarise")
    return weigh(
        before_tokens=made.before_tokens,
        after_tokens=made.after_tokens,
        kept_prefix_tokens=sum(step.tokens for step in made.steps[:changed]),
        limit_tokens=case.limits.hard_tokens,
        # Of the messages that went, about every second one was a call.
        pace=Pace(len(calls) + case.state.last_compacted_index // 2, grown / max(1, len(recent))),
        prices=prices,
        cold=cold,
        summarised_by_model_tokens=gone * by_model,
        summary_tokens=case.limits.summary_tokens * by_model,
    )


def _first_request_tokens(case: Case, sizes: Sizes) -> float:
    """What the first request takes when it goes or went: it is quoted whole, if that can be."""
    facts: Mapping[str, Any] = case.old[1].facts if case.old else Facts().to_dict()
    text = facts["requests"][0][1] if facts["requests"] else _first_spoken(case)
    return min(sizes.text(text), FIRST_REQUEST_SHARE * case.limits.hard_tokens)


def _first_spoken(case: Case) -> str:
    """The first request in the list, unless it is the newest, which stays."""
    spoken = [unit for unit in case.units if unit.spoken]
    if len(spoken) < 2:  # noqa: PLR2004 - the first and another one
        return ""
    first = spoken[0]
    read = zip(case.sent[first.first : first.end], case.shapes[first.first : first.end], strict=True)
    return next((compaction.said(place.message, case.wire) for place, shape in read if shape.user), "")


def _moved(pinned: Iterable[int], sent: Sequence[Place]) -> set[int]:
    """Places in the list that is sent of the client's messages with these indexes."""
    wanted = set(pinned)
    return {at for at, place in enumerate(sent) if place.origin in wanted} if wanted else set()
