"""Annotations: what stands where something is hidden.

All begin with `[…` (in JSON strings and keys: `…`). Where the original itself holds that opening, this
result's annotations carry four hex digits of its hash (`[…#a1b2 41–980]`), so that none can be taken for
content.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

OPEN = "[…"
#: From this many lines a gap is named by its range, below by its count.
RANGE_LEAST_LINES = 20
_TAG_DIGITS = 4
#: How the sign of our notes may be spelled in JSON; a reader that parses it can't tell the spellings apart.
_ESCAPED_DOTS = "\\u2026"
_INDENTS = {" ": "blanks", "\t": "tabs"}


def tag_for(text: str, opening: str = OPEN) -> str:
    """What annotations of `text` carry: nothing, or `#` and four hex digits that aren't in it."""
    if _ESCAPED_DOTS in text:
        text = text.replace(_ESCAPED_DOTS, "…")
    if opening not in text:
        return ""
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    for start in range(len(digest) - _TAG_DIGITS):
        tag = "#" + digest[start : start + _TAG_DIGITS]
        if opening + tag not in text:
            return tag
    return "#" + digest


def tag_over(text: str, data: bytes) -> str:
    """`tag_for` a text that is shown as `data` (UTF-8), from which control sequences are gone.

    What stood on both sides of one may be an opening now.
    """
    return tag_for(text + data.decode("utf-8", "surrogatepass") if "\x1b" in text else text)


@dataclass(frozen=True, slots=True)
class Notes:
    """Writes the annotations of one result."""

    #: From `tag_for` or `tag_over`.
    tag: str = ""

    def gap(self, first: int, last: int) -> str:
        """Lines `first` to `last` (1-based) are hidden."""
        count = last - first + 1
        body = f" {first}–{last}" if count >= RANGE_LEAST_LINES else str(count)
        return f"{OPEN}{self.tag}{' ' if self.tag and not body.startswith(' ') else ''}{body}]"

    def alike(self, first: int, last: int, sample: str, count: int) -> str:
        """Lines `first` to `last` are hidden, `count` of them like `sample`."""
        return f'{OPEN}{self.tag} lines {first}–{last} hidden: {count:,} like "{sample}"]'

    def inside(self, count: int) -> str:
        """`count` characters of a line or string are hidden."""
        return self._line(f"{count}")

    def again(self, count: int, period: int) -> str:
        """`count` lines follow that are the last `period` lines in turn, again and again."""
        verb = " repeats" if count == 1 else "s repeat"
        return self._line(f"{count} more line{verb} the {'one' if period == 1 else period} above")

    def blank(self, count: int) -> str:
        """`count` empty lines follow."""
        return self._line(f"{count} blank lines")

    def opening(self, opening: str) -> str:
        """Each line from here on (but empty ones) begins with `opening`, which is left out."""
        indent = _INDENTS.get(opening[0], "") if opening.count(opening[0]) == len(opening) else ""
        if indent:
            return self._line(f"each line is indented by {len(opening)} {indent} more")
        return self._line(f"each line begins: {opening}")

    def filled(self, columns: int) -> str:
        """Each line from here on (but empty ones) is filled up with blanks, which are left out."""
        return self._line(f"each line is filled with blanks to {columns} columns")

    def body(self, line: str) -> str:
        """What a note of this result says, with its last bracket; empty for any other line."""
        opening = OPEN + self.tag
        return line[len(opening) :] if line.startswith(opening) else ""

    def _line(self, body: str) -> str:
        return f"{OPEN}{self.tag}{' ' if self.tag else ''}{body}]"
