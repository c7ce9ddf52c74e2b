"""What happens on the connections themselves: bytes pass as they are, at the pace of whoever reads them."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientConnectorCertificateError, ClientPayloadError, ClientSession, web
from aiohttp.client_reqrep import ConnectionKey
from upstream import Upstream, listening

from turngate import settings as settings_module
from turngate.proxy import app, relay, serve, upstream

CHAT = "/v1/chat/completions"
ASK = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
WITH_TOOLS = ASK[:-1] + b', "tools": []}'
OK = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def before(base, folder, **proxy):
    """The proxy in front of whatever is at `base`: its URL and its services."""
    ups = {"openai_upstream": base + "/v1", "anthropic_upstream": base, "gemini_upstream": base}
    settings = settings_module.load(environ={}, data_dir=folder / "data", proxy=ups | proxy)
    async with (
        serve.services(settings) as shared,
        listening(app.build(shared), **serve.SERVER) as url,
    ):
        yield url, shared


@asynccontextmanager
async def through(upstream, folder, **proxy):
    """The same with an upstream that is yet to be started, and a client."""
    async with upstream as base, before(base, folder, **proxy) as (url, shared), ClientSession() as client:
        yield url, shared, client


@asynccontextmanager
async def raw_upstream(answer):
    """A server that answers each connection's first request with these bytes and hangs up."""

    async def serve_one(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        await reader.readexactly(size)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0, limit=2**20)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def nothing(_):
    return web.Response()


@asynccontextmanager
async def handled(handler):
    """An upstream that is one aiohttp handler; bodies come to it as they were sent."""
    application = web.Application(client_max_size=2**30)
    application.router.add_route("*", "/{path:.*}", handler)
    async with listening(application, auto_decompress=False, max_field_size=2**16) as base:
        yield base


async def talk(url, data):
    """Send bytes to a server and read until it hangs up."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    await writer.drain()
    async with asyncio.timeout(20):
        got = await reader.read()
    writer.close()
    return got


async def collect(reply, into):
    async for piece in reply.content.iter_any():
        into.append(piece)


async def lives(url):
    async with ClientSession() as client, client.get(f"{url}/health") as answer:
        return answer.status == 200


NO_HTTP = {
    "garbage": b"what do you want?\r\n\r\n",
    "nothing": b"",
    "half a head": OK + b"Content-Ty",
    "a status that is none": b"HTTP/1.1 abc OK\r\n\r\n",
    "a header without an end": OK + b"X-Long: " + b"x" * 200_000 + b"\r\n\r\n",
    "a header without a name": OK + b": x\r\n\r\n",
    "two lengths": OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a chunk that is none": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\nzz\r\n",
    "less than it said": OK + b"Content-Length: 50\r\n\r\nonly this",
}


@pytest.mark.parametrize("body", [ASK, WITH_TOOLS])
@pytest.mark.parametrize("name", NO_HTTP)
def test_an_upstream_that_speaks_no_http_is_502_in_the_providers_shape(name, body, tmp_path):
    async def work():
        async with (
            through(raw_upstream(NO_HTTP[name]), tmp_path) as (url, _, client),
            client.post(url + CHAT, data=body) as answer,
        ):
            assert answer.status == 502
            assert {"message", "type", "param", "code"} == set((await answer.json())["error"])
            assert await lives(url)

    asyncio.run(work())


@pytest.mark.parametrize("body", [ASK, WITH_TOOLS])
def test_a_stream_that_goes_on_as_no_http_is_broken_off(body, tmp_path):
    begun = asyncio.Event()

    async def handler(request):
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        await out.write(b"data: 1\n\n")
        await begun.wait()
        request.transport.write(b"zz\r\n")
        await asyncio.sleep(10)
        return out

    async def work():
        got = []
        async with (
            through(handled(handler), tmp_path) as (url, _, client),
            client.post(url + CHAT, data=body) as reply,
        ):
            begun.set()
            with pytest.raises(ClientPayloadError):
                await asyncio.wait_for(collect(reply, got), 5)
            assert b"".join(got) == b"data: 1\n\n"
            assert await lives(url)

    asyncio.run(work())


def test_all_that_came_before_a_cut_reaches_the_client(tmp_path):
    pieces = [b"data: %06d\n\n" % number for number in range(20_000)]

    async def handler(request):
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        for piece in pieces:
            await out.write(piece)
        request.transport.close()
        return out

    async def work():
        got = []
        async with (
            through(handled(handler), tmp_path) as (url, _, client),
            client.post(url + CHAT, data=ASK) as reply,
        ):
            with pytest.raises(ClientPayloadError):
                await collect(reply, got)
        assert b"".join(got) == b"".join(pieces)

    asyncio.run(work())


def test_plain_http_behind_https_is_502(tmp_path):
    @asynccontextmanager
    async def misnamed():
        async with handled(nothing) as base:
            yield base.replace("http:", "https:")

    async def work():
        async with (
            through(misnamed(), tmp_path) as (url, _, client),
            client.post(url + CHAT, data=ASK) as answer,
        ):
            assert answer.status == 502
            assert "no connection to the upstream" in (await answer.json())["error"]["message"]

    asyncio.run(work())


def test_a_certificate_that_does_not_hold_is_named():
    key = ConnectionKey("h", 443, is_ssl=True, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None)
    fault = ClientConnectorCertificateError(key, ssl.CertificateError("self-signed"))
    assert "Cert" in upstream._why(fault)


@pytest.mark.parametrize("body", [ASK, WITH_TOOLS])
def test_each_piece_of_a_stream_is_there_before_the_next_one_is_sent(body, tmp_path):
    seen = asyncio.Queue()

    async def handler(request):
        await request.read()
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        for number in range(5):
            await out.write(b'data: {"n":%d}\n\n' % number)
            assert await asyncio.wait_for(seen.get(), 10) == number
        await out.write_eof()
        return out

    async def work():
        async with (
            through(handled(handler), tmp_path) as (url, _, client),
            client.post(url + CHAT, data=body) as reply,
        ):
            for number in range(5):
                assert await reply.content.readuntil(b"\n\n") == b'data: {"n":%d}\n\n' % number
                seen.put_nowait(number)
            assert await reply.content.read() == b""

    asyncio.run(work())


def test_each_piece_of_an_upload_is_there_before_the_next_one_is_sent(tmp_path):
    seen = asyncio.Queue()

    async def handler(request):
        async for piece in request.content.iter_any():
            seen.put_nowait(piece)
        return web.Response(body=b"done")

    async def pieces():
        for number in range(5):
            yield b"%d" % number
            assert await asyncio.wait_for(seen.get(), 10) == b"%d" % number

    async def work():
        async with (
            through(handled(handler), tmp_path) as (url, _, client),
            client.post(f"{url}/v1/files", data=pieces()) as reply,
        ):
            assert await reply.read() == b"done"

    asyncio.run(work())


def test_a_client_that_does_not_read_slows_the_upstream_down(tmp_path):
    sent, piece, stopped = [0], b"x" * 65_536, asyncio.Event()

    async def handler(request):
        out = web.StreamResponse()
        await out.prepare(request)
        try:
            while sent[0] < 2**28:
                await out.write(piece)
                sent[0] += len(piece)
        finally:
            stopped.set()
        return out

    async def standing():
        """Wait until the upstream gets nothing off any more."""
        last = -1
        while last != sent[0]:
            last = sent[0]
            await asyncio.sleep(0.3)

    async def work():
        async with handled(handler) as base, before(base, tmp_path) as (url, _):
            host, _, port = url.removeprefix("http://").partition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /v1/files HTTP/1.1\r\nHost: x\r\n\r\n")
            await standing()
            # What the kernel holds of four sockets, and a buffer in each process.
            assert 0 < sent[0] < 2**26
            writer.transport.abort()
            await asyncio.wait_for(stopped.wait(), 10)

    asyncio.run(work())


@pytest.mark.parametrize("body", [ASK, WITH_TOOLS])
def test_a_client_that_goes_before_the_answer_ends_the_upstreams_work(body, tmp_path):
    asked, gone = asyncio.Event(), asyncio.Event()

    async def handler(request):
        await request.read()
        asked.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            gone.set()
            raise
        return web.Response()

    async def work():
        async with through(handled(handler), tmp_path) as (url, _, client):
            asking = asyncio.create_task(client.post(url + CHAT, data=body))
            await asyncio.wait_for(asked.wait(), 10)
            asking.cancel()
            await asyncio.wait_for(gone.wait(), 10)
            assert await lives(url)

    asyncio.run(work())


@pytest.mark.parametrize("path", ["/v1/files", CHAT])
def test_a_client_that_goes_in_the_middle_of_its_request_harms_nobody(path, tmp_path):
    async def work():
        async with handled(nothing) as base, before(base, tmp_path) as (url, _):
            host, _, port = url.removeprefix("http://").partition(":")
            for _ in range(3):
                _, writer = await asyncio.open_connection(host, int(port))
                writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n{{".encode())
                await writer.drain()
                await asyncio.sleep(0.05)
                writer.transport.abort()
            assert await lives(url)

    asyncio.run(work())


ODD_REQUESTS = {
    "no HTTP": b"hello\r\n\r\n",
    "a method that is none": b"\x00\x01 / HTTP/1.1\r\n\r\n",
    "a header without an end": b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    "two lengths": b"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": (
        b"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "a chunk that is none": (
        b"POST /v1/files HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_REQUESTS)
def test_a_client_that_speaks_no_http_is_refused_and_nobody_else(name, tmp_path):
    async def handler(request):
        await request.read()
        return web.Response()

    async def work():
        async with handled(handler) as base, before(base, tmp_path) as (url, _):
            got = await talk(url, ODD_REQUESTS[name])
            assert got.split(b" ")[1][:1] in {b"4", b"5"}
            assert await lives(url)

    asyncio.run(work())


def test_an_old_client_gets_its_reply_without_chunks(tmp_path):
    async def work():
        stub = Upstream(lambda _: ("raw", "text/event-stream", [b"data: 1\n\n", b"data: 2\n\n"], 0))
        async with listening(stub.app()) as base, before(base, tmp_path) as (url, _):
            head = f"POST {CHAT} HTTP/1.0\r\nHost: x\r\nContent-Length: {len(ASK)}\r\n\r\n".encode()
            got = await talk(url, head + ASK)
            assert got.endswith(b"\r\n\r\ndata: 1\n\ndata: 2\n\n")
            assert b"chunked" not in got.lower()

    asyncio.run(work())


def test_a_client_that_waits_to_be_told_to_go_on_is_told(tmp_path):
    async def handler(request):
        assert "Expect" not in request.headers
        return web.Response(body=await request.read())

    async def work():
        async with handled(handler) as base, before(base, tmp_path) as (url, _):
            host, _, port = url.removeprefix("http://").partition(":")
            for path in (CHAT, "/v1/files"):
                reader, writer = await asyncio.open_connection(host, int(port))
                head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(ASK)}\r\n"
                writer.write(head.encode() + b"Expect: 100-continue\r\nConnection: close\r\n\r\n")
                assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).startswith(b"HTTP/1.1 100")
                writer.write(ASK)
                assert (await asyncio.wait_for(reader.read(), 10)).endswith(ASK)
                writer.close()

    asyncio.run(work())


HEADS = {
    "HEAD": ("HEAD", OK + b"Content-Length: 123\r\nX-A: 1\r\n\r\n"),
    "204": ("DELETE", b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n"),
    "304": ("GET", b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nX-A: 1\r\n\r\n'),
    "own reason": ("GET", b"HTTP/1.1 299 Rather Fine\r\nContent-Length: 0\r\nX-A: 1\r\n\r\n"),
    "no type": ("GET", OK + b"Content-Length: 2\r\nX-A: 1\r\n\r\nhi"),
    "until the end": ("GET", OK + b"X-A: 1\r\n\r\nhi there"),
    "cookies": ("GET", OK + b"Content-Length: 0\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d; Path=/\r\n\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
def test_a_head_passes_as_it_is(name, tmp_path):
    method, answer = HEADS[name]

    async def work():
        async with raw_upstream(answer) as base, before(base, tmp_path) as (url, _):
            line = f"{method} /v1/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            return await talk(url, line.encode())

    got = asyncio.run(work())
    head, _, body = got.partition(b"\r\n\r\n")
    wanted, _, wanted_body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == wanted.split(b"\r\n")[0]
    for line in wanted.split(b"\r\n")[1:]:
        assert line in head.split(b"\r\n")
    assert b"Server:" not in head
    assert wanted_body in body


def test_request_headers_of_any_spelling_pass(tmp_path):
    seen = []

    async def handler(request):
        seen.extend(request.raw_headers)
        return web.Response()

    async def work():
        async with handled(handler) as base, before(base, tmp_path) as (url, _):
            line = (
                b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-oDD-Case: 1\r\n"
                b"X-Two: a\r\nX-Two: b\r\nX-Utf: caf\xc3\xa9\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n"
            )
            assert (await talk(url, line)).startswith(OK)

    asyncio.run(work())
    assert {(b"X-oDD-Case", b"1"), (b"X-Two", b"a"), (b"X-Two", b"b"), (b"X-Utf", "café".encode())} <= set(
        seen
    )
    assert (b"X-Long", b"x" * 20_000) in seen
    assert {name.lower() for name, _ in seen} == {b"host", b"x-odd-case", b"x-two", b"x-utf", b"x-long"}


def test_headers_that_are_no_utf8_break_nothing(tmp_path):
    async def work():
        answer = OK + b"Content-Length: 2\r\nX-Name: caf\xe9\r\n\r\nhi"
        async with raw_upstream(answer) as base, before(base, tmp_path) as (url, _):
            line = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Name: caf\xe9\r\n\r\n"
            got = await talk(url, line)
            assert got.startswith(OK)
            assert got.endswith(b"\r\n\r\nhi")

    asyncio.run(work())


def test_a_large_request_arrives_whole_and_with_its_length(tmp_path):
    body, seen = WITH_TOOLS[:-1] + b', "x": "' + b"y" * 3_000_000 + b'"}', []

    async def handler(request):
        seen.append((request.headers.get("Content-Length"), await request.read()))
        return web.Response()

    async def pieces():
        for at in range(0, len(body), 100_000):
            yield body[at : at + 100_000]

    async def work():
        async with (
            through(handled(handler), tmp_path) as (url, _, client),
            client.post(url + CHAT, data=pieces()) as reply,
        ):
            assert reply.status == 200

    asyncio.run(work())
    ((length, got),) = seen
    assert length == str(len(got))
    assert got.startswith(WITH_TOOLS[:20])
    assert got.endswith(body[-3_000_000:])


def test_an_outer_proxy_that_the_environment_names_is_asked(tmp_path, monkeypatch):
    async def handler(request):
        return web.json_response({"asked": request.raw_path, "auth": request.headers["Authorization"]})

    async def work():
        async with handled(handler) as outer:
            monkeypatch.setenv("http_proxy", outer)
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            upstream.outer_proxy.cache_clear()
            async with (
                before("http://models.example", tmp_path) as (url, _),
                ClientSession() as client,
                client.post(url + CHAT, data=ASK, headers={"Authorization": "Bearer k"}) as reply,
            ):
                return await reply.json()

    try:
        found = asyncio.run(work())
    finally:
        upstream.outer_proxy.cache_clear()
    assert found == {"asked": f"http://models.example{CHAT}", "auth": "Bearer k"}


def test_packed_bytes_of_other_paths_pass_packed(tmp_path):
    packed, seen = gzip.compress(b"hello " * 1000), []

    async def handler(request):
        seen.append((request.headers.get("Content-Encoding"), await request.read()))
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async def work():
        async with (
            handled(handler) as base,
            before(base, tmp_path) as (url, _),
            ClientSession(auto_decompress=False) as client,
            client.post(f"{url}/v1/files", data=packed, headers={"Content-Encoding": "gzip"}) as reply,
        ):
            assert reply.headers["Content-Encoding"] == "gzip"
            assert await reply.read() == packed

    asyncio.run(work())
    assert seen == [("gzip", packed)]


def test_connections_are_used_again_and_a_closed_one_is_replaced(tmp_path):
    connections = set()

    async def handler(request):
        connections.add(request.transport.get_extra_info("peername"))
        out = web.Response(body=b"{}")
        if len(connections) == 1 and request.path.endswith("last"):
            out.force_close()
        return out

    async def work():
        async with through(handled(handler), tmp_path) as (url, _, client):
            for path in ("/v1/a", CHAT, "/v1/last", CHAT, "/v1/b"):
                async with client.post(url + path, data=ASK) as reply:
                    assert (reply.status, await reply.read()) == (200, b"{}")

    asyncio.run(work())
    assert len(connections) == 2


def test_a_fault_of_ours_in_the_middle_of_a_reply_looks_like_no_end(tmp_path, monkeypatch):
    async def broken(request, _route, services, _body, _headers):
        out = web.StreamResponse()
        await out.prepare(request)
        await out.write(b"begun")
        raise ZeroDivisionError

    monkeypatch.setattr(relay, "forward", broken)

    async def work():
        async with (
            through(handled(nothing), tmp_path) as (url, _, client),
            client.post(url + CHAT, data=ASK) as reply,
        ):
            with pytest.raises(ClientPayloadError):
                await reply.read()
            assert await lives(url)

    asyncio.run(work())
