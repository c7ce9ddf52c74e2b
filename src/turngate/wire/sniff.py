"""Which wire a request is written in, by its content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from turngate.errors import WireError
from turngate.wire.responses import CALLS, RESULTS
from turngate.wire.view import Source, Wire, blocks, message_list, parse, string

WIRES: Final[tuple[Wire, ...]] = ("chat", "anthropic", "responses", "gemini")

_ANTHROPIC_BLOCKS: Final = frozenset({
    "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document",
    "image", "search_result", "compaction", "container_upload", "mcp_tool_use", "mcp_tool_result",
})  # fmt: skip
_CHAT_PARTS: Final = frozenset({"image_url", "input_audio", "file", "refusal"})
_CHAT_ROLES: Final = frozenset({"tool", "developer", "function"})
_CHAT_FIELDS: Final = ("tool_calls", "tool_call_id", "function_call", "reasoning_content", "refusal")


_ITEMS: Final = frozenset({*CALLS, *RESULTS, "reasoning", "item_reference", "compaction"})
_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})
_RESPONSES_FIELDS: Final = (
    "instructions", "previous_response_id", "max_output_tokens", "reasoning", "conversation", "store", "text",
)  # fmt: skip
"""Fields by which a request whose input is a string is told from one for embeddings."""


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


def sniff(source: Source, among: tuple[Wire, ...] = WIRES) -> Wire | None:
    """The wire of a request or a list of messages; ``None`` if it is none of ``among``.

    Plain text turns look the same on several wires; they are ``chat`` unless the request itself says
    otherwise. Messages speak before the request's other fields, for gateways add their own.
    """
    value = parse(source)
    found = _by_field(value) if isinstance(value, Mapping) else _by_elements(value)
    found = found or _with_roles(value)
    return found if found in among else None


def _by_field(request: Mapping[str, Any]) -> Wire | None:
    """What the name of the list says."""
    if "messages" in request:
        return None
    if any("parts" in content for _, content in blocks(request.get("contents"))):
        return "gemini"
    given = request.get("input")
    if isinstance(given, str):
        return "responses" if any(field in request for field in _RESPONSES_FIELDS) else None
    return "responses" if any(_is_item(item) or "role" in item for _, item in blocks(given)) else None


def _by_elements(value: Any) -> Wire | None:
    """What the elements of a bare list say, where they are no messages with a role and content."""
    for _, element in blocks(value):
        if "parts" in element and "content" not in element:
            return "gemini"
        if _is_item(element):
            return "responses"
    return None


def _is_item(element: Mapping[str, Any]) -> bool:
    return string(element.get("type")) in _ITEMS or bool(_types(element) & _PARTS)


def _with_roles(value: Any) -> Wire | None:
    """Chat Completions or Anthropic Messages."""
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
