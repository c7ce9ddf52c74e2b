"""Which units are shown: the best for their cost, until the budget is filled."""

from __future__ import annotations

from turngate.compress.budget import OVERDRAW, OVERDRAW_MOST_TOKENS
from turngate.compress.score import Scores

#: Units that tell less than this are never shown, however much room there is.
FLOOR = 1.2
#: A unit's cost counts with this exponent: between its bare score (0) and score a token (1).
COST_EXPONENT = 0.45
COST_OFFSET_TOKENS = 8.0
#: How many units that don't fit are tried before filling stops.
_MISSES = 200


def select(scores: Scores, tokens: list[float], budget_tokens: float) -> list[int]:
    """The indices of the units to show, ascending; never none where there is a unit."""
    total = scores.total
    worth = [index for index, score in enumerate(total) if score >= FLOOR]
    rank = {index: total[index] / (tokens[index] + COST_OFFSET_TOKENS) ** COST_EXPONENT for index in worth}
    # Stable in reverse, too: of equals the first comes first.
    order = sorted(worth, key=rank.__getitem__, reverse=True)
    kept, left = fill(order, tokens, budget_tokens)
    if scores.findings:
        more = [index for index in order if index in scores.findings and index not in kept]
        extra, _ = fill(more, tokens, left + min(OVERDRAW_MOST_TOKENS, (OVERDRAW - 1.0) * budget_tokens))
        kept |= extra
    if not kept:
        kept = {max(range(len(total)), key=total.__getitem__)}
    return sorted(kept)


def fill(order: list[int], tokens: list[float], room: float) -> tuple[set[int], float]:
    """As many of `order`, first to last, as fit into `room` tokens; and the room that is left."""
    kept: set[int] = set()
    misses = 0
    for index in order:
        cost = tokens[index]
        if cost <= room:
            kept.add(index)
            room -= cost
        else:
            misses += 1
            if misses > _MISSES:
                break
    return kept, room
