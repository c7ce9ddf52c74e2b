"""What a row of the table of formats says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """One format of output, itself and no other. Patterns stand one on a line, words between commas."""

    name: str
    #: The kind whose rules shorten it.
    kind: str
    #: What its lines begin with.
    lines: str = ""
    #: What stands behind the first word of its lines, where that may be any: a path, a name. It ends before a
    #: blank, a colon, a parenthesis or an equals sign.
    behind: str = ""
    #: What the first line of such a text begins with: enough by itself.
    opens: str = ""
    #: Strings of which any in the beginning tells it from the other formats of a kind that is recognised by
    #: its structure: what parses, is marked up, or has columns.
    marks: tuple[str, ...] = ()
    #: Commands, words of a tool's name, and suffixes of files that lead to it (`command.words_of`).
    words: str = ""
