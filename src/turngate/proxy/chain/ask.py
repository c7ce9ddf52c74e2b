"""A request as the engine is asked about it, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from turngate.wire import Wire


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of a client."""

    body: bytes
    """Its body, decoded."""
    wire: Wire
    """Its format."""
    scope: str
    """A keyed hash of the credential: who may share what was sent."""
    hint: str = ""
    """The session that the client names, if it names one."""


@dataclass(frozen=True, slots=True)
class Sending:
    """A request as it is to be sent."""

    body: bytes
    """The bytes; the very object given where nothing of ours is in it."""
    wire: Wire
    """Its format."""
    offered: bool = False
    """Whether the model is offered our tool in it."""
    session: str = ""
    """The conversation's session in the store."""
    scope: str = ""
    """The client's scope."""
    root: bytes = b""
    """Key above the first message."""
    tip: bytes = b""
    """Key of the last message; empty for a request that the engine does not follow."""
    at: int = 0
    """Offset in `body` behind the last message: where more of them can be added."""
    single: tuple[int, int] | None = None
    """Where the messages are a single string: its place."""
    decided: int = 0
    """Messages that were new."""
    shortened: int = 0
    """Values of ours among them."""
    broken: str = ""
    """Why it does not extend what was sent before."""
    faults: tuple[str, ...] = ()
    """What went wrong; each time the client's own bytes are sent."""
    degraded: bool = False
    """Whether the store could not be asked."""
    epochs: int = 0
    """Compactions of the conversation so far."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that a recorded decision needs."""

    def extended(self, messages: bytes) -> bytes:
        """The body with further messages at its end; `messages` are joined by commas."""
        if self.single is not None:
            start, end = self.single
            first = b'{"role":"user","content":' + self.body[start:end] + b"}"
            return self.body[:start] + b"[" + first + b"," + messages + b"]" + self.body[end:]
        return self.body[: self.at] + b"," + messages + self.body[self.at :]
