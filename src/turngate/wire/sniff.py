"""Which wire a request is written in, by its content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from turngate.errors import WireError
from turngate.wire.view import Source, Wire, blocks, message_list, parse, string

_ANTHROPIC_BLOCKS: Final = frozenset({
    "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document",
    "image", "search_result", "compaction", "container_upload", "mcp_tool_use", "mcp_tool_result",
})  # fmt: skip
_CHAT_PARTS: Final = frozenset({"image_url", "input_audio", "file", "refusal"})
_CHAT_ROLES: Final = frozenset({"tool", "developer", "function"})
_CHAT_FIELDS: Final = ("tool_calls", "tool_call_id", "function_call", "reasoning_content", "refusal")


def _types(message: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(string(block.get("type")) for _, block in blocks(message.get("content")))


def _tool_shape(request: Mapping[str, Any], key: str) -> bool:
    return any(key in tool for _, tool in blocks(request.get("tools")))


_OF_MESSAGE: Final[tuple[tuple[Wire, Callable[[int, Mapping[str, Any]], bool]], ...]] = (
    ("chat", lambda _, m: m["role"] in _CHAT_ROLES or any(field in m for field in _CHAT_FIELDS)),
    ("chat", lambda i, m: m["role"] == "system" and i == 0),
    ("chat", lambda _, m: bool(_types(m) & _CHAT_PARTS)),
    ("anthropic", lambda _, m: bool(_types(m) & _ANTHROPIC_BLOCKS)),
)
"""What only one of the wires has, message by message. Anthropic allows no ``system`` message first."""

_OF_REQUEST: Final[tuple[tuple[Wire, Callable[[Mapping[str, Any]], bool]], ...]] = (
    ("anthropic", lambda r: "system" in r or "anthropic_version" in r),
    ("chat", lambda r: _tool_shape(r, "function") or "functions" in r),
    ("anthropic", lambda r: _tool_shape(r, "input_schema")),
    ("anthropic", lambda r: string(r.get("model")).startswith("claude")),
)


def sniff(source: Source) -> Wire | None:
    """The wire of a request or a list of messages; ``None`` if it is neither.

    Plain text turns look the same on both wires; they are ``chat`` unless the request itself says otherwise.
    Messages speak before the request's other fields, for gateways add fields of their own.
    """
    value = parse(source)
    try:
        _, messages = message_list(value)
    except WireError:
        return None
    for index, message in enumerate(messages):
        for wire, speaks in _OF_MESSAGE:
            if speaks(index, message):
                return wire
    if isinstance(value, Mapping):
        return next((wire for wire, speaks in _OF_REQUEST if speaks(value)), "chat")
    return "chat"
