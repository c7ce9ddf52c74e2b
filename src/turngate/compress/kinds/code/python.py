"""The outline of Python by the standard library's parser, which runs nothing of what it reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from turngate.compress.kinds.code.roles import Role, paint

#: Parsing takes about 1 ms for 4 kB, a multiple of all the rest; longer texts are scanned.
MOST_BYTES = 64_000
#: The parser warns of escapes that it doesn't know, on the error stream. Here only the lines matter.
_ESCAPE = re.compile(rb"\\(?:[\"'\\]|(?!\n))")

_Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
#: Statements that hold others without making a new scope.
_BLOCK_FIELDS = ("body", "handlers", "orelse", "finalbody", "cases")


def roles_of(data: bytes) -> bytearray | None:
    """A role for each line of `data`; None where it is no Python, or more than is worth parsing."""
    if len(data) > MOST_BYTES:
        return None
    text = _ESCAPE.sub(b"__", data) if b"\\" in data else data
    try:
        tree = ast.parse(text.decode("utf-8", "replace"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    rows = data.split(b"\n")
    roles = bytearray(len(rows))
    _docstring(roles, tree.body)
    _statements(roles, rows, tree.body, Role.HEAD)
    return roles


def _statements(roles: bytearray, rows: list[bytes], body: Sequence[ast.AST], head: Role) -> None:
    """The roles of a module's or a class's statements; of definitions, `head`."""
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, _Defined):
            _definition(roles, rows, node, head)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            paint(roles, node.lineno - 1, node.end_lineno or node.lineno, Role.IMPORT)
        elif isinstance(node, _ASSIGNMENTS):
            paint(roles, node.lineno - 1, node.lineno, Role.CONSTANT)
        else:
            for field in _BLOCK_FIELDS:
                stack.extend(reversed(getattr(node, field, ())))


def _definition(roles: bytearray, rows: list[bytes], node: _Defined, head: Role) -> None:
    start = _start(node)
    inside = _start(node.body[0])
    paint(roles, start, max(_head_end(rows, node.lineno - 1, inside), node.lineno), head)
    if isinstance(node, ast.ClassDef):
        _docstring(roles, node.body)
        _statements(roles, rows, node.body, Role.MEMBER)
    elif inside >= node.lineno:
        paint(roles, inside, node.end_lineno or node.lineno, Role.BODY)
        _docstring(roles, node.body)


def _start(node: ast.stmt) -> int:
    """The 0-based line that a statement begins in, decorators included."""
    decorators = getattr(node, "decorator_list", None)
    return int(decorators[0].lineno if decorators else node.lineno) - 1


def _head_end(rows: list[bytes], first: int, inside: int) -> int:
    """Behind the last line of a head from line `first`, of which comments may part it from its `inside`."""
    end = inside
    while end > first + 1 and (not (row := rows[end - 1].strip()) or row.startswith(b"#")):
        end -= 1
    return end


def _docstring(roles: bytearray, body: Sequence[ast.stmt]) -> None:
    """The first line of a docstring that says something, and its rest."""
    first = body[0] if body else None
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return
    if isinstance(text := first.value.value, str):
        at = first.lineno - 1
        paint(roles, at, first.end_lineno or at + 1, Role.BODY)
        at += text[: len(text) - len(text.lstrip())].count("\n")
        paint(roles, at, at + 1, Role.DOC)
