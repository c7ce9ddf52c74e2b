"""The proxy's own endpoints, who may use them, and how bodies are unpacked."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import zlib
from contextlib import asynccontextmanager, suppress

import brotli
import pytest
from aiohttp import ClientSession
from backports import zstd
from conversations import LONG
from hypothesis import given
from hypothesis import strategies as st
from upstream import Upstream, proxied

from turngate.errors import SettingsError, StoreUnavailableError
from turngate.proxy import access, decode, endpoints
from turngate.settings import ProxySettings

SESSION = "a-conversation"


@asynccontextmanager
async def running(tmp_path, stub=None, **proxy):
    """The proxy with one shortened result in its store: URL, services, a client, the result's hash."""
    async with proxied(stub or Upstream(), tmp_path, **proxy) as (url, shared), ClientSession() as client:
        shown = shared.gate.session(SESSION).tool_result(name="bash", text=LONG)
        yield url, shared, client, re.search(r"<<<CCR:(\w+)\|", shown)[1]


async def got(client, url, data=None):
    asking = client.get(url) if data is None else client.post(url, data=json.dumps(data))
    async with asking as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize("prefix", ["", "/turngate"])
def test_what_is_stored_can_be_found_and_read(prefix, tmp_path):
    async def work():
        async with running(tmp_path) as (url, _, client, ref):
            base = url + prefix
            status, whole = await got(client, f"{base}/retrieve", {"hash": ref})
            assert (status, whole["text"]) == (200, LONG)
            _, part = await got(client, f"{base}/retrieve", {"hash": ref, "lines": "2-3"})
            assert part["text"].splitlines() == LONG.splitlines()[1:3]
            _, mine = await got(client, f"{base}/retrieve", {"hash": ref, "session": SESSION})
            assert mine["text"] == LONG
            word = max(LONG.split(), key=len)
            status, found = await got(client, f"{base}/search", {"query": word})
            assert (status, found["found"]) == (200, True)
            assert found["hits"][0]["id"] == ref
            status, explained = await got(client, f"{base}/explain?session={SESSION}")
            assert (status, explained["breaks"]) == (200, [])
            status, stats = await got(client, f"{base}/stats")
            assert (status, stats["store"]["contents"]) == (200, 1)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("path", "data", "status"),
    [
        ("/retrieve", {"hash": "f" * 16}, 404),
        ("/retrieve", {"hash": "REF", "session": "another"}, 404),
        ("/retrieve", {"hash": "REF", "lines": "x"}, 400),
        ("/retrieve", {"hash": "REF", "pattern": "("}, 400),
        ("/retrieve", {"hash": 5}, 400),
        ("/retrieve", ["hash"], 400),
        ("/search", {"query": ""}, 400),
        ("/explain", None, 400),
    ],
)
def test_what_cannot_be_answered_says_why(path, data, status, tmp_path):
    async def work():
        async with running(tmp_path) as (url, _, client, ref):
            asked = json.loads(json.dumps(data).replace("REF", ref))
            code, answer = await got(client, url + path, asked)
            assert (code, set(answer)) == (status, {"error"})

    asyncio.run(work())


def test_a_question_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(endpoints, "_MOST_BYTES", 100)

    async def work():
        async with running(tmp_path) as (url, _, client, ref):
            status, answer = await got(client, f"{url}/retrieve", {"hash": ref, "pattern": "x" * 100})
            assert (status, answer) == (400, {"error": "the question is too long"})

    asyncio.run(work())


def test_it_is_not_ready_while_the_store_fails_and_is_again_when_it_is_back(tmp_path, monkeypatch):
    async def work():
        async with running(tmp_path) as (url, shared, client, _):
            assert await got(client, f"{url}/ready") == (200, {"ready": True})

            def fails(*_):
                raise StoreUnavailableError("gone")

            with monkeypatch.context() as patch:
                patch.setattr(type(shared.gate.store), "touch", fails)
                assert await got(client, f"{url}/ready") == (503, {"ready": False})
                status, health = await got(client, f"{url}/health")
                assert (status, health["status"]) == (200, "degraded")
            assert await got(client, f"{url}/ready") == (200, {"ready": True})
            assert (await got(client, f"{url}/health"))[1]["status"] == "healthy"

    asyncio.run(work())


def test_health_never_asks_an_upstream_and_the_other_asks_once_a_minute(tmp_path, monkeypatch):
    stub = Upstream(lambda _: ("status", 404, b"", {}))

    async def work():
        async with running(tmp_path, stub) as (url, _, client, _):
            await got(client, f"{url}/health")
            await got(client, f"{url}/ready")
            assert stub.paths == []
            for _ in range(3):
                status, found = await got(client, f"{url}/health/upstream")
                assert (status, found["openai"]["reachable"], found["openai"]["status"]) == (200, True, 404)
            assert len(stub.paths) == 3
            monkeypatch.setattr(endpoints, "UPSTREAM_SECONDS", 0.0)
            await got(client, f"{url}/health/upstream")
            assert len(stub.paths) == 6

    asyncio.run(work())


def test_an_upstream_that_is_down_is_said_to_be(tmp_path):
    async def work():
        async with running(tmp_path, gemini_upstream="http://127.0.0.1:9") as (url, _, client, _):
            status, found = await got(client, f"{url}/health/upstream")
            assert (status, found["gemini"]["reachable"]) == (200, False)

    asyncio.run(work())


def test_metrics_are_what_prometheus_reads(tmp_path):
    async def work():
        async with running(tmp_path) as (url, shared, client, _):
            shared.metrics.count("retrievals", 3)
            async with client.get(f"{url}/metrics") as answer:
                return answer.content_type, await answer.text()

    kind, text = asyncio.run(work())
    assert kind == "text/plain"
    lines = text.splitlines()
    assert "turngate_retrievals_total 3" in lines
    assert "turngate_store_up 1" in lines
    samples = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"turngate_\w+ \d+", line) for line in samples)
    for sample in samples:
        assert any(line.startswith(f"# TYPE {sample.split()[0]} ") for line in lines)


LOCAL = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]
FOREIGN = ["10.0.0.1", "192.168.1.5", "8.8.8.8", "::", "0.0.0.0", "fe80::1%eth0", "", "x", None]


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:8787", "[::1]:8787", "[::1]"])
@pytest.mark.parametrize("peer", LOCAL)
def test_this_machine_may(peer, host):
    assert access.allowed(ProxySettings(), peer, host, "")


@pytest.mark.parametrize("peer", FOREIGN)
def test_other_machines_may_not(peer):
    assert not access.allowed(ProxySettings(), peer, "localhost", "Bearer x")


@given(st.text(max_size=20), st.sampled_from(LOCAL))
def test_a_host_that_is_not_this_machine_is_a_page_in_a_browser(name, peer):
    host = f"{name}.example"
    assert not access.allowed(ProxySettings(), peer, host, "")
    assert not access.allowed(ProxySettings(), peer, f"127.0.0.1.{host}", "")


@given(st.text(min_size=1), st.text(), st.sampled_from(LOCAL + FOREIGN), st.text())
def test_with_a_token_nothing_else_counts(token, given_token, peer, host):
    settings = ProxySettings(token=token)
    assert access.allowed(settings, peer, host, f"Bearer {token}")
    assert access.allowed(settings, peer, host, f"Bearer {given_token}") is (given_token == token)
    assert not access.allowed(settings, peer, host, "")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_beyond_this_machine_a_token_is_needed(host):
    with pytest.raises(SettingsError, match=r"proxy\.token"):
        access.check_bind(ProxySettings(host=host))
    access.check_bind(ProxySettings(host=host, token="t"))


PACK = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
    "identity": bytes,
}


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@given(st.binary(max_size=3000), st.lists(st.sampled_from(sorted(PACK)), max_size=3))
def test_what_was_packed_comes_out_again(data, names):
    packed = data
    for name in names:
        packed = PACK[name](packed)
    assert decode.decoded(packed, ", ".join(names).upper(), 4000) == data
    assert decode.decoded(raw_deflate(data), "deflate", 4000) == data


@given(st.binary(max_size=300), st.sampled_from(sorted(PACK)))
def test_damage_has_one_name(data, name):
    if name == "identity":
        return
    with suppress(decode.BodyError):
        decode.decoded(data, name, 10_000)
    packed = PACK[name](data + b"x")
    with pytest.raises(decode.BodyError):
        decode.decoded(packed[:-1], name, 10_000)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_bomb_is_refused_before_it_is_unpacked(name, times):
    packed = b"\0" * 5_000_000
    for _ in range(times):
        packed = PACK[name](packed)
    with pytest.raises(decode.TooLargeError):
        decode.decoded(packed, ",".join([name] * times), 100_000)
