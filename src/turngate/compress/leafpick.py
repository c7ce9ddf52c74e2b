"""Which leaves of a JSON value are shown: the best for their cost, where cost includes what hiding costs.

A hidden run between two shown leaves leaves a count behind (`"…":3`), which costs as much as a short value.
So a leaf beside shown ones is cheaper than one that stands alone, and one that closes a gap is nearly free.
The first part of the budget goes by score alone and decides where something is shown; the rest is spent with
the neighbours known.
"""

from __future__ import annotations

from itertools import accumulate

from turngate.compress.leaves import Leaves
from turngate.compress.select import fill

#: A leaf's cost counts with this exponent; half of it is blended away with its record.
COST_EXPONENT = 0.3
#: The same where the cost takes the neighbours into account.
BESIDE_EXPONENT = 0.6
#: Leaves that tell less are never shown, except to close a gap.
FLOOR = 0.5
#: What a count of hidden values costs.
NOTE_TOKENS = 4.5
#: No leaf costs less, even one that spares a note.
LEAST_TOKENS = 1.0
FIRST_SHARE = 0.4
#: Gaps of at most so many tokens are closed, the narrowest first, for at most this share of the budget.
BRIDGE_TOKENS = 10.0
BRIDGE_BUDGET_SHARE = 0.1


def pick(
    leaves: Leaves, scores: list[float], costs: list[float], budget_tokens: float, given: set[int]
) -> set[int]:
    """The indices of the leaves to show: those `given`, whose cost is paid, and the best of the others."""
    rank = {
        index: score / cost**COST_EXPONENT
        for index, (score, cost) in enumerate(zip(scores, costs, strict=True))
        if score >= FLOOR
    }
    for index in given:
        rank.pop(index, None)
    order = sorted(rank, key=rank.__getitem__, reverse=True)
    kept, _ = fill(order, costs, FIRST_SHARE * budget_tokens)
    kept |= given
    if not kept:
        return {max(range(len(costs)), key=scores.__getitem__)}
    room = budget_tokens - _spent(leaves, costs, kept, given)
    _fill_beside([index for index in order if index not in kept], kept, scores, costs, room)
    return _bridge(kept, costs, BRIDGE_BUDGET_SHARE * budget_tokens)


def _spent(leaves: Leaves, costs: list[float], kept: set[int], given: set[int]) -> float:
    """What `kept` costs with its notes and with the containers that it stands in."""
    before = kept_before(kept, len(costs))
    notes = NOTE_TOKENS * sum(1 for index in kept if index + 1 not in kept)
    around = sum(cost for start, end, cost in leaves.containers if before[end] > before[start])
    return sum(costs[index] for index in kept if index not in given) + notes + around


def _fill_beside(
    left: list[int], kept: set[int], scores: list[float], costs: list[float], room: float
) -> None:
    """Add the best of those `left` to `kept`, as far as there is `room`, by what they cost beside it."""
    ranked: list[tuple[float, int, float]] = []
    for index in left:
        neighbours = (index - 1 in kept) + (index + 1 in kept)
        cost = costs[index] + NOTE_TOKENS * (1 - neighbours)
        if cost < LEAST_TOKENS:  # noqa: PLR1730 - a call of `max` for each would take a third of the time
            cost = LEAST_TOKENS
        ranked.append((-scores[index] / cost**BESIDE_EXPONENT, index, cost))
    ranked.sort()
    for _, index, cost in ranked:
        if cost <= room:
            kept.add(index)
            room -= cost


def _bridge(kept: set[int], costs: list[float], room: float) -> set[int]:
    """`kept` and the leaves of gaps that cost little more than their note."""
    shown = sorted(kept)
    sums = [0.0, *accumulate(costs)]
    gaps = [
        (cost, before + 1, end)
        for before, end in zip([-1, *shown], [*shown, len(costs)], strict=True)
        if end - before > 1 and (cost := sums[end] - sums[before + 1]) <= BRIDGE_TOKENS
    ]
    for cost, first, end in sorted(gaps):
        room -= max(0.0, cost - NOTE_TOKENS)
        if room < 0:
            break
        kept.update(range(first, end))
    return kept


def kept_before(kept: set[int], total: int) -> list[int]:
    """How many kept leaves stand before each index."""
    flags = [0] * total
    for index in kept:
        flags[index] = 1
    return [0, *accumulate(flags)]
