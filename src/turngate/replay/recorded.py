"""A recorded session: its messages as they were sent, request by request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from turngate.wire import Element, Wire

Format: TypeAlias = Literal["chat", "anthropic", "claude-code"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a session."""

    message: Mapping[str, Any]
    raw: bytes
    """Its JSON as recorded, without cache marks; put together, where one message is spread over lines."""
    line: int
    """Line of the file where it begins, from 1."""
    blocks: int = 1
    """Content blocks in it."""
    at_seconds: float | None = None
    """Unix time, if it was recorded."""
    model: str = ""
    """The model that wrote it, if it was recorded."""
    usage: Mapping[str, Any] | None = None
    """What the provider reported for the request that this message answers."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """A message list that only grew. Compaction, and going back to an earlier turn, begin another."""

    entries: tuple[Entry, ...]
    begin: Literal["start", "compacted", "rewound"] = "start"
    first: int = 0
    """Answers before this entry belong to an earlier epoch, which shares them."""

    @property
    def answers(self) -> Iterator[int]:
        """Indexes of the messages that answer a request; it held all entries before."""
        for index in range(max(self.first, 1), len(self.entries)):
            role, before = self.entries[index].message["role"], self.entries[index - 1].message["role"]
            if role == "assistant" and before != "assistant":
                yield index


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation with a model."""

    name: str
    """The file, with the number of the conversation if the file holds several."""
    format: Format
    wire: Wire
    epochs: tuple[Epoch, ...]
    head: tuple[Element, ...] = ()
    """Tools and system prompt, where the record has them outside the messages."""
    model: str = ""
    """The model that answered most, or the one the request named; empty if neither is there."""

    @property
    def requests(self) -> int:
        """How many requests it holds."""
        return sum(1 for epoch in self.epochs for _ in epoch.answers)
