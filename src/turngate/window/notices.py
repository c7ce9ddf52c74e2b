"""What the window tells its listeners. A listener that raises changes nothing; it is logged, once a kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Trigger: TypeAlias = Literal["soft", "hard", "forced"]
"""Why a compaction was looked at: it may pay, it must be, the host asks for it."""

Method: TypeAlias = Literal["digest", "model", "offload", "none"]
"""How the messages were made lighter."""


@dataclass(frozen=True, slots=True)
class SummaryCall:
    """A call of the summarising model; one is told when it begins and, whatever happens, one when it ends."""

    phase: Literal["start", "end"]
    """Which of the two this is."""
    model: str
    """The model, as far as it is known."""
    chunk: int
    """Which part of the history it is given, from 1."""
    attempt: int
    """Which attempt with this part, from 1."""
    error: str = ""
    """At the end: what went wrong; "" if nothing did."""
    duration_seconds: float = 0.0
    """At the end: how long it took."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """At the end: tokens, as the provider reports them."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction, or the attempt at one."""

    session: str
    """The session."""
    trigger: Trigger
    """Why."""
    method: Method
    """How; ``none``: nothing was changed."""
    before_tokens: int
    """Estimate of the messages before."""
    after_tokens: int
    """And after."""
    removed: int = 0
    """Messages that went into the summary."""
    removed_span: tuple[int, int] = (0, 0)
    """Their numbers among all that went, first and last."""
    kept: int = 0
    """Messages that stay, shortened ones included."""
    offloaded: int = 0
    """Messages that stay in a shortened form."""
    marker: str = ""
    """Id of what was stored."""
    epoch: int = 0
    """Its number in the session, from 1; 0 if nothing was changed."""
    calls: int = 0
    """Calls of the summarising model."""
    model: str = ""
    """That model."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """Its tokens, as reported."""
    duration_seconds: float = 0.0
    """How long it all took."""
    flush: str = ""
    """"" if there was none to do, ``done``, or what went wrong."""
    why: str = ""
    """Why nothing was changed, why it fell back, or why the limit is missed."""


Notice: TypeAlias = SummaryCall | Compaction
Listener: TypeAlias = Callable[[Notice], object]

_log = logging.getLogger("turngate.window")


def tell(listeners: Iterable[Listener], notice: Notice) -> None:
    """Tell each listener."""
    for listener in listeners:
        try:
            listener(notice)
        except Exception as fault:  # noqa: BLE001 - a listener is foreign code and must not break the turn
            _log.warning("a listener of the window failed: %s", type(fault).__name__)
