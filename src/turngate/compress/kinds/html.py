"""HTML and XML: headings and text rather than markup, and no styles or scripts."""

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
_HEADING_CLOSES = re.compile(rb"</(?:h[1-6]|title)\s*>", re.IGNORECASE)
#: Text between tags: a letter or digit that stands outside of them.
_TEXT = re.compile(rb"(?:^|>)[^<]*\w[^<]*")
_FRAGMENT = re.compile(
    r"\s*</?(?:div|section|article|main|table|ul|ol|p|h[1-6]|span|a|li|tr|td|nav)\b[^>]*>", re.IGNORECASE
)
_XML = re.compile(rb"\s*<\?xml\b(?!.{0,400}<html\b)", re.IGNORECASE | re.DOTALL)
#: Where code begins and ends that a reader of the page never sees; its lines that open with a tag may be
#: parts of pages.
_CODE_OPENS = re.compile(rb"<(?:style|script|svg)\b", re.IGNORECASE)
_CODE_CLOSES = re.compile(rb"</(?:style|script|svg)\s*>", re.IGNORECASE)
HEADING = 2.0
NO_TEXT = -2.0
CODE = -4.0
FRAGMENT_LEAST_SHARE = 0.5
CONFIDENCE, FRAGMENT_CONFIDENCE = 0.9, 0.85


def recognise(sample: Sample) -> float:
    """A document's opening, or mostly lines that begin with a tag of HTML."""
    if _DOCUMENT.match(sample.head):
        return CONFIDENCE
    is_fragment = sample.head.lstrip()[:1] == "<" and sample.share(_FRAGMENT) >= FRAGMENT_LEAST_SHARE
    return FRAGMENT_CONFIDENCE if is_fragment else 0.0


def shorten(doc: Doc) -> Shown:
    """The lines of a page, long ones cut before block tags."""
    return shorten_lines(doc, XML_WAYS if _XML.match(doc.data) else WAYS)


def _bonus(units: Units, total: list[float]) -> None:
    in_code = in_heading = False
    for index, row in enumerate(units.rows):
        opens = b"<" in row and bool(_CODE_OPENS.search(row))
        closes = (in_code or opens) and bool(_CODE_CLOSES.search(row))
        if (in_code and not row.lstrip().startswith(b"<")) or (opens and not closes):
            total[index] += CODE
        elif in_heading or _HEADING.search(row):
            total[index] += HEADING
            in_heading = not _HEADING_CLOSES.search(row)
        elif b"<" in row and not _TEXT.search(row):
            total[index] += NO_TEXT
        in_code = (in_code or opens) and not closes


WAYS = Ways(bonus=_bonus, breaks=_BLOCK, places=False)
XML_WAYS = Ways(breaks=_BLOCK, places=False)
