"""What each unit of a text tells that the others don't: its score.

A unit is worth keeping when its skeleton or its words are rare, when it brings words not met before, when it
tells of a failure or stands beside one, when it names a place in a file, and when it stands at the head or
the tail. The weights were fitted on recorded tool outputs with fact probes, half of them held back as a
check; only differences that held on both halves were taken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import log, sqrt

from turngate.compress.blobs import insides
from turngate.compress.stems import weigh
from turngate.compress.units import Units

#: So many lines of one skeleton count as head or tail.
END_INSTANCES = 2
RARE_SKELETON = 1.0
RARE_OPENING = 0.7
NEWS = 1.5
BESIDE_FAILURE: tuple[tuple[int, float], ...] = ((1, 0.35), (2, 0.21), (-1, 0.21))
PLACE = 2.5
#: Repeated failures weigh less, and are findings no more.
FINDING_LEAST = 0.9
PLACE_MOST_BYTES = 120
HEAD_BUDGET_SHARE = 0.03
HEAD = 2.0
TAIL_BUDGET_SHARE = 0.06
TAIL = 4.0
#: A failed run is read from its end.
FAILED_TAIL_BUDGET_SHARE = 0.20
EARLY = 0.7
BLANK = -1.5
#: The inside of a blob.
BLOB = -4.0
MENTIONED = 1.5
#: A word of the question counts when at most this share of units has it.
MENTION_MOST_SHARE = 0.05

#: A line that begins, after arrows or quotes, with a place in a file: `file.py:12`, `file.c(12`,
#: `"file.py", line 12`.
_PLACE = re.compile(
    rb"""[\s>|*=\-"'`]*(?:File\ )?
    (?: [\w./\\@+~-]*\.[A-Za-z]\w{0,7} (?::\d+|\(\d+)
      | [\w./\\@+~-]+\.\w{1,8}",\ line\ \d+ )""",
    re.VERBOSE,
)

#: What every place has.
_SPOT = re.compile(rb"""\.\w{1,8}(?::\d|\(\d|",\ line\ \d)""", re.VERBOSE)

#: A line of rules and blanks says nothing.
_SAYS = re.compile(rb"[0-9A-Za-z\x80-\xff]")

#: What a kind adds: the score of each unit, changed in place.
Bonus = Callable[[Units, list[float]], None]


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of all units, by index."""

    total: list[float]
    #: The units that tell of a failure or of a place in a file: findings, which may overdraw the budget.
    findings: set[int]


@dataclass(frozen=True, slots=True)
class Aim:
    """What the scoring is for."""

    budget_tokens: float
    failed: bool = False
    #: Words and numbers of the user's question, words in small letters.
    mentioned: frozenset[bytes] = frozenset()
    #: Whether a leading `file:12` marks a diagnostic; it doesn't where every line has one.
    places: bool = True


def score(units: Units, aim: Aim, bonus: Bonus | None = None) -> Scores:
    """The score of every unit."""
    skeletons = units.skeletons
    counts = Counter(skeletons)
    close = _first_instances(skeletons, counts)
    total = _base(skeletons, counts)
    words = units.words
    rows = {index: words[index].split() for index in close}
    frequency = Counter(chain.from_iterable(rows.values()))
    failing = weigh(frequency)
    _add_openings(total, rows)
    _add_news(total, rows, frequency)
    failure = _failures(rows, failing, skeletons, counts) if failing else {}
    _add_failures(total, failure)
    if aim.mentioned:
        _add_mentioned(total, units, aim.mentioned)
    findings = {index for index, weight in failure.items() if weight >= FINDING_LEAST}
    if aim.places:
        findings |= _add_places(total, units, close)
    if bonus is not None:
        bonus(units, total)
    for index in insides(units, close):
        total[index] += BLOB
    _add_ends(total, units, aim)
    return Scores(total, findings)


def _base(skeletons: list[bytes], counts: Counter[bytes]) -> list[float]:
    """Rarity of the skeleton, being early, and not being blank."""
    worth = {
        skeleton: RARE_SKELETON / count + EARLY + (0.0 if skeleton.strip() else BLANK)
        for skeleton, count in counts.items()
    }
    step = EARLY / len(skeletons)
    return [worth[skeleton] - step * index for index, skeleton in enumerate(skeletons)]


def _first_instances(skeletons: list[bytes], counts: Counter[bytes]) -> Sequence[int]:
    """The index of the first unit of each skeleton, ascending."""
    size = len(skeletons)
    if len(counts) == size:
        return range(size)
    return sorted(dict(zip(reversed(skeletons), range(size - 1, -1, -1), strict=True)).values())


def _add_openings(total: list[float], rows: dict[int, list[bytes]]) -> None:
    """Rarity of the first word together with the number of words."""
    opening = {index: (row[0], len(row)) for index, row in rows.items() if row}
    counts = Counter(opening.values())
    for index, key in opening.items():
        total[index] += RARE_OPENING / counts[key]


def _add_news(total: list[float], rows: dict[int, list[bytes]], frequency: Counter[bytes]) -> None:
    """Words not met before, by their inverse document frequency."""
    news = _news(frequency, len(rows))
    # A word is news once: what is popped is gone for all later units.
    pop = news.pop
    for index, row in rows.items():
        value = sum(map(pop, row, repeat(0.0)))
        if value:
            total[index] += NEWS * value / (len(row) + 2)


def _add_mentioned(total: list[float], units: Units, mentioned: frozenset[bytes]) -> None:
    """Units with a word or number of the question, where few have it."""
    most = max(1.0, MENTION_MOST_SHARE * len(total))
    for word in mentioned:
        texts = units.words if word.isalpha() else units.rows
        holding = [index for index, text in enumerate(texts) if word in text]
        if len(holding) <= most:
            for index in holding:
                total[index] += MENTIONED


def _news(frequency: Counter[bytes], size: int) -> dict[bytes, float]:
    """What each word tells when it is met first."""
    log_size = log(size) if size > 1 else 1.0
    idf = {count: max(0.0, 1.0 - log(count) / log_size) for count in set(frequency.values())}
    return {word: idf[count] for word, count in frequency.items()}


def _failures(
    rows: dict[int, list[bytes]],
    failing: dict[bytes, float],
    skeletons: list[bytes],
    counts: Counter[bytes],
) -> dict[int, float]:
    """The failure part of each unit that has one: in full for the first of its form, then less."""
    keys = frozenset(failing)
    out = {
        index: max(failing[word] for word in row if word in failing)
        for index, row in rows.items()
        if not keys.isdisjoint(row)
    }
    repeated = {skeleton: weight for index, weight in out.items() if counts[skeleton := skeletons[index]] > 1}
    if repeated:
        for index, skeleton in enumerate(skeletons):
            if skeleton in repeated and index not in out:
                out[index] = repeated[skeleton] / sqrt(counts[skeleton])
    return out


def _add_failures(total: list[float], failure: dict[int, float]) -> None:
    """The failure parts, and a share of them to the neighbours."""
    size = len(total)
    for index, weight in failure.items():
        total[index] += weight
        for offset, share in BESIDE_FAILURE:
            if 0 <= index + offset < size:
                total[index + offset] += share * weight


def _add_places(total: list[float], units: Units, close: Sequence[int]) -> set[int]:
    """Add to the lines that open with a place in a file, and return them."""
    rows, skeletons = units.rows, units.skeletons
    # Lines of one skeleton name a place all or not at all.
    blob = units.blob if len(close) == len(rows) else b"\n".join([rows[index] for index in close])
    naming = {
        skeletons[index]
        for index in map(close.__getitem__, _spotted(blob))
        if len(row := rows[index]) < PLACE_MOST_BYTES and _PLACE.match(row)
    }
    found = {index for index, skeleton in enumerate(skeletons) if skeleton in naming} if naming else set()
    for index in found:
        total[index] += PLACE
    return found


def _spotted(blob: bytes) -> Iterator[int]:
    """The lines of `blob` that have a file's suffix with a line's number, once for each; cheaply found."""
    line = last = 0
    for spot in _SPOT.finditer(blob):
        breaks = blob.count(b"\n", last, spot.start())
        if breaks or not last:
            line += breaks
            yield line
        last = spot.start()


def _add_ends(total: list[float], units: Units, aim: Aim) -> None:
    """The head and the tail within their shares of the budget, and what says something in any case."""
    tail_share = FAILED_TAIL_BUDGET_SHARE if aim.failed else TAIL_BUDGET_SHARE
    size = len(total)
    _add_end(total, units, range(size), HEAD, HEAD_BUDGET_SHARE * aim.budget_tokens)
    _add_end(total, units, range(size - 1, -1, -1), TAIL, tail_share * aim.budget_tokens)


def _add_end(total: list[float], units: Units, order: range, worth: float, room: float) -> None:
    """`worth` to the units in `order` while there is `room`; of one skeleton only to the first few."""
    said = False
    met: Counter[bytes] = Counter()
    for index in order:
        room -= units.tokens[index]
        if room < 0 and said:
            break
        skeleton = units.skeletons[index]
        met[skeleton] += 1
        if met[skeleton] <= END_INSTANCES:
            total[index] += worth
        said = said or bool(_SAYS.search(units.rows[index]))
