"""Is a shortened text true to its original? Written apart from the code it judges, stricter than promised.

Text: every line is the original's own line (as a terminal would leave it) or a note, and lines and notes
together tile the original: what is not shown is counted, exactly, where it was. A long line may be shown in
part, each part and each count of hidden characters in its place. JSON: the text parses, every leaf is one of
the original's as it was spelled, in order, at the same path with indices left out; long strings may lose
their middle, and those that wrap lines of output are judged as text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
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


def leaves(text: str) -> list[tuple[str, str]] | None:
    """Path and spelling of each leaf of one JSON value or of several in a row; None when it is not JSON."""
    scan = _Scan()
    at = len(text) - len(text.lstrip("\ufeff"))
    while at < len(text):
        token = TOKEN.match(text, at)
        if not token:
            break
        if not scan.take(*token.groups()):
            return None
        at = token.end()
    return scan.out if not text[at:].strip() and scan.done else None


@dataclass
class _Scan:
    """Where in a JSON text a scan is."""

    out: list[tuple[str, str]] = field(default_factory=list)
    #: Path and closer of each open container.
    open: list[tuple[str, str]] = field(default_factory=list)
    path: str = "$"
    want: str = "value"
    fresh: bool = False

    @property
    def done(self) -> bool:
        return not self.open and self.want == "value" and bool(self.out)

    def take(self, string: str | None, scalar: str | None, sign: str | None) -> bool:
        if self.want == "key" and string:
            self.path = f"{self.open[-1][0]}.{string}"
            self.want = "colon"
            return True
        if self.want == "value" and (string or scalar):
            return self.leaf(string or scalar or "")
        return bool(sign) and self.take_sign(sign or "")

    def take_sign(self, sign: str) -> bool:
        if self.want == "colon" and sign == ":":
            self.want = "value"
        elif self.want == "value" and sign in "{[":
            self.enter(sign)
        elif self.want == "after" and sign == ",":
            self.want = "key" if self.open[-1][1] == "}" else "value"
            self.path = self.open[-1][0] if self.want == "key" else self.open[-1][0] + "[*]"
        elif self.open and sign == self.open[-1][1] and (self.want == "after" or self.fresh):
            return self.leave()
        else:
            return False
        self.fresh = sign in "{["
        return True

    def enter(self, sign: str) -> None:
        self.open.append((self.path, "}" if sign == "{" else "]"))
        self.want = "key" if sign == "{" else "value"
        self.path += "" if sign == "{" else "[*]"

    def leave(self) -> bool:
        path, closer = self.open.pop()
        if self.fresh:
            self.out.append((path, "{}" if closer == "}" else "[]"))
        return self.ended()

    def leaf(self, raw: str) -> bool:
        self.out.append((self.path, raw))
        return self.ended()

    def ended(self) -> bool:
        self.fresh = False
        self.want = "after" if self.open else "value"
        if not self.open:
            self.path = "$"
        return True


def _check_json(original: str, body: str) -> list[str]:
    own, shown = leaves(original), leaves(body)
    if own is None or shown is None:
        return ["the shortened text does not parse" if own else "the original is not JSON"]
    is_note = _json_note(original, body)
    notes = notes_for(original, body)
    places, by_path = defaultdict(list), defaultdict(list)
    for index, (path, raw) in enumerate(own):
        places[path, raw].append(index)
        by_path[path].append(index)
    faults, at = [], 0
    for path, raw in shown:
        if is_note(path, raw):
            continue
        found = _next(places.get((path, raw), ()), at)
        if found is None and raw.startswith('"'):
            later = by_path[path][bisect_left(by_path[path], at) :]
            found = next((i for i in later if _is_string(raw, own[i][1], notes)), None)
        if found is None:
            faults.append(f"no leaf of the original after leaf {at} at {path[-60:]}: {_quote(raw)}")
        else:
            at = found + 1
    return faults


def _json_note(original: str, body: str):  # noqa: ANN202 - a predicate on path and spelling
    """Tells the pairs and elements that only say how much is hidden."""
    tag, blank = "", ""
    if '"…' in original:
        tags = {t for t in re.findall(r'"…(#[0-9a-f]{4,64})', body) if '"…' + t not in original}
        tag, blank = f"(?:{'|'.join(sorted(tags)) or '(?!)'})", " "
    key, element = re.compile(rf'.*\."…{tag}"', re.DOTALL), re.compile(rf'"…{tag}{blank}\d+"')

    def is_note(path: str, raw: str) -> bool:
        return bool(raw.isdecimal() and path.endswith('"') and key.fullmatch(path)) or (
            (path.endswith("[*]") or path == "$") and bool(element.fullmatch(raw))
        )

    return is_note


def _next(places: list[int] | tuple[()], at: int) -> int | None:
    where = bisect_left(places, at)
    return places[where] if where < len(places) else None


def _is_string(raw: str, own: str, notes: Notes) -> bool:
    """Whether `raw` is the string `own` without its middle, or with its lines shortened as text."""
    if not own.startswith('"'):
        return False
    parts = notes.inside.split(raw)
    fits = len(parts) == 3 and len(parts[0]) + len(parts[2]) <= len(own)
    if fits and own.startswith(parts[0]) and own.endswith(parts[2]):
        return True
    if "[…" not in raw and "\\r" not in own and "\\u001b" not in own:
        return False
    inner, text = json.loads(raw, strict=False), json.loads(own, strict=False)
    return not _check_text(text, inner)
