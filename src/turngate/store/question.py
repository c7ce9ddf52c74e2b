"""What a question asks for: words with their weight, literal stretches, JSON paths, and which end of a text.

Questions come as an agent writes them: a sentence, a few words, a line with a blank in it, an identifier. So
everything but the most common words counts, what stands in quotes counts more, and an inflected word finds
its other forms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from turngate.store.words import cut, runs


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: Words that a question has and its answer has not. English only; other languages' rank low by frequency.
STOP_WORDS = _set(
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it "
    "its me my name of on or our please show tell than that the their them then there these they this those "
    "to was we were what when where which while who why will with would you your any all give find quote "
    "complete appear appears begins starts value carry carries occurrence output result results tool call "
    "later needs blank goes first seen line text answer"
)
#: Cues that ask for an end of the text, not for a word in it.
_TAIL_CUES = _set("last final finally end ends ended ending summary totals verdict")
_HEAD_CUES = _set("first header headers heading title start top beginning column columns")
#: What outputs call the things that people ask about.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "fail": ("fail", "error"),
    "error": ("error", "exception", "fail"),
    "exception": ("exception", "error"),
    "crash": ("crash", "panic", "segfault"),
    "verdict": ("fail", "passed", "ok"),
    "total": ("passed", "fail"),
    "head": ("h1", "h2", "h3", "h4"),
}
_QUOTED = re.compile(r"`+([^`]{1,2000})`+|\"([^\"]{2,2000})\"|(?<![\w])'([^']{2,2000})'(?![\w])")
_BLANK = re.compile(r"_{3,}|\.{3,}|…")
_JSON_PATH = re.compile(r"\$(?:\.\.?[\w*-]+|\[[^\]\s]{1,100}\])+")
_NTH = re.compile(r"\b(?:occurrence|match|instance)\s+(?:no\.?\s*|number\s+)?#?(\d{1,6})\b", re.IGNORECASE)
_LARGEST = _set("largest highest biggest greatest maximum max most")
_SMALLEST = _set("smallest lowest minimum min least fewest")
_EXTREME = re.compile(
    rf"\b({'|'.join(sorted(_LARGEST | _SMALLEST))})\b\W*(?:value (?:of|for) )?(.{{1,80}})", re.IGNORECASE
)
_SUFFIXES = ("ings", "ing", "ies", "ied", "ed", "es", "s")
#: A shorter stem would find too much.
_MIN_STEM_CHARS = 4
#: More terms cost time and say nothing new.
_MAX_TERMS = 64
_QUOTED_BOOST = 1.6
_SYNONYM_BOOST = 0.5


@dataclass(frozen=True, slots=True)
class Term:
    """A word to look for."""

    word: str
    """Lowercase."""
    boost: float
    """Times its rarity is its weight."""
    whole: bool
    """Whether it must stand alone: short words and numbers do, longer ones may begin or end a word."""
    synonym: bool = False
    """Whether it is another word for one of the question's."""


@dataclass(frozen=True, slots=True)
class Extreme:
    """That a question asks for the largest or smallest of something."""

    sign: int
    """1 for the largest, -1 for the smallest."""
    column: str
    """Lowercase; begins with the name of what is compared."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, taken apart."""

    terms: tuple[Term, ...]
    """Words, most telling first."""
    literals: tuple[str, ...]
    """Lowercase stretches to find as they are."""
    paths: tuple[str, ...]
    """JSON paths that it names."""
    head: bool
    """Whether it asks for the beginning."""
    tail: bool
    """Whether it asks for the end."""
    nth: int
    """Which occurrence of its literal it asks for, from 1; 0 when it doesn't say."""
    extremes: tuple[Extreme, ...]
    """What it asks the largest or smallest of."""


def ask(query: str) -> Question:
    """Take `query` apart."""
    query = query[:20_000]
    spans = [next(group for group in found.groups() if group) for found in _QUOTED.finditer(query)]
    bare = _QUOTED.sub(" ", query)
    bare_runs = runs(bare)
    quoted_runs = [run for span in spans for run in runs(_BLANK.sub(" ", span))]
    terms = _terms(quoted_runs, bare_runs)
    return Question(
        terms=terms,
        literals=_literals(query, spans),
        paths=tuple(dict.fromkeys(_JSON_PATH.findall(query))),
        head=not _HEAD_CUES.isdisjoint(bare_runs),
        tail=not _TAIL_CUES.isdisjoint(bare_runs),
        extremes=_extremes(query),
        nth=next((int(found[1]) for found in _NTH.finditer(bare)), 0),
    )


def _extremes(query: str) -> tuple[Extreme, ...]:
    return tuple(
        Extreme(1 if found[1].lower() in _LARGEST else -1, found[2].lower())
        for found in _EXTREME.finditer(query)
    )


def _literals(query: str, spans: list[str]) -> tuple[str, ...]:
    """Quoted stretches between blanks. They may hold the quote's own sign, so the widest counts too."""
    first, last = query.find("`"), query.rfind("`")
    widest = [query[first + 1 : last]] if query.count("`") > 2 else []  # noqa: PLR2004 - one pair
    pieces = (piece.strip().lower() for span in (*widest, *spans) for piece in _BLANK.split(span))
    return tuple(dict.fromkeys(piece for piece in pieces if len(piece) > 1))


def _terms(quoted_runs: list[str], bare_runs: list[str]) -> tuple[Term, ...]:
    kept = [run for run in bare_runs if run not in STOP_WORDS]
    if not kept and not quoted_runs:
        kept = bare_runs
    found: dict[str, Term] = {}
    for run in quoted_runs:
        for word in _query_words(run):
            found.setdefault(word, Term(word, _QUOTED_BOOST, _stands_alone(word)))
    for run in kept:
        for word in map(stem, _query_words(run)):
            found.setdefault(word, Term(word, 1.0, _stands_alone(word)))
    for word in list(found):
        for other in _SYNONYMS.get(word, ()):
            found.setdefault(other, Term(other, _SYNONYM_BOOST, _stands_alone(other), synonym=True))
    return tuple(list(found.values())[:_MAX_TERMS])


def _stands_alone(word: str) -> bool:
    return word.isdigit() or (len(word) < _MIN_STEM_CHARS and word.isascii())


def _query_words(run: str) -> list[str]:
    """Pairs stand for a stretch of an unparted script; its single characters would find too much."""
    words = cut(run)
    return [word for word in words if word.isascii() or len(word) > 1] or words


def stem(word: str) -> str:
    """`word` without a common English ending, so that `failing` finds `failed`."""
    if word.isascii() and word.isalpha():
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM_CHARS:
                return word[: -len(suffix)]
    return word
