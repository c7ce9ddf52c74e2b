"""What a reply machine is: it hides our own calls from the client, and says what the upstream produced.

Pure: bytes in, bytes out. Where nothing of ours is in a frame, it leaves as the very bytes that came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

#: The tool that the proxy offers, and answers itself.
OWN: Final = "turngate_retrieve"
#: What a provider says of a round that it ended itself.
USAGE_KEYS: Final = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of our tool."""

    id: str
    """The provider's id; "" where it gave none."""
    args: str
    """Its arguments, as the JSON text that the model wrote."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one reply of the upstream was."""

    own: tuple[OwnCall, ...] = ()
    """Calls of our tool."""
    client_calls: tuple[str, ...] = ()
    """Ids of the client's own calls; names where the provider gives no ids."""
    messages: bytes = b""
    """What the upstream produced, as JSON to go behind the request's messages: one message of the assistant,
    or items joined by commas."""
    own_call: bytes = b""
    """Our calls alone, as they stand among blocks, calls, items or parts; joined by commas."""
    own_index: int = 0
    """Where the first of them stood there."""
    text: str = ""
    """The text that the client saw of it."""
    blocks: int = 0
    """Blocks, items or parts that the client saw of it."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """Tokens as far as they were told: `USAGE_KEYS`."""
    finished: bool = False
    """Whether it ended as the protocol has it, and not because it was cut short: its calls are whole."""
    status: str = ""
    """Why it ended, in the provider's words."""
    id: str = ""
    """In Responses: the id by which the client may go on from it."""


class StreamReply(Protocol):
    """A streamed reply to one request of the client; perhaps of several rounds."""

    def feed(self, chunk: bytes) -> bytes:
        """Bytes of the upstream; what the client is to get now."""
        ...

    def end(self) -> Round:
        """The upstream's stream is over."""
        ...

    def again(self, *, hide: bool = True) -> None:
        """A further round follows in the client's stream; without `hide` our calls in it go through."""
        ...

    def close(self) -> bytes:
        """What was held back, now that no further round follows."""
        ...

    def fault(self, frame: bytes) -> bytes:
        """An error of ours, a frame of server-sent events, as the last thing that the client gets."""
        ...


class WholeReply(Protocol):
    """The same for a reply in one piece."""

    def read(self, body: bytes) -> Round:
        """The upstream's reply."""
        ...

    def again(self, *, hide: bool = True) -> None:
        """A further round follows."""
        ...

    def body(self) -> bytes:
        """The reply for the client; the very bytes of the only round where nothing of ours is in it."""
        ...


def summed(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Usage of several rounds: numbers are added, at any depth; of anything else the last stays."""
    total: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            before = total.get(key)
            if _is_number(value) and _is_number(before):
                total[key] = before + value
            elif isinstance(value, Mapping):
                total[key] = summed([before, value]) if isinstance(before, Mapping) else dict(value)
            elif value is not None or key not in total:
                total[key] = value
    return total


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers(usage: Any, keys: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """A provider's usage by our names; `keys`: for each the path to it."""
    found = {}
    for name, path in keys.items():
        value = usage
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool):
            found[name] = value
    return found
