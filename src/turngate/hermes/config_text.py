"""Small changes to the host's ``config.yaml`` as text, so that everything a user wrote there stays. Pure.

It reads the block style that the host itself writes: a section at the margin, its keys below it, a list as
lines with dashes or in brackets on one line. What is written in another way is left alone, and `EditError`
says what to write by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from turngate.errors import TurngateError

_KEY = re.compile(r"(?P<indent> *)(?P<quote>['\"]?)(?P<key>[\w.-]+)(?P=quote) *:(?: +(?P<value>.*?))? *$")
_ITEM = re.compile(r"(?P<indent> *)-(?: +(?P<value>.*?))? *$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_FLOW = re.compile(r"\[(?P<inner>[^\[\]{}#]*)\]")
_EMPTY = ("", "null", "~", "{}", "[]")


class EditError(TurngateError):
    """The file is written in a way that is not edited; the message says what to write by hand."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A key and the lines below it that belong to it."""

    line: int
    """Where it stands."""
    end: int
    """The line after the last of its block."""
    indent: int
    """How far it is moved in."""
    value: str
    """What follows the colon, comment aside."""


def with_item(text: str, section: str, key: str, item: str) -> str:
    """`text` with `item` in the list ``section.key``."""
    lines = _lines(text)
    place = _find(lines, section, key)
    if place is None:
        return _with_child(lines, section, [f"{key}:", f"  - {item}"])
    if item in _items(lines, place):
        return text
    if place.value in _EMPTY:
        return _joined(_with_first(lines, place, item))
    flow = _FLOW.search(lines[place.line])
    if flow is None:
        raise _refusal(section, key, f"[…, {item}]")
    inner = flow["inner"].strip()
    new = f"[{inner.rstrip(',')}, {item}]" if inner else f"[{item}]"
    lines[place.line] = lines[place.line][: flow.start()] + new + lines[place.line][flow.end() :]
    return _joined(lines)


def without_item(text: str, section: str, key: str, item: str) -> str:
    """`text` with `item` no longer in the list ``section.key``."""
    lines = _lines(text)
    place = _find(lines, section, key)
    if place is None or item not in _items(lines, place):
        return text
    at = next((n for n, name in _block_items(lines, place) if name == item), None)
    if at is not None:
        del lines[at]
        if not _block_items(lines, _same(lines, section, key)):
            lines[place.line] = re.sub(r":(?= *(?:#|$))", ": []", lines[place.line], count=1)
        return _joined(lines)
    flow = _FLOW.search(lines[place.line])
    if flow is None:
        raise _refusal(section, key, f"a list without {item}")
    kept = [part.strip() for part in flow["inner"].split(",") if _plain(part) != item]
    lines[place.line] = (
        lines[place.line][: flow.start()] + f"[{', '.join(kept)}]" + lines[place.line][flow.end() :]
    )
    return _joined(lines)


def with_value(text: str, section: str, key: str, value: str) -> str:
    """`text` with ``section.key`` set to a plain word."""
    if (short := _in_braces(text, section, key)) is not None:
        start, end = short
        return text if _plain(text[start:end]) == value else text[:start] + value + text[end:]
    lines = _lines(text)
    place = _find(lines, section, key)
    if place is None:
        return _with_child(lines, section, [f"{key}: {value}"])
    if _plain(place.value) == value:
        return text
    if place.end > place.line + 1 and any(_content(line) for line in lines[place.line + 1 : place.end]):
        raise _refusal(section, key, value)
    line = lines[place.line]
    head = line[: line.index(":") + 1]
    comment = _COMMENT.search(line)
    lines[place.line] = f"{head} {value}{'  ' + comment[0].strip() if comment else ''}"
    return _joined(lines)


def value_of(text: str, section: str, key: str) -> str:
    """The plain word that ``section.key`` is set to, or ""."""
    if (short := _in_braces(text, section, key)) is not None:
        return _plain(text[slice(*short)])
    place = _find(_lines(text), section, key)
    return "" if place is None else _plain(place.value)


def items_of(text: str, section: str, key: str) -> list[str]:
    """The items of the list ``section.key``."""
    lines = _lines(text)
    place = _find(lines, section, key)
    return [] if place is None else _items(lines, place)


def _in_braces(text: str, section: str, key: str) -> tuple[int, int] | None:
    """Where the plain word stands in ``section: {key: word}`` on one line."""
    braces = rf"^{re.escape(section)} *: *\{{[^{{}}\n#]*?\b{re.escape(key)} *: *"
    found = re.search(braces + r"(?P<word>[^\s,{}\[\]#]+)[^{}\n]*\}", text, re.MULTILINE)
    return found.span("word") if found else None


def _lines(text: str) -> list[str]:
    return text.split("\n")


def _joined(lines: list[str]) -> str:
    return "\n".join(lines)


def _content(line: str) -> str:
    """A line without comment and blanks."""
    return _COMMENT.sub("", line.removesuffix("\r")).strip()


def _plain(text: str) -> str:
    return text.strip().strip("'\"")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _find(lines: list[str], section: str, key: str) -> _Place | None:
    """The place of ``section.key``.

    Raises:
        EditError: the section is not written as a block.
    """
    top = _key(lines, section, range(len(lines)), 0)
    if top is None:
        if any(_content(line).startswith("{") for line in lines[:1]):
            raise _refusal(section, key, "…")
        return None
    if top.value not in _EMPTY:
        raise _refusal(section, key, "…")
    inside = range(top.line + 1, top.end)
    depth = next((_indent(lines[n]) for n in inside if _content(lines[n])), 0)
    return _key(lines, key, inside, depth) if depth else None


def _same(lines: list[str], section: str, key: str) -> _Place:
    place = _find(lines, section, key)
    assert place is not None
    return place


def _key(lines: list[str], key: str, within: range, indent: int) -> _Place | None:
    for number in within:
        found = _KEY.match(_COMMENT.sub("", lines[number].removesuffix("\r")))
        if found and found["key"] == key and len(found["indent"]) == indent:
            end = _end(lines, number, within.stop, indent)
            return _Place(number, end, indent, (found["value"] or "").strip())
    return None


def _end(lines: list[str], number: int, stop: int, indent: int) -> int:
    """The line after the last that belongs to the key on line `number`; a list may stand as far out as it."""
    last = number
    for at in range(number + 1, stop):
        if not _content(lines[at]):
            continue
        if _indent(lines[at]) < indent or (_indent(lines[at]) == indent and not _ITEM.match(lines[at])):
            break
        last = at
    return last + 1


def _block_items(lines: list[str], place: _Place) -> list[tuple[int, str]]:
    """Numbers and values of the lines with dashes below a key."""
    found = []
    for number in range(place.line + 1, place.end):
        item = _ITEM.match(_COMMENT.sub("", lines[number].removesuffix("\r")))
        if item:
            found.append((number, _plain(item["value"] or "")))
    return found


def _items(lines: list[str], place: _Place) -> list[str]:
    flow = _FLOW.fullmatch(place.value)
    if flow:
        return [_plain(part) for part in flow["inner"].split(",") if part.strip()]
    return [value for _, value in _block_items(lines, place)]


def _with_first(lines: list[str], place: _Place, item: str) -> list[str]:
    """An item after the last one of a block list, or as the first one of an empty list."""
    there = _block_items(lines, place)
    if there:
        last = there[-1][0]
        new = f"{' ' * _indent(lines[last])}- {item}{_return(lines[last])}"
        return [*lines[: last + 1], new, *lines[last + 1 :]]
    line = lines[place.line]
    if place.value:
        line = (
            line.replace(place.value, "", 1).rstrip()
            if not _COMMENT.search(line)
            else line.replace(place.value, "", 1)
        )
    new = f"{' ' * (place.indent + 2)}- {item}{_return(line)}"
    return [*lines[: place.line], line, new, *lines[place.line + 1 :]]


def _return(line: str) -> str:
    return "\r" if line.endswith("\r") else ""


def _with_child(lines: list[str], section: str, child: list[str]) -> str:
    """A key that its section does not have yet; the section, where there is none."""
    top = _key(lines, section, range(len(lines)), 0)
    if top is None:
        body = lines[:-1] if lines and not lines[-1] else lines
        return _joined([*body, f"{section}:", *(f"  {line}" for line in child), ""])
    inside = [line for line in lines[top.line + 1 : top.end] if _content(line)]
    pad = " " * (_indent(inside[0]) if inside else 2)
    head = lines[top.line]
    if top.value:
        head = head.replace(top.value, "", 1).rstrip()
    return _joined([*lines[: top.line], head, *(f"{pad}{line}" for line in child), *lines[top.line + 1 :]])


def _refusal(section: str, key: str, value: str) -> EditError:
    return EditError(
        f"config.yaml is not written in a way that can be edited here; write it by hand: "
        f"{section}: with {key}: {value} below it"
    )
