"""Counting: what a session, or a whole gate, has saved so far, net of what it cost."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

#: Tool names come from outside; past so many, further ones are counted together.
MAX_NAMES = 200
OTHER = "(other)"


@dataclass(frozen=True, slots=True)
class Flow:
    """Results that came in, and what they became. Tokens are estimates, markers included."""

    results: int = 0
    """Results seen."""
    shortened: int = 0
    """Of these, shortened."""
    bytes_before: int = 0
    """Their size as they came in, UTF-8."""
    bytes_after: int = 0
    """Their size as handed out, markers included."""
    tokens_before: int = 0
    """Estimate of the tokens that came in."""
    tokens_after: int = 0
    """Estimate of the tokens handed out, markers included."""

    def __add__(self, other: Flow) -> Flow:
        return Flow(
            self.results + other.results,
            self.shortened + other.shortened,
            self.bytes_before + other.bytes_before,
            self.bytes_after + other.bytes_after,
            self.tokens_before + other.tokens_before,
            self.tokens_after + other.tokens_after,
        )


@dataclass(frozen=True, slots=True)
class Stats:
    """What was saved, by one session or by the whole gate, since this process began. Tokens are estimates."""

    session: str | None
    """The session's id; None for the whole gate."""
    turn: int
    """The session's turn; 0 for the whole gate."""
    total: Flow
    """All results."""
    retrievals: int
    """How often something hidden was asked for."""
    bytes_retrieved: int
    """Bytes that came back into view that way."""
    tokens_retrieved: int
    """Estimate of their tokens."""
    by_kind: dict[str, Flow] = field(default_factory=dict)
    """Shortened results by kind of output."""
    by_tool: dict[str, Flow] = field(default_factory=dict)
    """All results by tool."""
    passed: dict[str, int] = field(default_factory=dict)
    """Results that passed through untouched, by reason."""
    faults: dict[str, int] = field(default_factory=dict)
    """Faults by class name; the original passed each time."""

    @property
    def bytes_saved(self) -> int:
        """Net of markers and of what was retrieved; may be negative."""
        return self.total.bytes_before - self.total.bytes_after - self.bytes_retrieved

    @property
    def tokens_saved(self) -> int:
        """Estimate, net of markers and of what was retrieved; may be negative."""
        return self.total.tokens_before - self.total.tokens_after - self.tokens_retrieved

    @property
    def saved_share(self) -> float:
        """`tokens_saved` as a share of the tokens that came in; may be negative."""
        return self.tokens_saved / max(self.total.tokens_before, 1)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with the net figures and the word that tokens are estimated."""
        return asdict(self) | {
            "bytes_saved": self.bytes_saved,
            "tokens_saved": self.tokens_saved,
            "saved_share": round(self.saved_share, 4),
            "tokens_are_estimates": True,
        }


class Tally:
    """Adds up; every method is safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = Flow()
        self._retrievals = self._bytes_retrieved = self._tokens_retrieved = 0
        self._by_kind: dict[str, Flow] = {}
        self._by_tool: dict[str, Flow] = {}
        self._passed: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()

    def saw(self, flow: Flow, *, tool: str, kind: str = "", passed: str = "") -> None:
        """Count a result: shortened as `kind`, or passed for the reason `passed`."""
        with self._lock:
            self._total += flow
            _add(self._by_tool, tool, flow)
            if kind:
                _add(self._by_kind, kind, flow)
            if passed:
                self._passed[passed] += 1

    def retrieved(self, size_bytes: int, tokens: int) -> None:
        """Count what came back into view."""
        with self._lock:
            self._retrievals += 1
            self._bytes_retrieved += size_bytes
            self._tokens_retrieved += tokens

    def fault(self, name: str) -> bool:
        """Count a fault; True when it is the first of its class."""
        with self._lock:
            self._faults[name] += 1
            return self._faults[name] == 1

    def stats(self, session: str | None = None, turn: int = 0) -> Stats:
        """What was counted so far."""
        with self._lock:
            return Stats(
                session=session,
                turn=turn,
                total=self._total,
                retrievals=self._retrievals,
                bytes_retrieved=self._bytes_retrieved,
                tokens_retrieved=self._tokens_retrieved,
                by_kind=dict(self._by_kind),
                by_tool=dict(self._by_tool),
                passed=dict(self._passed),
                faults=dict(self._faults),
            )


def _add(table: dict[str, Flow], name: str, flow: Flow) -> None:
    key = name if name in table or len(table) < MAX_NAMES else OTHER
    table[key] = table.get(key, Flow()) + flow
