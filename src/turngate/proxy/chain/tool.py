"""Our tool as each wire declares it, where it stands among the client's, and when it is offered. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from turngate.proxy.jsontext import loads
from turngate.proxy.reply.base import OWN
from turngate.wire.scan import Node, scan

if TYPE_CHECKING:
    from turngate.proxy.chain.reading import Beside, Reading
    from turngate.wire import Wire

#: The proxy injects nothing else, so this is where the model learns what a marker is.
DESCRIPTION: Final = (
    "Read what a shortened tool result hides. Long results are shortened once, when they arrive: a first "
    "line that begins with <<<CCR:id| says so, and below it stand lines of the result, word for word, with "
    "notes on what is hidden between them; failures stay. If you need something that is hidden, ask for just "
    "that: the id and a range of lines, a pattern or a question; without an id, a question is put to all "
    "results of this conversation. If what is shown answers your question, don't. Don't repeat a call just "
    "to see its output again."
)
_PROPERTIES: Final[Mapping[str, tuple[str, str]]] = {
    "hash": ("string", "id from a <<<CCR:id|…>>> line"),
    "lines": ("string", "range, 41-80"),
    "pattern": ("string", "regex; matching lines"),
    "query": ("string", "plain words; best passages"),
    "path": ("string", "JSON path $.a[0]"),
    "page": ("integer", "from 1"),
}
_EMPTY_LIST: Final = re.compile(rb"\[\s*\]\Z")
_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")


@cache
def declaration(wire: Wire) -> bytes:
    """The tool's JSON in that wire."""
    return orjson.dumps(_DECLARE[wire]())


def offer_place(reading: Reading) -> int | None:
    """Offset at which the tool is added as the last one; None where the client sends no tools."""
    place = _tools(reading)
    if place is None or place.kind != "array" or _EMPTY_LIST.match(reading.body[place.start : place.end]):
        return None
    if reading.wire != "gemini":
        return place.end - 1
    inner = _last_declarations(reading.body[place.start : place.end])
    return None if inner is None else place.start + inner


def has_one(reading: Reading) -> bool:
    """Whether the client brings a tool of that name itself: then its own door does all this already."""
    place = _tools(reading)
    return place is not None and b'"' + OWN.encode() + b'"' in reading.body[place.start : place.end]


def permitted(reading: Reading) -> bool:
    """Whether the request lets the model call a tool of its choice, and asks for one reply only."""
    if not _is_single(reading):
        return False
    field = {"gemini": "toolConfig"}.get(reading.wire, "tool_choice")
    raw = reading.field(field) or (reading.field("tool_config") if reading.wire == "gemini" else b"")
    return not raw or _PERMITS[reading.wire](loads(raw))


def _is_single(reading: Reading) -> bool:
    """Of several replies at once, only the first could be answered."""
    if reading.wire == "gemini":
        config = loads(reading.field("generationConfig") or b"{}")
        return not isinstance(config, Mapping) or config.get("candidateCount") in {None, 1}
    return reading.wire != "chat" or reading.field("n") in {b"", b"1", b"null"}


def _tools(reading: Reading) -> Beside | None:
    # Chat's older `functions` can hold no tool of this form.
    return reading.fields.get("tools")


def _last_declarations(raw: bytes) -> int | None:
    """Offset of the end of the last list of declarations in Gemini's tools."""
    for item in reversed(scan(raw).items):
        for name in _DECLARATIONS:
            found: Node | None = item.get(name)
            if found is not None and found.kind == "array" and found.items:
                return found.end - 1
    return None


def _schema() -> dict[str, Any]:
    properties = {name: {"type": kind, "description": says} for name, (kind, says) in _PROPERTIES.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _chat() -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": OWN, "description": DESCRIPTION, "parameters": _schema()},
    }


def _anthropic() -> dict[str, Any]:
    return {"name": OWN, "description": DESCRIPTION, "input_schema": _schema()}


def _responses() -> dict[str, Any]:
    # Without it the provider takes the schema for strict, in which every parameter is required.
    return {
        "type": "function",
        "name": OWN,
        "description": DESCRIPTION,
        "parameters": _schema(),
        "strict": False,
    }


def _gemini() -> dict[str, Any]:
    properties = {
        name: {"type": kind.upper(), "description": says} for name, (kind, says) in _PROPERTIES.items()
    }
    return {
        "name": OWN,
        "description": DESCRIPTION,
        "parameters": {"type": "OBJECT", "properties": properties},
    }


_DECLARE: Final[Mapping[Wire, Callable[[], dict[str, Any]]]] = {
    "chat": _chat,
    "anthropic": _anthropic,
    "responses": _responses,
    "gemini": _gemini,
}


def _openai_permits(choice: Any) -> bool:
    return choice is None or choice in ("auto", "required")


def _anthropic_permits(choice: Any) -> bool:
    return not isinstance(choice, Mapping) or choice.get("type") in {"auto", "any"}


def _gemini_permits(config: Any) -> bool:
    if not isinstance(config, Mapping):
        return True
    calling = config.get("functionCallingConfig") or config.get("function_calling_config") or {}
    if not isinstance(calling, Mapping):
        return True
    listed = calling.get("allowedFunctionNames") or calling.get("allowed_function_names")
    return str(calling.get("mode", "AUTO")).upper() != "NONE" and not listed


_PERMITS: Final[Mapping[Wire, Callable[[Any], bool]]] = {
    "chat": _openai_permits,
    "responses": _openai_permits,
    "anthropic": _anthropic_permits,
    "gemini": _gemini_permits,
}
