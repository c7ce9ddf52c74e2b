"""What a line of a source file is for."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """The part that a line plays in an outline."""

    #: Code outside of definitions, and whatever else.
    PLAIN = 0
    #: A line of a definition's head, with its decorators: of a function or class that stands by itself …
    HEAD = 1
    #: … or of one inside a class.
    MEMBER = 2
    #: The first line of a docstring, or of the comment above a definition.
    DOC = 3
    IMPORT = 4
    #: A module's or class's own name for a value or a type.
    CONSTANT = 5
    #: The inside of a function, or the rest of a docstring.
    BODY = 6
    #: Nothing but brackets, or an `end`.
    END = 7


def paint(roles: bytearray, first: int, end: int, role: Role) -> None:
    """`role` for the lines from `first` up to `end`, as far as there are such lines."""
    first, end = max(0, first), min(end, len(roles))
    if end > first:
        roles[first:end] = bytes((role,)) * (end - first)
