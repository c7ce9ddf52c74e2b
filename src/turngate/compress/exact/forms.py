"""A text of lines in an exact form that fits, where there is one; the cheapest to read comes first.

1. Lines that repeat the lines above, as a count: lines stay whole and in their places.
2. Blanks at the ends of lines of one width, what all lines begin with, or the file or directory that a group
   of lines names first; and of what is left the repetitions as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from turngate.compress.exact import openings, padding, repeats
from turngate.compress.notes import Notes
from turngate.compress.units import Units, whole_lines

#: So many lines, evenly spread, tell whether the forms of step 2 can be enough.
SAMPLE_LINES = 8
_BLANK = ord(" ")
#: So much of each, at most.
SAMPLE_BYTES = 200
#: What they save of the bytes must be this share, at least, of what has to be saved of the tokens.
SAMPLE_LEAST_SHARE = 0.6


def fitting(
    units: Units, again: list[repeats.Repeat], whole_tokens: float, budget_tokens: float, notes: Notes
) -> str | None:
    """All lines of `units`, which cost `whole_tokens`, within the budget; None where no form suffices.

    `again` is what repeats in them.
    """
    if again and whole_tokens - _hidden(units, again) <= budget_tokens:
        lines = _decoded(units)
        return _checked(repeats.fold(lines, again, notes), lines, notes)
    if not _may_fit(units.whole, 1.0 - budget_tokens / whole_tokens):
        return None
    lines = _decoded(units)
    short = _openings(lines, notes)
    return _checked(short, lines, notes) if short and _tokens(short) <= budget_tokens else None


def _decoded(units: Units) -> list[str]:
    return b"\n".join(units.whole).decode("utf-8", "surrogatepass").split("\n")


def _hidden(units: Units, again: list[repeats.Repeat]) -> float:
    """What it saves of the tokens of `units` to put notes in the place of what repeats."""
    spans = [(units.first_of(repeat.start), units.first_of(repeat.end)) for repeat in again]
    saved = sum(sum(units.tokens[start:end]) for start, end in spans)
    return saved - repeats.NOTE_TOKENS * len(again)


def _tokens(lines: Sequence[str]) -> float:
    return sum(whole_lines("\n".join(lines).encode("utf-8", "surrogatepass")).tokens)


def _may_fit(rows: Sequence[bytes], share: float) -> bool:
    """Whether, by a look at a few rows, step 2 can save this share of them."""
    quarter = len(rows) // 4
    if not _alike(rows[quarter], rows[2 * quarter], rows[3 * quarter]):
        return False
    told = [row[:SAMPLE_BYTES] for row in rows[:: len(rows) // SAMPLE_LINES + 1] if row]
    size = sum(map(len, told))
    blanks = size - sum(len(row.rstrip(b" ")) for row in told)
    saved = max(blanks + len(told) * openings.common_chars(told), openings.heads_bytes(told)) if told else 0
    return saved >= SAMPLE_LEAST_SHARE * share * size > 0


def _alike(one: bytes, two: bytes, three: bytes) -> bool:
    """Whether three lines begin with the same, end with a blank, or may all name a path; empty ones might."""
    if not (one and two and three):
        return True
    begin = one[: openings.LEAST_CHARS]
    same = two.startswith(begin) and three.startswith(begin)
    filled = one[-1] == two[-1] == three[-1] == _BLANK
    return same or filled or (b"/" in one and b"/" in two and b"/" in three)


def _openings(lines: list[str], notes: Notes) -> list[str] | None:
    """Step 2; None where none of its forms applies."""
    filled = padding.fold(lines, notes)
    above, body = (filled[:1], filled[1:]) if filled else ([], lines)
    found = [short for fold in (openings.fold_common, openings.fold_heads) if (short := fold(body, notes))]
    body = min(found, key=lambda short: sum(map(len, short)), default=body)
    if body is lines:
        return None
    again = repeats.find([line.encode("utf-8", "surrogatepass") for line in body])
    return [*above, *repeats.fold(body, again, notes)]


def unfold(lines: list[str], notes: Notes) -> list[str]:
    """The lines that any of the forms was made of."""
    return padding.unfold(openings.unfold(repeats.unfold(lines, notes), notes), notes)


def _checked(short: list[str], lines: list[str], notes: Notes) -> str | None:
    """`short` as a text, if the original comes back from it."""
    return "\n".join(short) if unfold(short, notes) == lines else None
