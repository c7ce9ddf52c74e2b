"""The outline of a source file: what each of its lines is for.

Python is read by its own parser, other languages by tree-sitter where the extra `code` is installed; what
neither can read is told by indentation and the words that definitions begin with.
"""

from __future__ import annotations

import re

from turngate.compress.kinds.code import python, scan, trees
from turngate.compress.kinds.code.languages import Language, language_of
from turngate.compress.kinds.code.roles import Role, paint

__all__ = ["Language", "Role", "language_of", "roles_of"]


#: What a line of a comment begins with, as far as languages agree.
_COMMENT = re.compile(rb"[ \t]*(?://|/?\*|#(?:[ #!]|$)|--(?: |$))")
_SAYS = re.compile(rb"\w")
#: A comment of more lines at the head of a file is a licence or a history.
OPENING_MOST_LINES = 3


def roles_of(data: bytes, language: Language | None) -> bytearray:
    """A `Role` for each line of `data` (UTF-8)."""
    found = None
    if language is not None:
        found = python.roles_of(data) if language.name == "python" else trees.roles_of(data, language)
    roles = scan.roles_of(data) if found is None else found
    _comments(data.split(b"\n"), roles)
    return roles


def _comments(rows: list[bytes], roles: bytearray) -> None:
    """Of comments above definitions, and of a long opening one, the first line that says something."""
    starts = [
        index
        for index, role in enumerate(roles)
        if role in {Role.HEAD, Role.MEMBER} and (not index or roles[index - 1] != role)
    ]
    for start in starts:
        first = start
        while first > 0 and roles[first - 1] == Role.PLAIN and _COMMENT.match(rows[first - 1]):
            first -= 1
        _comment(rows, roles, first, start)
    end = 0
    while end < len(rows) and roles[end] == Role.PLAIN and _COMMENT.match(rows[end]):
        end += 1
    if end > OPENING_MOST_LINES:
        _comment(rows, roles, 0, end)


def _comment(rows: list[bytes], roles: bytearray, first: int, end: int) -> None:
    paint(roles, first, end, Role.BODY)
    says = next((index for index in range(first, end) if _SAYS.search(rows[index])), first)
    paint(roles, says, min(says + 1, end), Role.DOC)
