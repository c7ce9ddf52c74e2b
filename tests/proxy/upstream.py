"""An upstream of four formats that plays moves, and judges every request that it gets.

A move is what the model says in a reply: a list of ``("text", words)`` and ``("call", id, tool, arguments)``,
or one that misbehaves, see `MISBEHAVES`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager, contextmanager
from itertools import count, pairwise

from aiohttp import web

from turngate import settings as settings_module
from turngate.proxy import app, serve
from turngate.wire import request_prefix, violations

OWN = "turngate_retrieve"
#: Ids are never given twice.
COUNT = count(1)
PATHS = {
    "chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:{}",
}


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
        "id": f"msg_{next(COUNT)}",
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
            "id": f"msg_{next(COUNT)}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": m[1], "annotations": []}],
        }
        if m[0] == "text"
        else {
            "type": "function_call",
            "id": f"fc_{next(COUNT)}",
            "call_id": m[1],
            "name": m[2],
            "arguments": json.dumps(m[3]),
            "status": "completed",
        }
        for at, m in enumerate(made)
    ]
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return {
        "id": f"resp_{next(COUNT)}",
        "object": "response",
        "status": "completed",
        "output": output,
        "usage": usage,
    }


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
    """Plays moves, one a request, from a list or by what the request says."""

    def __init__(self, moves=()):
        self._moves = moves if callable(moves) else list(moves)
        self.bodies = []
        self.headers = []
        self.paths = []
        self.gone = asyncio.Event()

    @property
    def moves(self):
        """What was not played."""
        return self._moves

    def app(self):
        made = web.Application(client_max_size=2**30)
        made.router.add_route("*", "/{path:.*}", self.answer)
        return made

    async def answer(self, request):
        body = await request.read()
        self.bodies.append(body)
        self.headers.append(request.headers)
        self.paths.append(request.raw_path)
        move = self._moves(body) if callable(self._moves) else self._moves.pop(0)
        if isinstance(move, tuple):
            return await MISBEHAVES[move[0]](self, request, *move[1:])
        wire = wire_of(request.path)
        if not (json.loads(body).get("stream") or "streamGenerateContent" in request.path):
            return web.json_response(WHOLE[wire](move))
        listed = wire == "gemini" and request.query.get("alt") != "sse"
        type_ = "application/json" if listed else "text/event-stream"
        out = web.StreamResponse(headers={"Content-Type": type_})
        await out.prepare(request)
        for frame in elements(move) if listed else frames(wire, move):
            await out.write(frame)
        await out.write_eof()
        return out

    def judge(self, wire, *, growing=True):
        """Every request is one that the provider accepts, and extends the one before."""
        assert [violation for body in self.bodies for violation in violations(body, wire)] == []
        if growing:
            for earlier, later in pairwise(request_prefix(body, wire) for body in self.bodies):
                assert later.startswith(earlier)


def wire_of(path):
    ends = {"/chat/completions": "chat", "/messages": "anthropic", "/responses": "responses"}
    return next((wire for end, wire in ends.items() if path.endswith(end)), "gemini")


def frames(wire, move):
    """A streamed reply, frame by frame."""
    for event in STREAM[wire](move):
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()
    if wire == "chat":
        yield b"data: [DONE]\n\n"


def elements(move):
    """Gemini's stream as one array, element by element."""
    for at, event in enumerate(gemini_stream(move)):
        yield (b",\r\n" if at else b"[") + json.dumps(event, indent=2).encode()
    yield b"\n]\n"


async def _status(_, __, status, body, headers):
    return web.Response(status=status, body=body, headers=headers)


async def _cut(_, request, wire, move, keep):
    """A stream that ends in the middle of a frame."""
    out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await out.prepare(request)
    whole = b"".join(frames(wire, move))
    await out.write(whole[:keep])
    await asyncio.sleep(0.05)
    request.transport.abort()
    return out


async def _dropped(_, request):
    """A connection that is closed without an answer."""
    request.transport.abort()
    return web.Response()


async def _raw(_, request, kind, chunks, pause):
    """A body in these chunks."""
    out = web.StreamResponse(headers={"Content-Type": kind})
    await out.prepare(request)
    for chunk in chunks:
        await out.write(chunk)
        await asyncio.sleep(pause)
    await out.write_eof()
    return out


async def _endless(self, request):
    """A stream that only ends when the client goes."""
    out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await out.prepare(request)
    try:
        while True:
            await out.write(b": ping\n\n")
            await asyncio.sleep(0.02)
    except (ConnectionResetError, asyncio.CancelledError):
        self.gone.set()
    return out


async def _slow(_, request, seconds):
    await asyncio.sleep(seconds)
    return web.json_response({})


MISBEHAVES = {
    "status": _status,
    "cut": _cut,
    "dropped": _dropped,
    "raw": _raw,
    "endless": _endless,
    "slow": _slow,
}


@asynccontextmanager
async def listening(application, **options):
    """An application at a free port of this machine; its base URL."""
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=1, **options)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def proxied(stub, folder, **proxy):
    """The proxy in front of an upstream: its base URL and its services."""
    async with listening(stub.app()) as base:
        ups = {"openai_upstream": base + "/v1", "anthropic_upstream": base, "gemini_upstream": base}
        settings = settings_module.load(environ={}, data_dir=folder / "data", proxy=ups | proxy)
        async with (
            serve.services(settings) as shared,
            listening(app.build(shared), **serve.SERVER) as url,
        ):
            yield url, shared


@contextmanager
def in_background(stub, folder, **proxy):
    """The same on a thread of its own, for clients that are not asynchronous."""
    ready, stop = threading.Event(), asyncio.Event()
    found = {}

    async def serve_until_stopped():
        found["loop"] = asyncio.get_running_loop()
        async with proxied(stub, folder, **proxy) as (url, shared):
            found.update(url=url, shared=shared)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve_until_stopped()), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield found["url"], found["shared"]
    finally:
        found["loop"].call_soon_threadsafe(stop.set)
        thread.join(20)
