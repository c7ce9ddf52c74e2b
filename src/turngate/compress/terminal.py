"""Resolve what a terminal would: control sequences go, and of an overwritten line the last state stays.

Only lines' insides change, never their number, so a line number means the same before and after. Payloads of
APC and DCS strings are left: some tools carry data in them.
"""

from __future__ import annotations

import re

# ECMA-48: CSI sequences, OSC strings (ended by BEL or ST), charset designations and single-character escapes.
_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)|[()*+][0-9A-Za-z]|[=>78cDEHMNOZ])"
)


def _last_state(line: bytes) -> bytes:
    """What stands on the line after its carriage returns: the last segment that is not empty."""
    for segment in reversed(line.split(b"\r")):
        if segment:
            return segment
    return b""


def resolve(data: bytes) -> bytes:
    """`data` (UTF-8) as a terminal shows it, with the same number of line breaks."""
    if b"\x1b" in data:
        data = _SEQUENCE.sub(b"", data)
    if b"\r" not in data:
        return data
    data = data.replace(b"\r\n", b"\n")
    if b"\r" not in data:
        return data
    return b"\n".join(_last_state(line) if b"\r" in line else line for line in data.split(b"\n"))
