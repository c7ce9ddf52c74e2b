"""OpenAI Chat Completions, and all that speak it: the view of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.view import (
    Message,
    Source,
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

_BODY: Final = {"function": "arguments", "custom": "input"}
"""Type of a tool call -> the field of its body that holds the arguments."""


def view(source: Source) -> View:
    """The view of a Chat Completions request.

    Raises:
        WireError: if it has no list of messages.
    """
    base, messages = message_list(parse(source))
    known: dict[str, ToolCall] = {}
    out: list[Message] = []
    for index, message in enumerate(messages):
        path = (*base, index)
        calls = tuple(_calls(message, path, index))
        results = _results(message, path, index, known)
        known.update((call.id or call.name, call) for call in calls)
        texts = () if results else text_parts(message.get("content"), (*path, "content"))
        out.append(Message(index, message["role"], path, texts, calls, results))
    return View("chat", tuple(out))


def _calls(message: Mapping[str, Any], path: Path, index: int) -> Iterator[ToolCall]:
    if message["role"] != "assistant":
        return
    for at, call in blocks(message.get("tool_calls")):
        kind = next((k for k in _BODY if isinstance(call.get(k), Mapping)), None)
        if kind is not None:
            body = call[kind]
            place = (*path, "tool_calls", at)
            yield ToolCall(string(call.get("id")), string(body.get("name")), _args(body, kind), place, index)
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping):
        place = (*path, "function_call")
        yield ToolCall("", string(legacy.get("name")), _args(legacy, "function"), place, index)


def _args(body: Mapping[str, Any], kind: str) -> Mapping[str, Any] | str:
    value = body.get(_BODY[kind])
    return value if isinstance(value, Mapping) else string(value)


def _results(
    message: Mapping[str, Any], path: Path, index: int, known: Mapping[str, ToolCall]
) -> tuple[ToolResult, ...]:
    """The result a ``tool`` (or legacy ``function``) message carries; such a message carries exactly one."""
    if message["role"] not in {"tool", "function"}:
        return ()
    call_id = string(message.get("tool_call_id"))
    name = string(message.get("name"))
    call = known.get(call_id or name)
    parts = text_parts(message.get("content"), (*path, "content"))
    tool = (call.name if call else "") or name
    return (ToolResult(call_id, tool, call.args if call else None, parts, path, index),)
