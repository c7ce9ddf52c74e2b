"""Server-sent events as raw frames: split where they end, never rebuilt (WHATWG HTML, 9.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: A frame ends at an empty line; lines end with LF, CR LF, or CR.
_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n|\r\n\n|\r\n\r(?!\n)")
_LINE: Final = re.compile(rb"\r\n|\n|\r")
#: As far back as an end may begin that was cut by a chunk's border.
_OVERLAP: Final = 3
#: A longer frame is no event of any provider; it is handed on in pieces as it comes.
MOST_FRAME_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Frame:
    """One event."""

    event: str
    """Its name; "" where it has none."""
    data: bytes
    """Its data lines, joined by line feeds."""


class Frames:
    """Splits a stream, chunk by chunk, wherever its chunks are cut."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._seen = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that are complete now, each with the empty line that ends it."""
        self._pending += chunk
        out: list[bytes] = []
        begin = 0
        at = max(0, self._seen - _OVERLAP)
        while (found := _END.search(self._pending, at)) is not None:
            if found.end() == len(self._pending) and found[0].endswith(b"\r"):
                # A line feed may follow that belongs to it.
                break
            out.append(bytes(self._pending[begin : found.end()]))
            begin = at = found.end()
        if begin:
            del self._pending[:begin]
        self._seen = len(self._pending)
        if self._seen > MOST_FRAME_BYTES:
            out.append(self.rest())
        return out

    def rest(self) -> bytes:
        """What is left at the stream's end, or of a frame that is too long; it is forgotten."""
        left = bytes(self._pending)
        self._pending.clear()
        self._seen = 0
        return left


def parse(frame: bytes) -> Frame:
    """The event of a frame; comments and unknown fields are left out."""
    event, data = "", []
    for line in _LINE.split(frame.removeprefix(b"\xef\xbb\xbf")):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value.decode("utf-8", "replace")
    return Frame(event, b"\n".join(data))


def with_data(frame: bytes, data: bytes) -> bytes:
    """The frame with other data (one line), and everything else as it was."""
    lines = _LINE.split(frame)
    end = _LINE.search(frame)
    ending = end[0] if end is not None else b"\n"
    out: list[bytes] = []
    done = False
    for line in lines:
        if line.partition(b":")[0] != b"data":
            out.append(line)
        elif not done:
            out.append(b"data: " + data)
            done = True
    return ending.join(out)


def encode(event: str, data: bytes) -> bytes:
    """A frame of ours; without a name where `event` is empty."""
    return (b"event: " + event.encode() + b"\n" if event else b"") + b"data: " + data + b"\n\n"
