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
#: What a character of a key costs, and a container's brackets with the marks around its key.
KEY_CHAR_TOKENS, BRACKETS_TOKENS = 0.28, 2.2
CONSTANTS: dict[object, Num] = {True: Num("true"), False: Num("false"), None: Num("null")}
_EMPTY_OBJECT, _EMPTY_ARRAY = Num("{}"), Num("[]")
_CONTAINERS = frozenset({Obj, list})


class TooDeepError(ValueError):
    """The value is nested deeper than `MOST_DEPTH`."""


@dataclass(slots=True)
class Leaves:
    """The leaves of one value in document order, as parallel lists."""

    #: As spelled: strings without their quotes, all else as `Num`; empty containers are leaves too.
    spelled: list[str] = field(default_factory=list)
    #: The path with its indices wild-carded, as a number.
    path: list[int] = field(default_factory=list)
    #: The nearest object around it that is an element of an array, as a number.
    record: list[int] = field(default_factory=list)
    #: The last key on each path ("" for elements of arrays).
    keys: list[str] = field(default_factory=list)
    #: The path that each path goes on from; -1 for the value itself.
    parents: list[int] = field(default_factory=list)
    #: How deep each path is; the value itself is 0.
    depths: list[int] = field(default_factory=list)
    #: How many leaves each container has, by its identity.
    sizes: dict[int, int] = field(default_factory=dict)
    #: Of each container that isn't empty: its first leaf, the one after its last, and what its key and its
    #: brackets cost in tokens.
    containers: list[tuple[int, int, float]] = field(default_factory=list)
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
        #: The paths that go on from each path, by key.
        self.children: list[dict[str, int]] = []

    def path(self, parent: int, key: str, depth: int) -> int:
        """The number of the path that goes on from `parent` by `key`, which is met there first."""
        siblings = self.children[parent] if parent >= 0 else {}
        is_id = len(key) >= ID_KEY_LEAST_CHARS and not key.isalpha() and any(map(str.isdigit, key))
        found = siblings.get(ID_KEY) if is_id else None
        if found is None:
            found = len(self.children)
            self.children.append({})
            self.leaves.keys.append(key)
            self.leaves.parents.append(parent)
            self.leaves.depths.append(depth)
        siblings[key] = found
        if is_id:
            siblings[ID_KEY] = found
        return found

    def walk(self, value: Any, path: int, record: int, depth: int) -> None:
        """Add the leaves of `value`, which stands on `path` in `record`."""
        if depth > MOST_DEPTH:
            raise TooDeepError
        if not isinstance(value, list) or not value:
            self.add(value, path, record)
            return
        before = len(self.leaves.spelled)
        if isinstance(value, Obj):
            self.pairs(value, path, record, depth + 1)
        else:
            self.items(value, path, record, depth + 1)
        leaves = self.leaves
        after = len(leaves.spelled)
        leaves.sizes[id(value)] = after - before
        leaves.containers.append((before, after, KEY_CHAR_TOKENS * len(leaves.keys[path]) + BRACKETS_TOKENS))

    def pairs(self, value: Obj, path: int, record: int, depth: int) -> None:
        """Add the leaves of an object's values."""
        known = self.children[path]
        # As `add` does, without a call for each: most of the time goes here.
        leaves = self.leaves
        add_spelled, add_path, add_record = leaves.spelled.append, leaves.path.append, leaves.record.append
        for key, item in value:
            inner = known.get(key)
            if inner is None:
                inner = self.path(path, key, depth)
            if isinstance(item, list):
                self.walk(item, inner, record, depth)
            else:
                add_spelled(item if isinstance(item, str) else spelled_constant(item))
                add_path(inner)
                add_record(record)

    def items(self, value: list[Any], path: int, record: int, depth: int) -> None:
        """Add the leaves of an array's elements; each object among them is a record."""
        inner = self.children[path].get("")
        if inner is None:
            inner = self.path(path, "", depth)
        if _CONTAINERS.isdisjoint(map(type, value)):
            self.row(value, inner, record)
            return
        for item in value:
            if isinstance(item, Obj):
                record = self.leaves.records
                self.leaves.records += 1
            if isinstance(item, list):
                self.walk(item, inner, record, depth)
            else:
                self.add(item, inner, record)

    def row(self, values: list[Any], path: int, record: int) -> None:
        """Add leaves of one path: an array without containers in it, as many are, is added at once."""
        leaves = self.leaves
        leaves.spelled += [item if isinstance(item, str) else spelled_constant(item) for item in values]
        leaves.path += [path] * len(values)
        leaves.record += [record] * len(values)

    def add(self, value: Any, path: int, record: int) -> None:
        """Add one leaf."""
        leaves = self.leaves
        leaves.spelled.append(value if isinstance(value, str) else spelled_constant(value))
        leaves.path.append(path)
        leaves.record.append(record)


def spelled_constant(value: Any) -> Num:
    """true, false, null, or an empty container."""
    if isinstance(value, list):
        return _EMPTY_OBJECT if isinstance(value, Obj) else _EMPTY_ARRAY
    return CONSTANTS[value]
