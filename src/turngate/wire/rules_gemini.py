"""What Gemini's ``generateContent`` demands of a request's contents and tools.

Left out, since the body does not name the model: that Gemini 3 refuses a call of the current turn without its
thought signature. That a signature that was there stays is a rule of history.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.gemini import CALL, RESPONSE, named
from turngate.wire.rule import Asked, Check, Finding, HistoryCheck, Rule
from turngate.wire.view import blocks, string

if TYPE_CHECKING:
    from turngate.wire.scan import Path

_TYPES = "python-genai, types.py, {}"
_REPLY = 'the API\'s refusal: "{}"'
_COUNT = _REPLY.format(
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)

RULES: Final = (
    Rule(
        "messages-empty",
        "there is at least one content",
        _REPLY.format("GenerateContentRequest.contents: contents is not specified"),
    ),
    Rule("role-unknown", "the role is user or model", _REPLY.format("Please use a valid role: user, model.")),
    Rule(
        "parts-empty",
        "a content has parts",
        _REPLY.format("GenerateContentRequest.contents[0].parts: contents.parts must not be empty."),
    ),
    Rule(
        "part-empty",
        "a part holds something",
        _REPLY.format(
            "contents[0].parts[0].data: required oneof field 'data' must have one initialized field"
        ),
    ),
    Rule("result-missing", "a turn with calls is followed by their responses", _COUNT),
    Rule("result-count", "there are as many responses as calls directly before", _COUNT),
    Rule(
        "result-orphan",
        "responses directly follow a turn with calls",
        _REPLY.format(
            "Please ensure that function response turn comes immediately after a function call turn."
        ),
    ),
    Rule(
        "result-name",
        "a response names the function, and the id, of its call",
        _TYPES.format("FunctionResponse"),
    ),
    Rule(
        "call-first",
        "a turn with calls is not the first",
        _REPLY.format(
            "Please ensure that function call turn comes immediately after a user turn or after a function "
            "response turn."
        ),
    ),
    Rule("call-shape", "a call has a name, and its arguments are an object", _TYPES.format("FunctionCall")),
    Rule("result-shape", "a response has a name, and is an object", _TYPES.format("FunctionResponse")),
    Rule(
        "name-pattern",
        "names of functions begin with a letter or _; letters, digits, _ . : - follow",
        _REPLY.format(
            "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, "
            "A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
        ),
    ),
    Rule(
        "cache-fields",
        "what cached content holds is not sent again",
        _REPLY.format(
            "CachedContent can not be used with GenerateContent request setting system_instruction, tools or "
            "tool_config."
        ),
    ),
)

HISTORY_RULES: Final = (
    Rule(
        "signature-lost",
        "a thought signature goes back on its part, as it came",
        "ai.google.dev/gemini-api/docs/thought-signatures; "
        + _REPLY.format("Function call is missing a thought_signature in functionCall parts."),
    ),
    Rule(
        "user-lost",
        "a conversation that had a user message keeps one",
        "the list a window must keep valid",
    ),
)

_ROLES: Final = frozenset({"user", "model", "function"})
_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_SIGNATURE: Final = ("thoughtSignature", "thought_signature")
_ABOUT: Final = frozenset({
    *_SIGNATURE, "thought", "videoMetadata", "video_metadata", "mediaResolution", "media_resolution",
    "partMetadata", "part_metadata",
})  # fmt: skip
"""Fields of a part beside what it holds."""
_DECLARED: Final = ("functionDeclarations", "function_declarations")
_CACHE: Final = ("cachedContent", "cached_content")
_CACHED: Final = (
    "systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config",
)  # fmt: skip


def _parts(content: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for at, part in blocks(content.get("parts")):
        yield (*path, "parts", at), part


def _bodies(content: Mapping[str, Any], spellings: tuple[str, ...]) -> list[Mapping[str, Any]]:
    found = (named(part, spellings) for _, part in blocks(content.get("parts")))
    return [each[1] for each in found if each is not None]


def _list(asked: Asked) -> Iterator[Finding]:
    if not asked.messages:
        yield Finding("messages-empty", asked.base, "there is no content")


def _contents(asked: Asked) -> Iterator[Finding]:
    for path, content in asked.each():
        if content.get("role", "user") not in _ROLES:
            yield Finding("role-unknown", (*path, "role"), f"role {content['role']!r}")
        if not blocks(content.get("parts")):
            yield Finding("parts-empty", (*path, "parts"), "there is no part")
        for where, part in _parts(content, path):
            if part.keys() <= _ABOUT:
                yield Finding("part-empty", where, "the part holds nothing")


def _pairs(asked: Asked) -> Iterator[Finding]:
    waiting: list[Mapping[str, Any]] = []
    since: Path = asked.base
    for path, content in asked.each():
        calls, responses = _bodies(content, CALL), _bodies(content, RESPONSE)
        if responses and not waiting:
            yield Finding("result-orphan", path, "no call stands directly before")
        elif waiting:
            yield from _answered(path, since, waiting, responses)
        if calls and path == (*asked.base, 0):
            yield Finding("call-first", path, "nothing stands before the call")
        waiting, since = calls, path
    if waiting:
        yield Finding("result-missing", since, "the calls have no responses")


def _answered(
    path: Path, since: Path, calls: list[Mapping[str, Any]], responses: list[Mapping[str, Any]]
) -> Iterator[Finding]:
    if not responses:
        yield Finding("result-missing", since, "no responses follow the calls")
    elif len(calls) != len(responses):
        yield Finding("result-count", path, f"{len(responses)} responses to {len(calls)} calls")
    elif Counter(map(_name, calls)) != Counter(map(_name, responses)):
        yield Finding("result-name", path, "the responses name other functions than the calls")
    else:
        ids = ({string(each.get("id")) for each in side} - {""} for side in (calls, responses))
        called, answered = ids
        if not answered <= called:
            yield Finding("result-name", path, "a response has an id that no call has")


def _name(body: Mapping[str, Any]) -> str:
    return string(body.get("name"))


def _shapes(asked: Asked) -> Iterator[Finding]:
    for path, content in asked.each():
        for where, part in _parts(content, path):
            yield from _shape(part, where, CALL, "call-shape", "args")
            yield from _shape(part, where, RESPONSE, "result-shape", "response")


def _shape(
    part: Mapping[str, Any], path: Path, spellings: tuple[str, ...], rule: str, field: str
) -> Iterator[Finding]:
    key = next((key for key in spellings if key in part), None)
    if key is None:
        return
    body = part[key]
    if not isinstance(body, Mapping) or not _name(body):
        yield Finding(rule, (*path, key), "the name is missing")
    elif not isinstance(body.get(field, {} if rule == "call-shape" else None), Mapping):
        yield Finding(rule, (*path, key, field), "not an object")


def _tools(asked: Asked) -> Iterator[Finding]:
    for at, tool in blocks(asked.request.get("tools")):
        for key in _DECLARED:
            for number, function in blocks(tool.get(key)):
                if not _NAME.fullmatch(_name(function)):
                    where = ("tools", at, key, number, "name")
                    yield Finding("name-pattern", where, f"{function.get('name')!r}")


def _cache(asked: Asked) -> Iterator[Finding]:
    if any(asked.request.get(field) for field in _CACHE):
        for field in _CACHED:
            if asked.request.get(field):
                yield Finding("cache-fields", (field,), "the cached content has its own")


CHECKS: Final[tuple[Check, ...]] = (_list, _contents, _pairs, _shapes, _tools, _cache)


def _signed(asked: Asked) -> Iterator[tuple[Path, str, str]]:
    """What the model produced, part by part: its place, what it holds, its signature."""
    for path, content in asked.each():
        if content.get("role") != "model":
            continue
        for where, part in _parts(content, path):
            plain = {key: value for key, value in part.items() if key not in _SIGNATURE}
            seal = next((string(part[key]) for key in _SIGNATURE if key in part), "")
            yield where, json.dumps(plain, sort_keys=True, default=str), seal


def _signature_lost(sent: Asked, asked: Asked) -> Iterator[Finding]:
    before: defaultdict[str, set[str]] = defaultdict(set)
    for _, held, seal in _signed(sent):
        before[held].add(seal)
    for where, held, seal in _signed(asked):
        if held in before and seal not in before[held] and before[held] != {""}:
            yield Finding("signature-lost", where, "the signature is not what was sent before")


def _user_lost(sent: Asked, asked: Asked) -> Iterator[Finding]:
    had, has = (any(each.get("role", "user") == "user" for each in a.messages) for a in (sent, asked))
    if had and not has:
        yield Finding("user-lost", asked.base, "no user message is left")


HISTORY_CHECKS: Final[tuple[HistoryCheck, ...]] = (_signature_lost, _user_lost)
