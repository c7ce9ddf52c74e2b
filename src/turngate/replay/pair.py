"""One changed result as a foldable piece of the page: before and after side by side, notes marked."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from turngate.tokens import estimate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.replay.arms import Change

_TAG = r"(?:\#[0-9a-f]{4,64}\ ?)?"
_NOTE: Final = re.compile(
    rf"""
      (?P<marker> \A<<<CCR:[^\n]* )
    | \[…{_TAG}\ ?lines\ \d+–\d+\ hidden:\ [\d,]+\ like\ \\?".{{0,400}}?\\?"\](?=\n|\\n|"|\Z)
    | \[…{_TAG}\ ?\d+(?:–\d+)?\]
    | \[…{_TAG}\ ?\d+\ (?:more\ lines?\ repeats?\ the\ (?:one|\d)\ above|blank\ lines)\]
    | \[…{_TAG}\ ?each\ line\ [^\n"]{{1,400}}\](?=\n|\\n|"|\Z)
    | "…{_TAG}\ ?(?:\d+|columns|rows)"
    | "…{_TAG}":\d+
    | \[…\ [\d,]+\ characters\ left\ out\ …\]
    """,
    re.VERBOSE,
)
"""Marker and notes as docs/markers.md lists them, and the note of ``head-tail``."""


def pair(message: int, change: Change) -> str:
    """A changed result of the message of that index, folded: what it says, and both texts."""
    before, after = estimate(change.before), estimate(change.after)
    saved = f"{(after - before) / max(before, 1):+.0%}"
    place = f"message {message}: {before:,} → {after:,} tokens ({saved})"
    return (
        f'<details class="result"><summary><code>{safe(change.call)}</code> <small>{place}</small></summary>'
        f'<div class="pair"><div><h4>before: {_size(change.before)}</h4>'
        f"<pre>{safe(change.before)}</pre></div><div><h4>after: {_size(change.after)}</h4>"
        f"<pre>{''.join(_marked(change))}</pre></div></div></details>"
    )


def _size(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"{lines:,} line{'s' * (lines != 1)}, {len(text):,} characters"


def _marked(change: Change) -> Iterator[str]:
    """The text after; what looks like a note but stands in the original, too, is content."""
    at = 0
    for found in _NOTE.finditer(change.after):
        if found["marker"] is None and found[0] in change.before:
            continue
        yield safe(change.after[at : found.start()])
        yield f"<mark{' class=head' if found['marker'] else ''}>{safe(found[0])}</mark>"
        at = found.end()
    yield safe(change.after[at:])


def safe(text: str) -> str:
    """Text for a page: escaped; what cannot stand in one (lone surrogates, NUL) is replaced."""
    return escape(text.encode("utf-8", "replace").decode().replace("\0", "�"), quote=False)
