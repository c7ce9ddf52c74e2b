"""Regret: where hidden content was often asked for, more of its like is shown, in sessions that begin later.

What was asked for is counted over all sessions of the store. A session takes the counts once, at its first
result that is shortened, and keeps them, so that it decides the same for as long as it lives; a child goes on
with its parent's.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import orjson

from turngate.errors import StoreConflictError

if TYPE_CHECKING:
    from turngate.store import Asked, Store

#: Under this name the store keeps a session's factors.
ROOM: Final = "regret"
#: Up to this share of asked-for results nothing changes: that is what retrieval is for.
USUAL_SHARE: Final = 0.10
#: By how much the budget grows for each share above that, and how far at most.
STEEPNESS: Final = 2.0
MOST_FACTOR: Final = 2.0
#: A share counts as if so many results more had been seen, of which as many were asked for as is usual (of a
#: tool: as many as of the kind), so that a few say little.
PRIOR_RESULTS: Final = 10
#: Rows that a session keeps, those of the largest factors.
_MOST_ROWS: Final = 200
_SEPARATOR: Final = "\t"

_Count = tuple[int, int]


def factors_of(counts: Iterable[Asked]) -> dict[str, float]:
    """Budget factors above 1 by kind, and by kind and tool where that has another."""
    shortened, asked = Counter[str](), Counter[str]()
    by_tool: dict[tuple[str, str], _Count] = {}
    for row in counts:
        shortened[row.kind] += row.shortened
        asked[row.kind] += row.asked
        by_tool[row.kind, row.tool] = (row.shortened, row.asked)
    of_kind = {kind: _share(asked[kind], shortened[kind], USUAL_SHARE) for kind in shortened}
    found = {kind: factor(share) for kind, share in of_kind.items()}
    for (kind, tool), (results, back) in by_tool.items():
        found[f"{kind}{_SEPARATOR}{tool}"] = factor(_share(back, results, of_kind[kind]))
    above = sorted(((value, key) for key, value in found.items() if _tells(key, found)), reverse=True)
    return {key: value for value, key in above[:_MOST_ROWS]}


def factor(share: float) -> float:
    """The budget factor where this share of the shortened results was asked for: from 1 to 2."""
    return round(min(MOST_FACTOR, 1 + STEEPNESS * max(0.0, share - USUAL_SHARE)), 2)


def for_tool(factors: Mapping[str, float], tool: str) -> dict[str, float]:
    """Kind -> factor for the results of one tool."""
    found = {key: value for key, value in factors.items() if _SEPARATOR not in key}
    for key, value in factors.items():
        kind, _, of = key.partition(_SEPARATOR)
        if of and of == tool:
            found[kind] = value
    return found


class Regret:
    """The factors of one session; safe from any thread."""

    def __init__(
        self,
        session: str,
        *,
        store: Callable[[], Store],
        counts: Callable[[], Iterable[Asked]],
        parent: Callable[[], str | None],
    ) -> None:
        self._session = session
        self._store = store
        self._counts = counts
        self._parent = parent
        self._lock = threading.Lock()
        self._known: dict[str, float] | None = None

    def factors(self, tool: str) -> dict[str, float]:
        """Kind -> budget factor for results of that tool.

        Raises:
            StoreError: the store cannot be read or written.
        """
        with self._lock:
            if self._known is None:
                self._known = self._settled()
            return for_tool(self._known, tool) if self._known else {}

    def _settled(self) -> dict[str, float]:
        """What the session began with; settled now, if it is just beginning."""
        store = self._store()
        body, version = store.load_state(self._session, ROOM)
        if body is None:
            parent = self._parent()
            body = store.load_state(parent, ROOM)[0] if parent else None
            body = body or orjson.dumps(factors_of(self._counts()))
            try:
                store.save_state(self._session, ROOM, body, version)
            except StoreConflictError:
                body = store.load_state(self._session, ROOM)[0] or body
        found: dict[str, float] = orjson.loads(body)
        return found


def _share(asked: int, shortened: int, usual: float) -> float:
    return (asked + PRIOR_RESULTS * usual) / (shortened + PRIOR_RESULTS)


def _tells(key: str, found: Mapping[str, float]) -> bool:
    """Whether a row says more than there being none."""
    kind, mark, _ = key.partition(_SEPARATOR)
    return found[key] != (found[kind] if mark else 1.0)
