"""Replies of four providers as their streams carry them, event by event; and a machine fed with them.

A reply is a list of ``("text", words)``, ``("think", words)`` and ``("call", id, tool, arguments)``.
"""

from __future__ import annotations

import json
from base64 import b64encode
from itertools import pairwise

from hypothesis import strategies as st

from turngate.proxy.reply import OWN, stream_reply, whole_reply

WIRES = ("chat", "anthropic", "responses", "gemini")
TOOLS = [
    {"type": "function", "name": "bash", "parameters": {"type": "object"}, "strict": False},
    {"type": "function", "name": OWN, "parameters": {"type": "object"}, "strict": False},
]
INPUT, OUTPUT = 10, 5
ENDS = {
    "chat": ("tool_calls", "stop"),
    "anthropic": ("tool_use", "end_turn"),
    "responses": ("completed", "completed"),
    "gemini": ("STOP", "STOP"),
}
CUT = {"chat": "length", "anthropic": "max_tokens", "responses": "incomplete", "gemini": "MAX_TOKENS"}


def pieces(text):
    """A text in up to three."""
    return [text[:2], text[2:5], *([text[5:]] if text[5:] else [])]


def end_of(wire, reply):
    return ENDS[wire][0 if any(move[0] == "call" for move in reply) else 1]


def chat(reply, end, name):
    def chunk(delta, finish=None):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return base | {"choices": [choice], "usage": None}

    base = {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "service_tier": "default",
    }
    yield chunk({"role": "assistant", "content": "", "refusal": None})
    at = 0
    for move in reply:
        if move[0] != "call":
            field = {"text": "content", "think": "reasoning_content"}[move[0]]
            yield from (chunk({field: piece}) for piece in pieces(move[1]))
            continue
        function = {"name": move[2], "arguments": ""}
        yield chunk({"tool_calls": [{"index": at, "id": move[1], "type": "function", "function": function}]})
        for piece in pieces(json.dumps(move[3])):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
        at += 1
    yield chunk({}, end)
    usage = {
        "prompt_tokens": INPUT,
        "completion_tokens": OUTPUT,
        "total_tokens": INPUT + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    yield base | {"choices": [], "usage": usage}


def anthropic_block(move):
    if move[0] == "call":
        return {"type": "tool_use", "id": move[1], "name": move[2], "input": move[3]}
    if move[0] == "think":
        return {"type": "thinking", "thinking": move[1], "signature": f"sig({move[1]})"}
    return {"type": "text", "text": move[1]}


def anthropic_deltas(block):
    if block["type"] == "tool_use":
        texts = [] if block["input"] == {} else pieces(json.dumps(block["input"]))
        return [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *texts]]
    kind = block["type"]
    out = [{"type": f"{kind}_delta", kind: piece} for piece in pieces(block[kind])]
    return out + (
        [{"type": "signature_delta", "signature": block["signature"]}] if kind == "thinking" else []
    )


def anthropic(reply, end, name):
    usage = {"input_tokens": INPUT, "cache_read_input_tokens": 3, "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        },
    }
    for at, move in enumerate(reply):
        block = anthropic_block(move)
        unfilled = {"input": {}, "text": "", "thinking": "", "signature": ""}
        empty = {key: unfilled.get(key, each) for key, each in block.items()}
        yield {"type": "content_block_start", "index": at, "content_block": empty}
        yield {"type": "ping"}
        for delta in anthropic_deltas(block):
            yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    delta = {"stop_reason": end, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": OUTPUT}}
    yield {"type": "message_stop"}


def responses_item(move, at, name):
    if move[0] == "call":
        return {
            "type": "function_call",
            "id": f"fc_{name}{at}",
            "call_id": move[1],
            "name": move[2],
            "arguments": json.dumps(move[3]),
            "status": "completed",
        }
    if move[0] == "think":
        return {
            "type": "reasoning",
            "id": f"rs_{name}{at}",
            "summary": [],
            "encrypted_content": f"x{move[1]}",
        }
    part = {"type": "output_text", "text": move[1], "annotations": []}
    return {
        "type": "message",
        "id": f"msg_{name}{at}",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def responses_parts(item, at):
    """What comes between an item's beginning and its end."""
    known = {"item_id": item["id"], "output_index": at}
    if item["type"] == "function_call":
        for piece in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **known, "delta": piece}
        more = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **known, **more}
    if item["type"] == "message":
        known |= {"content_index": 0}
        part = item["content"][0]
        yield {"type": "response.content_part.added", **known, "part": part | {"text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **known, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **known, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **known, "part": part}


def responses(reply, end, name):
    items = [responses_item(move, at, name) for at, move in enumerate(reply)]
    usage = {
        "input_tokens": INPUT,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": OUTPUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT + OUTPUT,
    }
    begun = {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 1.0,
        "model": "m",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "status": "in_progress",
        "output": [],
        "tools": TOOLS,
        "usage": None,
        "temperature": 1.0,
    }
    events = [{"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")]
    for at, item in enumerate(items):
        fresh = {"arguments": "", "content": []}
        added = {key: fresh.get(key, each) for key, each in item.items()}
        added |= {"status": "in_progress"} if "status" in item else {}
        events.append({"type": "response.output_item.added", "output_index": at, "item": added})
        events += responses_parts(item, at)
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    ended = begun | {"status": end, "output": items, "usage": usage}
    events.append({"type": f"response.{end}", "response": ended})
    for number, event in enumerate(events):
        yield event | {"sequence_number": number}


def gemini_parts(move):
    if move[0] == "call":
        called = {"name": move[2], "args": move[3], "id": move[1]}
        return [{"functionCall": called, "thoughtSignature": b64encode(move[1].encode()).decode()}]
    more = {"thought": True} if move[0] == "think" else {}
    return [{"text": piece, **more} for piece in pieces(move[1])]


def gemini(reply, end, name):
    parts = [part for move in reply for part in gemini_parts(move)]
    for at, part in enumerate(parts):
        candidate = {"content": {"parts": [part], "role": "model"}, "index": 0}
        candidate |= {"finishReason": end} if at == len(parts) - 1 else {}
        usage = {"promptTokenCount": INPUT, "candidatesTokenCount": min(at, OUTPUT - 1)}
        usage |= {"candidatesTokenCount": OUTPUT} if at == len(parts) - 1 else {}
        yield {
            "candidates": [candidate],
            "usageMetadata": usage | {"cachedContentTokenCount": 3},
            "modelVersion": "m",
            "responseId": name,
        }


EVENTS = {"chat": chat, "anthropic": anthropic, "responses": responses, "gemini": gemini}


def frames(wire, reply, *, name="a", end="", ending="\n"):
    """A streamed reply, frame by frame."""
    for event in EVENTS[wire](reply, end or end_of(wire, reply), name):
        said = f"event: {event['type']}{ending}" if "type" in event else ""
        yield f"{said}data: {json.dumps(event)}{ending}{ending}".encode()
    if wire == "chat":
        yield f"data: [DONE]{ending}{ending}".encode()


def whole(wire, reply, *, name="a", end=""):
    """The same reply in one piece."""
    events = list(EVENTS[wire](reply, end or end_of(wire, reply), name))
    if wire == "responses":
        return json.dumps(events[-1]["response"]).encode()
    if wire == "anthropic":
        more = {"content": [anthropic_block(move) for move in reply], **events[-2]["delta"]}
        usage = events[0]["message"]["usage"] | events[-2]["usage"]
        return json.dumps(events[0]["message"] | more | {"usage": usage}).encode()
    if wire == "gemini":
        parts = []
        for move in reply:
            part = gemini_parts(move)[0]
            part |= {"text": move[1]} if move[0] != "call" else {}
            parts.append(part)
        (candidate,) = events[-1]["candidates"]
        content = {"parts": parts, "role": "model"}
        return json.dumps(events[-1] | {"candidates": [candidate | {"content": content}]}).encode()
    message = {"role": "assistant", "content": joined(reply, "text") or None}
    message |= {"reasoning_content": thoughts} if (thoughts := joined(reply, "think")) else {}
    calls = [
        {"id": move[1], "type": "function", "function": {"name": move[2], "arguments": json.dumps(move[3])}}
        for move in reply
        if move[0] == "call"
    ]
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end or end_of(wire, reply)}
    return json.dumps(events[-1] | {"object": "chat.completion", "choices": [choice]}).encode()


def joined(reply, kind):
    return "".join(move[1] for move in reply if move[0] == kind)


def seen(reply):
    """What a client may see of a reply."""
    return [move for move in reply if not (move[0] == "call" and move[2] == OWN)]


def is_answered(reply):
    """Whether a further round follows."""
    calls = [move[2] for move in reply if move[0] == "call"]
    return bool(calls) and set(calls) == {OWN}


def split(data, cuts):
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


def streamed(wire, replies, cuts=()):
    """What the client gets of these rounds, and what each was."""
    machine, out, rounds = stream_reply(wire), [], []
    for at, reply in enumerate(replies):
        if at:
            machine.again()
        data = b"".join(frames(wire, reply, name=str(at)))
        out += [machine.feed(chunk) for chunk in split(data, cuts)]
        rounds.append(machine.end())
    return b"".join([*out, machine.close()]), rounds


def unstreamed(wire, replies):
    machine, rounds = whole_reply(wire), []
    for at, reply in enumerate(replies):
        if at:
            machine.again()
        rounds.append(machine.read(whole(wire, reply, name=str(at))))
    return machine.body(), rounds


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=12).filter(
    str.strip
)
ARGS = st.dictionaries(st.sampled_from(["hash", "lines", "command"]), WORDS, max_size=2)


@st.composite
def replies(draw):
    """The rounds of one reply: all but the last call nothing but us."""
    made, count = [], 0
    for last in (*[False] * draw(st.integers(0, 2)), True):
        reply = [("think", draw(WORDS))] if draw(st.booleans()) else []
        reply += [("text", draw(WORDS))] if last or draw(st.booleans()) else []
        tools = draw(st.lists(st.sampled_from([OWN, "bash", "read"]), max_size=3)) if last else [OWN]
        if set(tools) == {OWN} and last:
            tools.append("bash")
        if not last and draw(st.booleans()):
            tools = [OWN, OWN]
        for tool in tools:
            count += 1
            reply.append(("call", f"call_{count}", tool, draw(ARGS)))
        made.append(reply)
    return made
