"""`python -m bench prefix DIR`: does what the proxy sends extend what it sent before, byte for byte?

Every recorded session is driven through the proxy's engine as a client would: the whole history each time, in
four wires, and as real clients spell it: cache marks that move, strings that become blocks and back, replies
that come back spelled anew. Halfway another process takes over. What isn't ours must be the client's bytes.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.ledger import as_anthropic
from turngate.gate import Gate
from turngate.proxy.chain.ask import Ask
from turngate.proxy.chain.deciding import Terms
from turngate.proxy.chain.engine import Engine
from turngate.proxy.chain.spelling import unmarked
from turngate.proxy.chain.tool import declaration
from turngate.replay.transcripts import read_all
from turngate.settings import Settings
from turngate.wire import violations
from turngate.wire.layout import LAYOUT
from turngate.wire.scan import scan

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.wire import Wire

Message = dict[str, Any]
TOOLS: dict[Wire, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
    "anthropic": [{"name": "t", "input_schema": {"type": "object"}}],
    "responses": [{"type": "function", "name": "t", "parameters": {"type": "object"}}],
    "gemini": [{"functionDeclarations": [{"name": "t"}]}],
}
MARK = {"cache_control": {"type": "ephemeral"}}


@dataclass(slots=True)
class Sum:
    """What the sessions in one wire, spelled in one way, came to."""

    sessions: int = 0
    requests: int = 0
    breaks: int = 0
    """Requests whose messages do not begin with those sent before, as bytes without cache marks."""
    invalid: int = 0
    """Rules that requests break which the client's did not."""
    changed: int = 0
    """Requests in which bytes that are not ours are not the client's."""
    came_bytes: int = 0
    sent_bytes: int = 0
    faults: Counter[str] = field(default_factory=Counter)


def as_responses(messages: list[Message]) -> list[Message]:
    out: list[Message] = []
    for message in messages:
        if message["role"] == "tool":
            output = message["content"]
            out.append({"type": "function_call_output", "call_id": message["tool_call_id"], "output": output})
            continue
        if message.get("content"):
            out.append({"role": message["role"], "content": message["content"]})
        calls = message.get("tool_calls", ())
        out += ({"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls)
    return out


def as_gemini(messages: list[Message]) -> list[Message]:
    out: list[Message] = []
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "system":
            continue
        parts = [{"text": message["content"]}] if message.get("content") and message["role"] != "tool" else []
        for call in message.get("tool_calls", ()):
            names[call["id"]] = call["function"]["name"]
            parts.append({"functionCall": {"id": call["id"], "name": names[call["id"]], "args": _args(call)}})
        if message["role"] == "tool":
            body = {"id": message["tool_call_id"], "name": names.get(message["tool_call_id"], "t")}
            part = {"functionResponse": {**body, "response": {"output": message["content"]}}}
            if out and "functionResponse" in out[-1]["parts"][0]:
                out[-1]["parts"].append(part)
                continue
            parts = [part]
        role = "model" if message["role"] == "assistant" else "user"
        out.append({"role": role, "parts": parts or [{"text": "."}]})
    return out


def _args(call: Message) -> Any:
    try:
        return json.loads(call["function"]["arguments"])
    except ValueError:
        return {"text": call["function"]["arguments"]}


SHAPES: dict[Wire, Callable[[list[Message]], list[Message]]] = {
    "chat": lambda messages: messages,
    "anthropic": as_anthropic,
    "responses": as_responses,
    "gemini": as_gemini,
}


def plain(messages: list[Message], _: Wire) -> list[Message]:
    return messages


def marked(messages: list[Message], wire: Wire) -> list[Message]:
    """Cache marks on the last two messages; a string that gets one becomes a block."""
    if wire not in {"anthropic", "chat"}:
        return messages
    for message in messages[-2:]:
        content = message.get("content")
        if isinstance(content, str) and content:
            message["content"] = [{"type": "text", "text": content, **MARK}]
        elif isinstance(content, list) and content:
            content[-1] |= MARK
    return messages


def respelled(messages: list[Message], wire: Wire) -> list[Message]:
    """All but the newest message in another order of fields, blocks for strings, absent fields as null."""
    out = []
    for message in messages[:-1]:
        again = dict(reversed(message.items()))
        if wire in {"anthropic", "chat"} and isinstance(again.get("content"), str) and again["content"]:
            again["content"] = [{"text": again["content"], "type": "text"}]
        if wire == "chat" and again["role"] == "assistant":
            again["refusal"] = None
        out.append(again)
    return [*out, *messages[-1:]]


HABITS: dict[str, Callable[[list[Message], Wire], list[Message]]] = {
    "plain": plain,
    "marks move": marked,
    "spelled anew": respelled,
}


def request(wire: Wire, messages: list[Message]) -> bytes:
    top: dict[str, Any] = {"model": "m", "max_tokens": 1000, "tools": TOOLS[wire]}
    if wire == "anthropic":
        system = [message["content"] for message in messages if message["role"] == "system"]
        top |= {"system": system[0]} if system else {}
        messages = [message for message in messages if message["role"] != "system"]
    top[LAYOUT[wire].messages] = messages
    return json.dumps(top, ensure_ascii=False).encode("utf-8", "surrogatepass")


def bare(body: bytes, wire: Wire) -> list[bytes]:
    """Each message as bytes, cache marks removed and nothing else."""
    found = scan(body).get(LAYOUT[wire].messages)
    return [unmarked(body, node) for node in found.items] if found is not None else []


def beside(body: bytes, wire: Wire) -> bytes:
    """What is not ours: everything but the messages and our tool."""
    found = scan(body).get(LAYOUT[wire].messages)
    rest = body[: found.start] + body[found.end :] if found is not None else body
    return rest.replace(b"," + declaration(wire), b"")


def is_turn(messages: list[Message], at: int) -> bool:
    def assistant(index: int) -> bool:
        message = messages[index]
        kind = str(message.get("type", ""))
        return message.get("role") in {"assistant", "model"} or kind == "function_call"

    return at > 0 and assistant(at) and not assistant(at - 1)


def drive(gate: Gate, wire: Wire, messages: list[Message], habit: str, total: Sum) -> None:
    terms = Terms("1", retrieve=True, adopt=False, settings=gate.settings)
    engine = Engine(gate, terms)
    sent: list[bytes] = []
    sizes = [at for at in range(len(messages)) if is_turn(messages, at)]
    total.sessions += 1
    for number, size in enumerate(sizes):
        if number == len(sizes) // 2:
            engine = Engine(gate, terms)
        body = request(wire, HABITS[habit](copy.deepcopy(messages[:size]), wire))
        sending = engine.prepare(Ask(body, wire, f"{habit}{total.sessions}"))
        now = bare(sending.body, wire)
        total.requests += 1
        total.breaks += now[: len(sent)] != sent
        total.changed += _changed(body, sending.body, wire, habit)
        rules = Counter(violation.rule for violation in violations(sending.body, wire))
        rules -= Counter(violation.rule for violation in violations(body, wire))
        total.invalid += sum(rules.values())
        total.faults.update(sending.faults)
        total.came_bytes += len(body)
        total.sent_bytes += len(sending.body)
        sent = now


def _changed(body: bytes, out: bytes, wire: Wire, habit: str) -> bool:
    if beside(body, wire) != beside(out, wire):
        return True
    came, went = bare(body, wire), bare(out, wire)
    if habit != "plain":
        return len(came) != len(went)
    # A message with something of ours in it names a marker; any other is the client's own.
    return any(b"<<<CCR:" not in after and before != after for before, after in zip(came, went, strict=True))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench prefix")
    parser.add_argument("corpus", type=Path)
    args = parser.parse_args(argv)
    sums = {(wire, habit): Sum() for wire in SHAPES for habit in HABITS}
    for transcript in read_all([args.corpus / "trajectories"], lambda _: None):
        messages = [dict(entry.message) for entry in transcript.epochs[0].entries]
        for (wire, habit), total in sums.items():
            with tempfile.TemporaryDirectory() as folder, Gate.open(Path(folder), Settings()) as gate:
                drive(gate, wire, SHAPES[wire](copy.deepcopy(messages)), habit, total)
    print(f"{'wire':10s} {'spelling':13s} sessions requests breaks changed invalid  bytes sent")
    for (wire, habit), total in sums.items():
        share = total.sent_bytes / max(1, total.came_bytes) - 1
        print(
            f"{wire:10s} {habit:13s} {total.sessions:8d} {total.requests:8d} {total.breaks:6d} "
            f"{total.changed:7d} {total.invalid:7d}  {share:+.1%}  {dict(total.faults) or ''}"
        )
    return int(any(total.breaks or total.changed or total.invalid for total in sums.values()))
