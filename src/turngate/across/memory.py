"""Which results a session has shown, and which of them stand in view."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

import orjson

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Form = Literal["whole", "short", "same", "delta"]
InView = Mapping[str, str] | Collection[str]
"""Call ids of the results that stand in a history; a mapping also says which text stands there for each."""

#: Older ones are forgotten, and not referred to any more.
MAX_ENTRIES = 400
#: So many more are remembered before they go.
_TRIM = 100
#: Of the form of the bytes; another version's are not read.
_VERSION = 1
#: More than any state takes, so that damage cannot ask for any amount of memory.
_MOST_BYTES = 4_000_000
_SHOWN_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Entry:
    """A result as it was shown."""

    call: str
    """The provider's id of the call; never empty."""
    sha256: str
    """Hash of what came in."""
    form: Form
    """``whole``: as it came. ``short``: shortened. ``same``, ``delta``: by reference to those in `of`."""
    label: str
    """The call in a few words."""
    tokens: int
    """Estimate of what came in."""
    lines: int
    """Lines of what came in, where its text is in the store; 0 where it isn't."""
    shown: str = ""
    """The beginning of the hash of what was shown; "": it was shown as it came."""
    of: tuple[str, ...] = ()
    """Call ids of the results that it refers to."""
    gone: bool = False
    """Whether it has left the window, as far as the session was told."""

    def stands_as(self, text: str) -> bool:
        """Whether `text` is what was shown of it."""
        return digest(text).startswith(self.shown or self.sha256)


class Memory:
    """The results of a session, oldest first. One more costs the same however many there are."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = []
        #: Each entry as it is kept: all of them are kept anew with each one more.
        self._rows: list[bytes] = []
        self._by_call: dict[str, list[int]] = {}
        self._by_content: dict[str, list[int]] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> bool:
        """Take note of one more; False where it is known."""
        if any(_alike(self.entries[at], entry) for at in self._by_call.get(entry.call, ())):
            return False
        if len(self.entries) >= MAX_ENTRIES + _TRIM:
            self._keep_newest()
        self._by_call.setdefault(entry.call, []).append(len(self.entries))
        self._by_content.setdefault(entry.sha256, []).append(len(self.entries))
        self.entries.append(entry)
        self._rows.append(orjson.dumps(entry))
        return True

    def _keep_newest(self) -> None:
        kept = Memory(self.entries[-MAX_ENTRIES:])
        self.entries, self._rows = kept.entries, kept._rows
        self._by_call, self._by_content = kept._by_call, kept._by_content

    def leave(self, calls: Collection[str] | None) -> bool:
        """The results of these calls (None: of all) have left the window; False where that is known."""
        changed = [
            at
            for at, each in enumerate(self.entries)
            if not each.gone and (calls is None or each.call in calls)
        ]
        for at in changed:
            self.entries[at] = replace(self.entries[at], gone=True)
            self._rows[at] = orjson.dumps(self.entries[at])
        return bool(changed)

    def standing(self, call: str, content: str, in_view: InView | None) -> Standing:
        """What stood in view when this result of this call arrived.

        Where it comes by again, and the caller doesn't say what is in view, it is compared with what it was
        compared with at first.
        """
        known = self._by_call.get(call, ())
        end = known[0] if known else len(self.entries)
        again = next((each for at in known if (each := self.entries[at]).sha256 == content), None)
        chosen = None if again is None or in_view is not None else again.of
        return Standing(self.entries, self._by_call, self._by_content, end, in_view, chosen)

    def encode(self) -> bytes:
        """As it is kept."""
        return zstd.compress(b"[%d,[%b]]" % (_VERSION, b",".join(self._rows)), 1)


@dataclass(frozen=True, slots=True)
class Standing:
    """The results that stand in view at some moment: those before the one that has just arrived."""

    entries: Sequence[Entry]
    """All that are remembered."""
    by_call: Mapping[str, Sequence[int]]
    """Where the results of each call are."""
    by_content: Mapping[str, Sequence[int]]
    """Where the results with each content are."""
    end: int
    """Results from here on are later ones."""
    in_view: InView | None
    """What a caller says is in view."""
    chosen: Collection[str] | None
    """What was referred to when the result was decided on first; None: it is new."""

    def same(self, content: str) -> Entry | None:
        """The newest result with this content that shows it, rather than refers to one that does."""
        for at in reversed(self.by_content.get(content, ())):
            entry = self.entries[at]
            if at < self.end and entry.form != "same" and self._stands(at):
                return entry
        return None

    def whole(self, most: int) -> list[Entry]:
        """The newest results that stand whole and whose text is in the store, oldest first."""
        found: list[Entry] = []
        for at in range(self.end - 1, -1, -1):
            entry = self.entries[at]
            if entry.form == "whole" and entry.lines and self._stands(at):
                found.append(entry)
                if len(found) == most:
                    break
        return found[::-1]

    def _stands(self, at: int) -> bool:
        """Whether a result is in view, and what it refers to as well.

        A call id that stands for two results stands for none, unless it is known which text is there.
        """
        entry = self.entries[at]
        if self.chosen is not None:
            return entry.call in self.chosen
        if isinstance(self.in_view, Mapping):
            here = entry.call in self.in_view and entry.stands_as(self.in_view[entry.call])
        else:
            here = not entry.gone if self.in_view is None else entry.call in self.in_view
            here = here and all(other == at or self.entries[other].gone for other in self._of(entry.call))
        return here and all(any(map(self._stands, self._of(call))) for call in entry.of)

    def _of(self, call: str) -> Sequence[int]:
        return [at for at in self.by_call.get(call, ()) if at < self.end]


def decode(data: bytes) -> Memory:
    """The memory that was kept.

    Raises:
        ValueError: these are no memory of this version.
    """
    try:
        version, rows = orjson.loads(zstd.ZstdDecompressor().decompress(data, max_length=_MOST_BYTES))
        if version != _VERSION:
            raise ValueError("a memory of results of another version")
        return Memory(Entry(**{**row, "of": tuple(row["of"])}) for row in rows)
    except (zstd.ZstdError, orjson.JSONDecodeError, TypeError, KeyError) as error:
        raise ValueError("a memory of results that is damaged") from error


def digest(text: str) -> str:
    """The hash of a text's UTF-8, in which lone surrogates survive."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def shown_digest(text: str) -> str:
    """What an entry remembers of a text that was shown in place of the original."""
    return digest(text)[:_SHOWN_DIGITS]


def _alike(one: Entry, other: Entry) -> bool:
    """Whether two results of one call are the same, shown the same way."""
    return one.sha256 == other.sha256 and one.form == other.form and one.shown == other.shown
