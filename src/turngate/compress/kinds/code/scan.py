"""The outline of a source file in any language by indentation and the words that definitions begin with.

For what no parser reads: languages without a grammar here, excerpts, broken and concatenated files, and every
language but Python where the extra `code` is not installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from turngate.compress.kinds.code.roles import Role, paint

_MODIFIER = (
    rb"(?:pub(?:\([\w: ]+\))?|export|default|declare|public|private|protected|internal|static|final|abstract"
    rb"|sealed|open|override|async|suspend|inline|virtual|unsafe|extern(?: \"C\")?|const|constexpr|partial"
    rb"|readonly|data|mutating|local|fileprivate)"
)
_CONTAINER = re.compile(
    rb"[ \t]*(?:%s )*(?:class|struct|enum|interface|trait|impl|module|namespace|mod|object|protocol|extension"
    rb"|record|union)\b(?=[ <]|$)(?!.*;\s*$)" % _MODIFIER
)
_FUNCTION = re.compile(
    rb"""[ \t]*(?:
        (?:%(m)s\ )*(?:def|func|fn|fun|function\*?|sub|macro_rules!)\b[ (]         # def f(
      | (?:%(m)s\ )*(?:const|let|var)\ [\w$]+(?:\ ?:[^=]+)?\ =[ ]                  # const f = (a) =>
        (?:async\ )?(?:function\b|\(?[\w$,\ {}:\[\]]*\)?\ *=>)
      | (?:%(m)s\ )+[\w$<>\[\],.?*&:\ ]*[\w$]+\ ?(?:<[^()]*>)?\(                  # public int f(
      | (?:get\ |set\ |static\ |async\ |\*)*[\w$\#]+\ ?                          # f(a) {
        \([^()]*(?:\([^()]*\)[^()]*)*\)\ ?(?::\ .*)?\{(?:.*\})?$
      | [\w.-]+\ ?\(\)\ ?\{                                                       # f() {
    )"""
    % {b"m": _MODIFIER},
    re.VERBOSE,
)
#: `int f(int a)` at the margin, in C and its kin.
_C_FUNCTION = re.compile(rb"[A-Za-z_][\w:<>,*& \t]*[ *&]~?[\w:]+ ?\([^;=]*$|[A-Za-z_][\w:]*::~?\w+ ?\([^;]*$")
_CONTROL = re.compile(
    rb"[ \t]*(?:\} ?)?(?:if|else|elif|elsif|for|foreach|while|switch|match|catch|return|do|try|with|case"
    rb"|throw|new|await|typeof|sizeof|unless|until)\b"
)
_IMPORT = re.compile(
    rb"(?:import\b|from [\w.]+ import|#\s*include\b|use [\w:\\{]|using [\w.= ]+;|package [\w.]+"
    rb"|extern crate|require(?:_once|_relative)?[ (]|(?:const|let|var) [\w{$].*= require\()"
)
_CONSTANT = re.compile(
    rb"#\s*define \w|(?:export |pub |public |private |static |final |declare )*"
    rb"(?:const|static|type|typedef|val)\b|[A-Za-z_]\w*(?: ?:[^=]+)? ?= ?\S"
)
_DECORATOR = re.compile(rb"[ \t]*(?:@\w|#\[|\[\w+(?:\(.*\))?\]$)")
_BRACKETS = re.compile(rb"[ \t]*(?:[\])}]+[;,)]*|end|fi|done|esac)[ \t]*$")
_OPEN = re.compile(rb"[ \t]*\{[ \t]*$")
_CONDITION = re.compile(rb"#[ \t]*(?:if|el|endif)")
#: What begins a text of several lines, or a comment of several.
_QUOTE = re.compile(rb"\"\"\"|'''|^[ \t]*/\*", re.MULTILINE)
#: A head is followed so far for the bracket that ends its parameters.
HEAD_MOST_LINES = 40
#: So much of a line is looked at.
ROW_BYTES = 200


def roles_of(data: bytes) -> bytearray:
    """A role for each line of `data`."""
    rows = data.split(b"\n")
    roles = bytearray(len(rows))
    quoted = bytearray(len(rows))
    for first, end in _quoted(data):
        paint(quoted, first, end, Role.DOC)
    _Scan(rows, roles, quoted).run()
    return roles


def _quoted(data: bytes) -> Iterator[tuple[int, int]]:
    """The lines inside texts and comments of several lines, but for the line that each begins in."""
    line = counted = at = 0
    unclosed: set[bytes] = set()
    while found := _QUOTE.search(data, at):
        close = b"*/" if found[0].endswith(b"*") else found[0]
        end = -1 if close in unclosed else data.find(close, found.end())
        if end < 0:
            unclosed.add(close)
            at = found.end()
            continue
        line += data.count(b"\n", counted, found.end())
        inside = data.count(b"\n", found.end(), end)
        yield line + 1, line + inside + 1
        line += inside
        counted, at = end, end + len(close)


class _Scan:
    """One walk over the lines of a file."""

    def __init__(self, rows: list[bytes], roles: bytearray, quoted: bytearray) -> None:
        self.rows, self.roles, self.quoted = rows, roles, quoted
        #: The indentation of the function that the walk is in; None outside of any.
        self.function: int | None = None
        #: The indentations of the containers around the walk, outermost first.
        self.containers: list[int] = []

    def run(self) -> None:
        """Give each line its role."""
        at = 0
        while at < len(self.rows):
            at = self._line(at)

    def _line(self, at: int) -> int:
        """The role of line `at` and of what belongs to it; the line that comes next."""
        row = self.rows[at][:ROW_BYTES]
        bare = row.lstrip(b" \t")
        if not bare:
            return at + 1
        indent = len(row) - len(bare)
        if self.quoted[at] or self._is_inside(indent, bare):
            self.roles[at] = Role.BODY
        elif _BRACKETS.match(row) or _OPEN.match(row):
            self.roles[at] = Role.END
            self._leave(indent, closes=not _OPEN.match(row))
        else:
            self._leave(indent, closes=True)
            return self._outside(at, row, indent)
        return at + 1

    def _is_inside(self, indent: int, bare: bytes) -> bool:
        """Whether a line is inside a function; a preprocessor's conditions stand at the margin there, too."""
        return self.function is not None and (indent > self.function or bool(_CONDITION.match(bare)))

    def _leave(self, indent: int, *, closes: bool) -> None:
        """Leave what a line of this indentation is not inside of."""
        if closes:
            self.function = None
            while self.containers and indent <= self.containers[-1]:
                self.containers.pop()

    def _outside(self, at: int, row: bytes, indent: int) -> int:
        """The role of a line that no function holds."""
        role = _role(row, indent)
        if role is None:
            return at + 1
        if role is not Role.HEAD:
            self.roles[at] = role
            return at + 1
        head = Role.MEMBER if self.containers else Role.HEAD
        end = at + 1 if _DECORATOR.match(row) else _head_end(self.rows, at)
        paint(self.roles, at, end, head)
        if _CONTAINER.match(row):
            self.containers.append(indent)
        elif not _DECORATOR.match(row):
            self.function = indent
        return end


def _role(row: bytes, indent: int) -> Role | None:
    """The role of a line by what it begins with; None for a plain one."""
    if _CONTROL.match(row):
        return None
    if _IMPORT.match(row):
        return Role.IMPORT
    if _CONTAINER.match(row) or _FUNCTION.match(row) or _DECORATOR.match(row):
        return Role.HEAD
    if indent == 0 and _C_FUNCTION.match(row):
        return Role.HEAD
    return Role.CONSTANT if _CONSTANT.match(row) else None


def _head_end(rows: list[bytes], at: int) -> int:
    """Behind the line in which the brackets of a head from line `at` are closed."""
    depth = 0
    for end in range(at, min(at + HEAD_MOST_LINES, len(rows))):
        depth += rows[end].count(b"(") - rows[end].count(b")")
        if depth <= 0:
            return end + 1
    return at + 1
