"""What shortening answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shortened:
    """A text after shortening, or the very text that came in when it was left alone."""

    text: str
    #: The name of the kind it was taken for ("log", "json", "diff", …).
    kind: str
    #: How many source units are shown, and how many there were.
    kept: int
    total: int
    #: What is counted: "lines", or "values" for JSON.
    unit: str
    #: Hidden ranges, 1-based and inclusive, in source units.
    hidden: tuple[tuple[int, int], ...] = ()
    #: One line for the marker: what is shown of what.
    preview: str = ""
    #: Nothing is hidden: the text is the original in another form from which it comes back.
    exact: bool = False
    #: Empty when shortened; else why not ("small", "view", "no gain", "fault").
    reason: str = ""
    #: The format within the kind ("pytest", "git-log", "csv"), where that is sure.
    format: str = ""

    @property
    def changed(self) -> bool:
        """Whether `text` differs from what came in."""
        return not self.reason


def unchanged(text: str, kind: str, reason: str) -> Shortened:
    """The very object that came in, and why."""
    total = text.count("\n") + (not text.endswith("\n")) if text else 0
    return Shortened(text=text, kind=kind, kept=total, total=total, unit="lines", reason=reason)


def of(kept: int, total: int, unit: str) -> str:
    """The completeness of what is shown, in the source's units: "42 of 1,204 lines"."""
    return f"{kept:,} of {total:,} {unit}"
