"""Random conversations in every wire, as a client holds them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from turngate.ledger import Addition, Policy
from turngate.wire.layout import LAYOUT, role_of

WIRES = ("chat", "anthropic")
"""The wires in which a message has a role and content."""
ALL_WIRES = (*WIRES, "responses", "gemini")
IMAGE = {
    "chat": {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    "anthropic": {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    "responses": {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
    "gemini": {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
}
words = st.sampled_from(["red", "blue", "ä\U0001f600", 'quo"te', "line\nbreak", "back\\slash", "last"])
texts = st.lists(words, min_size=1, max_size=3).map(" ".join)


@st.composite
def histories(draw, wire: str, max_turns: int = 4) -> list[dict[str, Any]]:
    """A valid message list that ends with a user's message or with tool results."""
    messages: list[dict[str, Any]] = []
    if wire == "chat" and draw(st.booleans()):
        messages.append({"role": "system", "content": draw(texts)})
    number = 0
    turns = draw(st.integers(1, max_turns))
    for turn in range(turns):
        messages.append(draw(_user(wire)))
        for _ in range(draw(st.integers(0, 2))):
            count = draw(st.integers(1, 2))
            names = [f"c{number + n}" for n in range(count)]
            number += count
            messages += _loop(wire, names, [draw(texts) for _ in names])
        if turn < turns - 1:
            messages.append(_answer(wire, draw(texts)))
    return messages


def _user(wire: str) -> st.SearchStrategy[dict[str, Any]]:
    kinds = {"gemini": {}, "responses": {"type": "input_text"}}
    block = texts.map(lambda text: kinds.get(wire, {"type": "text"}) | {"text": text})
    blocks = block.map(lambda b: [b]) | block.map(lambda b: [IMAGE[wire], b])
    if wire == "gemini":
        return blocks.map(lambda parts: {"role": "user", "parts": parts})
    return (texts | blocks).map(lambda content: {"role": "user", "content": content})


def _answer(wire: str, text: str) -> dict[str, Any]:
    if wire == "gemini":
        return {"role": "model", "parts": [{"text": text}]}
    if wire == "responses":
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {"role": "assistant", "content": text}


def _loop(wire: str, names: list[str], outputs: list[str]) -> list[dict[str, Any]]:
    pairs = list(zip(names, outputs, strict=True))
    if wire == "responses":
        calls = [
            {"type": "function_call", "call_id": name, "name": "run", "arguments": '{"n": 1}'}
            for name in names
        ]
        return [*calls, *({"type": "function_call_output", "call_id": n, "output": out} for n, out in pairs)]
    if wire == "gemini":
        parts = [
            {"functionCall": {"name": "run", "args": {"n": 1}}, "thoughtSignature": name} for name in names
        ]
        answers = [{"functionResponse": {"name": "run", "response": {"output": out}}} for _, out in pairs]
        return [{"role": "model", "parts": parts}, {"role": "user", "parts": answers}]
    if wire == "chat":
        calls = [
            {"id": name, "type": "function", "function": {"name": "run", "arguments": '{"n": 1}'}}
            for name in names
        ]
        results = [
            {"role": "tool", "tool_call_id": name, "content": text}
            for name, text in zip(names, outputs, strict=True)
        ]
        return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    calls = [{"type": "tool_use", "id": name, "name": "run", "input": {"n": 1}} for name in names]
    blocks = [
        {"type": "tool_result", "tool_use_id": name, "content": text}
        for name, text in zip(names, outputs, strict=True)
    ]
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": blocks}]


def request(wire: str, messages: list[dict[str, Any]], **more: Any) -> bytes:
    """A body that holds these messages."""
    top = {"model": "claude-opus-5", "max_tokens": 100} if wire == "anthropic" else {"model": "m"}
    return json.dumps(top | more | {LAYOUT[wire].messages: messages}, ensure_ascii=False).encode()


def sendable(wire: str, messages: list[dict[str, Any]]) -> list[int]:
    """Lengths at which a client would send what it has: all calls are answered, and no answer is awaited."""
    out = []
    for size in range(1, len(messages) + 1):
        last = messages[size - 1]
        following = messages[size] if size < len(messages) else None
        mid_results = following is not None and role_of(following, wire) == "tool"
        if role_of(last, wire) in {"user", "tool"} and not mid_results:
            out.append(size)
    return out


def shortening(result, text):
    """A policy that changes every text that has more than one word."""
    return f"[{text.split()[0]}]" if len(text.split()) > 1 else text


class Telling:
    """Adds a note of its own to every new user message, now native, now as a text."""

    def __init__(self, op="append"):
        self.op = op
        self.told = {}
        self.dropped = []

    def __call__(self, occasion):
        number = self.told.setdefault(occasion.key, len(self.told) + 1)
        return [Addition(f"told {number}", self.op), Addition("")]

    def policy(self, version="1"):
        return Policy(version, shortening, self, self.dropped.append)
