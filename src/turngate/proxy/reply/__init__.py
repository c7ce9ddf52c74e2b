"""Replies on their way to the client: calls of our own tool are hidden, everything else leaves as it came."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from turngate.proxy.reply import anthropic, chat, gemini, gemini_list, responses
from turngate.proxy.reply.base import OWN, OwnCall, Round, StreamReply, WholeReply

if TYPE_CHECKING:
    from turngate.wire import Wire

_STREAMS: Final[Mapping[Wire, Callable[[], StreamReply]]] = {
    "anthropic": anthropic.AnthropicStream,
    "chat": chat.ChatStream,
    "responses": responses.ResponsesStream,
    "gemini": gemini.GeminiStream,
}
_WHOLES: Final[Mapping[Wire, Callable[[], WholeReply]]] = {
    "anthropic": anthropic.AnthropicWhole,
    "chat": chat.ChatWhole,
    "responses": responses.ResponsesWhole,
    "gemini": gemini.GeminiWhole,
}
_RESULTS: Final[Mapping[Wire, Callable[[Sequence[tuple[OwnCall, str]]], bytes]]] = {
    "anthropic": anthropic.results,
    "chat": chat.results,
    "responses": responses.results,
    "gemini": gemini.results,
}


def stream_reply(wire: Wire, *, listed: bool = False) -> StreamReply:
    """The machine for a streamed reply in a request that offered our tool.

    Args:
        wire: its format.
        listed: whether it comes as one JSON array and not as server-sent events, as Gemini's may.
    """
    return gemini_list.GeminiListStream() if listed else _STREAMS[wire]()


def whole_reply(wire: Wire) -> WholeReply:
    """The machine for a reply in one piece."""
    return _WHOLES[wire]()


def messages_of_result(wire: Wire, answers: Sequence[tuple[OwnCall, str]]) -> bytes:
    """Our answers as messages (items), joined by commas, to go behind `Round.messages`."""
    return _RESULTS[wire](answers)


__all__ = [
    "OWN",
    "OwnCall",
    "Round",
    "StreamReply",
    "WholeReply",
    "messages_of_result",
    "stream_reply",
    "whole_reply",
]
