"""The parts that validity rules are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from turngate.wire.view import blocks

if TYPE_CHECKING:
    from turngate.wire.scan import Path


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing a provider demands."""

    name: str
    says: str
    source: str
    """Where it is known from: the provider's documentation, its SDK's types, or its refusal's wording."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A breach found by a check."""

    rule: str
    path: Path
    detail: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What is judged: a request, or a bare list of messages (then ``request`` is empty)."""

    request: Mapping[str, Any]
    messages: tuple[Mapping[str, Any], ...]
    base: Path
    """Path to the messages."""

    def each(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Every message with its path."""
        for index, message in enumerate(self.messages):
            yield (*self.base, index), message


Check: TypeAlias = Callable[[Asked], Iterable[Finding]]
HistoryCheck: TypeAlias = Callable[[Asked, Asked], Iterable[Finding]]
"""Takes the request that was accepted before, and the one to judge."""


def content_blocks(message: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The content blocks of a message with their paths; nothing if its content is a string."""
    for index, block in blocks(message.get("content")):
        yield (*path, "content", index), block
