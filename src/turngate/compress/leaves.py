"""A JSON value as its leaves, which take the place that lines have in a text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from turngate.compress.spelled import Num, Obj

#: Deeper values are handled as text.
MOST_DEPTH = 200
#: Keys longer than this that hold a digit are ids: they count as one path.
ID_KEY_LEAST_CHARS = 4
#: Stands for all of them; no key that was parsed holds a raw line break.
ID_KEY = "\n"
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
    walker = _Walker()
    walker.walk(value, walker.path(-1, "", 0), 0, 0)
    return walker.leaves


class _Walker:
    """Goes through a value once and fills in its `leaves`."""

    def __init__(self) -> None:
        self.leaves = Leaves()
        self.known: dict[tuple[int, str], int] = {}

    def path(self, parent: int, key: str, depth: int) -> int:
        """The number of the path that goes on from `parent` by `key`."""
        found = self.known.get((parent, key))
        if found is not None:
            return found
        is_id = len(key) >= ID_KEY_LEAST_CHARS and not key.isalpha() and any(map(str.isdigit, key))
        if is_id and (parent, ID_KEY) in self.known:
            found = self.known[parent, ID_KEY]
        else:
            found = len(self.leaves.keys)
            self.leaves.keys.append(key)
            self.leaves.depths.append(depth)
        self.known[parent, ID_KEY if is_id else key] = self.known[parent, key] = found
        return found

    def walk(self, value: Any, path: int, record: int, depth: int) -> None:
        """Add the leaves of `value`, which stands on `path` in `record`."""
        if depth > MOST_DEPTH:
            raise TooDeepError
        if not isinstance(value, list) or not value:
            self.add(value, path, record)
            return
        leaves = self.leaves
        before = len(leaves.spelled)
        if isinstance(value, Obj):
            for key, item in value:
                self.step(item, self.path(path, key, depth + 1), record, depth + 1)
        else:
            inner = self.path(path, "", depth + 1)
            for item in value:
                if isinstance(item, Obj):
                    record = leaves.records
                    leaves.records += 1
                self.step(item, inner, record, depth + 1)
        leaves.sizes[id(value)] = len(leaves.spelled) - before

    def step(self, item: Any, path: int, record: int, depth: int) -> None:
        """Go into a container, or add a scalar."""
        if isinstance(item, list):
            self.walk(item, path, record, depth)
        else:
            self.add(item, path, record)

    def add(self, value: Any, path: int, record: int) -> None:
        """Add one leaf."""
        leaves = self.leaves
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
