"""JSON in an exact form: without blanks between its marks, and arrays of like records as tables.

A table is the object `{"…columns":["id","name"],"…rows":[[0,"a"],[1,"b"]]}`. JSON lines whose records are
alike stay lines: `{"…columns":[…]}` comes first, then a row a line. Every value stays as it was spelled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from turngate.compress.leaves import KEY_CHAR_TOKENS, Leaves, spelled_constant
from turngate.compress.spelled import Num, Obj, Parsed, Spelling, parse
from turngate.tokens import estimate

#: Fewer records are clearer as they are.
LEAST_RECORDS = 8
#: No exact form takes less of a text, but for rare ones that repeat a value all over.
LEAST_SHARE = 0.25
#: What an indented line costs more than it would without, and a blank between marks. As fitted on recorded
#: outputs, what is estimated so is true within this share.
LINE_TOKENS, BLANK_TOKENS, DOUBT = 3.0, 1.2, 0.15
#: Tables must be so much shorter than the records themselves, which are easier to read.
TABLES_MOST_SHARE = 0.9
#: What the marks around a key cost.
KEY_TOKENS = 1.2
_OPEN = "…"
#: A string, or what stands between strings and blanks.
_TOKEN = re.compile(r'"(?:[^"\\]+|\\.)*"|[^ \t\r\n"]+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a JSON text."""

    parsed: Parsed
    leaves: Leaves
    #: An estimate for the text.
    whole_tokens: float
    #: What each leaf costs with its key.
    tokens: list[float]
    #: Marks what isn't the original's own.
    tag: str
    #: Whether it is JSON lines.
    lines: bool


def fitting(text: str, found: Found, budget_tokens: float) -> str | None:
    """All of the JSON `text` within the budget: with tables, or minified; None where neither suffices."""
    share = budget_tokens / found.whole_tokens
    if share < LEAST_SHARE or _least_share(text, found) > share:
        return None
    rows = [minified(row) for row in text.split("\n") if row.strip()] if found.lines else [minified(text)]
    short = "\n".join(rows)
    cost = estimate(short)
    form = _tables(found)
    if form is not None and estimate(form) <= min(budget_tokens, TABLES_MOST_SHARE * cost):
        return form if unfold(form, found.tag, lines=found.lines) == short else None
    return short if cost <= budget_tokens and _same(short, found) else None


def _least_share(text: str, found: Found) -> float:
    """About the least share of the text's tokens that an exact form may take, by a few counts."""
    blanks = 0.0
    if not found.lines:
        blanks = LINE_TOKENS * text.count("\n") + BLANK_TOKENS * (text.count('": ') + text.count(", "))
    keys = _key_share(found.leaves, found.tokens) if found.leaves.records > LEAST_RECORDS else 0.0
    return (1.0 - DOUBT) * (1.0 - blanks / found.whole_tokens) * (1.0 - keys)


def minified(text: str) -> str:
    """The JSON value `text` without the blanks that mean nothing."""
    return "".join(_TOKEN.findall(text))


def _key_share(leaves: Leaves, tokens: list[float]) -> float:
    """Which share of the whole its keys are that were there before: all that tables can save, and more."""
    again = sum(
        (count - 1) * (KEY_CHAR_TOKENS * len(leaves.keys[path]) + KEY_TOKENS)
        for path, count in Counter(leaves.path).items()
    )
    return again / (sum(tokens) + sum(cost for _, _, cost in leaves.containers))


def _same(short: str, found: Found) -> bool:
    """Whether the minified text says what the original does."""
    parsed = parse(f"[{short.replace(chr(10), ',')}]" if found.lines else short)
    return parsed is not None and not parsed.tail and parsed.value == found.parsed.value


def _tables(found: Found) -> str | None:
    """The value with tables for arrays of like records; None where it has none."""
    writer = _Writer(found.parsed.spelling, found.tag)
    value = found.parsed.value
    form = "\n".join(writer.lines(value)) if found.lines else writer.write(value)
    return form if writer.tables else None


def unfold(form: str, tag: str, *, lines: bool) -> str | None:
    """The original, minified, of which `form` is the form with tables; None where it is none."""
    parsed = parse(f"[{form.replace(chr(10), ',')}]" if lines else form)
    if parsed is None or parsed.tail:
        return None
    reader = _Reader(tag)
    plain = _Writer(parsed.spelling, None)
    if not lines:
        return plain.write(reader.read(parsed.value))
    return "\n".join(map(plain.write, reader.lines(parsed.value)))


def _keys(value: list[Any]) -> list[str]:
    """What all elements of an array of records have as their keys; nothing where it is no table."""
    if len(value) < LEAST_RECORDS or not isinstance(value[0], Obj):
        return []
    keys = [key for key, _ in value[0]]
    alike = all(isinstance(item, Obj) and [key for key, _ in item] == keys for item in value)
    return keys if alike else []


@dataclass(slots=True)
class _Writer:
    """Writes values minified."""

    spelling: Spelling
    #: Marks the keys of tables; None for no tables.
    tag: str | None
    #: How many tables were written.
    tables: int = 0

    def write(self, value: Any) -> str:
        """`value` as text."""
        if isinstance(value, Num):
            return str(value)
        if isinstance(value, str):
            return f'"{self.spelling.raw(value)}"'
        if not isinstance(value, list) or not value:
            return spelled_constant(value)
        if isinstance(value, Obj):
            raw = self.spelling.raw
            return "{" + ",".join([f'"{raw(key)}":{self.write(item)}' for key, item in value]) + "}"
        keys = _keys(value) if self.tag is not None else []
        if not keys:
            return self._array(value)
        columns, rows = self._named("columns"), self._named("rows")
        return f"{{{columns}:{self._columns(keys)},{rows}:[{','.join(self._rows(value))}]}}"

    def lines(self, value: list[Any]) -> Iterator[str]:
        """The elements of an array, a line each."""
        keys = _keys(value) if self.tag is not None else []
        if keys:
            yield f"{{{self._named('columns')}:{self._columns(keys)}}}"
        yield from self._rows(value) if keys else map(self.write, value)

    def _array(self, items: list[Any]) -> str:
        return f"[{','.join(map(self.write, items))}]"

    def _rows(self, records: list[Obj]) -> Iterator[str]:
        return (self._array([item for _, item in record]) for record in records)

    def _columns(self, keys: list[str]) -> str:
        self.tables += 1
        return self._array(keys)

    def _named(self, what: str) -> str:
        return f'"{_name(self.tag or "", what)}"'


def _name(tag: str, what: str) -> str:
    return f"{_OPEN}{tag}{' ' if tag else ''}{what}"


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns tables back into records."""

    tag: str

    def read(self, value: Any) -> Any:
        """`value` with records for tables."""
        if not isinstance(value, list):
            return value
        if not isinstance(value, Obj):
            return [self.read(item) for item in value]
        if [key for key, _ in value] == [_name(self.tag, "columns"), _name(self.tag, "rows")]:
            (_, keys), (_, rows) = value
            return [self._record(keys, row) for row in rows]
        return Obj((key, self.read(item)) for key, item in value)

    def lines(self, value: list[Any]) -> Iterator[Any]:
        """The records of lines, of which the first may say the columns of the others."""
        first = value[0] if value else None
        if isinstance(first, Obj) and [key for key, _ in first] == [_name(self.tag, "columns")]:
            return (self._record(first[0][1], row) for row in value[1:])
        return map(self.read, value)

    def _record(self, keys: list[str], row: list[Any]) -> Obj:
        return Obj(zip(keys, map(self.read, row), strict=True))
