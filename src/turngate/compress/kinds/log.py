"""Logs of other forms than the table of formats has: a time stands near the start of most lines."""

from __future__ import annotations

from itertools import repeat
from operator import contains

from turngate.compress.call import Sample

NEAR_START_CHARS = 70
LEAST_SHARE = 0.6
CONFIDENCE = 0.55
_DIGITS = bytes(48 if chr(code).isdigit() and code < 128 else code for code in range(256))  # noqa: PLR2004
_TIME = b"00:00:00"


def recognise(sample: Sample) -> float:
    """Most lines hold a time near their start."""
    starts = "\n".join([line[:NEAR_START_CHARS] for line in sample.lines])
    rows = starts.encode("utf-8", "replace").translate(_DIGITS).split(b"\n")
    return CONFIDENCE if sum(map(contains, rows, repeat(_TIME))) >= LEAST_SHARE * len(rows) else 0.0
