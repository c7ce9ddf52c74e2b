"""A request as the window needs it, and the same request with other messages. Every other byte stays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from turngate.window.book import Epoch
from turngate.window.measure import Sizes
from turngate.window.thinking import let_drop
from turngate.window.units import Message
from turngate.wire import Source
from turngate.wire.scan import Node, scan
from turngate.wire.view import message_list, parse

#: What stands beside the messages and is read by the model.
_BESIDE: Final = ("system", "tools", "functions", "instructions", "response_format", "output_config")


@dataclass(frozen=True, slots=True)
class Place:
    """A message of the list that is sent."""

    message: Message
    """It."""
    origin: int | None
    """Its index in the list that came, if it is that message; None: it is ours."""


@dataclass(frozen=True, slots=True)
class Request:
    """What came."""

    source: Source
    """As it came."""
    value: Any
    """The same, parsed."""
    messages: list[Message]
    """Its messages."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The request's other fields; none, where only messages came."""
        return self.value if isinstance(self.value, Mapping) else {}

    @property
    def model(self) -> str:
        """The model it asks for; "" if it names none."""
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""

    def beside_tokens(self, sizes: Sizes) -> float:
        """What its other fields weigh."""
        return sum(sizes.value(self.fields.get(key), key) for key in _BESIDE)


def read(source: Source) -> Request:
    """The request.

    Raises:
        WireError: it has no list of messages.
    """
    value = _parsed(source)
    _, messages = message_list(value)
    return Request(source, value, list(messages))


def _parsed(source: Source) -> Any:
    """The value; a body by the fast parser, where that takes it."""
    if isinstance(source, bytes):
        try:
            return orjson.loads(source)
        except orjson.JSONDecodeError:  # lone surrogates, depth
            return parse(source)
    return source


def places(messages: Sequence[Message], epoch: Epoch | None) -> list[Place]:
    """The list that is sent for these messages."""
    if epoch is None:
        return [Place(message, at) for at, message in enumerate(messages)]
    first = [
        Place(messages[item], item) if isinstance(item, int) else Place(item, None) for item in epoch.items
    ]
    return first + [Place(messages[at], at) for at in range(epoch.cover, len(messages))]


def rebuilt(request: Request, sent: Sequence[Place], *, drop: bool) -> Any:
    """The request in the form it came in, with this list; the very object where nothing is ours.

    Args:
        request: what came.
        sent: the messages to send.
        drop: whether the provider is to drop thinking whose prefix changed.
    """
    same = len(sent) == len(request.messages) and all(place.origin == at for at, place in enumerate(sent))
    if same and not drop:
        return request.source
    if isinstance(request.source, bytes):
        return _spliced(request.source, sent, drop=drop)
    messages = [place.message for place in sent]
    if not isinstance(request.value, Mapping):
        return messages
    changed = {**request.value, "messages": messages}
    return let_drop(changed) if drop and "thinking" in changed else changed


def _spliced(body: bytes, sent: Sequence[Place], *, drop: bool) -> bytes:
    root = scan(body)
    array = root if root.kind == "array" else root.get("messages")
    assert array is not None
    raw = b",".join(_raw(body, array, place) for place in sent)
    edits = [(array.start + 1, array.end - 1, raw)]
    thinking = root.get("thinking") if drop and root.kind == "object" else None
    if thinking is not None and thinking.kind == "object":
        value = let_drop({"thinking": _object(body, thinking)})["thinking"]
        edits.append((thinking.start, thinking.end, json.dumps(value).encode()))
    for start, end, new in sorted(edits, reverse=True):
        body = body[:start] + new + body[end:]
    return body


def _raw(body: bytes, array: Node, place: Place) -> bytes:
    if place.origin is None:
        return json.dumps(place.message).encode()
    node = array.items[place.origin]
    return body[node.start : node.end]


def _object(body: bytes, node: Node) -> Any:
    return json.loads(body[node.start : node.end])
