"""Text on its way into the block: harmless, on one line where it must be, cut at line boundaries."""

from __future__ import annotations

from hashlib import blake2b

_KEPT_CONTROLS = "\n\t"


def harmless(text: str) -> str:
    """`text` that UTF-8 can carry, without control characters other than line breaks and tabs."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        char if char.isprintable() or char in _KEPT_CONTROLS else _stand_in(char) for char in lines
    )


def _stand_in(char: str) -> str:
    """U+FFFD for a lone surrogate, a blank for blanks of other kinds, nothing for a control character."""
    if "\ud800" <= char <= "\udfff":
        return "\ufffd"
    return " " if char.isspace() else char if ord(char) > 0x9F else ""  # noqa: PLR2004 - the end of the controls


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def digest(text: str) -> int:
    """Tells one text from another, across processes."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def cut(text: str, limit_bytes: int, what: str) -> str:
    """`text` cut at a line boundary to `limit_bytes` with a note that says how much is missing.

    "" where not even the first line and the note fit.
    """
    total = size(text)
    if total <= limit_bytes:
        return text
    lines = text.split("\n")
    kept_bytes = total
    for count in range(len(lines) - 1, 0, -1):
        kept_bytes -= size(lines[count]) + 1
        note = f"[… {total - kept_bytes:,} bytes of {what} left out]"
        if kept_bytes + 1 + size(note) <= limit_bytes:
            return "\n".join([*lines[:count], note])
    return ""


def listed(names: list[str], most: int) -> str:
    """``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
