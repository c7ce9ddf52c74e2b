"""Directory listings: `ls -l`, `ls -R`, `find`, `tree`, `du`."""

from __future__ import annotations

import re

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, shorten_lines

_ENTRY = re.compile(
    r"[-dlcbps][-rwxsStT]{9}[.+@]?\s|total \d+|\S*/\S*:\Z|(?:\.{0,2}/)?[^\s:;,(){}=]+/[^\s:;,(){}=]*\Z"
    r"|[│├└|`\s]*(?:├──|└──|\|--|`--)|\d[\d.]*[KMGT]?\t\S"
)
LEAST_SHARE = 0.6


def recognise(sample: Sample) -> float:
    """Most lines are entries of a directory."""
    share = sample.share(_ENTRY)
    return 0.5 + 0.4 * share if share >= LEAST_SHARE else 0.0


def shorten(doc: Doc) -> Shown:
    """The entries of a listing."""
    return shorten_lines(doc)
