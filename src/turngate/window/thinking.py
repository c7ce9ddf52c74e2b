"""What signed thinking forbids a cut: a block is refused once anything before it has changed. Pure.

Source: Anthropic, "Preserved thinking"; which models bind it is in `turngate.data.signed_thinking`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from turngate.window.models import way_out
from turngate.window.units import Shape

IN_PROGRESS: Final = "thinking of the turn in progress"


@dataclass(frozen=True, slots=True)
class Rules:
    """What signed thinking demands of a cut through one history."""

    bound: int = 0
    """Messages before this index must not change: thinking in the turn in progress is bound to them."""
    pinned: Mapping[int, str] = field(default_factory=dict)
    """Messages that stay, with the reason."""
    strip: bool = False
    """Whether kept thinking behind the cut is taken out, that of closed turns as a whole."""


def rules(read: Sequence[Shape], *, bound: bool, drop: bool = False) -> Rules:
    """The rules for a history.

    Args:
        read: its messages.
        bound: whether the model binds signed thinking to what stands before it.
        drop: whether the request lets the provider drop blocks whose prefix changed.
    """
    signed = [at for at, shape in enumerate(read) if shape.signed]
    if not signed:
        return Rules()
    start = _turn_in_progress(read)
    running = [at for at in signed if at >= start]
    if drop or not bound:
        # The provider looks for thinking in the turn whose tools were just answered.
        return Rules(pinned=dict.fromkeys(running[-1:], IN_PROGRESS))
    return Rules(bound=running[-1] + 1, strip=True) if running else Rules(strip=True)


def _turn_in_progress(read: Sequence[Shape]) -> int:
    """Index of the first message of the turn that is not finished; where all are, that of the end."""
    last = read[-1]
    if last.role == "assistant" and not last.calls:
        return len(read)
    return next((at + 1 for at in range(len(read) - 1, -1, -1) if read[at].user and not read[at].results), 0)


def let_drop(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request, which now lets the provider drop thinking whose prefix changed; see `beta_header`."""
    *parents, last = way_out()["field"]
    changed: dict[str, Any] = dict(request)
    inner = changed
    for key in parents:
        below = inner.get(key)
        inner[key] = dict(below) if isinstance(below, Mapping) else {}
        inner = inner[key]
    inner[last] = way_out()["value"]
    return changed


def beta_header() -> tuple[str, str]:
    """The header without which the provider refuses that field."""
    return "anthropic-beta", str(way_out()["beta"])
