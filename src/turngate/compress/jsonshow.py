"""Write a JSON value with only some of its leaves: minified, in order, with counts where something is hidden.

In an object the pair `"…":n` says that n values after the last shown one are hidden, in an array the element
`"…n"`. What is shown is spelled as it was, and the whole parses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from turngate.compress.blobs import is_blob
from turngate.compress.leaves import spelled_constant
from turngate.compress.notes import Notes
from turngate.compress.spelled import Num, Obj, Spelling

OPEN = '"…'
#: Longer strings lose their middle.
LONG_STRING_CHARS = 300
STRING_HEAD_CHARS = 200
STRING_TAIL_CHARS = 80
#: Less of base64 and its like, which says nothing.
BLOB_HEAD_CHARS, BLOB_TAIL_CHARS = 64, 24


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes one value."""

    spelling: Spelling
    #: Marks cuts inside strings.
    notes: Notes
    #: Marks hidden values, from `notes.tag_for` with this module's `OPEN`.
    tag: str
    #: Kept leaves before each index.
    before: list[int]
    sizes: dict[int, int]
    #: Leaves whose text was shortened by other means, already quoted.
    replaced: dict[int, str]

    def write(self, value: Any, at: int) -> str:
        """`value`, whose first leaf has index `at`."""
        if not isinstance(value, list) or not value:
            return self.replaced[at] if at in self.replaced else self.leaf(value)
        if isinstance(value, Obj):
            return "{" + ",".join(self._pairs(value, at)) + "}"
        return "[" + ",".join(self._items(value, at)) + "]"

    def _pairs(self, value: Obj, at: int) -> Iterator[str]:
        hidden = 0
        # Most of the time goes here and in `_items`: what is called for each is looked up once.
        before, sizes = self.before, self.sizes
        raw = self.spelling.raw if self.spelling.marks else str
        for key, item in value:
            size = sizes[id(item)] if isinstance(item, list) and item else 1
            if before[at + size] > before[at]:
                if hidden:
                    yield f'{OPEN}{self.tag}":{hidden}'
                hidden = 0
                yield f'"{raw(key)}":{self.write(item, at)}'
            else:
                hidden += size
            at += size
        if hidden:
            yield f'{OPEN}{self.tag}":{hidden}'

    def _items(self, value: list[Any], at: int) -> Iterator[str]:
        hidden = 0
        before, sizes = self.before, self.sizes
        for item in value:
            size = sizes[id(item)] if isinstance(item, list) and item else 1
            if before[at + size] > before[at]:
                if hidden:
                    yield self.hidden(hidden)
                hidden = 0
                yield self.write(item, at)
            else:
                hidden += 1
            at += size
        if hidden:
            yield self.hidden(hidden)

    def records(self, value: list[Any]) -> str:
        """The elements of an array a line each, as JSON lines."""
        return "\n".join(self._items(value, 0))

    def hidden(self, count: int) -> str:
        """The element that stands for `count` hidden ones."""
        return f'{OPEN}{self.tag}{" " if self.tag else ""}{count}"'

    def leaf(self, value: Any) -> str:
        """One leaf as spelled; a long string without its middle."""
        if not isinstance(value, str):
            return spelled_constant(value)
        if isinstance(value, Num):
            return str(value)
        if len(value) > LONG_STRING_CHARS:
            return f'"{self._middle_cut(value)}"'
        return f'"{self.spelling.raw(value)}"'

    def _middle_cut(self, value: str) -> str:
        head, after = _ends(value)
        tail = len(value) - after
        while head > 0 and self.spelling.splits_escape(value, head):
            head -= 1
        while tail < len(value) and self.spelling.splits_escape(value, tail):
            tail += 1
        raw = self.spelling.raw
        hidden = len(self.spelling.text(value[head:tail]))
        return raw(value[:head]) + self.notes.inside(hidden) + raw(value[tail:])


def _ends(value: str) -> tuple[int, int]:
    """How many characters of a long string are shown at its head and at its tail."""
    return (BLOB_HEAD_CHARS, BLOB_TAIL_CHARS) if is_blob(value) else (STRING_HEAD_CHARS, STRING_TAIL_CHARS)


def quote(text: str) -> str:
    """`text` as a JSON string; characters beyond ASCII stay as they are where they can."""
    return json.dumps(text, ensure_ascii=any("\ud800" <= char <= "\udfff" for char in text))
