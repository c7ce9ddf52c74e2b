"""The kinds of output: a file each with `recognise` and `shorten`, and one table that lists them.

Adding a kind is adding a file and a row. The order decides between equals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from turngate.compress.call import Doc, Sample
from turngate.compress.kinds import diff, html, listing, log, markdown, report, search, table, text, trace
from turngate.compress.lines import Shown


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of output whose units are lines."""

    name: str
    #: How sure it is of a sample, 0 to 1.
    recognise: Callable[[Sample], float]
    shorten: Callable[[Doc], Shown]


KINDS: tuple[Kind, ...] = (
    Kind("diff", diff.recognise, diff.shorten),
    Kind("html", html.recognise, html.shorten),
    Kind("trace", trace.recognise, trace.shorten),
    Kind("log", log.recognise, log.shorten),
    Kind("table", table.recognise, table.shorten),
    Kind("search", search.recognise, search.shorten),
    Kind("listing", listing.recognise, listing.shorten),
    Kind("report", report.recognise, report.shorten),
    Kind("markdown", markdown.recognise, markdown.shorten),
    Kind("text", text.recognise, text.shorten),
)
SURE = 0.9


def recognise(sample: Sample) -> Kind:
    """The kind that is surest of the sample."""
    best, confidence = KINDS[-1], 0.0
    for kind in KINDS:
        sure = kind.recognise(sample)
        if sure > confidence:
            best, confidence = kind, sure
        if sure >= SURE:
            break
    return best
