"""Clients as they are: they send the whole history each time, and spell it as they like."""

from __future__ import annotations

import copy
import json
from typing import Any

from turngate.wire import Wire

LONG = "\n".join(
    f"2026-01-01 12:00:{n % 60:02d} INFO worker {n % 7} handled job {n} in {n % 13} ms" for n in range(400)
)

TOOLS: dict[Wire, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
    "anthropic": [{"name": "bash", "input_schema": {"type": "object"}}],
    "responses": [{"type": "function", "name": "bash", "parameters": {"type": "object"}}],
    "gemini": [{"functionDeclarations": [{"name": "bash"}]}],
}
LIST: dict[Wire, str] = {
    "chat": "messages",
    "anthropic": "messages",
    "responses": "input",
    "gemini": "contents",
}


def user(wire: Wire, text: str) -> dict[str, Any]:
    if wire == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    return {"role": "user", "content": text}


def said(wire: Wire, text: str) -> dict[str, Any]:
    if wire == "gemini":
        return {"role": "model", "parts": [{"text": text}]}
    if wire == "responses":
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {"role": "assistant", "content": text}


def call(wire: Wire, id_: str, text: str = "") -> list[dict[str, Any]]:
    """One turn of the assistant that calls the shell."""
    args = {"command": f"run {id_}"}
    if wire == "chat":
        function = {"name": "bash", "arguments": json.dumps(args)}
        calls = [{"id": id_, "type": "function", "function": function}]
        return [{"role": "assistant", "content": text or None, "tool_calls": calls}]
    if wire == "anthropic":
        block = {"type": "tool_use", "id": id_, "name": "bash", "input": args}
        return [
            {"role": "assistant", "content": [*([{"type": "text", "text": text}] if text else []), block]}
        ]
    if wire == "responses":
        item = {"type": "function_call", "call_id": id_, "name": "bash", "arguments": json.dumps(args)}
        return [*([said(wire, text)] if text else []), item]
    part = {"functionCall": {"id": id_, "name": "bash", "args": args}}
    return [{"role": "model", "parts": [*([{"text": text}] if text else []), part]}]


def result(wire: Wire, id_: str, text: str) -> dict[str, Any]:
    if wire == "chat":
        return {"role": "tool", "tool_call_id": id_, "content": text}
    if wire == "anthropic":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": text}]}
    if wire == "responses":
        return {"type": "function_call_output", "call_id": id_, "output": text}
    return {
        "role": "user",
        "parts": [{"functionResponse": {"id": id_, "name": "bash", "response": {"output": text}}}],
    }


def loop(wire: Wire, turns: int, *, salt: str = "") -> list[dict[str, Any]]:
    """A whole history: a question, then calls with long results, then an answer."""
    messages = [user(wire, f"What went wrong? {salt}")]
    for turn in range(turns):
        messages += call(wire, f"call_{turn}", f"Let me look ({turn}).")
        messages.append(
            result(wire, f"call_{turn}", f"{LONG}\nERROR job {turn} failed: disk {salt}{turn} is full")
        )
    return [*messages, said(wire, "The disk is full.")]


def requests(wire: Wire, messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What the client sends: a request for each turn of the assistant."""
    ends = [
        at
        for at, message in enumerate(messages)
        if is_assistant(wire, message) and not is_assistant(wire, messages[at - 1])
    ]
    return [copy.deepcopy(messages[:end]) for end in ends]


def is_assistant(wire: Wire, message: dict[str, Any]) -> bool:
    role = message.get("role")
    return role in {"assistant", "model"} or (role is None and not message["type"].endswith("_output"))


def body(
    wire: Wire, messages: list[dict[str, Any]], *, tools: bool = True, first: bool = False, **more: Any
) -> bytes:
    """The request as bytes; with `first` the tools stand before the messages."""
    offered: dict[str, Any] = {"tools": TOOLS[wire]} if tools else {}
    fields = {
        "model": "m",
        **(offered if first else {}),
        LIST[wire]: messages,
        **({} if first else offered),
        **more,
    }
    return json.dumps(fields, ensure_ascii=False).encode()
