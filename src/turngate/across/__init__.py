"""What an earlier result of a session has to do with one that has just arrived. Pure.

A result whose content stands in view already becomes one line that names the earlier call; one that is mostly
made of lines which stand in view becomes its new lines and the ranges of the others. Both are lossless: the
earlier results and what is shown give the original back, and `Delta.whole` proves it before it is used.
"""

from turngate.across.delta import Base, Delta, delta_of, nearest
from turngate.across.memory import MAX_ENTRIES, Entry, Memory
from turngate.across.shown import DELTA, SAME, pays, render_delta, render_same, restore

__all__ = [
    "DELTA",
    "MAX_ENTRIES",
    "SAME",
    "Base",
    "Delta",
    "Entry",
    "Memory",
    "delta_of",
    "nearest",
    "pays",
    "render_delta",
    "render_same",
    "restore",
]
