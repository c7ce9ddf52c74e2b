"""How full the model's window is, from the numbers that the host has. Pure.

The host asks with two kinds of numbers: what the provider reported, and its own estimate of characters by
four, tools included. The first corrects the second. And a compaction that cannot win enough must not be tried
again at once, nor be given up for good: the next one waits until there is a tenth of the room more.
"""

from __future__ import annotations

from dataclasses import dataclass

#: By how much the numbers must grow before a compaction is tried again, as a share of the limit.
GROWTH_SHARE = 0.1
#: How far an estimate of characters by four may be off: little with text, much with images or audio.
_LEAST_RATIO, _MOST_RATIO = 0.25, 50.0
#: After a refusal for length, what is known of the window is wrong: so much of it is used, each time.
REFUSED_SHARE = 0.75


@dataclass(slots=True)
class Gauge:
    """The state of one conversation's engine. Holds numbers only, so that the host can copy it."""

    limit_tokens: int = 0
    """From here on the history is compacted; 0: it is not known yet."""
    ratio: float = 1.0
    """What the provider reports over what the host estimates."""
    rough_tokens: int = 0
    """The host's estimate of the request that is next, tools and system prompt included."""
    floor_tokens: int = 0
    """Below this nothing is tried again."""
    settled: bool = True
    """False: a compaction was made or tried, and how large the request is now was not told yet."""
    asked: bool = False
    """Whether the host compacts because it was told that the window is full."""
    refusals: int = 0
    """How often the provider has refused the request for its length, since it last took one."""

    def told(self, rough_tokens: int) -> None:
        """The host has estimated the request that is next."""
        self.rough_tokens = rough_tokens

    def reported(self, prompt_tokens: int) -> None:
        """The provider has counted the request that was estimated last."""
        self.refusals = 0
        if prompt_tokens > 0 and self.rough_tokens > 0:
            self.ratio = min(max(prompt_tokens / self.rough_tokens, _LEAST_RATIO), _MOST_RATIO)

    def corrected(self, tokens: int) -> int:
        """A number of either kind as the provider would count it."""
        return round(tokens * self.ratio) if tokens == self.rough_tokens else tokens

    def is_full(self, tokens: int) -> bool:
        """Whether to compact now."""
        now = self.corrected(tokens)
        if not self.settled and now > 0:
            self.settled = True
            self.floor_tokens = (
                now + round(GROWTH_SHARE * self.limit_tokens) if now >= self.limit_tokens else 0
            )
        self.asked = 0 < self.limit_tokens <= now and now >= self.floor_tokens
        return self.asked

    def tried(self, *, forced: bool) -> None:
        """A compaction begins; one that nobody asked for follows a refusal."""
        if not self.asked and not forced:
            self.refusals += 1
        self.asked, self.settled = False, False

    def room(self, estimated_tokens: float, current_tokens: int | None, rough_messages: float) -> float:
        """What the messages may weigh, in the tokens in which they are estimated to weigh `estimated_tokens`.

        Args:
            estimated_tokens: what they weigh now.
            current_tokens: the request as the host has it, by either kind; None or less than 1: unknown.
            rough_messages: the messages alone, by characters over four.
        """
        beside = max(0.0, self.rough_tokens - rough_messages) * self.ratio if self.rough_tokens else 0.0
        total = self.corrected(current_tokens) if current_tokens and current_tokens > 0 else 0
        beside = min(beside, 0.9 * total) if total else min(beside, 0.5 * self.limit_tokens)
        factor = (total - beside) / max(1.0, estimated_tokens) if total else 1.0
        room = (self.limit_tokens - beside) / min(max(factor, _LEAST_RATIO), _MOST_RATIO)
        if self.refusals:
            room = min(room, estimated_tokens) * REFUSED_SHARE**self.refusals
        return max(1.0, room)
