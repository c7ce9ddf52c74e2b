"""What the four streams have in common: frames are split, read, and relayed as they came where they may."""

from __future__ import annotations

import abc
from typing import Any, Final

from turngate.errors import TurngateError
from turngate.proxy.jsontext import dumps, loads
from turngate.proxy.reply.base import Round
from turngate.wire.sse import Frames, parse, with_data

#: The end of streams that say so in words (Chat Completions).
DONE: Final = b"[DONE]"


class Machine(abc.ABC):
    """A stream of one wire. A machine keeps its place over all rounds of one reply."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._held: list[bytes] = []
        self.hide = True
        self.rounds: list[Round] = []

    @property
    def is_first(self) -> bool:
        """Whether the client has not seen an end of a round before."""
        return not self.rounds

    def ends_later(self, own: object) -> bool:
        """Whether the end of this round is held until `close`.

        Until then it is not known whether a round follows, or what the client does not see is not on record
        yet; and with the end the client may send its next request.
        """
        return bool(own) or not self.is_first

    def feed(self, chunk: bytes) -> bytes:
        """Bytes of the upstream; what the client is to get now."""
        return b"".join(self._relayed(frame) for frame in self._frames.feed(chunk))

    def end(self) -> Round:
        """The upstream's stream is over.

        A last frame without its empty line is handed on if it is whole. Of one that was cut off nobody can
        say whose it is, and readers leave it out anyway (WHATWG HTML, 9.2.6).
        """
        rest = self._frames.rest()
        if rest.strip() and not _is_torn(rest):
            self._held.append(self._relayed(rest))
        self.rounds.append(self.round())
        return self.rounds[-1]

    def again(self, *, hide: bool = True) -> None:
        """A further round follows in the client's stream."""
        self.hide = hide
        self._held.clear()
        self.reset()

    def close(self) -> bytes:
        """What was held back, now that no further round follows."""
        held = b"".join(self._held)
        self._held.clear()
        return held

    def fault(self, frame: bytes) -> bytes:
        """An error of ours, which is the last thing that the client gets."""
        return frame

    def hold(self, frame: bytes) -> bytes:
        """Keep a frame until it is known whether a round follows."""
        self._held.append(frame)
        return b""

    def _relayed(self, frame: bytes) -> bytes:
        event = parse(frame)
        if not event.data:
            return frame
        if event.data == DONE:
            return self.done(frame)
        try:
            value = loads(event.data)
        except TurngateError:
            return frame
        return self.take(frame, value) if isinstance(value, dict) else frame

    def done(self, frame: bytes) -> bytes:
        """The stream's end in words."""
        return frame

    @abc.abstractmethod
    def take(self, frame: bytes, value: dict[str, Any]) -> bytes:
        """An event; what the client gets for it now."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget the round; the client's places stay."""

    @abc.abstractmethod
    def round(self) -> Round:
        """What the round was."""


def _is_torn(rest: bytes) -> bool:
    data = parse(rest).data
    if not data.startswith(b"{"):
        return rest.startswith(b"event:") and not data
    try:
        loads(data)
    except TurngateError:
        return True
    return False


def changed(frame: bytes, value: Any) -> bytes:
    """The frame with another value."""
    return with_data(frame, dumps(value))
