"""HTML and XML: headings and text rather than markup."""

from __future__ import annotations

import re

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, Ways, shorten_lines
from turngate.compress.units import Units

_DOCUMENT = re.compile(
    r"\s*(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|body|\?xml)\b", re.IGNORECASE | re.DOTALL
)
_BLOCK = re.compile(
    rb"<(?:p|div|h[1-6]|li|ul|ol|tr|table|section|article|header|footer|script|style|title|meta|link|nav|main|form)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(rb"<(?:h[1-6]|title)\b", re.IGNORECASE)
#: Text between tags: a letter or digit that stands outside of them.
_TEXT = re.compile(rb"(?:^|>)[^<]*\w[^<]*")
HEADING = 2.0
NO_TEXT = -2.0


def recognise(sample: Sample) -> float:
    """A document's opening."""
    return 0.9 if _DOCUMENT.match(sample.head) else 0.0


def shorten(doc: Doc) -> Shown:
    """The lines of a page, long ones cut before block tags."""
    return shorten_lines(doc, Ways(bonus=_bonus, breaks=_BLOCK, places=False))


def _bonus(units: Units, total: list[float]) -> None:
    for index, row in enumerate(units.rows):
        if _HEADING.search(row):
            total[index] += HEADING
        elif b"<" in row and not _TEXT.search(row):
            total[index] += NO_TEXT
