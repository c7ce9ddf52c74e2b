"""What OpenAI Chat Completions demands of a request's messages and tools.

Left out, since the messages alone do not decide it: which model takes images, audio or system roles; lengths.
An empty string is accepted as content; an empty array is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.rule import Asked, Check, Finding, Rule, content_blocks
from turngate.wire.view import blocks

if TYPE_CHECKING:
    from turngate.wire.scan import Path

_TYPES = "openai-python, types/chat/chat_completion_{}_param.py"
_REPLY = 'the API\'s refusal: "{}"'
_FORMAT = "OpenAI API reference, Create chat completion, {}"
_UNANSWERED = _REPLY.format(
    "An assistant message with 'tool_calls' must be followed by tool messages "
    "responding to each 'tool_call_id'"
)

RULES: Final = (
    Rule("messages-empty", "there is at least one message", _FORMAT.format("messages")),
    Rule("role-unknown", "the role is one that the wire knows", _TYPES.format("message")),
    Rule(
        "result-orphan",
        "a tool message answers a call that was made",
        _REPLY.format(
            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
        ),
    ),
    Rule(
        "result-missing",
        "every call is answered",
        _UNANSWERED,
    ),
    Rule(
        "results-split",
        "the results of one turn's calls follow it directly, nothing in between",
        _UNANSWERED,
    ),
    Rule(
        "result-order",
        "a result comes after its call",
        _REPLY.format(
            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
        ),
    ),
    Rule("result-duplicate", "a call has one result", _FORMAT.format("messages, tool message, tool_call_id")),
    Rule("call-duplicate", "ids of one turn's calls differ", _FORMAT.format("messages, tool_calls, id")),
    Rule("call-id", "calls and results carry a non-empty id", _TYPES.format("tool_message")),
    Rule(
        "call-shape",
        "a call has a name, and its arguments are a string",
        _TYPES.format("message_function_tool_call"),
    ),
    Rule(
        "calls-empty",
        "tool_calls, when there, is not empty",
        _REPLY.format("[] is too short - 'messages.1.tool_calls'"),
    ),
    Rule(
        "content-missing",
        "content is there; only an assistant turn with calls, a refusal or audio may go without",
        _REPLY.format("Invalid value for 'content': expected a string, got null."),
    ),
    Rule(
        "content-empty",
        "a content array is not empty",
        _REPLY.format("Invalid 'messages[0].content': empty array. Expected an array with minimum length 1"),
    ),
    Rule("part-unsupported", "a role takes only certain parts", _TYPES.format("content_part")),
    Rule(
        "name-pattern",
        "names of tools are 1 to 64 letters, digits, _ and -",
        _REPLY.format(
            "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'"
        ),
    ),
)

_ROLES: Final = frozenset({"developer", "system", "user", "assistant", "tool", "function"})
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TEXT_ONLY: Final = frozenset({"text"})
_PARTS: Final = {
    "developer": _TEXT_ONLY,
    "system": _TEXT_ONLY,
    "tool": _TEXT_ONLY,
    "function": _TEXT_ONLY,
    "assistant": frozenset({"text", "refusal"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
}
_INSTEAD_OF_CONTENT: Final = ("tool_calls", "function_call", "refusal", "audio")
_CALL_BODY: Final = {"function": "arguments", "custom": "input"}


def _tool_calls(message: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    return blocks(message.get("tool_calls")) if message["role"] == "assistant" else []


def _list(asked: Asked) -> Iterator[Finding]:
    if not asked.messages:
        yield Finding("messages-empty", asked.base, "the list of messages is empty")


def _roles(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        if message["role"] not in _ROLES:
            yield Finding("role-unknown", (*path, "role"), f"role {message['role']!r}")


class _Pairing:
    """Walks the messages once, and holds the calls that still wait for their results."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        calls = [call.get("id") for m in asked.messages for _, call in _tool_calls(m)]
        self.ever_called = {i for i in calls if isinstance(i, str)}
        results = [m.get("tool_call_id") for m in asked.messages if m["role"] == "tool"]
        self.ever_answered = {i for i in results if isinstance(i, str)}
        self.called: set[str] = set()
        self.open: dict[str, Path] = {}
        self.answered: set[str] = set()

    def findings(self) -> Iterator[Finding]:
        for path, message in self.asked.each():
            if message["role"] == "tool":
                yield from self.result(path, message.get("tool_call_id"))
            else:
                yield from self.unanswered()
                yield from self.calls(path, message)
        yield from self.unanswered()

    def result(self, path: Path, call_id: Any) -> Iterator[Finding]:
        where = (*path, "tool_call_id")
        if not isinstance(call_id, str) or not call_id:
            yield Finding("call-id", where, "the tool message names no call")
        elif call_id in self.answered:
            yield Finding("result-duplicate", where, f"{call_id} is answered twice")
        elif call_id in self.open:
            self.answered.add(call_id)
        elif call_id in self.called:
            yield Finding("results-split", where, f"{call_id} was called before another message")
        elif call_id in self.ever_called:
            yield Finding("result-order", where, f"{call_id} is called only later")
        else:
            yield Finding("result-orphan", where, f"no call has the id {call_id}")

    def unanswered(self) -> Iterator[Finding]:
        for call_id, path in self.open.items():
            if call_id not in self.answered:
                late = call_id in self.ever_answered
                detail = "is answered elsewhere" if late else "has no result"
                yield Finding("results-split" if late else "result-missing", path, f"{call_id} {detail}")
        self.open, self.answered = {}, set()

    def calls(self, path: Path, message: Mapping[str, Any]) -> Iterator[Finding]:
        for index, call in _tool_calls(message):
            where = (*path, "tool_calls", index, "id")
            call_id = call.get("id")
            if not isinstance(call_id, str) or not call_id:
                yield Finding("call-id", where, "the call has no id")
                continue
            if call_id in self.open:
                yield Finding("call-duplicate", where, f"{call_id} is called twice")
            self.open[call_id] = where
            self.called.add(call_id)


def _pairs(asked: Asked) -> Iterator[Finding]:
    yield from _Pairing(asked).findings()


def _calls(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        if message.get("tool_calls") == []:
            yield Finding("calls-empty", (*path, "tool_calls"), "an empty array")
        for index, call in _tool_calls(message):
            where = (*path, "tool_calls", index)
            kind = call.get("type", "function")
            body = call.get(kind) if kind in _CALL_BODY else None
            if not isinstance(body, Mapping) or not isinstance(body.get(_CALL_BODY[kind]), str):
                yield Finding("call-shape", where, "not a function or custom call with a string of arguments")
            else:
                yield from _name(body.get("name"), (*where, kind, "name"))


def _name(name: Any, path: Path) -> Iterator[Finding]:
    if not isinstance(name, str):
        yield Finding("call-shape", path, "the name is missing")
    elif not _NAME.fullmatch(name):
        yield Finding("name-pattern", path, f"{name!r}")


def _tools(asked: Asked) -> Iterator[Finding]:
    for index, tool in blocks(asked.request.get("tools")):
        for kind in _CALL_BODY:
            if isinstance(tool.get(kind), Mapping):
                yield from _name(tool[kind].get("name"), ("tools", index, kind, "name"))


def _content(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        content, where = message.get("content"), (*path, "content")
        if content is None:
            allowed = message["role"] == "assistant" and any(message.get(k) for k in _INSTEAD_OF_CONTENT)
            if not allowed and message["role"] != "function":
                yield Finding("content-missing", where, f"a {message['role']} message without content")
        elif content == []:
            yield Finding("content-empty", where, "an empty array")
        elif not isinstance(content, str | list | tuple):
            yield Finding("content-missing", where, "neither a string nor an array")


def _parts(asked: Asked) -> Iterator[Finding]:
    for path, message in asked.each():
        allowed = _PARTS.get(message["role"], frozenset())
        for where, part in content_blocks(message, path):
            if part.get("type") not in allowed:
                detail = f"a {message['role']} message takes no {part.get('type')!r} part"
                yield Finding("part-unsupported", where, detail)


CHECKS: Final[tuple[Check, ...]] = (_list, _roles, _pairs, _calls, _tools, _content, _parts)
