"""A JSON value as its leaves, which take the place that lines have in a text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from turngate.compress.spelled import Num, Obj

#: Deeper values are handled as text.
MOST_DEPTH = 200
#: Keys longer than this that hold a digit are ids: they count as one path.
ID_KEY_LEAST_CHARS = 4
CONSTANTS: dict[object, str] = {True: "true", False: "false", None: "null"}


class TooDeepError(ValueError):
    """The value is nested deeper than `MOST_DEPTH`."""


@dataclass(slots=True)
class Leaves:
    """The leaves of one value in document order, as parallel lists."""

    #: As spelled, strings without their quotes; empty containers are leaves too.
    spelled: list[str] = field(default_factory=list)
    #: Whether the leaf is a string.
    quoted: list[bool] = field(default_factory=list)
    #: The path with its indices wild-carded, as a number.
    path: list[int] = field(default_factory=list)
    #: The nearest object around it that is an element of an array, as a number.
    record: list[int] = field(default_factory=list)
    #: The last key on each path ("" for elements of arrays).
    keys: list[str] = field(default_factory=list)
    #: How deep each path is; the value itself is 0.
    depths: list[int] = field(default_factory=list)
    #: How many leaves each container has, by its identity.
    sizes: dict[int, int] = field(default_factory=dict)
    #: How many records there are.
    records: int = 1


def leaves_of(value: Any) -> Leaves:
    """All leaves of a parsed value.

    Raises:
        TooDeepError: it is nested deeper than `MOST_DEPTH`.
    """
    leaves = Leaves()
    _walk(value, leaves, {}, _path(leaves, {}, -1, "", 0), 0, 0)
    return leaves


def _path(leaves: Leaves, known: dict[tuple[int, str], int], parent: int, key: str, depth: int) -> int:
    """The number of the path that goes on from `parent` by `key`."""
    name = "*" if len(key) >= ID_KEY_LEAST_CHARS and not key.isalpha() and any(map(str.isdigit, key)) else key
    found = known.get((parent, name))
    if found is None:
        found = known[parent, name] = len(leaves.keys)
        leaves.keys.append(key)
        leaves.depths.append(depth)
    return found


def _walk(value: Any, leaves: Leaves, known: dict[tuple[int, str], int], path: int, record: int, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise TooDeepError
    if not isinstance(value, list) or not value:
        _add(leaves, value, path, record)
        return
    before = len(leaves.spelled)
    if isinstance(value, Obj):
        for key, item in value:
            inner = known.get((path, key))
            if inner is None:
                inner = _path(leaves, known, path, key, depth + 1)
                known[path, key] = inner
            if isinstance(item, list):
                _walk(item, leaves, known, inner, record, depth + 1)
            else:
                _add(leaves, item, inner, record)
    else:
        inner = _path(leaves, known, path, "", depth + 1)
        for item in value:
            if isinstance(item, list):
                if isinstance(item, Obj):
                    record = leaves.records
                    leaves.records += 1
                _walk(item, leaves, known, inner, record, depth + 1)
            else:
                _add(leaves, item, inner, record)
    leaves.sizes[id(value)] = len(leaves.spelled) - before


def _add(leaves: Leaves, value: Any, path: int, record: int) -> None:
    if isinstance(value, str):
        leaves.spelled.append(value)
        leaves.quoted.append(not isinstance(value, Num))
    else:
        leaves.spelled.append(spelled_constant(value))
        leaves.quoted.append(False)
    leaves.path.append(path)
    leaves.record.append(record)


def spelled_constant(value: Any) -> str:
    """true, false, null, or an empty container."""
    if isinstance(value, list):
        return "{}" if isinstance(value, Obj) else "[]"
    return CONSTANTS[value]
