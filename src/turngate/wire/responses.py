"""OpenAI Responses: the view of a request. Its history is a list of items; a message is one kind of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.layout import message_values, role_of
from turngate.wire.view import (
    Message,
    Source,
    TextPart,
    ToolCall,
    ToolResult,
    View,
    blocks,
    parse,
    string,
    text_parts,
)

if TYPE_CHECKING:
    from turngate.wire.scan import Path

TEXT_TYPES: Final = frozenset({"input_text", "output_text", "text"})
"""Types of parts whose ``text`` the model reads."""


@dataclass(frozen=True, slots=True)
class CallItem:
    """A kind of item that calls a tool (openai-python, types/responses/response_input_item_param.py)."""

    args: str
    """The field with the arguments."""
    name: str = ""
    """Name of the tool, for kinds that call one tool; else the item names it."""
    server: bool = False
    """The provider runs it."""


CALLS: Final[Mapping[str, CallItem]] = {
    "function_call": CallItem("arguments"),
    "custom_tool_call": CallItem("input"),
    "local_shell_call": CallItem("action", "local_shell"),
    "shell_call": CallItem("action", "shell"),
    "apply_patch_call": CallItem("operation", "apply_patch"),
    "computer_call": CallItem("action", "computer"),
    "tool_search_call": CallItem("arguments", "tool_search", server=True),
    "mcp_call": CallItem("arguments", server=True),
    "web_search_call": CallItem("action", "web_search", server=True),
    "file_search_call": CallItem("queries", "file_search", server=True),
    "code_interpreter_call": CallItem("code", "code_interpreter", server=True),
    "image_generation_call": CallItem("revised_prompt", "image_generation", server=True),
    "program": CallItem("code", "program", server=True),
}
"""Type of an item -> how it calls."""

RESULTS: Final[Mapping[str, str]] = {
    f"{kind}_output": kind for kind, item in CALLS.items() if not item.server
}
"""Type of an item in which a client answers -> type of the call."""


def view(source: Source) -> View:
    """The view of a Responses request.

    Raises:
        WireError: if it has no input.
    """
    known: dict[str, ToolCall] = {}
    out: list[Message] = []
    for index, (path, item) in enumerate(message_values(parse(source), "responses")):
        if isinstance(item, str):
            out.append(Message(index, "user", path, (TextPart(item, path),)))
            continue
        calls = tuple(_calls(item, path, index))
        results = tuple(_results(item, path, index, known))
        known.update((call.id, call) for call in calls)
        texts = text_parts(item.get("content"), (*path, "content"), TEXT_TYPES) if is_message(item) else ()
        out.append(Message(index, role_of(item, "responses"), path, texts, calls, results))
    return View("responses", tuple(out))


def is_message(item: Mapping[str, Any]) -> bool:
    """Whether an item is a message; of these alone the type may be left out."""
    return bool(item.get("type", "message") == "message")


def call_id(item: Mapping[str, Any]) -> str:
    """The id that ties call and result; the local shell's result has it under another name."""
    return string(item.get("call_id")) or string(item.get("id"))


def _calls(item: Mapping[str, Any], path: Path, index: int) -> Iterator[ToolCall]:
    kind = CALLS.get(string(item.get("type")))
    if kind is not None:
        args = item.get(kind.args)
        server = kind.server and item.get("execution") != "client"
        name = kind.name or string(item.get("name"))
        given = args if isinstance(args, Mapping) else string(args)
        yield ToolCall(call_id(item), name, given, path, index, server)


def _results(
    item: Mapping[str, Any], path: Path, index: int, known: Mapping[str, ToolCall]
) -> Iterator[ToolResult]:
    kind = string(item.get("type"))
    if kind in RESULTS:
        answers = call_id(item)
        call = known.get(answers)
        tool = call.name if call else string(item.get("name")) or CALLS[RESULTS[kind]].name
        parts = () if _for_a_program(item) else tuple(_outputs(item.get("output"), (*path, "output")))
        yield ToolResult(answers, tool, call.args if call else None, parts, path, index, _failed(item))


def _for_a_program(item: Mapping[str, Any]) -> bool:
    """Whether code reads the result, not the model: then it must stay as it is."""
    caller = item.get("caller")
    return isinstance(caller, Mapping) and caller.get("type") == "program"


def _outputs(output: Any, path: Path) -> Iterator[TextPart]:
    """The texts of a result: a string, parts, or what a shell wrote to its two streams."""
    yield from text_parts(output, path, TEXT_TYPES)
    for at, chunk in blocks(output):
        for stream in ("stdout", "stderr"):
            if isinstance(chunk.get(stream), str):
                yield TextPart(chunk[stream], (*path, at, stream))


def _failed(item: Mapping[str, Any]) -> bool | None:
    """What a patch's status or a shell's exit codes say."""
    if item.get("type") == "apply_patch_call_output":
        return {"failed": True, "completed": False}.get(string(item.get("status")))
    outcomes = [chunk["outcome"] for _, chunk in blocks(item.get("output")) if "outcome" in chunk]
    if not outcomes:
        return None
    return any(not isinstance(each, Mapping) or each.get("exit_code") != 0 for each in outcomes)
