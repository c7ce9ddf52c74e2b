"""The requests a session made before, and the break between them and the present one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from turngate.ledger.footprint import Break, Footprint, Step, common_steps, verify
from turngate.ledger.memory import Recent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turngate.store.ledger import LedgerStore, RequestRow

#: Requests looked back on. Agents interleave a few conversations under one session: titles, subagents.
LOOK_BACK: Final = 16


class Past:
    """The latest requests of one session, as far as comparing needs them."""

    def __init__(self) -> None:
        self._steps: Recent[bytes, tuple[Step, ...]] = Recent(LOOK_BACK)

    def remember(self, present: Footprint) -> None:
        """Keep a request to compare with."""
        if present.steps:
            self._steps.put(present.steps[-1].key, present.steps)

    def find_break(self, rows: list[RequestRow], present: Footprint, store: LedgerStore) -> Break | None:
        """How `present` fails to extend the request before it.

        That is the one of `rows` (newest first) with which it has most in common. A request that has nothing
        in common with any is another conversation, unless its tools or its system prompt are those of one.
        """
        places = {step.key: at for at, step in enumerate(present.steps)}
        best: tuple[int, Footprint] | None = None
        for number, row in enumerate(rows):
            steps = self._steps_of(row, present, places, store if number == 0 else None)
            common = common_steps(steps or (), present.steps)
            if steps is not None and (best is None or common > best[0]):
                best = common, Footprint(row.tools, row.system, steps, present.first, row.epoch)
        if best is None or _is_another(*best, present):
            return None
        return verify(best[1], present)

    def _steps_of(
        self, row: RequestRow, present: Footprint, places: Mapping[bytes, int], store: LedgerStore | None
    ) -> tuple[Step, ...] | None:
        """The request's messages; None where finding them would cost a walk that is not worth it."""
        known = self._steps.get(row.tip)
        if known is not None:
            return known
        if row.tip in places:
            return tuple(Step(step.key, step.digest) for step in present.steps[: places[row.tip] + 1])
        if store is None:
            return None
        return tuple(Step(n.key, n.digest, b"", n.policy, n.epoch) for n in store.chain(row.tip)) or None


def _is_another(common: int, before: Footprint, present: Footprint) -> bool:
    return common == 0 and before.tools != present.tools and before.system != present.system
