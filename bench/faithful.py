"""Is a shortened text true to its original? Written apart from the code it judges, stricter than promised.

Text: every line is the original's own line (as a terminal would leave it) or a note, and lines and notes
together tile the original: what is not shown is counted, exactly, where it was. A long line may be shown in
part, each part and each count of hidden characters in its place. JSON: the text parses; members and
counts of hidden ones tile the original's objects and arrays, in order; keys and values are spelled as they
were. Long strings may lose their middle; those that wrap lines of output are judged as text.
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


def notes_for(original: str, body: str) -> Notes:
    tag, blank = "", ""
    original = original.replace("\\u2026", "…")
    if "[…" in original:
        tags = {t for t in re.findall(r"\[…(#[0-9a-f]{4,64})", body) if "[…" + t not in original}
        tag, blank = (f"(?:{'|'.join(sorted(tags)) or '(?!)'})", " ")
    gap = rf"\[…{tag}(?:{blank}(\d+)| (\d+)–(\d+)| lines (\d+)–(\d+) hidden: [\d,]+ like \".*\")\]"
    return Notes(re.compile(gap), re.compile(rf"\[…{tag}{blank}(\d+)\]"))


def resolved(text: str) -> list[str]:
    """The lines as a terminal leaves them: no escapes, and of an overwritten line the last state."""
    lines = ESCAPES.sub("", text).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [next(filter(None, reversed(line.split("\r"))), "") if "\r" in line else line for line in lines]


def _check_text(original: str, body: str) -> list[str]:
    notes, own = notes_for(original, body), resolved(original)
    faults, at = [], 0
    ended = original.endswith("\n")
    for line in body.split("\n"):
        if ended and not line and at == len(own):
            continue  # what follows the last line break
        gap = notes.gap.fullmatch(line)
        if gap:
            first, last = _range(gap, at)
            if first != at + 1 or not first <= last <= len(own):
                faults.append(f"{line} stands where line {at + 1} of {len(own)} is next")
            at = max(at, last)
            continue
        found = next((i for i in range(at, len(own)) if _is_line(line, own[i], notes)), None)
        if found is None:
            faults.append(f"not a line of the original after line {at}: {_quote(line)}")
            continue
        if found != at:
            faults.append(f"lines {at + 1} to {found} are hidden without a note")
        at = found + 1
    if at < len(own):
        faults.append(f"lines {at + 1} to {len(own)} are hidden without a note at the end")
    return faults


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
    original, body = _without_tail(original, body)
    own, shown = tree(original), tree(body)
    if own is None or shown is None:
        return ["the shortened text does not parse" if own else "the original is not JSON"]
    judge = _Judge(notes_for(original, body), *_json_notes(original, body))
    with _room_for_depth():
        return [fault for fault in [judge.box(shown, own, "$")] if fault]


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


def _json_notes(original: str, body: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """How a key and an element look that only say how much is hidden."""
    tag, blank = "", ""
    original = original.replace("\\u2026", "…")
    if '"…' in original:
        tags = {t for t in re.findall(r'"…(#[0-9a-f]{4,64})', body) if '"…' + t not in original}
        tag, blank = f"(?:{'|'.join(sorted(tags)) or '(?!)'})", " "
    return re.compile(rf'"…{tag}"'), re.compile(rf'"…{tag}{blank}(\d+)"')


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
