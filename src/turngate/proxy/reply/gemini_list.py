"""A stream of Gemini that comes as one JSON array, as it does for clients that do not ask for `alt=sse`."""

from __future__ import annotations

import re
from typing import Any, Final

from turngate.errors import TurngateError
from turngate.proxy.jsontext import dumps, loads
from turngate.proxy.reply.base import Round
from turngate.proxy.reply.gemini import GeminiStream
from turngate.wire.sse import MOST_FRAME_BYTES, parse

_SIGN: Final = re.compile(rb'["\\{}\[\]]')
#: Between two elements; what the provider itself writes.
_BETWEEN: Final = b",\r\n"


class Elements:
    """Splits an array into its objects as it comes, wherever its chunks are cut."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._at = 0
        self._start = 0
        self._depth = 0
        self._in_string = False
        #: Whether it is no array, or has an element that is none: then it is handed on as it comes.
        self.passes = False

    @property
    def is_over(self) -> bool:
        """Whether the array is closed."""
        return self._depth == 0

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """The elements that are complete now, each with what stands before it."""
        self._pending += chunk
        head = self._pending[: self._at + 64].lstrip()
        self.passes = self.passes or bool(head and self._depth == 0 and head[:1] not in b"[]")
        out: list[tuple[bytes, bytes]] = []
        while not self.passes and (found := _SIGN.search(self._pending, self._at)) is not None:
            self._at = found.end()
            if self._ends(found):
                out.append(
                    (bytes(self._pending[: self._start]), bytes(self._pending[self._start : self._at]))
                )
                del self._pending[: self._at]
                self._at = 0
        self._at = max(self._at, len(self._pending))
        self.passes = self.passes or len(self._pending) > MOST_FRAME_BYTES
        return out

    def _ends(self, found: re.Match[bytes]) -> bool:
        """Follow one sign; whether an element ends with it."""
        sign = found[0]
        if self._in_string:
            self._at += sign == b"\\"
            self._in_string = sign != b'"'
        elif sign == b'"':
            self._in_string = True
        elif sign in b"{[":
            self._depth += 1
            if self._depth == 2:  # noqa: PLR2004 - the array, and an element in it
                self._start = found.start()
        elif sign in b"}]":
            self._depth -= 1
            return self._depth == 1
        return False

    def rest(self) -> bytes:
        """What is left; it is forgotten."""
        left = bytes(self._pending)
        self._pending.clear()
        self._at = 0
        return left


class GeminiListStream(GeminiStream):
    """A stream of responses, each an element of one array."""

    def __init__(self) -> None:
        super().__init__()
        self._opened = False
        self._closing = b""

    def reset(self) -> None:
        """Forget the round."""
        super().reset()
        self._elements = Elements()

    def feed(self, chunk: bytes) -> bytes:
        """Bytes of the upstream; what the client is to get now."""
        out = [self._placed(before, self._relayed(element)) for before, element in self._elements.feed(chunk)]
        if self._elements.passes:
            out.append(self._elements.rest())
        return b"".join(out)

    def end(self) -> Round:
        """The upstream's stream is over. Of an element that was cut off nobody can say whose it is."""
        rest = self._elements.rest()
        self._closing = rest if self._elements.is_over else b""
        self.rounds.append(self.round())
        return self.rounds[-1]

    def close(self) -> bytes:
        """What was held back, and the end of the array."""
        held = b"".join(self._placed(b"", frame) for frame in self._held)
        self._held.clear()
        if not self._closing.strip():
            return held
        return held + (self._closing if self._opened or self._closing.lstrip()[:1] == b"[" else b"[]")

    def fault(self, frame: bytes) -> bytes:
        """An error as the last element."""
        return self._placed(b"", parse(frame).data) + b"]"

    def changed(self, frame: bytes, value: Any) -> bytes:  # noqa: ARG002 - nothing of an element is kept
        """An element with another value."""
        return dumps(value)

    def _relayed(self, frame: bytes) -> bytes:
        try:
            value = loads(frame)
        except TurngateError:
            return frame
        return self.take(frame, value) if isinstance(value, dict) else frame

    def _placed(self, before: bytes, element: bytes) -> bytes:
        """An element at its place in what the client gets; nothing where it gets none."""
        if not element:
            return b""
        if self._opened:
            return (before if b"," in before else _BETWEEN) + element
        self._opened = True
        return (before if b"[" in before else b"[") + element
