r"""What a line is, everywhere in turngate's answers.

A line ends at ``\n`` and at nothing else; ``\r`` belongs to its line. A final ``\n`` ends the last line and
starts none, so the empty text has no lines and ``"a"`` and ``"a\n"`` both have one.
"""

from __future__ import annotations

from itertools import accumulate


def line_count(text: str) -> int:
    """How many lines `text` has."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def split_lines(text: str) -> list[str]:
    r"""The lines of `text`, without their ``\n``."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def line_starts(text: str) -> list[int]:
    """Where each line starts, and behind them where the text ends: line *n* is ``text[out[n-1]:out[n]]``."""
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    if text.endswith("\n") or not text:
        starts.pop()
    else:
        starts[-1] -= 1
    return starts
