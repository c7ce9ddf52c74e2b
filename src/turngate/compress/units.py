"""A text as the units that are kept or hidden: its lines, and the pieces of its long lines.

Work is done on UTF-8 bytes and over the whole text at once (`bytes.translate`, `split`), which costs about a
tenth of doing it line by line.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

LONG_LINE_BYTES = 500
PIECE_MIN_BYTES = 120
PIECE_MAX_BYTES = 300
#: Good places to end a piece: after a closing bracket, a separator or a blank.
_PIECE_END = re.compile(rb"[)\]}>;, ](?=[^)\]}>;, ])")

_HEX = b"0123456789abcdefABCDEF"
_LETTERS_AND_BLANKS = bytes(range(65, 91)) + bytes(range(97, 123)) + b" \t\r"
_NOT_ASCII = bytes(range(128, 256))
#: Capitals to small letters, all other ASCII to blanks; UTF-8's high bytes stay. Numbers are no words: they
#: would cost a fifth of the time, and what they tell is that a line is one of many.
WORD_TABLE = bytes(
    c if c >= 128 or c == 10 or chr(c).isalpha() else 32  # noqa: PLR2004 - ASCII codes
    for c in bytes(range(256)).lower()
)


@dataclass(frozen=True)
class Units:
    """The units of one text, as parallel lists by index."""

    #: The bytes of each unit, without its line break.
    rows: list[bytes]
    #: All units joined by line breaks.
    blob: bytes
    #: The 0-based line that each unit is of; None when every unit is a whole line.
    lines: list[int] | None
    #: The bytes of each line.
    whole: list[bytes]

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return len(self.whole)

    def line_of(self, index: int) -> int:
        """The 0-based line of unit `index`."""
        return index if self.lines is None else self.lines[index]

    def first_of(self, line: int) -> int:
        """The index of the first unit of the 0-based `line`, or of the first one behind it."""
        return line if self.lines is None else bisect_left(self.lines, line)

    @cached_property
    def tokens(self) -> list[float]:
        """Estimated o200k tokens of each unit, with its line break: 0.2 a byte, 0.42 a digit or sign, and 1.

        Signs and digits are what a fit over recorded outputs showed to matter beside a line's length.
        """
        signs = self.blob.translate(None, _LETTERS_AND_BLANKS + _NOT_ASCII).split(b"\n")
        sizes = zip(map(len, self.rows), map(len, signs), strict=True)
        return [0.2 * size + 0.42 * signed + 1.0 for size, signed in sizes]

    @cached_property
    def skeletons(self) -> list[bytes]:
        """Each unit without hexadecimal digits: equal where lines differ only in numbers, times and ids."""
        return self.blob.translate(None, _HEX).split(b"\n")

    @cached_property
    def words(self) -> list[bytes]:
        """Each unit's words in small letters, ready to be split."""
        return self.blob.translate(WORD_TABLE).split(b"\n")


def whole_lines(data: bytes) -> Units:
    """The lines of `data`; a final line break ends the last line and begins none."""
    rows = data.split(b"\n")
    if len(rows) > 1 and not rows[-1]:
        rows.pop()
        data = data[:-1]
    return Units(rows, data, None, rows)


def units_of(data: bytes, breaks: re.Pattern[bytes] | None = None) -> Units:
    """`data` cut into units; `breaks` gives places before which a long line is cut rather than elsewhere."""
    whole = whole_lines(data)
    rows = whole.rows
    if max(map(len, rows)) <= LONG_LINE_BYTES:
        return whole
    units: list[bytes] = []
    lines: list[int] = []
    for number, row in enumerate(rows):
        pieces = [row] if len(row) <= LONG_LINE_BYTES else _pieces(row, breaks)
        units += pieces
        lines += [number] * len(pieces)
    return Units(units, b"\n".join(units), lines, rows)


def _pieces(row: bytes, breaks: re.Pattern[bytes] | None) -> list[bytes]:
    """A long line in pieces of 120 to 300 bytes that together are the line."""
    ends = [m.start() for m in breaks.finditer(row)] if breaks else []
    cuts: list[int] = [0]
    for end in [*ends, len(row)]:
        while end - cuts[-1] > PIECE_MAX_BYTES:
            cuts.append(_cut(row, cuts[-1]))
        if end - cuts[-1] >= PIECE_MIN_BYTES or end == len(row):
            cuts.append(end)
    return [row[a:b] for a, b in pairwise(cuts) if b > a]


def _cut(row: bytes, start: int) -> int:
    """Where a piece that begins at `start` ends: at the last good place, and never inside a character."""
    low, high = start + PIECE_MIN_BYTES, start + PIECE_MAX_BYTES
    place = None
    for place in _PIECE_END.finditer(row, low, high):  # noqa: B007 - the last one is wanted
        pass
    if place is not None:
        return place.end()
    while high > low and row[high] & 0xC0 == 0x80:  # noqa: PLR2004 - a UTF-8 continuation byte
        high -= 1
    return high
