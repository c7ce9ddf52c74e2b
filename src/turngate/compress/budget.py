"""How many tokens a shortened text may have: a budget that grows slowly with the size of the output.

The square root was the best of seven curves measured on recorded tool output (fixed, cube root, square root,
power two thirds, logarithm, constant share) on tokens saved and mean of files together. The two rows are two
points of one frontier: `default` keeps what failed and how it ended; `wide` keeps most arbitrary values too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt

from turngate.tokens import estimate


@dataclass(frozen=True, slots=True)
class Curve:
    """The tokens shown of a text of T tokens: the lesser of `factor`·√T and `most_share`·T."""

    factor: float
    most_share: float
    #: Texts of fewer characters are left alone: facts in small results are needed again too often.
    small_chars: int
    #: … unless they have this many tokens: scripts other than Latin say more in a character.
    small_tokens: float = inf

    def tokens(self, total_tokens: float) -> float:
        """The budget for a text of `total_tokens` (estimated) tokens."""
        return min(self.factor * sqrt(total_tokens), self.most_share * total_tokens)

    def times(self, factor: float) -> Curve:
        """The curve with a larger budget: half the way to showing everything at most."""
        share = min(self.most_share * factor, (1 + self.most_share) / 2)
        return replace(self, factor=self.factor * factor, most_share=share)

    def leaves_alone(self, text: str) -> bool:
        """Whether `text` is too small to be shortened."""
        return len(text) < self.small_chars and (
            len(text) < self.small_tokens or estimate(text) < self.small_tokens
        )


CURVES: dict[str, Curve] = {
    "default": Curve(factor=34.0, most_share=0.455, small_chars=2_000, small_tokens=550),
    "wide": Curve(factor=75.0, most_share=0.74, small_chars=4_000),
}

#: A result is used only when it is at most this share of what came in, and saves at least this many tokens:
#: below that the marker and the reader's effort cost more than is won.
MOST_SHOWN_SHARE = 0.80
LEAST_SAVED_TOKENS = 150

#: First instances of error messages may overdraw the budget by this factor, and by so many tokens: a long
#: output's budget has room for them.
OVERDRAW = 1.5
OVERDRAW_MOST_TOKENS = 1_000.0
