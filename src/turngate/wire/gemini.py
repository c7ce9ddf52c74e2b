"""Gemini's ``generateContent``: the view of a request.

Its names come in two spellings, as protocol buffers do in JSON: ``functionCall`` and ``function_call``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from turngate.wire.layout import message_values, role_of
from turngate.wire.view import Message, Source, TextPart, ToolCall, ToolResult, View, blocks, parse, string

if TYPE_CHECKING:
    from turngate.wire.scan import Path

CALL: Final = ("functionCall", "function_call")
RESPONSE: Final = ("functionResponse", "function_response")

_LEAF_DEPTH: Final = 4
"""Levels of a response in which texts are found; tools nest what they print no deeper."""


def view(source: Source) -> View:
    """The view of a Gemini request. Roles read as in the other wires: ``model`` is ``assistant``.

    Without an id, a call is named by its function and how many of that name stood before it in the contents:
    ``read#0``. Its response has the same name.

    Raises:
        WireError: if it has no contents.
    """
    seen = _Seen()
    out: list[Message] = []
    for index, (path, content) in enumerate(message_values(parse(source), "gemini")):
        parts = [((*path, "parts", at), part) for at, part in blocks(content.get("parts"))]
        calls = tuple(call for where, part in parts for call in seen.calls(part, where, index))
        results = tuple(result for where, part in parts for result in seen.results(part, where, index))
        texts = tuple(
            TextPart(part["text"], (*where, "text"))
            for where, part in parts
            if isinstance(part.get("text"), str) and not part.get("thought")
        )
        out.append(Message(index, role_of(content, "gemini"), path, texts, calls, results))
    return View("gemini", tuple(out))


def named(part: Mapping[str, Any], spellings: tuple[str, ...]) -> tuple[str, Mapping[str, Any]] | None:
    """The object under one of these names, and the name it has."""
    return next(((key, part[key]) for key in spellings if isinstance(part.get(key), Mapping)), None)


@dataclass(slots=True)
class _Seen:
    """The calls and responses so far."""

    called: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    known: dict[str, ToolCall] = field(default_factory=dict)

    def calls(self, part: Mapping[str, Any], path: Path, index: int) -> Iterator[ToolCall]:
        found = named(part, CALL)
        if found is None:
            return
        body = found[1]
        given, place = string(body.get("id")), _place(body, self.called)
        args = body.get("args")
        name = string(body.get("name"))
        call = ToolCall(given or place, name, args if isinstance(args, Mapping) else {}, path, index)
        self.known[place] = self.known[call.id] = call
        yield call

    def results(self, part: Mapping[str, Any], path: Path, index: int) -> Iterator[ToolResult]:
        found = named(part, RESPONSE)
        if found is None:
            return
        key, body = found
        given, place = string(body.get("id")), _place(body, self.answered)
        call = self.known.get(given or place)
        response = body.get("response")
        texts = tuple(_leaves(response, (*path, key, "response"), _LEAF_DEPTH))
        tool = string(body.get("name")) or (call.name if call else "")
        args = call.args if call else None
        yield ToolResult(given or place, tool, args, texts, path, index, _failed(response))


def _place(body: Mapping[str, Any], count: Counter[str]) -> str:
    name = string(body.get("name"))
    count[name] += 1
    return f"{name}#{count[name] - 1}"


def _leaves(value: Any, path: Path, depth: int) -> Iterator[TextPart]:
    """All strings in a response, as they stand there."""
    if isinstance(value, str):
        yield TextPart(value, path)
    elif depth and isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, (*path, key), depth - 1)
    elif depth and isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from _leaves(each, (*path, at), depth - 1)


def _failed(response: Any) -> bool | None:
    """Google's convention: the key ``error`` has what went wrong, ``output`` what came out."""
    if not isinstance(response, Mapping):
        return None
    if "error" in response and "output" not in response:
        return bool(response["error"])
    return None
