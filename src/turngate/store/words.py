"""Which words a text has: one way to cut them, for the index and for questions alike.

A word is a run of letters and digits, lowercase; `a_b.c` has three. Scripts that do not part words (Chinese,
Japanese, Thai, …) are cut into overlapping pairs of characters and single ones, so that any stretch of them
is found.
"""

from __future__ import annotations

import re

#: A longer run is data, not a word; its start still finds it.
MAX_WORD_CHARS = 48
#: Distinct words kept per content. A text with more is nearly all numbers; `Words.complete` tells.
MAX_WORDS = 150_000
#: Characters cut at a time, so that the list of all words of a huge text never exists at once.
_PIECE_CHARS = 4_000_000

_RUN = re.compile(r"[^\W_]+")
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
#: Thai, Lao, Myanmar, Khmer; kana; CJK ideographs with extensions; halfwidth kana.
_UNPARTED_CLASS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNPARTED = re.compile(f"[{_UNPARTED_CLASS}]+")


def runs(text: str) -> list[str]:
    """The runs of letters and digits of `text`, lowercase, in order."""
    # For ASCII, which most output is, this is several times faster than the pattern.
    return text.translate(_ASCII).split() if text.isascii() else _RUN.findall(text.lower())


def cut(run: str) -> list[str]:
    """The words of one run, for the index: unparted scripts as single characters and pairs."""
    if run.isascii() or not _UNPARTED.search(run):
        return [run[:MAX_WORD_CHARS]]
    words = [part[:MAX_WORD_CHARS] for part in _UNPARTED.split(run) if part]
    for stretch in _UNPARTED.findall(run):
        words += stretch
        words += (stretch[at : at + 2] for at in range(len(stretch) - 1))
    return words


def vocabulary(text: str) -> tuple[list[str], bool]:
    """The distinct words of `text`, sorted, and whether these are all."""
    found: set[str] = set()
    for at in range(0, len(text), _PIECE_CHARS):
        # A word that a piece's end cuts in two is read again from the overlap.
        piece = runs(text[max(0, at - MAX_WORD_CHARS) : at + _PIECE_CHARS])
        found.update(word for run in set(piece) for word in cut(run))
        if len(found) > MAX_WORDS:
            return sorted(found)[:MAX_WORDS], False
    return sorted(found), True
