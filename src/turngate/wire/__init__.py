"""Provider formats as views: what is where in a request, what may be changed, and what the provider accepts.

Pure: bytes and values in, bytes and values out. A body is never rebuilt; changed strings are spliced into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from turngate.wire import anthropic, chat, gemini, responses
from turngate.wire.prefix import Element, elements, request_prefix
from turngate.wire.scan import Path, splice
from turngate.wire.sniff import sniff
from turngate.wire.validity import Violation, violations
from turngate.wire.view import Message, Source, TextPart, ToolCall, ToolResult, View, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VIEWS: Final[Mapping[Wire, Callable[[Source], View]]] = {
    "chat": chat.view,
    "anthropic": anthropic.view,
    "responses": responses.view,
    "gemini": gemini.view,
}
"""Wire -> its view."""

__all__ = [
    "VIEWS",
    "Element",
    "Message",
    "Path",
    "Source",
    "TextPart",
    "ToolCall",
    "ToolResult",
    "View",
    "Violation",
    "Wire",
    "elements",
    "request_prefix",
    "sniff",
    "splice",
    "violations",
]
