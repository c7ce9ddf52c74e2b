"""A model server that answers from a script, for the real agent: Chat Completions, streamed or not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "stub-model"


@dataclass
class Step:
    """What the model does with one request."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    #: What the usage says; None: a rough count of what was sent.
    prompt_tokens: int | None = None
    #: (HTTP status, message, code) in place of an answer.
    error: tuple[int, str, str] | None = None


@dataclass
class Request:
    """A request as it came over the wire."""

    raw: bytes
    body: dict[str, Any] = field(init=False)

    def __post_init__(self):
        self.body = json.loads(self.raw)

    @property
    def messages(self):
        return self.body["messages"]

    @property
    def tools(self):
        return {tool["function"]["name"]: tool["function"] for tool in self.body.get("tools", [])}

    @property
    def results(self):
        """Contents of the tool messages, in order."""
        return [message["content"] for message in self.messages if message["role"] == "tool"]


#: A step, or what makes one of the request that has just come in.
Scripted = Step | Callable[[Request], Step]

OVERFLOW = (
    400,
    "This model's maximum context length is 65536 tokens. However, your messages resulted in 70000 tokens.",
    "context_length_exceeded",
)


def say(text="done", *, tokens=None):
    return Step(text, prompt_tokens=tokens)


def call(*calls, tokens=None, text=""):
    return Step(text, tuple(calls), tokens)


def terminal(command, *, tokens=None):
    return call(("terminal", {"command": command}), tokens=tokens)


def overflow():
    return Step(error=OVERFLOW)


def wait_for(true: Callable[[], Any], seconds: float = 20) -> bool:
    """Whether it comes true in time."""
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(true())


def by_conversation(scripts: dict[str, list[Scripted]]) -> Scripted:
    """A script for each conversation, told apart by how a user message in it begins."""
    turn = dict.fromkeys(scripts, 0)

    def step(request: Request) -> Step:
        asked = [str(message["content"]) for message in request.messages if message["role"] == "user"]
        name = next(name for name in scripts for text in asked if text.startswith(name))
        scripted = scripts[name][turn[name]]
        turn[name] += 1
        return scripted(request) if callable(scripted) else scripted

    return step


class Stub:
    """The server.

    Requests that offer tools are the agent's own and follow the script, whose last step repeats; all others
    are the host's helpers (titles, summaries) and get a fixed answer.
    """

    def __init__(self, *, reports_usage=True):
        self.script: list[Scripted] = [say()]
        self.requests: list[Request] = []
        self.aux: list[Request] = []
        #: What went wrong in a scripted function; the test that wrote it must hear of it.
        self.faults: list[Exception] = []
        self.reports_usage = reports_usage
        self._answered = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def play(self, *steps: Scripted):
        """Begin a script; the requests of the one before are forgotten."""
        with self._lock:
            self.script, self.requests, self.aux, self.faults = list(steps), [], [], []

    def step(self, request: Request) -> Step:
        with self._lock:
            if not request.tools:
                self.aux.append(request)
                return say("HELPER-TEXT")
            scripted = self.script[min(len(self.requests), len(self.script) - 1)]
            self.requests.append(request)
            # Ids of calls are unique over all scripts, or the host would drop results as repeated.
            self._answered += 1
            number = self._answered
        try:
            step = scripted(request) if callable(scripted) else scripted
        except Exception as error:  # noqa: BLE001 - the test looks at them
            self.faults.append(error)
            step = say(f"the script failed: {error!r}")
        step.number = number
        return step

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(stub: Stub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):
            if self.path.rstrip("/").endswith("/models"):
                _send(
                    self, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "stub"}]}
                )
            else:
                _send(self, {"error": {"message": "not found"}}, 404)

        def do_POST(self):
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not self.path.rstrip("/").endswith("/chat/completions"):
                _send(self, {"error": {"message": "not found"}}, 404)
                return
            request = Request(raw)
            step = stub.step(request)
            if step.error:
                status, message, code = step.error
                _send(
                    self,
                    {"error": {"message": message, "type": "invalid_request_error", "code": code}},
                    status,
                )
            elif request.body.get("stream"):
                _stream(self, step, _usage(stub, step, request))
            else:
                _send(self, _completion(step, _usage(stub, step, request)))

    return Handler


def _usage(stub, step, request):
    if not stub.reports_usage:
        return None
    prompt = len(request.raw) // 4 if step.prompt_tokens is None else step.prompt_tokens
    return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}


def _calls(step):
    return [
        {
            "id": f"call_{step.number}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for index, (name, args) in enumerate(step.calls)
    ]


def _head(step):
    return {"id": f"chatcmpl-{getattr(step, 'number', 0)}", "created": 0, "model": MODEL}


def _completion(step, usage):
    message = {"role": "assistant", "content": step.text or None}
    if step.calls:
        message["tool_calls"] = _calls(step)
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if step.calls else "stop"}
    return _head(step) | {"object": "chat.completion", "choices": [choice], "usage": usage}


def _stream(handler, step, usage):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.close_connection = True
    deltas = [{"role": "assistant", "content": step.text}]
    deltas += [{"tool_calls": [{"index": index, **made}]} for index, made in enumerate(_calls(step))]
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    finish = "tool_calls" if step.calls else "stop"
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        chunks.append({"choices": [], "usage": usage})
    for chunk in chunks:
        data = _head(step) | {"object": "chat.completion.chunk"} | chunk
        handler.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
    handler.wfile.write(b"data: [DONE]\n\n")


def _send(handler, value, status=200):
    data = json.dumps(value).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)
