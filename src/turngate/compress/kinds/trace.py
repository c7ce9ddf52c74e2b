"""Stack traces: of Python, the JVM, JavaScript, Go, Rust and .NET."""

from __future__ import annotations

import re

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, shorten_lines

_OPENING = re.compile(
    r"^(?:Traceback \(most recent call last\)|Exception in thread|Caused by:|goroutine \d+ \["
    r"|thread '.*' panicked"
    r"|(?:Uncaught )?\w*(?:Error|Exception)\b.*$)",
    re.MULTILINE,
)
_FRAME = re.compile(r'\s+(?:at \S|File "|\d+: 0x|in \S+\()|\t/\S+:\d+|\s*\.\.\. \d+ more')
LEAST_SHARE = 0.25


def recognise(sample: Sample) -> float:
    """An opening line, and frames."""
    share = sample.share(_FRAME)
    return 0.5 + 0.4 * share if share >= LEAST_SHARE and _OPENING.search(sample.head) else 0.0


def shorten(doc: Doc) -> Shown:
    """The lines of traces: messages and the first frames of each are what differs."""
    return shorten_lines(doc)
