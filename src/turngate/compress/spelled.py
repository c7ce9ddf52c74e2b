r"""JSON parsed so that every value keeps its spelling.

`1e400`, `-0`, `1.10`, `\u00e9`, duplicate keys: all come back as they were. The standard library's scanner
does the work at C speed. It is handed the text with each backslash escape turned into characters that don't
occur in it, so that strings come back as they were spelled; `Spelling.raw` turns them back.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any


class Num(str):
    """A value that isn't a string, as it was spelled: a number, a constant, an empty container."""

    __slots__ = ()


class Obj(list[tuple[str, Any]]):
    """An object: its pairs in order, duplicates included."""

    __slots__ = ()


#: Stand-ins are taken from Unicode's private use area, three that the text doesn't hold.
_PRIVATE = range(0xE000, 0xF8FF)
_BAD_ESCAPE = re.compile(r'\\(?![\\"/bfnrt]|u[0-9a-fA-F]{4})')
_BLANKS = " \t\n\r"
_HIGH_SURROGATE = re.compile("[dD][89abAB]")
_SHORT_ESCAPE_CHARS, _UNICODE_ESCAPE_CHARS, _PAIR_ESCAPE_CHARS = 2, 6, 12


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the strings of one parsed text are turned back."""

    #: Stand-ins for `\\\\\\\\`, `\\\\"` and any other backslash; empty when the text has no backslash.
    marks: str = ""

    def raw(self, string: str) -> str:
        """The string as it was spelled, without its quotes."""
        if not self.marks:
            return string
        pair, quote, slash = tuple(self.marks)
        return string.replace(slash, "\\").replace(quote, '\\"').replace(pair, "\\\\")

    def text(self, string: str) -> str:
        """What the string says."""
        raw = self.raw(string)
        return str(json.loads(f'"{raw}"')) if "\\" in raw else raw

    def splits_escape(self, string: str, at: int) -> bool:
        """Whether a cut before index `at` of a parsed string would fall into a backslash escape."""
        if not self.marks:
            return False
        slash = self.marks[2]
        before = string.rfind(slash, max(0, at - _PAIR_ESCAPE_CHARS), at)
        if before < 0:
            return False
        if string[before + 1 : before + 2] != "u":
            return at - before < _SHORT_ESCAPE_CHARS
        opens_pair = bool(_HIGH_SURROGATE.match(string, before + 2))
        return at - before < (_PAIR_ESCAPE_CHARS if opens_pair else _UNICODE_ESCAPE_CHARS)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value that a text begins with."""

    value: Any
    spelling: Spelling
    #: The text after the value, as it was; mostly blank.
    tail: str


def parse(text: str) -> Parsed | None:
    """The JSON value that `text` begins with; None where there is none or it is nested too deep."""
    marks = _stand_ins(text) if "\\" in text else ""
    if "\\" in text and not marks:
        return None
    spelling = Spelling(marks)
    marked = text.lstrip(_BLANKS)
    if marks:
        marked = marked.replace("\\\\", marks[0]).replace('\\"', marks[1]).replace("\\", marks[2])
    try:
        value, end = _DECODER.raw_decode(marked)
    except (ValueError, RecursionError):
        return None
    tail = spelling.raw(marked[end:])
    if marks and _BAD_ESCAPE.search(text[: len(text) - len(tail)].replace("\\\\", "")):
        return None
    return Parsed(value, spelling, tail)


def _stand_ins(text: str) -> str:
    """Three private-use characters that `text` doesn't hold; empty when it holds nearly all of them."""
    free = (chr(code) for code in _PRIVATE if chr(code) not in text)
    return "".join(char for char, _ in zip(free, range(3), strict=False))


_DECODER = json.JSONDecoder(
    object_pairs_hook=Obj, parse_float=Num, parse_int=Num, parse_constant=Num, strict=True
)
