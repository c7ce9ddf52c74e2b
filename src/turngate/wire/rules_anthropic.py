"""What Anthropic Messages demands of a request's messages and tools.

Left out, since the messages alone do not decide it: which model takes prefilled or mid-conversation system
messages, which feature needs which beta header, and lengths. Unknown block types pass: they are newer than
the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.rule import Asked, Check, Finding, Rule, content_blocks
from turngate.wire.rules_anthropic_blocks import BLOCK_CHECKS, BLOCK_RULES, THINKING
from turngate.wire.view import blocks, string

if TYPE_CHECKING:
    from turngate.wire.scan import Path

_TYPES = "anthropic-sdk-python, types/{}_param.py"
_REPLY = 'the API\'s refusal: "{}"'
_SYSTEM = "platform.claude.com/docs, Mid-conversation system messages, placement rules"

RULES: Final = (
    Rule(
        "messages-empty",
        "there is at least one message",
        _REPLY.format("messages: at least one message is required"),
    ),
    Rule("role-unknown", "the role is user, assistant or system", _TYPES.format("message")),
    Rule(
        "first-not-user",
        "the first message is the user's, unless it opens with a compaction block",
        _REPLY.format('messages: first message must use the "user" role'),
    ),
    Rule(
        "system-placement",
        "a system message follows a user message (or an assistant turn that ends with a server tool), "
        "and is the last one or comes before an assistant message",
        _SYSTEM + "; " + _REPLY.format("role 'system' must precede an 'assistant' message or end the array"),
    ),
    Rule(
        "system-content", "a system message holds text or tool changes only", _TYPES.format("system_message")
    ),
    Rule(
        "result-orphan",
        "a result answers a call that was made",
        _REPLY.format(
            "unexpected `tool_use_id` found in `tool_result` blocks. Each `tool_result` block must have a "
            "corresponding `tool_use` block in the previous message."
        ),
    ),
    Rule(
        "result-missing",
        "every call is answered",
        _REPLY.format("`tool_use` ids were found without `tool_result` blocks immediately after"),
    ),
    Rule(
        "results-split",
        "the results of one turn's calls stand together in the next user message",
        "platform.claude.com/docs, Parallel tool use; "
        + _REPLY.format(
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    ),
    Rule(
        "result-order",
        "a result comes after its call",
        _REPLY.format("unexpected `tool_use_id` found in `tool_result` blocks"),
    ),
    Rule(
        "result-after-text",
        "tool results come first in their message",
        _REPLY.format(
            "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."
        ),
    ),
    Rule(
        "result-duplicate",
        "a call has one result",
        _REPLY.format("each tool_use must have a single result. Found multiple `tool_result` blocks with id"),
    ),
    Rule("call-duplicate", "ids of calls are unique", _REPLY.format("`tool_use` ids must be unique")),
    Rule(
        "call-id",
        "ids match ^[a-zA-Z0-9_-]+$",
        _REPLY.format("tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    ),
    Rule("call-shape", "a call has a name and an object as input", _TYPES.format("tool_use_block")),
    Rule(
        "server-result-orphan",
        "a server tool's result has its call before it",
        _REPLY.format(
            "Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it."
        ),
    ),
    Rule(
        "server-result-missing",
        "a server tool's call has its result, unless the turn is still going on",
        _REPLY.format(
            "`web_search` tool use was found without a corresponding `web_search_tool_result` block"
        ),
    ),
    Rule(
        "name-pattern",
        "names of tools match ^[a-zA-Z0-9_-]{1,128}$",
        _REPLY.format("tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"),
    ),
    Rule("tool-duplicate", "names of tools are unique", _REPLY.format("tools: Tool names must be unique.")),
    *BLOCK_RULES,
)

_ROLES: Final = frozenset({"user", "assistant", "system"})
_SYSTEM_BLOCKS: Final = frozenset({"text", "tool_addition", "tool_removal"})
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_SERVER_RESULT: Final = re.compile(r"\w+_tool_result")


def _list(asked: Asked) -> Iterator[Finding]:
    if not asked.messages:
        yield Finding("messages-empty", asked.base, "the list of messages is empty")
        return
    first = asked.messages[0]
    opens = next((b.get("type") for _, b in content_blocks(first, ())), None)
    if first["role"] == "assistant" and opens != "compaction":
        yield Finding("first-not-user", (*asked.base, 0), "the first message is the assistant's")


def _roles(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        if message["role"] not in _ROLES:
            yield Finding("role-unknown", (*path, "role"), f"role {message['role']!r}")


def _system(asked: Asked) -> Iterator[Finding]:
    for index, message in enumerate(asked.messages):
        if message["role"] != "system":
            continue
        path = (*asked.base, index)
        before = asked.messages[index - 1] if index else None
        after = asked.messages[index + 1] if index + 1 < len(asked.messages) else None
        if before is None or not _may_precede_system(before):
            yield Finding("system-placement", path, "it follows neither a user message nor a server tool")
        if after is not None and after["role"] != "assistant":
            yield Finding("system-placement", path, f"it is followed by a {after['role']} message")
        for where, block in content_blocks(message, path):
            if block.get("type") not in _SYSTEM_BLOCKS:
                yield Finding("system-content", where, f"a {block.get('type')!r} block")


def _may_precede_system(message: Mapping[str, Any]) -> bool:
    if message["role"] == "user":
        return True
    last = [string(b.get("type")) for _, b in content_blocks(message, ())][-1:]
    return message["role"] == "assistant" and any(
        t == "server_tool_use" or _SERVER_RESULT.fullmatch(t) for t in last
    )


def _of_type(
    message: Mapping[str, Any], path: Path, role: str, kind: str
) -> list[tuple[Path, Mapping[str, Any]]]:
    if message["role"] != role:
        return []
    return [(where, b) for where, b in content_blocks(message, path) if b.get("type") == kind]


def _pairs(asked: Asked) -> Iterator[Finding]:
    """Every call against the next message's results, every result against the calls of the message before."""
    uses = [_of_type(m, p, "assistant", "tool_use") for p, m in asked.each()]
    results = [_of_type(m, p, "user", "tool_result") for p, m in asked.each()]
    all_uses = {string(b.get("id")): where for turn in uses for where, b in turn}
    all_results = {string(b.get("tool_use_id")) for turn in results for _, b in turn}
    seen: set[str] = set()
    for index, turn in enumerate(uses):
        answered = (
            {b.get("tool_use_id") for _, b in results[index + 1]} if index + 1 < len(results) else set()
        )
        for where, block in turn:
            call_id = string(block.get("id"))
            if call_id in seen:
                yield Finding("call-duplicate", (*where, "id"), f"{call_id} is called twice")
            elif call_id not in answered:
                late = call_id in all_results
                detail = "is not answered in the next message" if late else "has no result"
                yield Finding("results-split" if late else "result-missing", where, f"{call_id} {detail}")
            seen.add(call_id)
    for index, turn in enumerate(results):
        before = {string(b.get("id")) for _, b in uses[index - 1]} if index else set()
        yield from _results(turn, before, all_uses)


def _results(
    turn: list[tuple[Path, Mapping[str, Any]]], before: set[str], all_uses: Mapping[str, Path]
) -> Iterator[Finding]:
    answered: set[str] = set()
    for where, block in turn:
        call_id, place = string(block.get("tool_use_id")), (*where, "tool_use_id")
        if call_id in answered:
            yield Finding("result-duplicate", place, f"{call_id} is answered twice")
        elif call_id in before:
            answered.add(call_id)
        elif call_id not in all_uses:
            yield Finding("result-orphan", place, f"no call has the id {call_id}")
        elif all_uses[call_id] > where:
            yield Finding("result-order", place, f"{call_id} is called only later")
        else:
            yield Finding("results-split", place, f"{call_id} was not called in the message before")


def _results_first(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        other = False
        for where, block in content_blocks(message, path):
            if block.get("type") != "tool_result":
                other = True
            elif other and message["role"] == "user":
                yield Finding("result-after-text", where, "something else stands before this result")


def _calls(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        for where, block in _of_type(message, path, "assistant", "tool_use"):
            call_id = block.get("id")
            if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
                yield Finding("call-id", (*where, "id"), f"{call_id!r}")
            if not isinstance(block.get("input"), Mapping):
                yield Finding("call-shape", (*where, "input"), "the input is not an object")
            yield from _name(block.get("name"), (*where, "name"))


def _name(name: Any, path: Path) -> Iterator[Finding]:
    if not isinstance(name, str):
        yield Finding("call-shape", path, "the name is missing")
    elif not _NAME.fullmatch(name):
        yield Finding("name-pattern", path, f"{name!r}")


def _tools(asked: Asked) -> Iterator[Finding]:
    names: set[str] = set()
    for index, tool in blocks(asked.request.get("tools")):
        name = tool.get("name")
        if not isinstance(name, str):
            continue  # toolsets (mcp_toolset and its kin) have none
        path: Path = ("tools", index, "name")
        yield from _name(name, path)
        if name in names:
            yield Finding("tool-duplicate", path, f"{name!r} is defined twice")
        names.add(name)


def _server_tools(asked: Asked) -> Iterator[Finding]:
    """The provider's own tools: call and result both stand in assistant turns, perhaps in different ones."""
    open_calls: dict[str, Path] = {}
    called: set[str] = set()
    last = max((i for i, m in enumerate(asked.messages) if m["role"] == "assistant"), default=-1)
    for path, message in asked.each():
        for where, block in content_blocks(message, path):
            kind = string(block.get("type"))
            if kind == "server_tool_use":
                call_id = string(block.get("id"))
                called.add(call_id)
                open_calls[call_id] = where
            elif _SERVER_RESULT.fullmatch(kind):
                call_id = string(block.get("tool_use_id"))
                if (
                    open_calls.pop(call_id, None) is None
                    and call_id not in called
                    and kind != "mcp_tool_result"
                ):
                    yield Finding("server-result-orphan", where, f"no server tool was called as {call_id}")
    for call_id, where in open_calls.items():
        if where[len(asked.base)] != last:
            yield Finding("server-result-missing", where, f"{call_id} has no result")


CHECKS: Final[tuple[Check, ...]] = (
    _list,
    _roles,
    _system,
    _pairs,
    _results_first,
    _calls,
    _tools,
    _server_tools,
    *BLOCK_CHECKS,
)

__all__ = ["CHECKS", "RULES", "THINKING"]
