"""The client never sees a call of ours, and the upstream sees all of it."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import ClientSession
from conversations import LIST, TOOLS, call, loop, requests, said
from upstream import OWN, PATHS, Upstream, proxied

from turngate.wire.sse import Frames, parse

WIRES = ["chat", "anthropic", "responses", "gemini"]
#: Gemini's methods; its stream may come as one array.
GEMINI = {
    False: "generateContent",
    True: "streamGenerateContent?alt=sse",
    "listed": "streamGenerateContent",
}


async def talk(wire, moves, bodies, tmp_path, *, streamed):
    """Send each body through the proxy; the upstream, what the client got, and what was counted."""
    stub, got = Upstream(moves), []
    path = PATHS[wire].format(GEMINI[streamed])
    headers = {"Authorization": "Bearer k", "Content-Type": "application/json"}
    async with proxied(stub, tmp_path) as (url, shared), ClientSession() as client:
        for raw in bodies:
            async with client.post(url + path, data=raw, headers=headers) as answer:
                got.append((answer.status, await answer.read()))
        assert not shared.metrics.faults
        return stub, got, shared.metrics.sums()


def body(wire, messages, *, streamed):
    more = {"stream": True} if streamed and wire != "gemini" else {}
    fields = {"model": "m", LIST[wire]: messages, "tools": TOOLS[wire], **more}
    if wire == "anthropic":
        fields["max_tokens"] = 100
    return json.dumps(fields).encode()


def marker_in(raw):
    return raw.decode().split("<<<CCR:")[1][:16]


@pytest.mark.parametrize(
    ("wire", "streamed"),
    [*((wire, streamed) for wire in WIRES for streamed in (False, True)), ("gemini", "listed")],
)
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
    stub.judge(wire)
    assert not any(OWN.encode() in seen for _, seen in got)
    assert b"The disk is full." in got[1][1] or streamed
    assert LONG.splitlines()[40].encode() in stub.bodies[2].replace(b'\\"', b'"')
    assert sums["retrievals"] == 1
    assert sums["input_tokens"] == 40
    if streamed == "listed":
        check_stream(wire, json.loads(got[1][1]))
    elif streamed:
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
    stub.judge(wire)
    assert not any(OWN.encode() in seen for _, seen in got)
    assert b"call_0" in got[0][1]
    assert b"nothing in " in stub.bodies[1]
