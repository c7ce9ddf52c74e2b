"""Search results: `path:line:text`, as grep and ripgrep print them."""

from __future__ import annotations

import re

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, Ways, shorten_lines

#: A path and a line number, or a path and text, or the rule between groups. Times and dates are no paths.
_HIT = re.compile(r"(?![\d\[(])[^\s:]{1,200}:\d+[:-]|(?![\d\[(])[^\s:]*\.[A-Za-z]\w{0,4}[:-]\s*\S|--\Z")
_DIAGNOSTIC = re.compile(r".*?:\d+(?::\d+)?:? (?:fatal |internal )?(?:error|warning|note)\b")
LEAST_SHARE = 0.7


def recognise(sample: Sample) -> float:
    """Most lines name a place, and few of them are a compiler's."""
    share = sample.share(_HIT)
    return 0.8 * share if share >= LEAST_SHARE and sample.share(_DIAGNOSTIC) < 1 - LEAST_SHARE else 0.0


def shorten(doc: Doc) -> Shown:
    """The hits: since every line names a place, a place says nothing."""
    return shorten_lines(doc, Ways(places=False))
