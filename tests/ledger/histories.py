"""Random conversations in both wires, as a client holds them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from turngate.ledger import Addition, Policy

WIRES = ("chat", "anthropic")
IMAGE = {
    "chat": {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    "anthropic": {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
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
        messages.append({"role": "user", "content": draw(_user_content(wire))})
        for _ in range(draw(st.integers(0, 2))):
            count = draw(st.integers(1, 2))
            names = [f"c{number + n}" for n in range(count)]
            number += count
            messages += _loop(wire, names, [draw(texts) for _ in names])
        if turn < turns - 1:
            messages.append({"role": "assistant", "content": draw(texts)})
    return messages


def _user_content(wire: str) -> st.SearchStrategy[Any]:
    block = texts.map(lambda text: {"type": "text", "text": text})
    return st.one_of(texts, block.map(lambda b: [b]), block.map(lambda b: [IMAGE[wire], b]))


def _loop(wire: str, names: list[str], outputs: list[str]) -> list[dict[str, Any]]:
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
    return json.dumps(top | more | {"messages": messages}, ensure_ascii=False).encode()


def sendable(wire: str, messages: list[dict[str, Any]]) -> list[int]:
    """Lengths at which a client would send what it has: all calls are answered, and no answer is awaited."""
    out = []
    for size in range(1, len(messages) + 1):
        last = messages[size - 1]
        following = messages[size] if size < len(messages) else None
        mid_results = wire == "chat" and following is not None and following["role"] == "tool"
        if last["role"] in {"user", "tool"} and not mid_results:
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
