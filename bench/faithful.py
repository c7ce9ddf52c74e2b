"""Is a shortened text true to its original? Written apart from the code it judges, stricter than promised.

Text: every line is the original's own line (as a terminal would leave it) or a note, and lines and notes
together tile the original: what is not shown is counted, exactly, where it was. A long line may be shown in
part, each part and each count of hidden characters in its place. JSON: the text parses; members and
counts of hidden ones tile the original's objects and arrays, in order; keys and values are spelled as they
were. Long strings may lose their middle; those that wrap lines of output are judged as text.

Exact forms are put back before they are judged: lines that are those above again, what each line begins with
or is filled up to with blanks, and tables of records.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# ECMA-48: control sequences, operating-system commands, charsets and single-character escapes.
ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()*+][0-9A-Za-z]|\x1b[=>78cDEHMNOZ]"
)
MOST_FAULTS = 5


def check(original: str, body: str, *, kind: str) -> list[str]:
    """What is wrong with `body` as a shortened form of `original`; at most five faults are named."""
    faults = _check_json(original, body) if kind == "json" else _check_text(original, body)
    return faults[:MOST_FAULTS]


def _quote(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")


# --- text ---


@dataclass(frozen=True, slots=True)
class Notes:
    """How this result's notes look: with four hex digits where the original holds their opening."""

    gap: re.Pattern[str]
    inside: re.Pattern[str]
    #: Lines that aren't hidden but told: how many, and how many above they repeat; or how many blank ones.
    told: re.Pattern[str]
    #: What each line from here on begins with: these characters, or so many blanks or tabs.
    opening: re.Pattern[str]
    #: To how many columns each line from here on is filled with blanks.
    filled: re.Pattern[str]


def notes_for(original: str, body: str) -> Notes:
    tag, blank = "", ""
    original = original.replace("\\u2026", "…") + ESCAPES.sub("", original)
    if "[…" in original:
        tags = {t for t in re.findall(r"\[…(#[0-9a-f]{4,64})", body) if "[…" + t not in original}
        tag, blank = (f"(?:{'|'.join(sorted(tags)) or '(?!)'})", " ")
    gap = rf"\[…{tag}(?:{blank}(\d+)| (\d+)–(\d+)| lines (\d+)–(\d+) hidden: [\d,]+ like \".*\")\]"
    return Notes(
        gap=re.compile(gap),
        inside=re.compile(rf"\[…{tag}{blank}(\d+)\]"),
        told=re.compile(
            rf"\[…{tag}{blank}(?:(\d+) more lines? repeats? the (one|\d+) above|(\d+) blank lines)\]"
        ),
        opening=re.compile(
            rf"\[…{tag}{blank}each line (?:begins: (.*)|is indented by (\d+) (blank|tab)s more)\]", re.DOTALL
        ),
        filled=re.compile(rf"\[…{tag}{blank}each line is filled with blanks to (\d+) columns\]"),
    )


def resolved(text: str) -> list[str]:
    """The lines as a terminal leaves them: no escapes, and of an overwritten line the last state."""
    lines = ESCAPES.sub("", text).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [next(filter(None, reversed(line.split("\r"))), "") if "\r" in line else line for line in lines]


def _check_text(original: str, body: str) -> list[str]:
    walk = _Walk(notes_for(original, body), resolved(original))
    ended = original.endswith("\n")
    for line in body.split("\n"):
        if not (ended and not line and walk.at == len(walk.own)):  # what follows the last line break
            walk.take(line)
    return walk.end()


@dataclass
class _Walk:
    """Goes through the lines of a shortened text and of its original side by side."""

    notes: Notes
    own: list[str]
    faults: list[str] = field(default_factory=list)
    #: How many lines of the original are accounted for.
    at: int = 0
    #: How many lines just above are shown whole.
    whole: int = 0
    put_back: _PutBack = field(init=False)

    def __post_init__(self) -> None:
        self.put_back = _PutBack(self.notes)

    def take(self, line: str) -> None:
        told, gap = self.notes.told.fullmatch(line), self.notes.gap.fullmatch(line)
        if told:
            self.take_told(line, told)
        elif gap:
            self.take_gap(line, gap)
        elif not self.put_back.takes(line):
            self.take_line(self.put_back.line(line))

    def take_told(self, line: str, told: re.Match[str]) -> None:
        again = _told(told, self.own[self.at - self.whole : self.at])
        if not again or self.own[self.at : self.at + len(again)] != again:
            self.faults.append(f"{line} isn't true after line {self.at}")
        self.at, self.whole = self.at + len(again), 0

    def take_gap(self, line: str, gap: re.Match[str]) -> None:
        first, last = _range(gap, self.at)
        if first != self.at + 1 or not first <= last <= len(self.own):
            self.faults.append(f"{line} stands where line {self.at + 1} of {len(self.own)} is next")
        self.at, self.whole = max(self.at, last), 0

    def take_line(self, line: str) -> None:
        at, own = self.at, self.own
        found = next((i for i in range(at, len(own)) if _is_line(line, own[i], self.notes)), None)
        if found is None:
            self.faults.append(f"not a line of the original after line {at}: {_quote(line)}")
            return
        if found != at:
            self.faults.append(f"lines {at + 1} to {found} are hidden without a note")
        self.whole = (self.whole if found == at else 0) + 1 if line == own[found] else 0
        self.at = found + 1

    def end(self) -> list[str]:
        if self.at < len(self.own):
            self.faults.append(f"lines {self.at + 1} to {len(self.own)} are hidden without a note at the end")
        return self.faults


@dataclass
class _PutBack:
    """What notes said that each line begins with, and how far it is filled with blanks."""

    notes: Notes
    opening: str = ""
    width: int = 0

    def takes(self, line: str) -> bool:
        """Whether the line is such a note; what it says holds from here on."""
        opening, filled = self.notes.opening.fullmatch(line), self.notes.filled.fullmatch(line)
        if opening:
            said, count, sort = opening.groups()
            self.opening = said if count is None else int(count) * (" " if sort == "blank" else "\t")
        if filled:
            self.width = int(filled.group(1))
        return bool(opening or filled)

    def line(self, line: str) -> str:
        return (self.opening + line).ljust(self.width) if line else line


def _told(told: re.Match[str], above: list[str]) -> list[str]:
    """The lines that a note stands for; none where too few are shown `above` for it to repeat."""
    again, period, blank = told.groups()
    if blank:
        return [""] * int(blank)
    block = above[-(1 if period == "one" else int(period)) :]
    if len(block) < (1 if period == "one" else int(period)):
        return []
    return (block * (int(again) // len(block) + 1))[: int(again)]


def _range(gap: re.Match[str], at: int) -> tuple[int, int]:
    count, *ends = gap.groups()
    if count:
        return at + 1, at + int(count)
    first, last = (int(end) for end in ends if end)
    return first, last


def _is_line(line: str, own: str, notes: Notes) -> bool:
    return line == own or ("[…" in line and _tiles(line, own, notes))


def _tiles(line: str, own: str, notes: Notes) -> bool:
    """Whether the parts of `line` and the counts between them add up to `own`."""
    at, parts = 0, notes.inside.split(line)
    for part, count in zip(parts[::2], [*parts[1::2], "0"], strict=True):
        if not own.startswith(part, at):
            return False
        at += len(part) + int(count)
    return at == len(own) and len(parts) > 1


# --- JSON ---

TOKEN = re.compile(
    r'\s*(?:("[^"\\]*(?:\\.[^"\\]*)*")|(-?\d[\d.eE+-]*|true|false|null|-?Infinity|NaN)|([{}\[\],:]))',
    re.DOTALL,
)
MOST_DEPTH = 5_000


@dataclass(slots=True)
class Box:
    """An object or an array; its members' keys are as spelled, and empty in an array."""

    closer: str
    members: list[tuple[str, Node]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Values in it, at any depth; an empty one is a value itself."""
        return sum(size(value) for _, value in self.members) or 1


#: A value other than a box is kept as it is spelled.
Node = str | Box


def size(value: Node) -> int:
    return value.size if isinstance(value, Box) else 1


def tree(text: str) -> Box | None:
    """One JSON value or several in a row, as an array; None when the text is not JSON."""
    scan = _Scan()
    at = len(text) - len(text.lstrip("\ufeff"))
    while at < len(text):
        token = TOKEN.match(text, at)
        if not token:
            break
        if not scan.take(*token.groups()) or len(scan.open) > MOST_DEPTH:
            return None
        at = token.end()
    return scan.open[0] if not text[at:].strip() and scan.done else None


@dataclass
class _Scan:
    """Where in a JSON text a scan is."""

    open: list[Box] = field(default_factory=lambda: [Box("")])
    key: str = ""
    want: str = "value"
    fresh: bool = False

    @property
    def done(self) -> bool:
        return len(self.open) == 1 and self.want == "value" and bool(self.open[0].members)

    def take(self, string: str | None, scalar: str | None, sign: str | None) -> bool:
        if self.want == "key" and string:
            self.key, self.want, self.fresh = string, "colon", False
            return True
        if self.want == "value" and (string or scalar):
            self.add(string or scalar or "")
            self.ended()
            return True
        return bool(sign) and self.take_sign(sign or "")

    def take_sign(self, sign: str) -> bool:
        inside = self.open[-1].closer
        if self.want == "colon" and sign == ":":
            self.want = "value"
        elif self.want == "value" and sign in "{[":
            self.enter("}" if sign == "{" else "]")
        elif self.want == "after" and sign == ",":
            self.want = "key" if inside == "}" else "value"
        elif sign == inside and (self.want == "after" or self.fresh):
            self.open.pop()
            self.ended()
        else:
            return False
        return True

    def add(self, value: Node) -> None:
        self.open[-1].members.append((self.key, value))

    def enter(self, closer: str) -> None:
        box = Box(closer)
        self.add(box)
        self.open.append(box)
        self.key, self.want, self.fresh = "", "key" if closer == "}" else "value", True

    def ended(self) -> None:
        self.key, self.fresh = "", False
        self.want = "value" if len(self.open) == 1 else "after"


def _check_json(original: str, body: str) -> list[str]:
    own_text, shown_text = _without_ends(original, body)
    own, shown = tree(own_text), tree(shown_text)
    if own is None or shown is None:
        return ["the shortened text does not parse" if own else "the original is not JSON"]
    # Notes are told from all that is in the original, its ends included.
    key, element, named = _json_notes(original, body)
    judge = _Judge(notes_for(original, body), key, element)
    with _room_for_depth():
        return [fault for fault in [judge.box(_untabled(shown, named), own, "$")] if fault]


def _without_ends(original: str, body: str) -> tuple[str, str]:
    """Both without the first and last lines that they share, where only that makes the original JSON."""
    at = 0
    while True:
        own, shown = _without_tail(original[at:], body[at:])
        if tree(own) is not None:
            return own, shown
        end = original.find("\n", at) + 1
        if not end or original[:end] != body[:end]:
            return original, body
        at = end


def _without_tail(original: str, body: str) -> tuple[str, str]:
    """Both without the last lines that they share, where it takes that for the original to be JSON."""
    whole = original, body
    while original and tree(original) is None:
        cut = original.rfind("\n")
        if cut < 0 or not body.endswith(original[cut:]):
            return whole
        original, body = original[:cut], body[: len(body) - (len(original) - cut)]
    return original, body


@contextmanager
def _room_for_depth() -> Iterator[None]:
    """Deep values are compared by recursion, three calls a level."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 4 * MOST_DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _json_notes(original: str, body: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """How a key and an element look that only say how much is hidden, and the keys of a table."""
    tag, blank = "", ""
    original = original.replace("\\u2026", "…")
    if '"…' in original:
        tags = {t for t in re.findall(r'"…(#[0-9a-f]{4,64})', body) if '"…' + t not in original}
        tag, blank = f"(?:{'|'.join(sorted(tags)) or '(?!)'})", " "
    return (
        re.compile(rf'"…{tag}"'),
        re.compile(rf'"…{tag}{blank}(\d+)"'),
        re.compile(rf'"…{tag}{blank}(columns|rows)"'),
    )


def _untabled(box: Box, named: re.Pattern[str]) -> Box:
    """With the records of tables: `{"…columns":[…],"…rows":[[…],…]}`, or `{"…columns":[…]}` and rows."""
    if not box.closer and box.members:
        columns = _table(box.members[0][1], named)
        if len(columns) == 1:
            return Box("", [("", _record(columns[0], row, named)) for _, row in box.members[1:]])
    table = _table(box, named)
    if len(table) == 2:
        return Box("]", [("", _record(table[0], row, named)) for _, row in table[1].members])
    return Box(box.closer, [(name, _inside(value, named)) for name, value in box.members])


def _inside(node: Node, named: re.Pattern[str]) -> Node:
    return _untabled(node, named) if isinstance(node, Box) else node


def _table(node: Node, named: re.Pattern[str]) -> list[Box]:
    """The columns of a table and, where they are in it, its rows; nothing where it is none."""
    if not isinstance(node, Box) or node.closer != "}":
        return []
    found = [named.fullmatch(name) for name, _ in node.members]
    arrays = [value for _, value in node.members if isinstance(value, Box) and value.closer == "]"]
    names = [match.group(1) for match in found if match]
    return arrays if names == ["columns", "rows"][: len(found)] and len(arrays) == len(names) else []


def _record(columns: Box, row: Node, named: re.Pattern[str]) -> Node:
    """The record that a row stands for; the row itself where it has too many or too few values."""
    if not isinstance(row, Box) or len(row.members) != len(columns.members):
        return row
    pairs = zip(columns.members, row.members, strict=True)
    return Box("}", [(str(name), _inside(value, named)) for (_, name), (_, value) in pairs])


@dataclass(frozen=True, slots=True)
class _Judge:
    """Compares values; every answer is the first fault, or nothing."""

    notes: Notes
    key: re.Pattern[str]
    element: re.Pattern[str]

    def box(self, shown: Box, own: Box, path: str) -> str:
        """Members and counts of `shown` tile those of `own`."""
        at = 0
        for name, value in shown.members:
            hidden = self.hidden(name, value)
            if hidden:
                at = self.skip(own, at, hidden)
                continue
            if at >= len(own.members) or own.members[at][0] != name:
                return f"at {path[-60:]}, {_quote(name or str(value))} does not come next in the original"
            fault = self.value(value, own.members[at][1], f"{path}.{name}" if name else f"{path}[{at}]")
            if fault:
                return fault
            at += 1
        return "" if at == len(own.members) else f"at {path[-60:]}, a count of what is hidden is wrong"

    def hidden(self, name: str, value: Node) -> int:
        """How many values (in an object) or elements (in an array) a note stands for; 0 if it is none."""
        if not isinstance(value, str):
            return 0
        if name:
            return int(value) if value.isdecimal() and self.key.fullmatch(name) else 0
        found = self.element.fullmatch(value)
        return int(found.group(1)) if found else 0

    def skip(self, own: Box, at: int, hidden: int) -> int:
        """The index after `hidden` values from `at`; beyond the end where no member ends there."""
        while hidden > 0 and at < len(own.members):
            hidden -= size(own.members[at][1]) if own.closer == "}" else 1
            at += 1
        return at if hidden == 0 else len(own.members) + 1

    def value(self, shown: Node, own: Node, path: str) -> str:
        if isinstance(shown, Box) and isinstance(own, Box) and shown.closer == own.closer:
            return self.box(shown, own, path)
        fault = "not the original's value"
        if isinstance(shown, str) and isinstance(own, str):
            fault = self.leaf(shown, own)
        return f"at {path[-60:]}, {fault}: {_quote(str(shown))}" if fault else ""

    def leaf(self, shown: str, own: str) -> str:
        """`own` as spelled; a string without its middle, or with its lines shortened as text."""
        if shown == own:
            return ""
        if not (shown.startswith('"') and own.startswith('"')):
            return "not the original's value"
        parts = self.notes.inside.split(shown)
        if len(parts) == 3 and _is_cut(parts[0], parts[2], own):
            return _miscount(int(parts[1]), own[len(parts[0]) : len(own) - len(parts[2])])
        if "[…" not in shown and "\\r" not in own and "\\u001b" not in own:
            return "not the original's value"
        text, body = _meant(own), _meant(shown)
        if text is None or body is None:
            return "holds an escape that JSON does not know"
        faults = _check_text(text, body)
        return faults[0] if faults else ""


def _meant(string: str) -> str | None:
    """What a string, spelled with its quotes, means."""
    try:
        return json.loads(string, strict=False)
    except ValueError:
        return None


def _is_cut(head: str, tail: str, own: str) -> bool:
    return len(head) + len(tail) <= len(own) and own.startswith(head) and own.endswith(tail)


def _miscount(count: int, middle: str) -> str:
    """A string's hidden characters may be counted as they are spelled or as they are meant."""
    right = {len(middle), len(_meant(f'"{middle}"') or "")}
    return "" if count in right else f"{count} characters are said to be hidden where {right} are"
