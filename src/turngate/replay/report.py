"""What replays have shown, as plain values for JSON and as sums for tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from turngate.replay.costs import Cost, Offer
from turngate.replay.rules import PROVIDERS, as_of, assumed
from turngate.replay.run import ORIENTATION_TOKENS, REDEEMING, SCHEMA_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from turngate.replay.cachesim import Billed
    from turngate.replay.recorded import Transcript
    from turngate.replay.run import Outcome, Turn
    from turngate.replay.windowed import Compacted

BASE = "none"
"""The arm that the others are compared with."""

LEAST_DOLLARS = 0.001
"""The smallest sum that is told from others."""

NOT_COUNTED = (
    "such requests are in no sum of dollars (≥: the others cost so much), and percentages compare input "
    "alone, in prices of fresh input. Name a model that stands for it with --model."
)

NO_FACTS = (
    "Which facts were had back or lost was not asked; --probes FILE does, a JSON object a line: "
    '"file", "question", "answers", "first_message_index".'
)


@dataclass(slots=True)
class Sums:
    """One arm over all sessions."""

    input_tokens: int = 0
    requests: int = 0
    changed: int = 0
    breaks: int = 0
    wrong: int = 0
    faults: int = 0
    facts: int = 0
    retrieved: int = 0
    lost: int = 0
    compactions: int = 0
    over: int = 0
    costs: dict[str, Cost] = field(default_factory=dict)
    """By provider."""

    def add(self, outcome: Outcome, offers: Sequence[Offer]) -> None:
        """One more session."""
        self.input_tokens += sum(turn.input_tokens for turn in outcome.turns)
        self.requests += len(outcome.turns)
        self.changed += len(outcome.changed)
        self.breaks += outcome.breaks
        self.wrong += len(outcome.wrong)
        self.faults += sum(outcome.faults.values())
        self.facts += outcome.facts
        self.retrieved += outcome.retrieved
        self.lost += outcome.lost
        self.compactions += len(outcome.compactions)
        self.over += outcome.over
        for offer, cost in zip(offers, outcome.costs, strict=True):
            self.costs[offer.provider] = self.costs.get(offer.provider, Cost()) + cost


@dataclass(slots=True)
class Session:
    """One session in a few numbers."""

    name: str
    requests: int
    input_tokens: int
    """Of its last request, as recorded."""
    shares: dict[str, dict[str, float | None]]
    """By arm and provider: cost against none, as :func:`share` has it."""

    @property
    def dearer(self) -> bool:
        """Whether our arm costs more than none at some provider."""
        return any((above or 0) > 0 for above in self.shares.get(REDEEMING, {}).values())


@dataclass(slots=True)
class Report:
    """All sessions of a run. It holds sums and a line for each session, never the sessions themselves."""

    sums: dict[str, Sums] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    minimums: dict[str, int] = field(default_factory=dict)
    """By provider: tokens below which nothing is cached; where models differ, the most."""
    unpriced: set[str] = field(default_factory=set)
    """Models whose price is not known."""

    def add(self, transcript: Transcript, offers: Sequence[Offer], outcomes: Sequence[Outcome]) -> None:
        """One more session."""
        base = next(outcome for outcome in outcomes if outcome.arm == BASE)
        for outcome in outcomes:
            self.sums.setdefault(outcome.arm, Sums()).add(outcome, offers)
        shares = {
            outcome.arm: {
                offer.provider: share(cost, none)
                for offer, cost, none in zip(offers, outcome.costs, base.costs, strict=True)
            }
            for outcome in outcomes
        }
        last = base.turns[-1].input_tokens
        self.sessions.append(Session(transcript.name, len(base.turns), last, shares))
        for offer in offers:
            known = self.minimums.get(offer.provider, 0)
            self.minimums[offer.provider] = max(known, offer.rules.minimum_tokens)
            if offer.prices is None:
                self.unpriced.add(offer.model)

    def as_dict(self) -> dict[str, Any]:
        """The sums, for JSON."""
        base = self.sums.get(BASE, Sums())
        return {arm: _sums_dict(sums, base) for arm, sums in self.sums.items()}

    def notes(self) -> list[str]:
        """What a reader of the sums should know of them."""
        notes = []
        if self.unpriced:
            models = ", ".join(sorted(self.unpriced))
            notes.append(f"No price is known for {models}; {NOT_COUNTED}")
        dearer = [session for session in self.sessions if session.dearer]
        if dearer:
            notes.append(_why_dearer(dearer, len(self.sessions), self.minimums))
        if not any(sums.facts for sums in self.sums.values()):
            notes.append(NO_FACTS)
        return notes


def _why_dearer(dearer: Sequence[Session], of: int, minimums: Mapping[str, int]) -> str:
    most = max(session.input_tokens for session in dearer)
    least = ", ".join(f"{tokens:,} at {provider}" for provider, tokens in minimums.items())
    where = f"in {len(dearer):,} of {of:,} sessions" if of > 1 else "in this session"
    extra = SCHEMA_TOKENS + ORIENTATION_TOKENS
    return (
        f"{REDEEMING} costs more than {BASE} {where} at some provider; the largest ends at {most:,} tokens. "
        f"Each request carries the retrieve tool's schema and an orientation ({extra} tokens), which a small "
        f"session does not earn back. And what is shorter than a provider's minimum ({least}) is not cached: "
        "a small session pays for everything in full, and one that shortening keeps below it loses the cache."
    )


def share(cost: Cost, base: Cost) -> float | None:
    """By how much ``cost`` is above ``base``: 0.1 for 10 % more; ``None`` if there was nothing to pay.

    In dollars where all prices are known, else by input alone, in prices of fresh input.
    """
    if cost.unpriced or base.unpriced:
        return cost.units / base.units - 1 if base.units else None
    return cost.dollars / base.dollars - 1 if base.dollars else None


def _sums_dict(sums: Sums, base: Sums) -> dict[str, Any]:
    """What came of facts is ``null`` where none was asked for."""
    names = (
        "requests",
        "input_tokens",
        "changed",
        "breaks",
        "wrong",
        "faults",
        "facts",
        "compactions",
        "over",
    )
    found = {name: getattr(sums, name) if sums.facts else None for name in ("retrieved", "lost")}
    providers = {name: _cost_dict(cost, base.costs[name]) for name, cost in sums.costs.items()}
    return {name: getattr(sums, name) for name in names} | found | {"providers": providers}


def counted(number: int | None) -> str:
    """A count for people; a dash where it is not known."""
    return "–" if number is None else f"{number:,}"


def money(cost: Mapping[str, Any]) -> str:
    """A sum for people: ``$1.25``, ``$0.041``; ``≥$1.25`` if some prices are unknown, ``unknown`` if all."""
    known: float = cost["known_dollars"]
    if cost["dollars"] is not None:
        return _dollars(known)
    if known >= LEAST_DOLLARS:
        return f"≥{_dollars(known)}"
    return ">$0" if known else "unknown"


def _dollars(amount: float) -> str:
    """Nothing that costs something is shown as zero."""
    if 0 < amount < LEAST_DOLLARS:
        return f"<${LEAST_DOLLARS}"
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.3f}"


def _cost_dict(cost: Cost, base: Cost) -> dict[str, Any]:
    """Dollars are ``null`` where any price is unknown; those of the requests with a price stand beside it."""
    above = share(cost, base)
    return _billed_dict(cost.billed) | {
        "units": round(cost.units, 1),
        "dollars": None if cost.unpriced else round(cost.dollars, 6),
        "known_dollars": round(cost.dollars, 6),
        "share_above_none": None if above is None else round(above, 4),
    }


def _billed_dict(billed: Billed) -> dict[str, int]:
    return {
        "read_tokens": billed.read_tokens,
        "written_tokens": billed.written_tokens,
        "fresh_tokens": billed.fresh_tokens,
        "output_tokens": billed.output_tokens,
    }


def session_dict(
    transcript: Transcript, offers: Sequence[Offer], outcomes: Sequence[Outcome]
) -> dict[str, Any]:
    """One session with all of its turns, for JSON."""
    base = next(outcome for outcome in outcomes if outcome.arm == BASE)
    return {
        "name": transcript.name,
        "format": transcript.format,
        "model": transcript.model or None,
        "epochs": [epoch.begin for epoch in transcript.epochs],
        "offers": [_offer_dict(offer) for offer in offers],
        "arms": {outcome.arm: _outcome_dict(outcome, offers, base) for outcome in outcomes},
    }


def _offer_dict(offer: Offer) -> dict[str, Any]:
    return {"provider": offer.provider, "model": offer.model, "price_known": offer.prices is not None}


def _outcome_dict(outcome: Outcome, offers: Sequence[Offer], base: Outcome) -> dict[str, Any]:
    sums, base_sums = Sums(), Sums()
    sums.add(outcome, offers)
    base_sums.add(base, offers)
    wrong = [{"rule": v.rule, "text": v.text} for v in outcome.wrong]
    turns = [_turn_dict(turn, offers) for turn in outcome.turns]
    compacted = [compacted_dict(each, outcome, offers) for each in outcome.compactions]
    found = {"wrong": wrong, "faults": outcome.faults, "turns": turns, "compacted": compacted}
    return _sums_dict(sums, base_sums) | found


def compacted_dict(each: Compacted, outcome: Outcome, offers: Sequence[Offer]) -> dict[str, Any]:
    """A compaction: what was kept and why, and what the request behind it cost."""
    notice = each.notice
    turn = next((turn for turn in outcome.turns if turn.message == each.message), None)
    names = (
        "trigger", "method", "before_tokens", "after_tokens", "removed", "kept", "offloaded", "epoch", "why",
    )  # fmt: skip
    return {
        "message": each.message,
        **{name: getattr(notice, name) for name in names},
        "plan": each.plan["steps"],
        "providers": _turn_dict(turn, offers)["providers"] if turn else {},
    }


def _turn_dict(turn: Turn, offers: Sequence[Offer]) -> dict[str, Any]:
    def priced(offer: Offer, billed: Billed) -> dict[str, Any]:
        dollars = offer.prices.dollars(billed, ttl=offer.rules.ttl) if offer.prices else None
        return _billed_dict(billed) | {"dollars": None if dollars is None else round(dollars, 6)}

    pairs = zip(offers, turn.billed, strict=True)
    return {
        "epoch": turn.epoch,
        "message": turn.message,
        "input_tokens": turn.input_tokens,
        "request_bytes": turn.request_bytes,
        "reused_bytes": turn.reused_bytes,
        "providers": {offer.provider: priced(offer, billed) for offer, billed in pairs},
    }


def basis(providers: Iterable[str] = PROVIDERS) -> dict[str, Any]:
    """What the figures rest on."""
    return {"rules_as_of": as_of(), "assumed": {provider: list(assumed(provider)) for provider in providers}}
