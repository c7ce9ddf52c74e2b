"""Anthropic Messages: the view of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.view import (
    Message,
    Source,
    TextPart,
    ToolCall,
    ToolResult,
    View,
    blocks,
    message_list,
    parse,
    string,
    text_parts,
)

if TYPE_CHECKING:
    from turngate.wire.scan import Path

CALL_BLOCKS: Final = {"tool_use": False, "server_tool_use": True, "mcp_tool_use": True}
"""Type of a block that calls a tool -> whether the provider runs the tool."""


def view(source: Source) -> View:
    """The view of an Anthropic Messages request.

    Raises:
        WireError: if it has no list of messages.
    """
    base, messages = message_list(parse(source))
    known: dict[str, ToolCall] = {}
    out: list[Message] = []
    for index, message in enumerate(messages):
        path = (*base, index, "content")
        content = message.get("content")
        calls = tuple(_calls(content, path, index))
        results = tuple(_results(content, path, index, known))
        known.update((call.id, call) for call in calls)
        out.append(Message(index, message["role"], path[:-1], text_parts(content, path), calls, results))
    return View("anthropic", tuple(out))


def _calls(content: Any, path: Path, index: int) -> Iterator[ToolCall]:
    for at, block in blocks(content):
        server = CALL_BLOCKS.get(string(block.get("type")))
        if server is not None:
            args = block.get("input")
            call_args = args if isinstance(args, Mapping) else string(args)
            name = string(block.get("name"))
            yield ToolCall(string(block.get("id")), name, call_args, (*path, at), index, server)


def _results(content: Any, path: Path, index: int, known: Mapping[str, ToolCall]) -> Iterator[ToolResult]:
    for at, block in blocks(content):
        if block.get("type") == "tool_result":
            call_id = string(block.get("tool_use_id"))
            call = known.get(call_id)
            failed = block.get("is_error")
            yield ToolResult(
                call_id,
                call.name if call else "",
                call.args if call else None,
                text_parts(block.get("content"), (*path, at, "content")),
                (*path, at),
                index,
                failed if isinstance(failed, bool) else None,
            )


def system_parts(source: Source) -> tuple[TextPart, ...]:
    """The text of the top-level ``system`` field."""
    value = parse(source)
    return text_parts(value.get("system"), ("system",)) if isinstance(value, Mapping) else ()
