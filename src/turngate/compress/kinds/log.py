"""Logs: lines that open with a time or a level, in any language."""

from __future__ import annotations

import re

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, shorten_lines

_STAMP = re.compile(
    r"""\W{0,2}(?:
      \d{4}[-/.]\d\d[-/.]\d\d[T\ _]\d\d:\d\d            # 2026-01-31 08:00
    | \d\d[/.]\w{2,3}[/.]\d{2,4}[:\ ]\d\d:\d\d          # 31/Jan/2026:08:00
    | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d           # Jan 31 08:00:00
    | \d\d:\d\d:\d\d[.,\ ]                              # 08:00:00.123
    | \d{6}\ \d{6}\                                     # 260131 080000
    | \d{9,13}[.\ ]\d*                                  # seconds since the epoch
    | (?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b
    )""",
    re.VERBOSE,
)
_TIME = re.compile(r"\d\d:\d\d:\d\d")
_NEAR_START_CHARS = 70


def recognise(sample: Sample) -> float:
    """Most lines open with a time or a level, or hold a time near their start."""
    opens = sample.share(_STAMP)
    if opens >= 0.4:  # noqa: PLR2004 - multi-line messages leave many lines without one
        return 0.5 + 0.4 * opens
    if not _TIME.search(sample.head):
        return 0.0
    near = sum(1 for line in sample.lines if _TIME.search(line, 0, _NEAR_START_CHARS))
    return 0.55 if near >= 0.6 * max(1, len(sample.lines)) else 0.0


def shorten(doc: Doc) -> Shown:
    """The lines of a log: rarity finds what is odd."""
    return shorten_lines(doc)
