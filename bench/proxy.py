"""`python -m bench proxy [--headroom] [--soak SECONDS]`: its cost beside a bare relay in the same run.

Stub upstream, relay, proxy and client share the machine, so only differences and ratios mean something. Each
request is sent to the stub alone, through the relay and through the proxy by turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

from aiohttp import ClientSession, TCPConnector, web

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer key"}
TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}]
PATH = "/v1/chat/completions"
REPLY = {
    "id": "c",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5},
}
EVENTS = 52
STATES = ("done", "again", "late")
HEADROOM = Path(".bench/headroom-ai-proxy-0-42-0/bin/headroom")
LIMITS = {
    "small: added to relay's": 2.0,
    "small, streamed: added to relay's": 2.0,
    "fresh 8k result: ms above relay": 4.0,
    "60k history, 10 turns: ms above relay": 2.0,
    "60k history, 1,000 turns: ms above relay": 2.0,
    "first byte, streamed: ms above relay": 0.5,
    "resident MB after 5,000 requests": 120.0,
    "ready in s": 1.0,
}
LEAST = {"throughput, share of relay's": 0.5}


# The three servers


async def stub(port: int) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if b'"stream": true' not in body:
            return web.json_response(REPLY)
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        for number in range(EVENTS):
            choice = {"index": 0, "delta": {"content": f"token {number} "}, "finish_reason": None}
            await out.write(b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n")
        await out.write(b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
        await out.write(b"data: [DONE]\n\n")
        await out.write_eof()
        return out

    await serve(answer, port)


async def relay(port: int, upstream: str) -> None:
    """The floor: what aiohttp itself costs, twice."""
    session = ClientSession(auto_decompress=False, connector=TCPConnector(limit=0))

    async def answer(request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        data = await request.read()
        async with session.request(
            request.method, upstream + request.path_qs, headers=headers, data=data
        ) as got:
            kept = {name: value for name, value in got.headers.items() if name != "Transfer-Encoding"}
            out = web.StreamResponse(status=got.status, headers=kept)
            await out.prepare(request)
            async for chunk in got.content.iter_any():
                await out.write(chunk)
            await out.write_eof()
            return out

    await serve(answer, port)


async def serve(answer: Callable[[web.Request], Any], port: int) -> None:
    application = web.Application(client_max_size=2**30)
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("listening", flush=True)
    await asyncio.Event().wait()


# What is sent


def body(messages: list[dict[str, Any]], *, tools: bool = True, streamed: bool = False) -> bytes:
    fields: dict[str, Any] = {"model": "m", "messages": messages} | ({"tools": TOOLS} if tools else {})
    return json.dumps(fields | ({"stream": True} if streamed else {})).encode()


def called(id_: str, text: str) -> list[dict[str, Any]]:
    function = {"name": "shell", "arguments": json.dumps({"command": f"run {id_}"})}
    call = {"id": id_, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id_, "content": text},
    ]


def fresh(seed: int) -> str:
    """About 8,000 tokens of log."""
    chance = random.Random(seed)
    return "\n".join(
        f"2026-01-01T12:{line // 60 % 60:02d}:{line % 60:02d}Z INFO worker-{chance.randrange(20)} job "
        f"{chance.randrange(10**6)} took {chance.randrange(900)} ms state={chance.choice(STATES)}"
        for line in range(230)
    )


def question(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


class History:
    """A conversation of about 60,000 tokens that grows by a turn a request."""

    def __init__(self, turns: int) -> None:
        chance = random.Random(turns)
        words = [f"word{number}" for number in range(5000)]
        each = 40_000 // turns
        text = [" ".join(chance.choice(words) for _ in range(each)) for _ in range(turns)]
        self._messages = question("go on")
        for number, part in enumerate(text):
            self._messages += [
                {"role": "assistant", "content": part},
                {"role": "user", "content": f"on {number}"},
            ]

    def beginnings(self) -> list[bytes]:
        """What must be known before: else the conversation began elsewhere, and is left alone."""
        return [body(self._messages[:1]), body(self._messages)]

    def grown(self, number: int) -> bytes:
        self._messages += called(f"call-{number}", "done")
        return body(self._messages)


class Places:
    """The servers' base URLs, and the client."""

    def __init__(self, urls: dict[str, str], client: ClientSession) -> None:
        self.urls = urls
        self._client = client

    async def ask(self, name: str, data: bytes) -> tuple[float, float]:
        """Seconds until the whole reply, and until its first byte."""
        begun, first = perf_counter(), 0.0
        async with self._client.post(self.urls[name] + PATH, data=data, headers=HEADERS) as answer:
            async for _ in answer.content.iter_any():
                first = first or perf_counter() - begun
            assert answer.status == 200, answer.status
        return perf_counter() - begun, first

    async def compare(
        self, make: Callable[[int], bytes], rounds: int, before: Callable[[int], list[bytes]] = lambda _: []
    ) -> dict[str, tuple[float, float]]:
        """Median milliseconds by server: whole, and first byte."""
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in self.urls}
        for number in range(rounds):
            data = make(number)
            for name in self.urls:
                for earlier in before(number):
                    await self.ask(name, earlier)
                seen[name].append(await self.ask(name, data))
        return {
            name: tuple(statistics.median(each[at] for each in times) * 1e3 for at in (0, 1))  # type: ignore[misc]
            for name, times in seen.items()
        }

    async def rate(self, name: str, make: Callable[[int], bytes], count: int) -> float:
        """Requests a second over 8 connections."""
        numbers = iter(range(count))

        async def work() -> None:
            for number in numbers:
                await self.ask(name, make(number))

        begun = perf_counter()
        await asyncio.gather(*(work() for _ in range(8)))
        return count / (perf_counter() - begun)


def small(number: int) -> bytes:
    return body(question(f"hi {number}"), tools=False)


def small_streamed(number: int) -> bytes:
    return body(question(f"hi {number}"), tools=False, streamed=True)


async def measure(places: Places, process: subprocess.Popen[bytes]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for number in range(20):
        for name in places.urls:
            await places.ask(name, small(-number))

    def show(label: str, found: dict[str, tuple[float, float]]) -> dict[str, float]:
        floor = found["stub"][0]
        added = {name: times[0] - floor for name, times in found.items() if name != "stub"}
        print(
            f"{label:34s} stub {floor:6.2f} ms; added " + ", ".join(f"{n} {a:+.2f}" for n, a in added.items())
        )
        return added

    added = show("small", await places.compare(small, 200))
    figures["small: added to relay's"] = added["turngate"] / added["relay"]
    found = await places.compare(small_streamed, 150)
    added = show("small, streamed", found)
    figures["small, streamed: added to relay's"] = added["turngate"] / added["relay"]
    figures["first byte, streamed: ms above relay"] = found["turngate"][1] - found["relay"][1]
    tools = await places.compare(lambda number: body(question(f"tools {number}")), 100)
    added = show("small, with tools (a new chain)", tools)
    figures["small, with tools: ms above relay"] = added["turngate"] - added["relay"]
    added = show(
        "fresh 8k-token result",
        await places.compare(
            lambda number: body([*question(f"look {number}"), *called(f"c{number}", fresh(number))]),
            50,
            lambda number: [body(question(f"look {number}"))],
        ),
    )
    figures["fresh 8k result: ms above relay"] = added["turngate"] - added["relay"]
    for turns, label in ((10, "10"), (1000, "1,000")):
        history = History(turns)
        for name in places.urls:
            for data in history.beginnings():
                await places.ask(name, data)
        added = show(f"60k history of {label} turns, a new one", await places.compare(history.grown, 40))
        figures[f"60k history, {label} turns: ms above relay"] = added["turngate"] - added["relay"]
    rates = {name: await places.rate(name, small, 2_000) for name in ("relay", "turngate")}
    figures["throughput, share of relay's"] = rates["turngate"] / rates["relay"]
    print("requests/s over 8 connections: " + ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))
    await places.rate("turngate", lambda number: body(question(f"many {number}")), 2_500)
    figures["resident MB after 5,000 requests"] = resident_mb(process.pid)
    return figures


def resident_mb(pid: int) -> float:
    fields = Path(f"/proc/{pid}/status").read_text()
    return int(fields.partition("VmRSS:")[2].split()[0]) / 1024


def open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


# Long traffic


async def soak(places: Places, pid: int, seconds: float) -> int:
    """Mixed traffic; memory and open files of the first tenth beside those of the last."""
    ends = monotonic() + seconds
    counts = {"requests": 0, "errors": 0}

    async def work(worker: int) -> None:
        turn = 0
        messages = question(f"worker {worker}")
        while monotonic() < ends:
            turn += 1
            if turn % 40 == 0:
                messages = question(f"worker {worker} again {turn}")
            for data in (
                small(turn),
                small_streamed(turn),
                body(messages),
                body(messages, streamed=True),
            ):
                counts["requests"] += 1
                try:
                    await places.ask("turngate", data)
                except Exception as fault:  # noqa: BLE001 - it is what is counted
                    counts["errors"] += 1
                    print(type(fault).__name__, fault)
            messages += called(f"w{worker}-{turn}", fresh(worker * 10_000 + turn) if turn % 3 else "done")

    samples: list[tuple[float, int]] = []

    async def watch() -> None:
        while monotonic() < ends:
            await asyncio.sleep(max(1.0, seconds / 60))
            samples.append((resident_mb(pid), open_files(pid)))
            print(
                f"  {counts['requests']:7d} requests  {samples[-1][0]:6.1f} MB  {samples[-1][1]} files",
                flush=True,
            )

    await asyncio.gather(watch(), *(work(number) for number in range(6)))
    early, late = samples[len(samples) // 3], samples[-1]
    print(
        f"{counts['requests']} requests, {counts['errors']} errors; from a third on "
        f"{late[0] - early[0]:+.1f} MB, {late[1] - early[1]:+d} files"
    )
    return int(bool(counts["errors"]) or late[0] > 1.15 * early[0] or late[1] > early[1] + 10)


# Running it all


def started(*line: str) -> tuple[subprocess.Popen[bytes], str]:
    process = subprocess.Popen([sys.executable, *line], stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, process.stdout.readline().decode().strip().rpartition(" ")[2]


async def with_servers(args: argparse.Namespace) -> int:
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            ports = [free_port() for _ in range(3)]
            bases = [f"http://127.0.0.1:{port}" for port in ports]
            processes.append(started("-m", "bench.proxy", "stub", str(ports[0]))[0])
            processes.append(started("-m", "bench.proxy", "relay", str(ports[1]), bases[0])[0])
            begun = perf_counter()
            line = ["-m", "turngate", "--data-dir", folder, "proxy", "--port", "0"]
            proxy, url = started(*line, "--openai-upstream", bases[0] + "/v1")
            ready = perf_counter() - begun
            processes.append(proxy)
            urls = {"stub": bases[0], "relay": bases[1], "turngate": url}
            if args.headroom:
                rival = headroom(ports[2], bases[0])
                processes.append(rival)
                urls["headroom"] = bases[2]
                await answering(bases[2])
            async with ClientSession(connector=TCPConnector(limit=0)) as client:
                places = Places(urls, client)
                if args.soak:
                    return await soak(places, proxy.pid, args.soak)
                figures = await measure(places, proxy) | {"ready in s": ready}
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    return verdict(figures)


def headroom(port: int, upstream: str) -> subprocess.Popen[bytes]:
    line = [str(HEADROOM), "proxy", "--port", str(port), "--no-rate-limit", "--no-cache"]
    env = os.environ | {"OPENAI_TARGET_API_URL": upstream, "HEADROOM_TELEMETRY": "off"}
    return subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def answering(url: str) -> None:
    async with ClientSession() as client:
        for _ in range(150):
            try:
                async with client.get(url + "/health") as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            await asyncio.sleep(0.2)
    raise SystemExit("headroom's proxy did not start; run `python -m bench rival DIR` once, it installs it")


def free_port() -> int:
    import socket  # noqa: PLC0415

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def verdict(figures: dict[str, float]) -> int:
    missed = 0
    for name, value in figures.items():
        limit = LIMITS.get(name, LEAST.get(name))
        good = limit is None or (value <= limit if name in LIMITS else value >= limit)
        missed += not good
        bound = "" if limit is None else f" ({'at most' if name in LIMITS else 'at least'} {limit:g})"
        print(f"{'  ' if good else '! '}{name:45s} {value:8.2f}{bound}")
    return int(bool(missed))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench proxy")
    parser.add_argument("--headroom", action="store_true", help="measure its proxy in the same run, too")
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS", help="mixed traffic instead")
    return asyncio.run(with_servers(parser.parse_args(argv)))


if __name__ == "__main__":
    role, port, *upstream = sys.argv[1:]
    asyncio.run(stub(int(port)) if role == "stub" else relay(int(port), upstream[0]))
