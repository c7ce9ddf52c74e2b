"""Any other text, and the safe method for what is not recognised."""

from __future__ import annotations

from turngate.compress.call import Doc
from turngate.compress.lines import Shown, shorten_lines


def shorten(doc: Doc) -> Shown:
    """The lines of a text."""
    return shorten_lines(doc)
