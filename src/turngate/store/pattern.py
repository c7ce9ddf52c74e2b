"""Regular expressions from outside, with a bound on the time they can take. Pure.

Python's engine backtracks: a repeat within a repeat can take time exponential in the length of a line. Such
patterns are refused before they run; long lines are looked at in pieces.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from turngate.errors import RetrieveError

Finder = Callable[[str], bool]

#: A longer line is looked at in pieces of this size, which overlap by a quarter.
PIECE_CHARS = 2_000
_MAX_PATTERN_CHARS = 2_000
#: A repeat that can go on longer than this counts as unbounded.
_FEW = 16
#: Unbounded repeats in a row cost a power of the line's length each.
_MAX_REPEATS = 8

# Python's own parser of patterns; it has no public name.
_parser: Any = importlib.import_module("re._parser")


def compile_pattern(pattern: str) -> Finder:
    """A function that says whether a line matches.

    Raises:
        RetrieveError: the pattern is malformed, too long, or may take exponential time.
    """
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise RetrieveError(f"a pattern has at most {_MAX_PATTERN_CHARS} characters, this one {len(pattern)}")
    try:
        compiled = re.compile(pattern)
        tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise RetrieveError(f"not a regular expression: {pattern!r} ({error})") from error
    if _nests(tree) or _count(tree) > _MAX_REPEATS:
        raise RetrieveError(
            f"{pattern!r} repeats a group that repeats itself or has alternatives, which can take forever; "
            "write it without nested repeats, as in [a-z ]+ for ([a-z]+ ?)+"
        )
    return lambda line: _found(compiled, line)


def _found(compiled: re.Pattern[str], line: str) -> bool:
    if len(line) <= PIECE_CHARS:
        return compiled.search(line) is not None
    step = PIECE_CHARS * 3 // 4
    return any(compiled.search(line, at, at + PIECE_CHARS) for at in range(0, len(line), step))


def _parts(node: Any) -> list[tuple[str, Any]]:
    return [(str(operation), argument) for operation, argument in node]


def _inner(argument: Any) -> list[Any]:
    """The sub-patterns in an operation's argument, at any depth of tuples and lists."""
    if isinstance(argument, _parser.SubPattern):
        return [argument]
    if isinstance(argument, tuple | list):
        return [found for each in argument for found in _inner(each)]
    return []


def _is_long(operation: str, argument: Any) -> bool:
    return operation in {"MAX_REPEAT", "MIN_REPEAT"} and argument[1] > _FEW and argument[1] != argument[0]


def _nests(node: Any, *, repeated: bool = False) -> bool:
    """Whether a long repeat, or alternatives of more than single characters, stand within a long repeat."""
    for operation, argument in _parts(node):
        long = _is_long(operation, argument)
        if repeated and (long or operation in {"BRANCH", "GROUPREF"}) and not _apart(node):
            return True
        inside = repeated or long
        if any(_nests(inner, repeated=inside) for inner in _inner(argument)):
            return True
    return False


def _apart(node: Any) -> bool:
    """Whether a sequence has an item that no repeat of its own can take: it parts the rounds."""
    items = [signs for operation, argument in _parts(node) if (signs := _signs(operation, argument))]
    takers = [argument[2] for operation, argument in _parts(node) if _is_long(operation, argument)]
    branches = any(operation in {"BRANCH", "GROUPREF", "SUBPATTERN"} for operation, _ in _parts(node))
    return not branches and any(
        not any(_takes(taker, char) for taker in takers for char in signs) for signs in items
    )


def _signs(operation: str, argument: Any) -> str:
    """Characters that stand for what a single item matches; none where that is not simple."""
    if operation == "LITERAL":
        return chr(argument)
    if operation == "IN" and len(argument) == 1 and str(argument[0][0]) == "CATEGORY":
        return _SAMPLES.get(str(argument[0][1]), "")
    return ""


def _takes(node: Any, char: str) -> bool:
    """Whether a repeated single item matches `char`; anything more complex counts as a yes."""
    parts = _parts(node)
    if len(parts) != 1:
        return True
    operation, argument = parts[0]
    if operation == "LITERAL":
        return chr(argument) == char
    if operation == "NOT_LITERAL":
        return chr(argument) != char
    return _in_set(argument, char) if operation == "IN" else True


def _in_set(items: Any, char: str) -> bool:
    inside = any(_covers(operation, argument, char) for operation, argument in _parts(items))
    negated = any(operation == "NEGATE" for operation, _ in _parts(items))
    return inside != negated


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


#: Of each class a few that other classes could share.
_SAMPLES = {"CATEGORY_DIGIT": "09\u0663", "CATEGORY_SPACE": " \t\x0b\xa0\u3000"}


def _covers(operation: str, argument: Any, char: str) -> bool:
    if operation == "LITERAL":
        return chr(argument) == char
    if operation == "RANGE":
        return bool(argument[0] <= ord(char) <= argument[1])
    if operation == "CATEGORY":
        return re.fullmatch(_CATEGORIES.get(str(argument), "."), char) is not None
    return False


def _count(node: Any) -> int:
    return sum(
        _is_long(operation, argument) + sum(map(_count, _inner(argument)))
        for operation, argument in _parts(node)
    )
