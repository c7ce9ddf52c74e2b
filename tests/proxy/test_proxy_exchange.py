"""A client, the proxy, and an upstream that calls our tool: the client never sees it, the upstream sees all of it."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import ClientSession, web
from conversations import LIST, TOOLS, call, loop, requests, said

from turngate import settings as settings_module
from turngate.proxy import app, serve
from turngate.wire import request_prefix, violations
from turngate.wire.sse import Frames, parse

WIRES = ["chat", "anthropic", "responses", "gemini"]
PATHS = {
    "chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:{}",
}
OWN = "turngate_retrieve"


def blocks(wire, move):
    """What the model produces for a move: texts and calls (id, name, args)."""
    out = []
    for kind, *rest in move:
        if kind == "text":
            out.append(("text", *rest))
        else:
            out.append(("call", *rest))
    return out


def chat_whole(made):
    calls = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for k, i, n, a in (m for m in made if m[0] == "call")
    ]
    message = {"role": "assistant", "content": "".join(m[1] for m in made if m[0] == "text") or None}
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {
        "id": "c",
        "object": "chat.completion",
        "choices": [choice],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }


def chat_stream(made):
    def chunk(delta, finish=None, **more):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "choices": [choice], **more}

    yield chunk({"role": "assistant", "content": ""})
    at = 0
    for m in made:
        if m[0] == "text":
            for piece in (m[1][:3], m[1][3:]):
                yield chunk({"content": piece})
        else:
            _, i, n, a = m
            function = {"name": n, "arguments": ""}
            yield chunk({"tool_calls": [{"index": at, "id": i, "type": "function", "function": function}]})
            text = json.dumps(a)
            for piece in (text[:4], text[4:]):
                yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
            at += 1
    yield chunk({}, "tool_calls" if at else "stop")
    yield {
        "id": "c",
        "object": "chat.completion.chunk",
        "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }


def anthropic_whole(made):
    content = [
        {"type": "text", "text": m[1]}
        if m[0] == "text"
        else {"type": "tool_use", "id": m[1], "name": m[2], "input": m[3]}
        for m in made
    ]
    stop = "tool_use" if any(m[0] == "call" for m in made) else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }


def anthropic_stream(made):
    whole = anthropic_whole(made)
    yield {
        "type": "message_start",
        "message": whole
        | {"content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}},
    }
    yield {"type": "ping"}
    for at, block in enumerate(whole["content"]):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": ""}}
            for piece in (block["text"][:3], block["text"][3:]):
                yield {
                    "type": "content_block_delta",
                    "index": at,
                    "delta": {"type": "text_delta", "text": piece},
                }
        else:
            yield {"type": "content_block_start", "index": at, "content_block": block | {"input": {}}}
            text = json.dumps(block["input"])
            for piece in (text[:4], text[4:]):
                delta = {"type": "input_json_delta", "partial_json": piece}
                yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": whole["stop_reason"]},
        "usage": {"output_tokens": 5},
    }
    yield {"type": "message_stop"}


def responses_whole(made):
    output = [
        {
            "type": "message",
            "id": f"msg_{at}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": m[1], "annotations": []}],
        }
        if m[0] == "text"
        else {
            "type": "function_call",
            "id": f"fc_{at}",
            "call_id": m[1],
            "name": m[2],
            "arguments": json.dumps(m[3]),
            "status": "completed",
        }
        for at, m in enumerate(made)
    ]
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {"id": "resp", "object": "response", "status": "completed", "output": output, "usage": usage}


def responses_stream(made):
    whole = responses_whole(made)
    events = [{"type": "response.created", "response": whole | {"output": [], "status": "in_progress"}}]
    for at, item in enumerate(whole["output"]):
        events.append(
            {
                "type": "response.output_item.added",
                "output_index": at,
                "item": item | {"status": "in_progress"},
            }
        )
        if item["type"] == "message":
            text = item["content"][0]["text"]
            events += [
                {
                    "type": "response.output_text.delta",
                    "output_index": at,
                    "content_index": 0,
                    "item_id": item["id"],
                    "delta": piece,
                }
                for piece in (text[:3], text[3:])
            ]
        else:
            events.append(
                {
                    "type": "response.function_call_arguments.delta",
                    "output_index": at,
                    "item_id": item["id"],
                    "delta": item["arguments"],
                }
            )
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    events.append({"type": "response.completed", "response": whole})
    for number, event in enumerate(events):
        yield event | {"sequence_number": number}


def gemini_whole(made):
    parts = [
        {"text": m[1]} if m[0] == "text" else {"functionCall": {"id": m[1], "name": m[2], "args": m[3]}}
        for m in made
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}}


def gemini_stream(made):
    whole = gemini_whole(made)
    parts = whole["candidates"][0]["content"]["parts"]
    for at, part in enumerate(parts):
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        candidate |= {"finishReason": "STOP"} if at == len(parts) - 1 else {}
        yield {"candidates": [candidate], "usageMetadata": whole["usageMetadata"]}


WHOLE = {
    "chat": chat_whole,
    "anthropic": anthropic_whole,
    "responses": responses_whole,
    "gemini": gemini_whole,
}
STREAM = {
    "chat": chat_stream,
    "anthropic": anthropic_stream,
    "responses": responses_stream,
    "gemini": gemini_stream,
}


class Upstream:
    """Plays moves, one a request; judges every request."""

    def __init__(self, wire, moves):
        self.wire, self.moves = wire, list(moves)
        self.bodies = []

    async def answer(self, request):
        body = await request.read()
        self.bodies.append(body)
        move = self.moves.pop(0)
        streamed = json.loads(body).get("stream") or "streamGenerateContent" in request.path
        if not streamed:
            return web.json_response(WHOLE[self.wire](move))
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        for event in STREAM[self.wire](move):
            name = f"event: {event['type']}\n" if "type" in event else ""
            await out.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        if self.wire == "chat":
            await out.write(b"data: [DONE]\n\n")
        await out.write_eof()
        return out

    def judge(self):
        assert not [violation for body in self.bodies for violation in violations(body, self.wire)]
        prefixes = [request_prefix(body, self.wire) for body in self.bodies]
        for earlier, later in zip(prefixes, prefixes[1:], strict=False):
            assert later.startswith(earlier)


async def talk(wire, moves, bodies, tmp_path, *, streamed):
    """Send each body through the proxy; the upstream, and what the client got."""
    stub = Upstream(wire, moves)
    up = web.Application()
    up.router.add_post("/{path:.*}", stub.answer)
    up_runner = web.AppRunner(up)
    await up_runner.setup()
    up_site = web.TCPSite(up_runner, "127.0.0.1", 0)
    await up_site.start()
    base = f"http://127.0.0.1:{up_site._server.sockets[0].getsockname()[1]}"
    upstreams = {"openai_upstream": base + "/v1", "anthropic_upstream": base, "gemini_upstream": base}
    settings = settings_module.load(environ={}, data_dir=tmp_path / "data", proxy=upstreams)
    async with serve.services(settings, tmp_path / "run") as shared:
        runner = web.AppRunner(app.build(shared), handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        here = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        got = []
        async with ClientSession() as client:
            for body in bodies:
                path = PATHS[wire].format("streamGenerateContent?alt=sse" if streamed else "generateContent")
                async with client.post(
                    here + path,
                    data=body,
                    headers={"Authorization": "Bearer k", "Content-Type": "application/json"},
                ) as answer:
                    got.append((answer.status, await answer.read()))
        faults = dict(shared.metrics.faults)
        sums = shared.metrics.sums()
        await runner.cleanup()
    await up_runner.cleanup()
    assert not faults
    return stub, got, sums


def body(wire, messages, *, streamed):
    more = {"stream": True} if streamed and wire != "gemini" else {}
    fields = {"model": "m", LIST[wire]: messages, "tools": TOOLS[wire], **more}
    if wire == "anthropic":
        fields["max_tokens"] = 100
    return json.dumps(fields).encode()


def marker_in(raw):
    return raw.decode().split("<<<CCR:")[1][:16]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_retrieval_is_answered_unseen(wire, streamed, tmp_path):
    history = loop(wire, 1)
    parts = requests(wire, history)
    # The hash is the content's own, so it is known before it is handed out.
    import hashlib  # noqa: PLC0415

    from conversations import LONG  # noqa: PLC0415

    text = f"{LONG}\nERROR job 0 failed: disk 0 is full"
    ref = hashlib.sha256(text.encode()).hexdigest()[:16]
    moves = [
        [("text", "Let me look (0)."), ("call", "call_0", "bash", {"command": "run call_0"})],
        [("text", "Hmm. "), ("call", "own_1", OWN, {"hash": ref, "lines": "41-42"})],
        [("text", "The disk is full.")],
        [("text", "Bye.")],
    ]
    merged = [
        *parts[1],
        *(
            said(wire, t)
            for t in (("Hmm. ", "The disk is full.") if wire == "responses" else ("Hmm. The disk is full.",))
        ),
    ]
    following = [
        *merged,
        {"role": "user", "parts": [{"text": "ok"}]}
        if wire == "gemini"
        else {"role": "user", "content": "ok"},
    ]
    bodies = [body(wire, part, streamed=streamed) for part in (*parts[:2], following)]
    stub, got, sums = asyncio.run(talk(wire, moves, bodies, tmp_path, streamed=streamed))
    assert [status for status, _ in got] == [200, 200, 200]
    assert not stub.moves
    stub.judge()
    assert not any(OWN.encode() in seen for _, seen in got)
    assert b"The disk is full." in got[1][1] or streamed
    assert LONG.splitlines()[40].encode() in stub.bodies[2].replace(b'\\"', b'"')
    assert sums["retrievals"] == 1
    assert sums["input_tokens"] == 40
    if streamed:
        values = [
            json.loads(f.data)
            for raw in Frames().feed(got[1][1])
            if (f := parse(raw)).data not in (b"", b"[DONE]")
        ]
        check_stream(wire, values)


def check_stream(wire, values):
    if wire == "anthropic":
        starts = [v["index"] for v in values if v["type"] == "content_block_start"]
        assert starts == list(range(len(starts))) == [0, 1]
        assert [v["type"] for v in values].count("message_stop") == 1
        assert values[-2]["usage"]["output_tokens"] == 10
    if wire == "responses":
        assert [v["sequence_number"] for v in values] == list(range(len(values)))
        assert len(values[-1]["response"]["output"]) == 2
        assert values[-1]["response"]["usage"]["total_tokens"] == 30
    if wire == "chat":
        assert values[-1]["usage"]["completion_tokens"] == 10
        assert [v["choices"][0]["finish_reason"] for v in values if v["choices"]].count("stop") == 1
    if wire == "gemini":
        assert values[-1]["usageMetadata"]["promptTokenCount"] == 20


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_retrieval_beside_the_clients_call_is_answered_in_the_next_request(wire, streamed, tmp_path):
    parts = requests(wire, loop(wire, 1))
    moves = [
        [
            ("call", "own_1", OWN, {"query": "anything"}),
            ("call", "call_0", "bash", {"command": "run call_0"}),
        ],
        [("text", "The disk is full.")],
    ]
    first = parts[0]
    (turn,) = call(wire, "call_0")
    second = [*first, turn, parts[1][-1]]
    bodies = [body(wire, part, streamed=streamed) for part in (first, second)]
    stub, got, _ = asyncio.run(talk(wire, moves, bodies, tmp_path, streamed=streamed))
    stub.judge()
    assert not any(OWN.encode() in seen for _, seen in got)
    assert b"call_0" in got[0][1]
    assert b"nothing in this conversation" in stub.bodies[1]
