"""The one place that writes and reads markers: what stands in view for content that is in the store.

    <<<CCR:{hash}|{type}|{size}|{mode}[|key=value…]>>> {preview}

`hash` is 16 to 64 lowercase hex digits, `size` the bytes of the original in UTF-8. Two older shapes are read
but never written: `[CCR:hash|type|size|…]` and `⫷CCR:hash|…⫸`.

Anyone can type a marker. Whether one is *ours* is for the store and the session to say; nothing here decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from turngate.errors import TurngateError

MarkerType = Literal["tool", "terminal", "context"]
MarkerMode = Literal["token", "cache", "inline", "engine", "same", "delta"]

#: A preview is a hint, not content: longer ones are cut. 160 characters are about 40 tokens.
MAX_PREVIEW_CHARS: Final = 160
#: A field names something (`kind=test`); it carries no content.
MAX_FIELD_CHARS: Final = 64

_TAG: Final = "CCR:"
_HASH: Final = re.compile(r"[0-9a-f]{16,64}")
_WORD: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_SIZE: Final = re.compile(r"[0-9]{1,18}")
_FIELD_UNSAFE: Final = re.compile(r"[|<>\[\]⫷⫸]")
#: What would open or close a marker of any shape inside a preview, and what stands there instead.
_LOOKALIKES: Final = (
    (re.compile(r"<{3,}"), lambda found: "‹" * len(found.group())),
    (re.compile(r">{3,}"), lambda found: "›" * len(found.group())),
    (re.compile(r"\[(?=CCR:)"), "("),
    (re.compile(r"⫷"), "‹"),
    (re.compile(r"⫸"), "›"),
)


@dataclass(frozen=True, slots=True)
class Marker:
    """A stand-in for stored content, as read from text or about to be written."""

    hash: str
    """Marker id: 16 to 64 lowercase hex digits."""
    type: str
    """What the content is; a `MarkerType` when written by us, any word (or none) in older shapes."""
    size: int
    """Bytes of the original in UTF-8; 0 where an older shape does not say."""
    mode: str
    """How it was shortened; a `MarkerMode` when written by us, empty where an older shape does not say."""
    preview: str = ""
    """One printable line."""
    fields: tuple[tuple[str, str], ...] = ()
    """Trailing `key=value` parts, in order."""
    span: tuple[int, int] = field(default=(0, 0), compare=False)
    """Where the bracketed part stands in the text it was read from, end exclusive; the preview follows it."""

    def get(self, key: str) -> str:
        """Value of the first field named `key`, or an empty string."""
        return next((value for name, value in self.fields if name == key), "")


class _Shape(NamedTuple):
    """One spelling of a marker."""

    opener: str
    #: What follows the tag: the hash, then parts, then the closer. Possessive, so that no input makes it
    #: backtrack; no part may hold its opener's sign, so that no stretch of text is read from two starts.
    body: re.Pattern[str]
    #: type, size and mode are required up to this many parts.
    least_parts: int


_SHAPES: Final = (
    _Shape("<<<", re.compile(r"([0-9a-f]{16,64}+)((?:\|[^|<>\r\n]*+)*+)>>>"), 2),
    _Shape("[", re.compile(r"([0-9a-f]{16,64}+)((?:\|[^|\[\]\r\n]*+)*+)\]"), 2),
    _Shape("⫷", re.compile(r"([0-9a-f]{16,64}+)((?:\|[^|⫷⫸\r\n]*+)*+)⫸"), 0),
)


def render(marker: Marker) -> str:
    """The marker as one line without a line break.

    The preview and the values of fields are made harmless; everything else must already be valid.

    Raises:
        TurngateError: hash, type, mode, size or a field's key is not of the grammar.
    """
    words = (marker.type, marker.mode, *(key for key, _ in marker.fields))
    if not _HASH.fullmatch(marker.hash) or marker.size < 0 or not all(map(_WORD.fullmatch, words)):
        raise TurngateError(
            f"not a valid marker: {marker!r}; the hash is 16 to 64 lowercase hex digits, the size not "
            "negative, and type, mode and field keys are lowercase words of at most 32 characters"
        )
    parts = (
        marker.hash,
        marker.type,
        str(marker.size),
        marker.mode,
        *(f"{key}={clean_field(value)}" for key, value in marker.fields),
    )
    return f"<<<{_TAG}{'|'.join(parts)}>>> {clean_preview(marker.preview)}".rstrip(" ")


def parse(text: str) -> Marker | None:
    """The marker that `text` starts with, in any shape, or None."""
    for shape in _SHAPES:
        if text.startswith(shape.opener + _TAG):
            return _read(text, shape, 0)
    return None


def find_all(text: str) -> list[Marker]:
    """Every marker in `text`, in order and without overlap, in time linear in its length."""
    found = []
    at, floor = text.find(_TAG), 0
    while at >= 0:
        marker = _read_around(text, at, floor)
        if marker:
            found.append(marker)
            floor = marker.span[1]
        at = text.find(_TAG, max(floor, at + len(_TAG)))
    return found


def clean_preview(text: str) -> str:
    """`text` as one printable line that holds no marker and ends within `MAX_PREVIEW_CHARS`."""
    # Four times the limit leaves room for blanks that fold away, and keeps huge inputs cheap.
    line = _printable(text[: 4 * MAX_PREVIEW_CHARS], " ")
    line = " ".join(line.split())
    for pattern, harmless in _LOOKALIKES:
        line = pattern.sub(harmless, line)
    line = line.strip()
    return line if len(line) <= MAX_PREVIEW_CHARS else line[: MAX_PREVIEW_CHARS - 1].rstrip() + "…"


def clean_field(value: str) -> str:
    """`value` without anything that would end the field or the marker, within `MAX_FIELD_CHARS`."""
    return _FIELD_UNSAFE.sub("_", _printable(value[:MAX_FIELD_CHARS], "_"))


def _printable(text: str, instead: str) -> str:
    """`text` with controls, line breaks, direction marks and lone surrogates replaced."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else instead for char in text)


def _read_around(text: str, tag_at: int, floor: int) -> Marker | None:
    """The marker whose tag stands at `tag_at` and that starts at `floor` or later."""
    for shape in _SHAPES:
        start = tag_at - len(shape.opener)
        if start >= floor and text.startswith(shape.opener, start):
            return _read(text, shape, start)
    return None


def _read(text: str, shape: _Shape, start: int) -> Marker | None:
    body = shape.body.match(text, start + len(shape.opener) + len(_TAG))
    if not body:
        return None
    parts = body.group(2).split("|")[1:]
    named = _named_parts(parts, shape.least_parts)
    if named is None:
        return None
    kind, size, mode, fields = named
    preview = _preview_after(text, body.end())
    return Marker(body.group(1), kind, size, mode, preview, fields, (start, body.end()))


def _named_parts(parts: list[str], least: int) -> tuple[str, int, str, tuple[tuple[str, str], ...]] | None:
    """Type, size, mode and fields; None where the parts are not those of a marker."""
    plain = [part for part in parts if "=" not in part]
    fields = tuple((key, value) for key, _, value in (part.partition("=") for part in parts if "=" in part))
    if not least <= len(plain) <= 3 or parts[: len(plain)] != plain:  # noqa: PLR2004 - type, size, mode
        return None
    kind, size, mode = (*plain, "", "", "")[:3]
    if size and not _SIZE.fullmatch(size):
        return None
    return kind, int(size or 0), mode, fields


def _preview_after(text: str, end: int) -> str:
    """The rest of the line, up to the next marker."""
    rest = text[end : end + MAX_PREVIEW_CHARS + 2]
    line = re.split(r"[\r\n]|<<<CCR:|\[CCR:|⫷CCR:", rest, maxsplit=1)[0]
    return clean_preview(line)
