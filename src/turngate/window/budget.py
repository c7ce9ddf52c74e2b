"""How much room the messages have, and whether a compaction that need not be pays. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from turngate.window.cut import Target
from turngate.window.models import CachePrices, WindowSource, window_tokens

if TYPE_CHECKING:
    from turngate.settings import WindowSettings

#: Kept free for the answer: the default output limit of current models, or an eighth of a small window.
_ANSWER_TOKENS: Final = 32_000
_ANSWER_SHARE: Final = 1 / 8
#: Where a compaction begins to be weighed.
_SOFT_SHARE: Final = 0.6
#: What a compaction aims at. Cline goes to 0.7 of its budget and comes back soon; Gemini CLI keeps 0.3.
_AIM_SHARE: Final = 0.4
_SUMMARY_SHARE: Final = 0.1
_SUMMARY_TOKENS: Final = (400, 4_000)
#: After a compaction the next optional one waits until the messages have grown by this share of the limit.
GROWTH_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Limits:
    """The room of one request, in tokens."""

    window_tokens: int
    """The model's window."""
    source: WindowSource
    """Where that is from."""
    beside_tokens: float
    """Tools, system prompt and whatever else the request has beside its messages."""
    hard_tokens: float
    """What the messages may weigh; above, they must be compacted. Not positive: there is no room for any."""
    soft_tokens: float
    """From here on they are, if that pays."""
    summary_tokens: float
    """What a summary may weigh."""

    @property
    def growth_tokens(self) -> float:
        """By how much messages must grow before the next optional compaction."""
        return GROWTH_SHARE * max(0.0, self.hard_tokens)

    def target(self, keep_messages: int | None, *, soft: bool = False) -> Target:
        """What a cut aims at."""
        aim = _AIM_SHARE * self.hard_tokens
        if soft and keep_messages is None:
            aim = min(aim, self.soft_tokens)
        return Target(self.hard_tokens, aim, self.summary_tokens, keep_messages)


def limits(settings: WindowSettings, *, model: str = "", beside_tokens: float = 0.0) -> Limits:
    """The room that `settings` and `model` give to a request with `beside_tokens` beside its messages."""
    explicit = settings.context_window_tokens
    found: tuple[int, WindowSource] = (explicit, "setting") if explicit else window_tokens(model)
    window, source = found
    answer = settings.answer_tokens
    if answer is None:
        answer = min(_ANSWER_TOKENS, int(_ANSWER_SHARE * window))
    hard = min(settings.max_history_share * window, window - answer) - beside_tokens
    soft = settings.soft_threshold_tokens
    least, most = _SUMMARY_TOKENS
    summary = settings.max_summary_tokens or min(max(_SUMMARY_SHARE * hard, least), most)
    return Limits(
        window_tokens=window,
        source=source,
        beside_tokens=beside_tokens,
        hard_tokens=hard,
        soft_tokens=min(hard, _SOFT_SHARE * hard if soft is None else soft),
        summary_tokens=max(0.0, min(summary, hard)),
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """How the conversation has gone so far."""

    calls: int
    """Model calls so far: messages of the assistant."""
    growth_tokens: float
    """By how much the messages grew with each recent call."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to compact now, weighed in prices of one fresh input token."""

    pays: bool
    """Whether what is saved exceeds what it costs."""
    cost: float
    """Writing the cache anew behind the cut, and the model's summary."""
    saved: float
    """Not reading, on every call to come, what was taken out."""
    calls_ahead: float
    """Calls that are expected before a compaction must happen anyway."""

    def __str__(self) -> str:
        relation = "pays" if self.pays else "does not pay"
        return (
            f"{relation}: rewriting costs {self.cost:,.0f}, {self.calls_ahead:,.0f} calls ahead save "
            f"{self.saved:,.0f} (in prices of a fresh input token)"
        )


def weigh(
    *,
    before_tokens: float,
    after_tokens: float,
    kept_prefix_tokens: float,
    limit_tokens: float,
    pace: Pace,
    prices: CachePrices,
    cold: bool = False,
    summarised_by_model_tokens: float = 0.0,
    summary_tokens: float = 0.0,
) -> Verdict:
    """Weigh a compaction.

    A conversation is expected to go on as long as it has gone on (the best guess when nothing is known of
    its end), but only calls before the limit is reached count: there a compaction must happen anyway.

    Args:
        before_tokens: messages now.
        after_tokens: messages afterwards.
        kept_prefix_tokens: of these, what stands unchanged at their beginning, and so stays in the cache.
        limit_tokens: what messages may weigh.
        pace: how the conversation went.
        prices: of the model.
        cold: whether the cache has expired, so that all is written anew in any case.
        summarised_by_model_tokens: what a model would read to write the summary; 0: no model is called.
        summary_tokens: what it would write.
    """
    until_limit = (limit_tokens - before_tokens) / max(1.0, pace.growth_tokens)
    ahead = max(0.0, min(until_limit, pace.calls))
    less = before_tokens - after_tokens
    rewritten = max(0.0, after_tokens - kept_prefix_tokens)
    cost = (prices.write - prices.read) * rewritten
    saved = prices.read * less * ahead
    if cold:
        cost, saved = 0.0, saved + prices.write * less
    if summarised_by_model_tokens:
        cost += prices.summary_input * summarised_by_model_tokens + prices.summary_output * summary_tokens
    return Verdict(saved > cost, cost, saved, ahead)
