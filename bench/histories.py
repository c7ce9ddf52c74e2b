"""Random histories in two wires, valid ones and broken ones, from any source of random numbers.

Parallel calls, results in any order, messages of the user in between, missing and doubled results, reasoning,
images, huge and empty messages, ids that are used again, system messages in the middle.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

WORDS = ("read", "the file", "error: no such table", "src/app.py:12", "\u4f60\u597d\u4e16\u754c", "port 8080",
         "a1b2c3d4e5", "ok", "done\n", "[1/2]", '{"a": 1}', "\U0001f600", "exit code: 1\n", "x")  # fmt: skip
IMAGE = "iVBORw0KGgo" * 40
TOOLS = ("read_file", "terminal", "write_file", "search")


def text(rng: Random, most: int = 0) -> str:
    """Mostly short, sometimes long, rarely huge; never blank."""
    kind = rng.randint(0, 99)
    words = rng.randint(1, 12) if kind < 70 else rng.randint(20, 120) if kind < 97 else rng.randint(400, 1500)
    if most:
        words = min(words, most)
    line = " ".join(WORDS[rng.randint(0, len(WORDS) - 1)] for _ in range(min(words, 40)))
    return "\n".join(f"{at} {line}" for at in range(max(1, words // 40))) if words > 40 else line


class Maker:
    """Makes one history."""

    def __init__(self, rng: Random, wire: str, *, thinking: bool = False) -> None:
        self.rng = rng
        self.wire = wire
        self.thinking = thinking
        self.calls = 0
        self.signed = 0

    def history(self, turns: int) -> list[dict[str, Any]]:
        """A valid history whose last message a model is to answer, or has just answered."""
        out: list[dict[str, Any]] = []
        if self.wire == "chat":
            out += [{"role": "system", "content": text(self.rng, 30)} for _ in range(self.rng.randint(0, 2))]
        for turn in range(turns):
            out += self.turn(last=turn == turns - 1)
        return out

    def turn(self, *, last: bool) -> list[dict[str, Any]]:
        rng = self.rng
        out = [self.user()]
        if self.wire == "anthropic" and rng.randint(0, 11) == 0 and not last:
            out.append({"role": "system", "content": "note " + text(rng, 8)})
            out.append(self.answer())
            return out
        if self.wire == "chat" and rng.randint(0, 11) == 0:
            out.append({"role": "system", "content": "note " + text(rng, 8)})
        for _ in range(rng.randint(0, 5)):
            out += self.exchange()
        if not last or rng.randint(0, 3) == 0:
            out.append(self.answer())
        return out

    def user(self) -> dict[str, Any]:
        rng, said = self.rng, text(self.rng)
        if rng.randint(0, 7) == 0:
            return {"role": "user", "content": [self.image(), {"type": "text", "text": said}]}
        if rng.randint(0, 7) == 0:
            return {"role": "user", "content": [{"type": "text", "text": said}]}
        if self.wire == "chat" and rng.randint(0, 24) == 0:
            return {"role": "user", "content": ""}
        return {"role": "user", "content": said}

    def answer(self) -> dict[str, Any]:
        said = text(self.rng).rstrip()  # a last answer must not end in white space
        if self.wire == "anthropic" and self.thinking and self.rng.randint(0, 1):
            return {"role": "assistant", "content": [*self.think(), {"type": "text", "text": said}]}
        return {"role": "assistant", "content": said}

    def think(self) -> list[dict[str, Any]]:
        self.signed += 1
        if self.rng.randint(0, 4) == 0:
            return [{"type": "redacted_thinking", "data": f"sealed{self.signed}"}]
        return [
            {
                "type": "thinking",
                "thinking": f"{self.signed} {text(self.rng, 20)}",
                "signature": f"sig{self.signed}",
            }
        ]

    def image(self) -> dict[str, Any]:
        if self.wire == "chat":
            return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}
        source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
        return {"type": "image", "source": source}

    def exchange(self) -> list[dict[str, Any]]:
        """Calls and their results."""
        rng = self.rng
        ids = [self.call_id() for _ in range(rng.randint(1, 4) if rng.randint(0, 2) == 0 else 1)]
        ids = list(dict.fromkeys(ids))
        order = sorted(ids, key=lambda _: rng.randint(0, 9))
        return self.chat_exchange(ids, order) if self.wire == "chat" else self.anthropic_exchange(ids, order)

    def call_id(self) -> str:
        self.calls += 1
        if self.wire == "chat" and self.calls > 3 and self.rng.randint(0, 19) == 0:
            return f"c{self.rng.randint(1, self.calls)}"
        return f"c{self.calls}"

    def arguments(self) -> dict[str, Any]:
        return {"path": f"src/f{self.rng.randint(0, 9)}.py", "content": text(self.rng)}

    def chat_exchange(self, ids: list[str], order: list[str]) -> list[dict[str, Any]]:
        rng = self.rng
        calls = [
            {
                "id": call_id,
                "type": "function",
                "function": {
                    "name": TOOLS[rng.randint(0, 3)],
                    "arguments": json.dumps(self.arguments()),
                },
            }
            for call_id in ids
        ]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": text(rng) if rng.randint(0, 1) else None,
            "tool_calls": calls,
        }
        if rng.randint(0, 3) == 0:
            message["reasoning_content"] = text(rng)
        results = [{"role": "tool", "tool_call_id": call_id, "content": self.result()} for call_id in order]
        return [message, *results]

    def result(self) -> Any:
        said = "" if self.rng.randint(0, 15) == 0 else text(self.rng)
        if self.wire == "anthropic" and self.rng.randint(0, 7) == 0:
            return [{"type": "text", "text": said or "-"}, self.image()]
        return [{"type": "text", "text": said or "-"}] if self.rng.randint(0, 5) == 0 else said

    def anthropic_exchange(self, ids: list[str], order: list[str]) -> list[dict[str, Any]]:
        rng = self.rng
        content: list[dict[str, Any]] = []
        if self.thinking and rng.randint(0, 2):
            content += self.think()
        if rng.randint(0, 1):
            content.append({"type": "text", "text": text(rng)})
        content += [
            {"type": "tool_use", "id": i, "name": TOOLS[rng.randint(0, 3)], "input": self.arguments()}
            for i in ids
        ]
        results: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": i, "content": self.result()} for i in order
        ]
        if rng.randint(0, 7) == 0:
            results.append({"type": "text", "text": "by the way: " + text(rng, 10)})
        return [{"role": "assistant", "content": content}, {"role": "user", "content": results}]


def valid(rng: Random, wire: str, *, thinking: bool = False, most_turns: int = 8) -> list[dict[str, Any]]:
    """A history that a provider accepts."""
    return Maker(rng, wire, thinking=thinking).history(rng.randint(1, most_turns))


def broken(rng: Random, wire: str, *, most_turns: int = 8) -> list[dict[str, Any]]:
    """A history in which something was lost, doubled, moved or put in between."""
    out = valid(rng, wire, most_turns=most_turns)
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(out) - 1)
        change = rng.randint(0, 3)
        if change == 0 and len(out) > 1:
            del out[at]
        elif change == 1:
            out.insert(at, dict(out[at]))
        elif change == 2:
            out.insert(at, {"role": "user", "content": "wait"})
        else:
            out.append(out.pop(at))
    return out
