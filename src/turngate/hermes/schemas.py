"""The tools as the model sees them. Data only: this is loaded at the host's start.

Each description's first sentence is short, since hosts list tools by it. Every schema is closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PREFIX = "turngate_"
TOOLSET = "turngate"
ALL = "all"

_HASH = {"type": "string", "description": "id from a <<<CCR:id|…>>> line"}
_PATHS = {"type": "array", "items": {"type": "string"}}

#: Tool, without prefix -> what it does, its parameters, those that are required.
_TOOLS: Mapping[str, tuple[str, Mapping[str, Any], Sequence[str]]] = {
    "retrieve": (
        "Read what a shortened result hides. Ask for just the part you need.",
        {
            "hash": _HASH,
            "lines": {"type": "string", "description": "range, 41-80"},
            "pattern": {"type": "string", "description": "regex; matching lines"},
            "query": {"type": "string", "description": "plain words; best passages"},
            "path": {"type": "string", "description": "JSON path $.a[0]; without hash: a file"},
            "page": {"type": "integer", "description": "from 1"},
            "expand": {"type": "boolean", "description": "follow markers inside it"},
        },
        (),
    ),
    "search": (
        "Search all results of this session, hidden parts too.",
        {
            "query": {"type": "string", "description": "plain words"},
            "limit": {"type": "integer", "description": "hits, default 5"},
        },
        ("query",),
    ),
    "compress": (
        "Store a text and get a short marker for it.",
        {
            "content": {"type": "string"},
            "type": {"type": "string", "description": "what it is, one word"},
        },
        ("content",),
    ),
    "stats": ("Show what was saved so far, net.", {}, ()),
    "catalog": (
        "List the results that were shortened, newest first.",
        {"mode": {"type": "string", "enum": ["full", "toc"]}},
        (),
    ),
    "history": (
        "List the last tool calls and how they ended.",
        {"limit": {"type": "integer", "description": "default 50"}},
        (),
    ),
    "files": ("List the files read and written, stale reads marked.", {}, ()),
    "directive": (
        "List or change standing instructions.",
        {
            "action": {"type": "string", "enum": ["list", "swap", "add", "load", "remove", "reset"]},
            "names": {"type": "array", "items": {"type": "string"}},
        },
        ("action",),
    ),
    "reclassify": (
        "Recognise again what kind of output a stored result is.",
        {"hash": {"type": "string", "description": "id; without it, all that is catalogued"}},
        (),
    ),
    "prefetch": (
        "Read files into the store. Each gets a marker, by which parts of it can be read.",
        {"paths": _PATHS},
        ("paths",),
    ),
    "prefetch_status": ("List the files that were prefetched.", {}, ()),
    "test": (
        "Check this plugin, on a store of its own.",
        {"mode": {"type": "string", "enum": ["quick", "full", "matrix", "pipeline"]}},
        (),
    ),
}
NAMES = tuple(_TOOLS)


def offered(chosen: Sequence[str]) -> list[dict[str, Any]]:
    """The host's schemas of the tools that the setting names; unknown names are let by."""
    names = NAMES if ALL in chosen else [name for name in NAMES if name in chosen]
    return [schema(name) for name in names]


def schema(name: str) -> dict[str, Any]:
    """One tool as the host takes it."""
    description, properties, required = _TOOLS[name]
    parameters: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        parameters["required"] = list(required)
    return {
        "name": f"{PREFIX}{name}",
        "description": description,
        "parameters": parameters | {"additionalProperties": False},
    }
