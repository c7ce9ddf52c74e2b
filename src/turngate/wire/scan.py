"""Where each value stands in raw JSON: a span scanner, and the splice that rests on it.

Reserialising a body changes bytes that nobody asked to change (key order, number spelling, escapes, duplicate
keys), and with them the provider's prefix cache and every signature over it. So a body is scanned once for
spans, and only the strings that really change are written anew.

The grammar is RFC 8259, strictly: what a provider would refuse to parse raises
:class:`~turngate.errors.WireError` with its byte offset. The scan is linear; nesting costs no recursion.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson

from turngate.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind: TypeAlias = Literal["object", "array", "string", "number", "literal"]

Path: TypeAlias = tuple[str | int, ...]
"""Object keys and array indexes from the root: ``("messages", 3, "content")``; of duplicate keys the last."""


@dataclass(slots=True, eq=False)
class Node:
    """One JSON value, by its place in the body. Its bytes are ``body[start:end]``.

    What stands in it is found when it is asked for: of a request that repeats a history, most is never asked.
    """

    kind: Kind
    start: int
    """Offset of the first byte."""
    end: int
    """Offset after the last byte."""
    _members: list[Member] = field(default_factory=list)
    _items: list[Node] = field(default_factory=list)
    _source: bytes = b""
    """Valid JSON that holds the value, until it has been opened; then, and for scalars, empty."""
    _base: int = 0
    """Offset of the source in the body."""

    @property
    def members(self) -> list[Member]:
        """An object's members, in order, duplicates included."""
        if self._source:
            self._open()
        return self._members

    @property
    def items(self) -> list[Node]:
        """An array's elements."""
        if self._source:
            self._open()
        return self._items

    def get(self, key: str) -> Node | None:
        """The value of ``key``: of duplicates the last, as JSON parsers have it."""
        return next((m.value for m in reversed(self.members) if m.key == key), None)

    @property
    def unopened(self) -> bytes:
        """Its bytes, known to be valid, if it has not been opened; else nothing."""
        return self._source[self.start - self._base : self.end - self._base]

    def _open(self) -> None:
        """Find what stands in it. Two threads that do so at once find the same."""
        source = self._source
        found = _unfolded(source, self.start - self._base, self._base) if source else None
        if found is not None:
            self._members, self._items = found.members, found.items
            self._source = b""


@dataclass(frozen=True, slots=True)
class Member:
    """A key and its value inside an object."""

    key: str
    start: int
    """Offset of the key's opening quote."""
    value: Node


_Key: TypeAlias = tuple[str, int]
"""A key's text, and the offset of its opening quote."""

_STARTS: dict[Kind, str] = {"string": '"', "object": "{", "array": "[", "literal": "tfn"}

#: A string, in JSON that is known to be valid.
_LOOSE = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_OPEN, _PLAIN, _SHUT = rb"[\[{]", rb'[^\[\]{}"]*+', rb"[\]}]"
#: Levels of brackets that are passed over at a stroke; tools' schemas reach about 15.
_LEVELS = 32


def _nested(levels: int) -> bytes:
    """A pattern for a container of at most so many levels."""
    inner = b""
    for _ in range(levels):
        inner = b"|" + _OPEN + _PLAIN + rb"(?:(?:" + _LOOSE + inner + b")" + _PLAIN + b")*+" + _SHUT
    return inner[1:]


# Possessive quantifiers: on a string of any length, no backtracking and no recursion.
_STRING = rb'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_SPACE = rb"[ \t\n\r]*+"
_VALUE = re.compile(
    _SPACE
    + rb"(?:(?P<string>"
    + _STRING
    + rb")|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)"
    + rb"|(?P<literal>true|false|null)|(?P<object>\{)|(?P<array>\[))"
)
_KEY = re.compile(_SPACE + rb"(" + _STRING + rb")" + _SPACE + rb":")
_NEXT = re.compile(_SPACE + rb"([,\]}])")
_EMPTY = {"object": re.compile(_SPACE + rb"\}"), "array": re.compile(_SPACE + rb"\]")}
_CLOSER = {"object": b"}", "array": b"]"}
_BLANK = b" \t\n\r"
_BLANKS = re.compile(_SPACE)

_KINDS: dict[int, Kind] = {ord(sign): kind for kind, signs in _STARTS.items() for sign in signs}
#: A body beyond this that is no JSON is not read strictly only to say where: that takes seconds and memory.
_LARGE_BYTES = 1 << 18
#: Words in the fast parser's complaints about what is JSON nevertheless.
_FUSSY = ("surrogate", "UTF-8", "depth", "infinity")
#: Levels that are read; nobody's request has them.
_MAX_LEVELS = 100_000
#: More digits than the fast parser keeps of a whole number.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Strides:
    """Patterns that pass over a value at a stroke, in JSON that is known to be valid."""

    value: re.Pattern[bytes]
    item: re.Pattern[bytes]
    """1: an array's element. 2: what follows it."""
    member: re.Pattern[bytes]
    """1: the key. 2: the value, but of an array only its bracket is matched. 3: what follows it."""


@cache
def _strides() -> _Strides:
    """Compiled when first asked for: that takes as long as everything else that is imported here."""
    value = rb"(?:" + _LOOSE + rb'|[^\[\]{}", \t\n\r]++|' + _nested(_LEVELS) + rb")"
    behind = rb"(" + value + rb")" + _SPACE
    key = _SPACE + rb"(" + _LOOSE + rb")" + _SPACE + rb":" + _SPACE
    return _Strides(
        re.compile(value, re.DOTALL),
        re.compile(_SPACE + behind + rb"([,\]])", re.DOTALL),
        re.compile(key + rb"(?:\[|" + behind + rb"([,}]))", re.DOTALL),
    )


def scan(body: bytes) -> Node:
    """The tree of spans of a JSON text.

    Raises:
        WireError: if ``body`` is not exactly one JSON value; the message gives the byte offset.
    """
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if len(body) > _LARGE_BYTES and not any(word in error.msg for word in _FUSSY):
            raise WireError(f"not JSON: {error.msg} (about byte {error.pos}); send one JSON value") from None
    else:
        return _folded(body, _skip_space(body, 0), len(body.rstrip(_BLANK)), 0)
    node, at = _strictly(body, 0)
    if _skip_space(body, at) != len(body):
        raise WireError(f"not JSON: something follows the value at byte {at}; send exactly one JSON value")
    return node


def scan_value(body: bytes, at: int) -> tuple[Node, int]:
    """The value that begins at `at` or after white space there, and the offset behind it.

    Raises:
        WireError: if no complete JSON value stands there; the message gives the byte offset.
    """
    start = _skip_space(body, at)
    match = _strides().value.match(body, start)
    if match is not None and _is_plain(raw := match[0]):
        return _folded(raw, 0, len(raw), start), match.end()
    return _strictly(body, start)


def _is_plain(raw: bytes) -> bool:
    """Whether a fast and strict parser takes it. It refuses some JSON, too: lone surrogates, great depth."""
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    return True


def _skip_space(body: bytes, at: int) -> int:
    found = _BLANKS.match(body, at)
    return found.end() if found else at


def _folded(source: bytes, start: int, end: int, base: int) -> Node:
    """The value at a place in valid JSON, unopened."""
    kind = _KINDS.get(source[start], "number")
    if kind in _CLOSER:
        return Node(kind, start + base, end + base, _source=source, _base=base)
    return Node(kind, start + base, end + base)


class _DeepError(Exception):
    """A value is nested deeper than is skipped at a stroke."""


def _unfolded(source: bytes, start: int, base: int) -> Node:
    """The container at `start` in valid JSON, opened; what stands in it is folded. Offsets grow by `base`."""
    opened = _open_object if source[start : start + 1] == b"{" else _open_array
    try:
        return opened(source, start, base)[0]
    except _DeepError:  # what has a base was skipped at a stroke before, and so is what stands in it
        return _strictly(source, start)[0]


def _open_array(source: bytes, start: int, base: int) -> tuple[Node, int]:
    node = Node("array", start + base, 0)
    pattern = _strides().item
    empty = _EMPTY["array"].match(source, start + 1)
    at, sign = (empty.end(), b"]") if empty else (start + 1, b",")
    while sign == b",":
        match = pattern.match(source, at)
        if match is None:
            raise _DeepError
        node.items.append(_folded(source, *match.span(1), base))
        at, sign = match.end(), match[2]
    node.end = at + base
    return node, at


def _open_object(source: bytes, start: int, base: int) -> tuple[Node, int]:
    node = Node("object", start + base, 0)
    empty = _EMPTY["object"].match(source, start + 1)
    at, sign = (empty.end(), b"}") if empty else (start + 1, b",")
    while sign == b",":
        member, at, sign = _open_member(source, at, base)
        node.members.append(member)
    node.end = at + base
    return node, at


def _open_member(source: bytes, at: int, base: int) -> tuple[Member, int, bytes]:
    """The member, the offset behind what follows it, and that.

    An array is opened along with it, to pass over a long one only once.
    """
    match = _strides().member.match(source, at)
    if match is None:
        raise _DeepError
    key, begin = _decode(source, *match.span(1)), match.start(1) + base
    if match[2] is not None:
        return Member(key, begin, _folded(source, *match.span(2), base)), match.end(), match[3]
    value, behind = _open_array(source, match.end() - 1, base)
    behind = _skip_space(source, behind)
    return Member(key, begin, value), behind + 1, source[behind : behind + 1]


def _strictly(body: bytes, at: int) -> tuple[Node, int]:
    """The value at `at`, opened through and through, and the offset behind it; every byte is judged."""
    holder = Node("array", 0, 0)
    stack: list[Node] = [holder]
    key: _Key | None = None
    while True:
        node, at = _value(body, at)
        _attach(stack[-1], key, node)
        if node.kind in _CLOSER:
            if empty := _EMPTY[node.kind].match(body, at):
                node.end = at = empty.end()
            else:
                stack.append(node)
                if len(stack) > _MAX_LEVELS:
                    raise WireError(f"nested deeper than {_MAX_LEVELS} levels at byte {at}; send it flatter")
                key, at = _key(body, at, node)
                continue
        at = _close(body, at, stack)
        if len(stack) == 1:
            return holder.items[0], at
        key, at = _key(body, at, stack[-1])


def _value(body: bytes, at: int) -> tuple[Node, int]:
    match = _VALUE.match(body, at)
    if match is None:
        raise WireError(f"not JSON: a value was expected at byte {at}; send a complete JSON text")
    kind: Any = match.lastgroup
    start, end = match.span(kind)
    return Node(kind, start, end), end


def _key(body: bytes, at: int, parent: Node) -> tuple[_Key | None, int]:
    """The key of the member that comes next; ``None`` inside an array."""
    if parent.kind == "array":
        return None, at
    match = _KEY.match(body, at)
    if match is None:
        raise WireError(f"not JSON: a key was expected at byte {at}; send a complete JSON text")
    start, end = match.span(1)
    return (_decode(body, start, end), start), match.end()


def _attach(parent: Node, key: _Key | None, node: Node) -> None:
    if key is None:
        parent.items.append(node)
    else:
        parent.members.append(Member(*key, node))


def _close(body: bytes, at: int, stack: list[Node]) -> int:
    """Step over what follows a value: closers, up to a comma or the end of the outermost value."""
    while len(stack) > 1:
        match = _NEXT.match(body, at)
        if match is None:
            raise WireError(f"not JSON: a comma or a closing bracket was expected at byte {at}")
        at = match.end()
        if match[1] == b",":
            break
        node = stack.pop()
        if match[1] != _CLOSER[node.kind]:
            raise WireError(f"not JSON: the bracket at byte {at - 1} closes nothing; check the nesting")
        node.end = at
    return at


def _decode(body: bytes, start: int, end: int) -> str:
    """The text of the string literal at ``body[start:end]``."""
    try:
        raw = body[start:end].decode()
    except UnicodeDecodeError as error:
        raise WireError(
            f"not JSON: byte {start + error.start} is not UTF-8; send the body as UTF-8"
        ) from error
    return str(json.loads(raw)) if "\\" in raw else raw[1:-1]


def text_of(body: bytes, node: Node) -> str:
    """The decoded text of a string node; lone surrogates stay as they were escaped.

    Raises:
        WireError: if the node is not a string, or is not UTF-8.
    """
    if node.kind != "string":
        raise WireError(f"the value at byte {node.start} is not a string but a {node.kind}")
    return _decode(body, node.start, node.end)


_LITERALS: dict[bytes, bool | None] = {b"true": True, b"false": False, b"null": None}


def value_of(body: bytes, node: Node) -> Any:
    """The Python value of a node, at any depth. Of duplicate keys the last counts, in the first's place."""
    whole = node.unopened
    if whole and not _LONG_NUMBER.search(whole):
        return orjson.loads(whole)
    out: list[Any] = [None]
    todo: list[tuple[Any, int | str, Node]] = [(out, 0, node)]
    while todo:
        parent, slot, current = todo.pop()
        if current.kind == "object":
            made: Any = dict.fromkeys(m.key for m in current.members)
            todo.extend((made, m.key, m.value) for m in reversed(_last_members(current)))
        elif current.kind == "array":
            made = [None] * len(current.items)
            todo.extend((made, i, item) for i, item in enumerate(current.items))
        else:
            made = _scalar(body, current)
        parent[slot] = made
    return out[0]


def _last_members(node: Node) -> list[Member]:
    return list({m.key: m for m in node.members}.values())


def _scalar(body: bytes, node: Node) -> str | int | float | bool | None:
    if node.kind == "string":
        return _decode(body, node.start, node.end)
    raw = body[node.start : node.end]
    return _LITERALS[raw] if node.kind == "literal" else _number(raw)


def _number(raw: bytes) -> int | float:
    if raw.lstrip(b"-").isdigit():
        try:
            return int(raw)
        except ValueError:  # beyond Python's limit of digits; only its rough size is of use to anybody
            return float(raw)
    return float(raw)


def find(root: Node, path: Path) -> Node:
    """The node at ``path``.

    Raises:
        WireError: if there is none; the message names the step that failed.
    """
    node = root
    for depth, step in enumerate(path):
        child = _child(node, step)
        if child is None:
            raise WireError(
                f"there is no value at {show(path[: depth + 1])}; take paths from a view of this body"
            )
        node = child
    return node


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(step, str):
        return node.get(step)
    return node.items[step] if 0 <= step < len(node.items) else None


def show(path: Path) -> str:
    """A path as people write it: ``messages[3].content``."""
    return (
        "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
        or "the root"
    )


def splice(body: bytes, changes: Mapping[Path, str]) -> bytes:
    """``body`` with the string values at these paths replaced, and every other byte as it was.

    A string that already reads as wanted keeps its spelling; without any change the very object given comes
    back. A high surrogate right before a low one cannot be spelled apart in JSON: it reads back as the pair.

    Raises:
        WireError: if ``body`` is not JSON, or a path does not lead to a string.
    """
    if not changes:
        return body
    root = scan(body)
    edits = sorted(_edits(body, root, changes))
    if not edits:
        return body
    pieces: list[bytes] = []
    done = 0
    for start, end, new in edits:
        pieces += (body[done:start], new)
        done = end
    pieces.append(body[done:])
    return b"".join(pieces)


def _edits(body: bytes, root: Node, changes: Mapping[Path, str]) -> Iterator[tuple[int, int, bytes]]:
    for path, text in changes.items():
        node = find(root, path)
        if node.kind != "string":
            raise WireError(
                f"the value at {show(path)} is not a string but a {node.kind}; only strings are spliced"
            )
        if text_of(body, node) != text:
            yield node.start, node.end, spell(text)


def spell(text: str) -> bytes:
    """A JSON string literal for ``text``, in UTF-8; a lone surrogate is escaped, having no UTF-8 form."""
    literal = json.dumps(text, ensure_ascii=False)
    return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", literal).encode()
