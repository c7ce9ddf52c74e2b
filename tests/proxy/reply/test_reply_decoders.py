"""The providers' own clients read the merged reply as if it had been one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from played import frames, joined, replies, seen, streamed, unstreamed

from turngate.proxy.reply import OWN

httpx = pytest.importorskip("httpx2")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
genai = pytest.importorskip("google.genai")


class Once(httpx.BaseTransport):
    """Answers every request with one body."""

    def __init__(self):
        self.body, self.kind = b"", ""

    def answering(self, body, *, stream):
        self.body, self.kind = body, "text/event-stream" if stream else "application/json"

    def handle_request(self, request):
        return httpx.Response(200, headers={"Content-Type": self.kind}, content=self.body)


@pytest.fixture(scope="module")
def asked():
    """Ask a provider's client for a reply of these bytes: its blocks, as moves."""
    once = Once()
    http = httpx.Client(transport=once)
    open_ai = openai.OpenAI(api_key="k", http_client=http)
    anthro = anthropic.Anthropic(api_key="k", http_client=http)
    google = genai.Client(api_key="k", http_options=genai.types.HttpOptions(httpx_client=http))
    asks = {
        "chat": lambda stream: chat(open_ai, stream=stream),
        "anthropic": lambda stream: messages(anthro, stream=stream),
        "responses": lambda stream: responses(open_ai, stream=stream),
        "gemini": lambda stream: gemini(google, stream=stream),
    }

    def ask(wire, body, *, stream):
        once.answering(body, stream=stream)
        return asks[wire](stream)

    yield ask
    http.close()


def chat(client, *, stream):
    wanted = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
    if stream:
        with client.chat.completions.stream(**wanted) as events:
            for _ in events:
                pass
            reply = events.get_final_completion()
    else:
        reply = client.chat.completions.create(**wanted)
    message = reply.choices[0].message
    assert message.role == "assistant"
    calls = [
        ("call", c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ()
    ]
    thoughts = (message.model_extra or {}).get("reasoning_content")
    texts = [
        *([("think", thoughts)] if thoughts else []),
        *([("text", message.content)] if message.content else []),
    ]
    return [*texts, *calls]


def messages(client, *, stream):
    wanted = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    if stream:
        with client.messages.stream(**wanted) as events:
            for _ in events:
                pass
            reply = events.get_final_message()
    else:
        reply = client.messages.create(**wanted)
    return [
        ("call", block.id, block.name, block.input)
        if block.type == "tool_use"
        else ("think", block.thinking)
        if block.type == "thinking"
        else ("text", block.text)
        for block in reply.content
    ]


def responses(client, *, stream):
    wanted = {"model": "m", "input": "go"}
    if stream:
        with client.responses.stream(**wanted) as events:
            for _ in events:
                pass
            reply = events.get_final_response()
    else:
        reply = client.responses.create(**wanted)
    assert reply.id == "resp_0"
    return [
        ("call", item.call_id, item.name, json.loads(item.arguments))
        if item.type == "function_call"
        else ("think", item.encrypted_content[1:])
        if item.type == "reasoning"
        else ("text", item.content[0].text)
        for item in reply.output
    ]


def gemini(client, *, stream):
    if stream:
        chunks = list(client.models.generate_content_stream(model="m", contents="go"))
    else:
        chunks = [client.models.generate_content(model="m", contents="go")]
    contents = [chunk.candidates[0].content for chunk in chunks]
    out = []
    for part in (part for content in contents for part in (content and content.parts) or ()):
        if part.function_call:
            call = part.function_call
            out.append(("call", call.id, call.name, call.args or {}))
            continue
        kind = "think" if part.thought else "text"
        if out and out[-1][0] == kind:
            out[-1] = (kind, out[-1][1] + (part.text or ""))
        else:
            out.append((kind, part.text or ""))
    return out


def expected(wire, made):
    """What one reply of all the rounds would read as."""
    moves = [move for reply in made for move in seen(reply)]
    if wire == "chat":
        texts = [(kind, joined(moves, kind)) for kind in ("think", "text") if joined(moves, kind)]
        return [*texts, *(move for move in moves if move[0] == "call")]
    if wire != "gemini":
        return moves
    out = []
    for move in moves:
        if out and out[-1][0] == move[0] != "call":
            out[-1] = (move[0], out[-1][1] + move[1])
        else:
            out.append(move)
    return out


@pytest.mark.parametrize("wire", ["chat", "anthropic", "responses", "gemini"])
@settings(max_examples=15, deadline=None)
@given(made=replies())
def test_the_clients_own_decoder_reads_one_reply(wire, asked, made):
    seen = asked(wire, streamed(wire, made)[0], stream=True)
    # Gemini ends a stream with a text of nothing where it has nothing else to say.
    assert [each for each in seen if each != ("text", "")] == expected(wire, made)
    assert asked(wire, unstreamed(wire, made)[0], stream=False) == expected(wire, made)


@pytest.mark.parametrize("wire", ["chat", "anthropic", "responses", "gemini"])
def test_the_decoders_read_what_is_played_here(wire, asked):
    reply = [("think", "hm"), ("text", "one"), ("call", "call_1", OWN, {"hash": "x"})]
    data = b"".join(frames(wire, reply, name="0"))
    assert asked(wire, data, stream=True) == reply
