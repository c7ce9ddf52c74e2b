"""What upstreams and clients do wrong has its status and its provider's shape, and the proxy lives on."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import zlib

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout
from backports import zstd
from conversations import LIST, LONG, body, call, result, user
from upstream import OWN, PATHS, Upstream, frames, in_background, proxied
from yarl import URL

WIRES = ["chat", "anthropic", "responses", "gemini"]
HEADERS = {"Authorization": "Bearer k", "Content-Type": "application/json"}
HELLO = [("text", "hello there")]


def path(wire, *, streamed=False):
    return PATHS[wire].format("streamGenerateContent?alt=sse" if streamed else "generateContent")


def hello(wire, **more):
    more |= {"max_tokens": 10} if wire == "anthropic" else {}
    return body(wire, [user(wire, "hi")], **more)


def is_shaped(wire, raw):
    """Whether an error has the provider's shape."""
    error = json.loads(raw)["error"]
    if wire == "anthropic":
        return json.loads(raw)["type"] == "error" and {"type", "message"} <= error.keys()
    if wire == "gemini":
        return {"code", "message", "status"} <= error.keys()
    return {"message", "type", "param", "code"} <= error.keys()


def ask(stub, tmp_path, requests, **proxy):
    """Send requests one after the other; what came back for each. The proxy answers afterwards, too."""

    async def work():
        got = []
        async with (
            proxied(stub, tmp_path, **proxy) as (url, shared),
            ClientSession(auto_decompress=False) as client,
        ):
            for method, where, raw, headers in requests:
                try:
                    async with client.request(
                        method,
                        URL(url + where, encoded=True),
                        data=raw,
                        headers=headers,
                        timeout=ClientTimeout(20),
                        allow_redirects=False,
                    ) as answer:
                        got.append((answer.status, answer.headers, await answer.read()))
                except ClientError as fault:
                    got.append((0, {}, type(fault).__name__.encode()))
            async with client.get(url + "/health") as answer:
                assert answer.status == 200
            return got, dict(shared.metrics.faults)

    return asyncio.run(work())


def post(wire, raw, *, streamed=False, **headers):
    return ("POST", path(wire, streamed=streamed), raw, HEADERS | headers)


UPSTREAM_ANSWERS = {
    "refused": (400, b'{"error":{"message":"no"}}', {"Content-Type": "application/json"}),
    "no key": (401, b'{"error":{"message":"key"}}', {"Content-Type": "application/json"}),
    "too many": (
        429,
        b'{"error":{"message":"slow"}}',
        {"Content-Type": "application/json", "Retry-After": "7"},
    ),
    "broken": (500, b'{"error":{"message":"oops"}}', {"Content-Type": "application/json"}),
    "overloaded": (529, b'{"error":{"message":"busy"}}', {"Content-Type": "application/json"}),
    "gateway's page": (502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"}),
    "page that says fine": (200, b"<html>hello</html>", {"Content-Type": "text/html"}),
    "no JSON": (200, b"{not json", {"Content-Type": "application/json"}),
    "nothing": (200, b"", {"Content-Type": "application/json"}),
    "a list": (200, b"[1,2]", {"Content-Type": "application/json"}),
    "moved": (307, b"", {"Location": "https://elsewhere.example/v1"}),
    "packed": (
        200,
        gzip.compress(b'{"id":"x"}'),
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ),
}


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("name", UPSTREAM_ANSWERS)
def test_an_upstreams_answer_passes_as_it_is(name, tools, tmp_path):
    status, raw, headers = UPSTREAM_ANSWERS[name]
    wires = WIRES if tools else ["chat"]
    stub = Upstream(lambda _: ("status", status, raw, headers))
    got, _ = ask(stub, tmp_path, [post(wire, hello(wire, tools=tools)) for wire in wires])
    for answer in got:
        assert (answer[0], answer[2]) == (status, raw)
        assert all(answer[1][key] == value for key, value in headers.items())
    assert len(stub.bodies) == len(wires)


BAD_BODIES = {
    "null messages": lambda wire: json.dumps({LIST[wire]: None, "tools": [{}]}).encode(),
    "messages are a number": lambda wire: json.dumps({LIST[wire]: 5, "tools": [{}]}).encode(),
    "messages are strings": lambda wire: json.dumps({LIST[wire]: ["a", 1, None], "tools": [{}]}).encode(),
    "no messages": lambda _: b'{"tools": [{}]}',
    "cut off": lambda wire: hello(wire)[:-7],
    "empty": lambda _: b"",
    "a list": lambda _: b'["tools", "tools"]',
    "null": lambda _: b"null",
    "no UTF-8": lambda _: b'{"tools": "\xff\xfe"}',
    "two values": lambda wire: hello(wire) + b" {}",
    "deep": lambda wire: b'{"tools":[{}],"%s":%s%s}' % (LIST[wire].encode(), b"[" * 5000, b"]" * 5000),
    "tools are a string": lambda wire: hello(wire).replace(b'"tools": [', b'"tools": "x", "no": ['),
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_what_is_no_request_is_the_upstreams_to_judge(name, tmp_path):
    stub = Upstream(lambda _: ("status", 400, b'{"error":{}}', {"Content-Type": "application/json"}))
    bodies = [BAD_BODIES[name](wire) for wire in WIRES]
    got, _ = ask(stub, tmp_path, [post(wire, raw) for wire, raw in zip(WIRES, bodies, strict=True)])
    assert [answer[0] for answer in got] == [400] * 4
    assert stub.bodies == bodies


@pytest.mark.parametrize("wire", WIRES)
def test_too_large_is_413_in_the_providers_shape(wire, tmp_path):
    stub = Upstream()
    big = hello(wire)[:-1] + b" " * 5000 + b"}"
    packed = gzip.compress(hello(wire)[:-1] + b" " * 500_000 + b"}")
    requests = [post(wire, big), post(wire, packed, **{"Content-Encoding": "gzip"})]
    got, _ = ask(stub, tmp_path, requests, max_body_bytes=4000)
    assert [answer[0] for answer in got] == [413, 413]
    assert all(is_shaped(wire, answer[2]) for answer in got)
    assert not stub.bodies


def test_bodies_may_be_packed(tmp_path):
    raw = hello("chat")
    packed = {
        "gzip": gzip.compress(raw),
        "deflate": zlib.compress(raw),
        "zstd": zstd.compress(raw),
        "gzip, zstd": zstd.compress(gzip.compress(raw)),
    }
    brotli = pytest.importorskip("brotli")
    packed["br"] = brotli.compress(raw)
    stub = Upstream([HELLO] * len(packed))
    requests = [post("chat", data, **{"Content-Encoding": name}) for name, data in packed.items()]
    got, _ = ask(stub, tmp_path, requests)
    assert [answer[0] for answer in got] == [200] * len(packed)
    assert all(json.loads(seen)["messages"] == json.loads(raw)["messages"] for seen in stub.bodies)
    assert not any("Content-Encoding" in headers for headers in stub.headers)


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 400), ("zstd", 400), ("br", 400), ("lzma", 415)])
def test_a_body_that_cannot_be_unpacked_is_refused(encoding, status, tmp_path):
    requests = [post(wire, b"no such thing", **{"Content-Encoding": encoding}) for wire in WIRES]
    got, _ = ask(Upstream(), tmp_path, requests)
    for wire, answer in zip(WIRES, got, strict=True):
        assert answer[0] == status
        assert is_shaped(wire, answer[2])


@pytest.mark.parametrize("tools", [False, True])
def test_an_upstream_that_is_down_is_502(tools, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{free.getsockname()[1]}"
    down = {"openai_upstream": base + "/v1", "anthropic_upstream": base, "gemini_upstream": base}
    got, faults = ask(Upstream(), tmp_path, [post(wire, hello(wire, tools=tools)) for wire in WIRES], **down)
    for wire, answer in zip(WIRES, got, strict=True):
        assert answer[0] == 502
        assert is_shaped(wire, answer[2])
    assert faults["unreachable"] == 4


@pytest.mark.parametrize("tools", [False, True])
def test_an_upstream_that_hangs_up_is_502_and_asked_once(tools, tmp_path):
    stub = Upstream(lambda _: ("dropped",))
    got, _ = ask(stub, tmp_path, [post(wire, hello(wire, tools=tools)) for wire in WIRES])
    assert [answer[0] for answer in got] == [502] * 4
    assert all(is_shaped(wire, answer[2]) for wire, answer in zip(WIRES, got, strict=True))
    assert len(stub.bodies) == 4


@pytest.mark.parametrize("tools", [False, True])
def test_an_upstream_that_is_silent_is_504(tools, tmp_path):
    stub = Upstream(lambda _: ("slow", 5))
    got, _ = ask(stub, tmp_path, [post(wire, hello(wire, tools=tools)) for wire in WIRES], read_seconds=1)
    assert [answer[0] for answer in got] == [504] * 4
    assert all(is_shaped(wire, answer[2]) for wire, answer in zip(WIRES, got, strict=True))


@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_is_cut_off_ends_without_an_end(wire, tools, tmp_path):
    stub = Upstream(lambda _: ("cut", wire, [("text", "hello there, this is long enough")], 150))
    raw = hello(wire, tools=tools, **({} if wire == "gemini" else {"stream": True}))
    got, faults = ask(stub, tmp_path, [post(wire, raw, streamed=True)])
    assert got[0][0] == 0
    assert faults


@pytest.mark.parametrize("wire", WIRES)
def test_any_chunks_of_a_stream_come_out_as_the_same_bytes(wire, tmp_path):
    whole = b": hi\n\n" + b"".join(frames(wire, [("text", "hé there ☃")]))
    whole = (
        whole.replace(b"\n", b"\r\n") + b"data: no json\r\n\r\nevent: unheard\r\ndata: {}\r\n\r\n" + b"tail"
    )
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    stub = Upstream(lambda _: ("raw", "text/event-stream", pieces, 0))
    raw = hello(wire, **({} if wire == "gemini" else {"stream": True}))
    got, _ = ask(stub, tmp_path, [post(wire, raw, streamed=True)])
    assert got[0][2] == whole


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_inside_a_stream_passes(wire, tmp_path):
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    begun = next(iter(frames(wire, HELLO)))
    stub = Upstream(lambda _: ("raw", "text/event-stream", [begun, error], 0))
    raw = hello(wire, **({} if wire == "gemini" else {"stream": True}))
    got, _ = ask(stub, tmp_path, [post(wire, raw, streamed=True)])
    assert got[0][2] == begun + error


@pytest.mark.parametrize("tools", [False, True])
def test_a_client_that_goes_ends_the_upstreams_work(tools, tmp_path):
    stub = Upstream(lambda _: ("endless",))

    async def work():
        async with proxied(stub, tmp_path) as (url, _), ClientSession() as client:
            raw = hello("chat", tools=tools, stream=True)
            async with client.post(url + path("chat"), data=raw, headers=HEADERS) as answer:
                await answer.content.readany()
            await asyncio.wait_for(stub.gone.wait(), 10)
            async with client.get(url + "/health") as answer:
                assert answer.status == 200

    asyncio.run(work())


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_a_further_round_that_is_refused_is_said_in_the_providers_shape(wire, streamed, tmp_path):
    moves = [
        [("text", "Hmm. "), ("call", "own_1", OWN, {"query": "x"})],
        (
            "status",
            429,
            b'{"error":{"message":"slow"}}',
            {"Content-Type": "application/json", "Retry-After": "7"},
        ),
    ]
    raw = hello(wire, **({"stream": True} if streamed and wire != "gemini" else {}))
    got, _ = ask(Upstream(moves), tmp_path, [post(wire, raw, streamed=streamed)])
    status, headers, seen = got[0]
    if streamed:
        assert status == 200
        last = seen.strip().split(b"data: ")[-1]
        assert is_shaped(wire, last)
        assert b"429" in last
    else:
        assert (status, headers["Retry-After"]) == (429, "7")
    assert OWN.encode() not in seen


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_after_so_many_rounds_the_call_goes_through(wire, streamed, tmp_path):
    stub = Upstream(lambda raw: [("call", f"own_{raw.count(b'own_')}", OWN, {"query": "x"})])
    raw = hello(wire, **({"stream": True} if streamed and wire != "gemini" else {}))
    got, _ = ask(stub, tmp_path, [post(wire, raw, streamed=streamed)], rounds=2)
    assert got[0][0] == 200
    assert got[0][2].count(OWN.encode()) >= 1
    assert len(stub.bodies) == 3


def test_other_paths_pass_with_their_bodies_and_queries(tmp_path):
    stub = Upstream(lambda _: ("status", 200, b"fine", {"X-Own": "1", "Content-Type": "text/plain"}))
    requests = [
        ("GET", "/v1/models?limit=5&x=%2F", None, HEADERS),
        ("POST", "/v1/files", b"\x00\x01" * 50_000, {"Content-Type": "application/octet-stream"}),
        ("DELETE", "/v1/files/abc", None, HEADERS),
        ("GET", "/v1/messages/batches", None, {"x-api-key": "k", "anthropic-version": "2023-06-01"}),
        ("GET", "/v1beta/models?key=k", None, {}),
        ("POST", "/v1/embeddings", b'{"input":"x"}', HEADERS),
    ]
    got, _ = ask(stub, tmp_path, requests)
    assert [answer[0] for answer in got] == [200] * len(requests)
    assert all(answer[1]["X-Own"] == "1" for answer in got)
    assert stub.paths == [where for _, where, _, _ in requests]
    assert stub.bodies == [raw or b"" for _, _, raw, _ in requests]


def test_websockets_are_refused_so_that_the_client_uses_http(tmp_path):
    headers = HEADERS | {"Upgrade": "websocket", "Connection": "Upgrade"}
    got, _ = ask(Upstream(), tmp_path, [("GET", "/v1/responses", None, headers)])
    assert got[0][0] == 426
    assert is_shaped("responses", got[0][2])


def test_headers_pass_but_those_of_the_connection(tmp_path):
    sent = HEADERS | {
        "anthropic-beta": "a,b",
        "X-Thing": "1",
        "Connection": "keep-alive, X-Gone",
        "X-Gone": "1",
        "TE": "trailers",
        "Cookie": "a=b",
        "User-Agent": "me/1",
    }
    stub = Upstream([HELLO, HELLO])
    ask(stub, tmp_path, [("POST", path("chat"), hello("chat", tools=tools), sent) for tools in (False, True)])
    for seen in stub.headers:
        assert (seen["anthropic-beta"], seen["X-Thing"], seen["Cookie"]) == ("a,b", "1", "a=b")
        assert (seen["User-Agent"], seen["Authorization"]) == ("me/1", "Bearer k")
        assert not {"X-Gone", "TE"} & set(seen)
        assert seen["Host"].startswith("127.0.0.1")


def test_a_fault_of_the_engine_lets_the_request_through(tmp_path, monkeypatch, caplog):
    from turngate.proxy.chain import engine  # noqa: PLC0415

    def broken(*_):
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr(engine.Engine, "prepare", broken)
    stub = Upstream([HELLO] * 3)
    raws = [hello("chat", n=n) for n in range(3)]
    got, faults = ask(stub, tmp_path, [post("chat", raw) for raw in raws])
    assert [answer[0] for answer in got] == [200] * 3
    assert stub.bodies == raws
    assert faults == {"ZeroDivisionError": 3}
    assert len([record for record in caplog.records if "ZeroDivisionError" in record.getMessage()]) == 1


def test_neither_keys_nor_contents_are_logged(tmp_path, caplog):
    caplog.set_level("INFO")
    messages = [user("chat", "my private words"), *call("chat", "c"), result("chat", "c", LONG)]
    stub = Upstream([HELLO, ("dropped",), ("status", 500, b"no", {})])
    requests = [
        post("chat", body("chat", messages[:size]), Authorization="Bearer sk-secret") for size in (1, 3, 3)
    ]
    ask(stub, tmp_path, requests)
    assert "sk-secret" not in caplog.text
    assert "private words" not in caplog.text
    assert LONG.splitlines()[3] not in caplog.text


def test_another_page_in_a_browser_cannot_read_originals(tmp_path):
    local = {"Content-Type": "application/json"}
    requests = [
        ("POST", "/retrieve", b'{"hash":"0000000000000000"}', local),
        ("POST", "/retrieve", b'{"hash":"0000000000000000"}', local | {"Host": "evil.example"}),
        ("GET", "/stats", None, {"Host": "localhost:1"}),
    ]
    got, _ = ask(Upstream(), tmp_path, requests)
    assert [answer[0] for answer in got] == [404, 403, 200]


def test_with_a_token_only_the_token_opens(tmp_path):
    requests = [
        ("GET", "/turngate/stats", None, {"Authorization": given}) for given in ("", "Bearer no", "Bearer t")
    ]
    stub = Upstream()
    with in_background(stub, tmp_path, token="t") as (url, _):

        async def work():
            codes = []
            async with ClientSession() as client:
                for method, where, raw, headers in requests:
                    async with client.request(method, url + where, data=raw, headers=headers) as answer:
                        codes.append(answer.status)
            return codes

        assert asyncio.run(work()) == [403, 403, 200]
