"""A small part of JSON path over JSON text: where the values stand, as they are spelled. Pure.

``$``, ``.name``, ``['name']``, ``[2]``, ``[-1]``, ``[*]``, ``.*`` and ``..name``. The text is read as a
stream of signs and never turned into values, so that numbers keep their digits, duplicate keys stay apart,
and depth costs nothing. What comes before the first ``{`` or ``[`` and behind its end does not matter.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_STEP = re.compile(
    r"\.\.(?P<any>[\w$@-]+)|\.(?P<name>[\w$@-]+)|(?P<all>\.\*|\[\*\])|"
    r"\[(?P<quote>[\"'])(?P<quoted>.*?)(?P=quote)\]|\[(?P<at>-?\d{1,9})\]"
)
_OPENERS, _CLOSERS = frozenset("{["), frozenset("}]")

Span = tuple[int, int]


class PathError(ValueError):
    """The path is not of the supported shape, or the text is no JSON where it leads."""


@dataclass(frozen=True, slots=True)
class _Step:
    #: A key, a position, or None for every child.
    pick: str | int | None
    #: Whether to look at every depth.
    deep: bool = False


def find_values(text: str, path: str, *, limit: int | None = None) -> list[Span]:
    """Where the values that `path` names stand, in order; empty when there are none.

    Raises:
        PathError: `path` is malformed, or `text` is not JSON as far as it was read.
    """
    steps, spans = _steps(path), [_root(text)]
    if steps and isinstance(steps[0].pick, int) and text[spans[0][0]] == "{":
        # Objects one after the other, as in NDJSON, count as an array.
        spans = _picked(list(_roots(text, spans[0])), steps.pop(0).pick)
    for step in steps:
        spans = [span for parent in spans for span in _children(text, parent, step)]
    return spans[:limit]


def _steps(path: str) -> list[_Step]:
    path = path.strip()
    if not path.startswith("$"):
        raise PathError(f"a JSON path starts with $, as in $.items[0].name; this one is {path!r}")
    steps, at = [], 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise PathError(
                f"cannot follow {path[at:]!r} in {path!r}; use .name ['name'] [0] [-1] [*] ..name"
            )
        steps.append(_step(found))
        at = found.end()
    return steps


def _step(found: re.Match[str]) -> _Step:
    if found["any"] is not None:
        return _Step(found["any"], deep=True)
    if found["all"] is not None:
        return _Step(None)
    if found["at"] is not None:
        return _Step(int(found["at"]))
    return _Step(found["name"] if found["name"] is not None else found["quoted"])


def _root(text: str) -> Span:
    start = re.search(r"[{\[]", text)
    if start is None:
        raise PathError("the text holds no JSON object or array")
    return start.start(), len(text)


def _children(text: str, parent: Span, step: _Step) -> Iterator[Span]:
    if step.deep:
        yield from (span for key, span in _members(text, parent, deep=True) if key == step.pick)
    elif isinstance(step.pick, int):
        yield from _picked([span for key, span in _members(text, parent) if key is None], step.pick)
    else:
        for key, span in _members(text, parent):
            if step.pick is None or key == step.pick:
                yield span


def _picked(spans: list[Span], at: int | str | None) -> list[Span]:
    return [spans[at]] if isinstance(at, int) and -len(spans) <= at < len(spans) else []


def _roots(text: str, first: Span) -> Iterator[Span]:
    """Each of the values that stand one after the other."""
    depth, start = 0, first[0]
    for found in _SIGN.finditer(text, *first):
        if depth == 0:
            start = found.start()
        depth += (found.group() in _OPENERS) - (found.group() in _CLOSERS)
        if depth == 0:
            yield start, found.end()


@dataclass(slots=True)
class _Open:
    """A container that is being read."""

    object: bool
    #: Where the value under way starts; -1 before it.
    start: int = -1
    key: str | None = None
    #: Whether a key, not a value, is next.
    wants_key: bool = False


def _members(text: str, parent: Span, *, deep: bool = False) -> Iterator[tuple[str | None, Span]]:
    """Key (None in an array) and place of each child; with `deep` of every descendant."""
    stack: list[_Open] = []
    for found in _SIGN.finditer(text, *parent):
        sign = found.group()
        if sign in _CLOSERS and stack:
            stack.pop()
        elif sign in _OPENERS:
            if stack:
                stack[-1].start = found.start()
            stack.append(_Open(sign == "{", wants_key=sign == "{"))
            continue
        elif not stack:
            return
        elif _between_values(stack[-1], sign):
            continue
        else:
            stack[-1].start = found.start()
        if not stack:
            return
        if deep or len(stack) == 1:
            yield stack[-1].key, (stack[-1].start, found.end())
    if stack:
        raise PathError("the JSON ends before it is complete")


def _between_values(container: _Open, sign: str) -> bool:
    """Take in a comma, a colon or a key; False when `sign` is a value."""
    if sign in {",", ":"}:
        container.wants_key = sign == "," and container.object
        return True
    if container.wants_key:
        container.key = _unquote(sign)
    return container.wants_key


def _unquote(sign: str) -> str:
    try:
        return str(json.loads(sign, strict=False))
    except ValueError:
        return sign
