"""Logs of other forms than the table of formats has: a time stands near the start of most lines."""

from __future__ import annotations

from turngate.compress.call import Sample

NEAR_START_BYTES = 70
LEAST_SHARE = 0.6
CONFIDENCE = 0.55
_DIGITS = bytes(48 if chr(code).isdigit() and code < 128 else code for code in range(256))  # noqa: PLR2004
_TIME = b"00:00:00"


def recognise(sample: Sample) -> float:
    """Most lines hold a time near their start."""
    masked = "\n".join(sample.lines).encode("utf-8", "replace").translate(_DIGITS)
    least = LEAST_SHARE * max(1, len(sample.lines))
    if masked.count(_TIME) < least:
        return 0.0
    near = sum(_TIME in row[:NEAR_START_BYTES] for row in masked.split(b"\n"))
    return CONFIDENCE if near >= least else 0.0
