"""What a request to the model had in view, told from one request to the next. Pure.

Each message is known by a hash of its text, so that a long history costs no more than comparing numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from turngate import marker
from turngate.hermes.result import output_of

#: The texts of so many messages are looked into once.
_KNOWN_TEXTS = 4_096


@dataclass(frozen=True, slots=True)
class View:
    """A request's messages, the system prompt aside."""

    messages: tuple[int, ...] = ()
    """A hash of each."""
    markers: frozenset[str] = frozenset()
    """Ids of the markers among them, whosesoever they are."""

    def lost_to(self, later: View) -> bool:
        """Whether a later request was rewritten so that messages or markers of this one have left view."""
        if later.messages[: len(self.messages)] == self.messages:
            return False
        return len(later.messages) < len(self.messages) or not self.markers <= later.markers


def view_of(messages: Iterable[Mapping[str, Any]]) -> View:
    """The view of a request's messages."""
    texts = [_text(message) for message in messages if message.get("role") != "system"]
    found = frozenset(ref for text in texts for ref in _markers(text))
    return View(tuple(map(hash, texts)), found)


class Results(Mapping[str, str]):
    """The outputs of tools among a request's messages, by call id. Read when asked for."""

    def __init__(self, messages: Iterable[Mapping[str, Any]] = ()) -> None:
        self._contents: dict[str, str] = {
            str(message.get("tool_call_id")): _text(message)
            for message in messages
            if message.get("role") == "tool" and message.get("tool_call_id")
        }

    def __getitem__(self, call: str) -> str:
        return output_of(self._contents[call]).text

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    def __contains__(self, call: object) -> bool:
        return call in self._contents


def _text(message: Mapping[str, Any]) -> str:
    """A message's text, and the ids of its calls; where a cache mark makes blocks of it, their text."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = [str(part.get("text", part.get("type", ""))) for part in _mappings(content)]
    parts += [str(call.get("id", "")) for call in _mappings(message.get("tool_calls"))]
    return "".join(parts)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    items = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()
    return [item for item in items if isinstance(item, Mapping)]


@lru_cache(_KNOWN_TEXTS)
def _markers(text: str) -> tuple[str, ...]:
    return tuple(found.hash for found in marker.find_all(text))
