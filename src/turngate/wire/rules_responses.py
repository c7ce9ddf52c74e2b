"""What OpenAI Responses demands of a request's items and tools.

A result may stand anywhere behind its call: other than in Chat Completions, what the model said and what the
user said may come between. With ``previous_response_id`` or ``conversation`` the server has the calls.
Unknown types of items pass: they are newer than the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.responses import CALLS, RESULTS, call_id, is_message
from turngate.wire.rule import Asked, Check, Finding, HistoryCheck, Rule, content_blocks
from turngate.wire.view import blocks, string

if TYPE_CHECKING:
    from turngate.wire.scan import Path

_TYPES = "openai-python, types/responses/{}_param.py"
_REPLY = 'the API\'s refusal: "{}"'
_UNCALLED = _REPLY.format("No tool call found for function call output with call_id")

RULES: Final = (
    Rule(
        "messages-empty",
        "there is at least one item, unless the server has the conversation",
        _REPLY.format(
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation' must be provided."
        ),
    ),
    Rule("role-unknown", "the role is one that the wire knows", _TYPES.format("easy_input_message")),
    Rule("result-orphan", "an output answers a call that was made", _UNCALLED),
    Rule("result-order", "an output comes after its call", _UNCALLED),
    Rule("result-missing", "every call is answered", _REPLY.format("No tool output found for function call")),
    Rule("result-duplicate", "a call has one output", _TYPES.format("response_input_item")),
    Rule("result-shape", "an output is a string, or an array of parts", _TYPES.format("response_input_item")),
    Rule("call-duplicate", "ids of calls differ", _TYPES.format("response_function_tool_call")),
    Rule("call-id", "calls and outputs carry a non-empty id", _TYPES.format("response_function_tool_call")),
    Rule(
        "call-shape",
        "a call has a name, and its arguments are a string",
        _TYPES.format("response_function_tool_call"),
    ),
    Rule(
        "item-duplicate",
        "ids of items differ",
        _REPLY.format("Duplicate item found with id. Remove duplicate items from your input and try again."),
    ),
    Rule(
        "reasoning-alone",
        "a reasoning item stands before what the model produced next",
        _REPLY.format("Item of type 'reasoning' was provided without its required following item."),
    ),
    Rule("reasoning-shape", "a reasoning item has its summary", _TYPES.format("response_reasoning_item")),
    Rule(
        "content-missing",
        "a message has content",
        _REPLY.format("Missing required parameter: 'input[0].content'."),
    ),
    Rule(
        "part-unsupported",
        "what the model said is output_text or refusal, all else is input",
        _REPLY.format("Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."),
    ),
    Rule(
        "name-pattern",
        "names of functions are letters, digits, _ and -",
        _REPLY.format("Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'"),
    ),
    Rule(
        "compaction-placement",
        "a compaction trigger is the last item",
        _TYPES.format("response_input_item") + ", CompactionTrigger",
    ),
)

HISTORY_RULES: Final = (
    Rule(
        "reasoning-lost",
        "an item that came with reasoning goes back with it, unchanged",
        _REPLY.format("Item of type 'function_call' was provided without its required 'reasoning' item"),
    ),
    Rule(
        "user-lost",
        "a conversation that had a user message keeps one",
        "the list a window must keep valid",
    ),
)

_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_SAID: Final = frozenset({"output_text", "refusal"})
_GIVEN: Final = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_ON_SERVER: Final = ("previous_response_id", "conversation")
_NAMED: Final = ("function_call", "custom_tool_call")
"""Calls whose item names the tool; their arguments are strings."""


def _kind(item: Mapping[str, Any]) -> str:
    return string(item.get("type"))


def _on_server(asked: Asked) -> bool:
    return any(asked.request.get(field) for field in _ON_SERVER)


def _list(asked: Asked) -> Iterator[Finding]:
    if not asked.messages and not _on_server(asked) and not asked.request.get("prompt"):
        yield Finding("messages-empty", asked.base, "there is no item")


def _messages(asked: Asked) -> Iterator[Finding]:
    for path, item in asked.each():
        if not is_message(item):
            continue
        role = string(item.get("role"))
        if role not in _ROLES:
            yield Finding("role-unknown", (*path, "role"), f"role {role!r}")
        if not isinstance(item.get("content"), str | list | tuple):
            yield Finding("content-missing", (*path, "content"), "neither a string nor an array")
        allowed = _SAID if role == "assistant" else _GIVEN
        for where, part in content_blocks(item, path):
            if part.get("type") not in allowed:
                detail = f"a {role} message takes no {part.get('type')!r} part"
                yield Finding("part-unsupported", where, detail)


def _is_call(item: Mapping[str, Any]) -> bool:
    """Whether the client has to answer the item."""
    kind = CALLS.get(_kind(item))
    return kind is not None and (not kind.server or item.get("execution") == "client")


def _answers(item: Mapping[str, Any]) -> bool:
    return _kind(item) in RESULTS or (
        _kind(item) == "tool_search_output" and item.get("execution") == "client"
    )


class _Pairing:
    """Walks the items once, and holds the calls that still wait for their outputs."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.ever_called = {call_id(item) for item in asked.messages if _is_call(item)}
        self.open: dict[str, Path] = {}
        self.called: set[str] = set()
        self.answered: set[str] = set()

    def findings(self) -> Iterator[Finding]:
        for path, item in self.asked.each():
            if _is_call(item):
                yield from self.call(path, call_id(item))
            elif _answers(item):
                yield from self.result(path, call_id(item))
        for name, path in self.open.items():
            yield Finding("result-missing", path, f"{name} has no output")

    def call(self, path: Path, name: str) -> Iterator[Finding]:
        if not name:
            yield Finding("call-id", path, "the call has no id")
            return
        if name in self.open:
            yield Finding("call-duplicate", path, f"{name} is called twice")
        self.open[name] = path
        self.called.add(name)
        self.answered.discard(name)

    def result(self, path: Path, name: str) -> Iterator[Finding]:
        if not name:
            yield Finding("call-id", path, "the output names no call")
        elif name in self.open:
            del self.open[name]
            self.answered.add(name)
        elif name in self.answered:
            yield Finding("result-duplicate", path, f"{name} is answered twice")
        elif name in self.ever_called:
            yield Finding("result-order", path, f"{name} is called only later")
        elif not _on_server(self.asked):
            yield Finding("result-orphan", path, f"no call has the id {name}")


def _pairs(asked: Asked) -> Iterator[Finding]:
    yield from _Pairing(asked).findings()


def _calls(asked: Asked) -> Iterator[Finding]:
    for path, item in asked.each():
        if _kind(item) not in _NAMED:
            continue
        field = CALLS[_kind(item)].args
        if not isinstance(item.get(field), str):
            yield Finding("call-shape", (*path, field), "not a string")
        if not string(item.get("name")):
            yield Finding("call-shape", (*path, "name"), "the name is missing")
        elif _kind(item) == "function_call" and not _NAME.fullmatch(item["name"]):
            yield Finding("name-pattern", (*path, "name"), f"{item['name']!r}")


def _results(asked: Asked) -> Iterator[Finding]:
    for path, item in asked.each():
        if _kind(item) not in {f"{kind}_output" for kind in _NAMED}:
            continue
        output = item.get("output")
        if not isinstance(output, str | list | tuple):
            yield Finding("result-shape", (*path, "output"), "neither a string nor an array of parts")
        for at, part in blocks(output):
            if part.get("type") not in _GIVEN:
                where = (*path, "output", at)
                yield Finding("part-unsupported", where, f"an output takes no {part.get('type')!r} part")


def _ids(asked: Asked) -> Iterator[Finding]:
    seen: set[str] = set()
    for path, item in asked.each():
        name = string(item.get("id"))
        # The local shell's output has its call's id, which is another than that of the call's item.
        if not name or _kind(item) == "local_shell_call_output":
            continue
        if name in seen:
            yield Finding("item-duplicate", (*path, "id"), f"{name} stands here twice")
        seen.add(name)


def _reasoning(asked: Asked) -> Iterator[Finding]:
    """Only items with an id are known to be tied to what follows; ids are what the refusal names."""
    for at, (path, item) in enumerate(asked.each()):
        if _kind(item) != "reasoning":
            continue
        if not isinstance(item.get("summary"), list | tuple):
            yield Finding("reasoning-shape", (*path, "summary"), "not an array")
        following = asked.messages[at + 1 : at + 2]
        if item.get("id") and not (following and _is_produced(following[0])):
            yield Finding("reasoning-alone", path, f"nothing that the model produced follows {item['id']}")


def _is_produced(item: Mapping[str, Any]) -> bool:
    if is_message(item):
        return item.get("role") == "assistant"
    return not _answers(item)


def _tools(asked: Asked) -> Iterator[Finding]:
    for at, tool in blocks(asked.request.get("tools")):
        name = tool.get("name")
        if tool.get("type") == "function" and not _NAME.fullmatch(string(name)):
            yield Finding("name-pattern", ("tools", at, "name"), f"{name!r}")


def _compaction(asked: Asked) -> Iterator[Finding]:
    for at, (path, item) in enumerate(asked.each()):
        if _kind(item) == "compaction_trigger" and at < len(asked.messages) - 1:
            yield Finding("compaction-placement", path, "items follow it")


CHECKS: Final[tuple[Check, ...]] = (
    _list, _messages, _pairs, _calls, _results, _ids, _reasoning, _tools, _compaction,
)  # fmt: skip


def _thoughts(asked: Asked) -> dict[str, tuple[Path, list[tuple[Any, Any]]]]:
    """Calls and messages that have an id, each with its place and the reasoning directly before it."""
    out: dict[str, tuple[Path, list[tuple[Any, Any]]]] = {}
    thoughts: list[tuple[Any, Any]] = []
    for path, item in asked.each():
        if _kind(item) == "reasoning":
            thoughts.append((item.get("encrypted_content"), item.get("summary")))
            continue
        name = string(item.get("call_id")) or string(item.get("id"))
        if name and _is_produced(item):
            out.setdefault(name, (path, thoughts))
        thoughts = []
    return out


def _reasoning_lost(sent: Asked, asked: Asked) -> Iterator[Finding]:
    before = _thoughts(sent)
    for name, (path, thoughts) in _thoughts(asked).items():
        if name in before and before[name][1] != thoughts:
            yield Finding("reasoning-lost", path, f"the reasoning before {name} is not what was sent before")


def _user_lost(sent: Asked, asked: Asked) -> Iterator[Finding]:
    had, has = (any(item.get("role") == "user" for item in each.messages) for each in (sent, asked))
    if had and not has and not _on_server(asked):
        yield Finding("user-lost", asked.base, "no user message is left")


HISTORY_CHECKS: Final[tuple[HistoryCheck, ...]] = (_reasoning_lost, _user_lost)
