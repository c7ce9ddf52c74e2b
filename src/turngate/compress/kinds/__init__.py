"""The kinds of output: how each is shortened, and one table that lists them.

A kind whose structure pays has a file with its rules; the others are shortened as text, and are told by the
lines of their formats (`formats`). Adding a format is adding a row there; adding a kind is adding a file and
a row here. The order decides between equals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from turngate.compress.call import Doc, Sample
from turngate.compress.kinds import diff, html, log, markdown, search, source, table, text
from turngate.compress.kinds.telling import tell
from turngate.compress.lines import Shown


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of output whose units are lines."""

    name: str
    shorten: Callable[[Doc], Shown]
    #: How sure the structure makes one of a sample, 0 to 1; None where the formats' lines tell it all.
    recognise: Callable[[Sample], float] | None = None
    #: How sure it can make one.
    most: float = 0.0


KINDS: tuple[Kind, ...] = (
    Kind("diff", diff.shorten, diff.recognise, diff.CONFIDENCE),
    Kind("html", html.shorten, html.recognise, html.CONFIDENCE),
    Kind("source", source.shorten, source.recognise, source.NAMED_CONFIDENCE),
    Kind("trace", text.shorten),
    Kind("table", table.shorten, table.recognise, table.CONFIDENCE),
    Kind("search", search.shorten),
    Kind("listing", text.shorten),
    Kind("report", text.shorten),
    Kind("markdown", markdown.shorten, markdown.recognise, markdown.CONFIDENCE),
    Kind("log", text.shorten, log.recognise, log.CONFIDENCE),
)
#: The safe method, for what nothing else is surer of.
GENERAL = Kind("text", text.shorten)
GENERAL_CONFIDENCE = 0.5
#: The kinds that have a structure to be recognised by, and how.
STRUCTURED = tuple((kind, kind.recognise) for kind in KINDS if kind.recognise)
#: Where the kind is known, so many lines tell the format.
FORMAT_LINES = 4


@dataclass(frozen=True, slots=True)
class Found:
    """What a sample was recognised as."""

    kind: Kind
    #: The format within the kind, by its row's name; empty where it isn't sure.
    format: str
    #: 0 to 1; of `GENERAL` at least `GENERAL_CONFIDENCE`.
    confidence: float

    @property
    def name(self) -> str:
        """The kind's name."""
        return self.kind.name


def recognise(sample: Sample) -> Found:
    """The kind that is surest of the sample, and the general one where none is sure enough."""
    told = tell(sample)
    best, confidence = GENERAL, GENERAL_CONFIDENCE
    for kind in KINDS:
        sure = told.confidence(kind.name)
        if sure > confidence:
            best, confidence = kind, sure
    for kind, structure in STRUCTURED:
        raised = told.raised(kind.name)
        if kind.most + raised < confidence:
            continue
        found = structure(sample)
        if found and found + raised >= confidence:
            best, confidence = kind, found + raised
    return Found(best, told.format(best.name, sample.head), min(1.0, confidence))


def format_of(kind: str, sample: Sample) -> str:
    """The format of a sample whose kind is known."""
    return tell(replace(sample, lines=sample.lines[:FORMAT_LINES])).format(kind, sample.head)
