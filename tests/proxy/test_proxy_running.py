"""The proxy as a process: it starts, is shared by workers, ends in order, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from upstream import Upstream, listening

from turngate.proxy import health, run
from turngate.proxy.metrics import Metrics, shared

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc")

ANSWERED = ("status", 200, b'{"ok":1}', {"Content-Type": "application/json"})
ASK = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


@pytest.fixture
def stub():
    """An upstream on a thread of its own, and its base URL."""
    made, found, ready, stop = Upstream(lambda _: ANSWERED), {}, threading.Event(), asyncio.Event()

    async def serve():
        found["loop"] = asyncio.get_running_loop()
        async with listening(made.app()) as found["url"]:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(20)
    made.url = found["url"]
    yield made
    found["loop"].call_soon_threadsafe(stop.set)
    thread.join(20)


@pytest.fixture
def start(tmp_path, stub):
    """Starts `turngate …` with settings of its own; what is still alive at the end is killed."""
    begun = []

    def start(*words, **environ):
        ups = {
            "TURNGATE_PROXY_OPENAI_UPSTREAM": f"{stub.url}/v1",
            "TURNGATE_PROXY_ANTHROPIC_UPSTREAM": stub.url,
            "TURNGATE_PROXY_GEMINI_UPSTREAM": stub.url,
        }
        kept = {name: value for name, value in os.environ.items() if name not in run.BASE_URLS}
        env = kept | {"TURNGATE_CONFIG": "", "TMPDIR": str(tmp_path)} | ups | environ
        line = [sys.executable, "-m", "turngate", "--data-dir", str(tmp_path / "data"), *words]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        begun.append(process)
        return process

    yield start
    for process in begun:
        for pid in [*descendants(process.pid), process.pid]:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=20)


@pytest.fixture
def proxy(start):
    """Starts a proxy: its process and its base URL."""

    def begin(*words, **environ):
        process = start("proxy", "--port", "0", *words, **environ)
        line = process.stdout.readline().decode()
        assert line.startswith("turngate: listening at http://127.0.0.1:"), process.stderr.read()
        return process, line.split()[-1]

    return begin


def children(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid):
    return [one for child in children(pid) for one in (child, *descendants(child))]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(holds):
    """Wait until something holds; the time is only a way out of a test that fails."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError("it never came to hold")


def ask(url, path="/v1/chat/completions", data=ASK):
    headers = {"Content-Type": "application/json", "Authorization": "Bearer k", "Connection": "close"}
    with urlopen(Request(url + path, data, headers), timeout=20) as answer:
        return answer.read()


def got(url, path):
    with urlopen(url + path, timeout=20) as answer:
        return answer.read()


def refused(url):
    try:
        got(url, "/health")
    except HTTPError:
        return False
    except (URLError, OSError):
        return True
    return False


class TestProxy:
    """`turngate proxy`."""

    def test_it_says_where_it_listens_and_ends_when_told(self, proxy):
        process, url = proxy()
        assert json.loads(got(url, "/health"))["status"] == "healthy"
        assert json.loads(ask(url)) == {"ok": 1}
        process.terminate()
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, b"", b"")

    def test_it_leaves_no_file_behind_even_when_it_is_killed(self, proxy, tmp_path):
        process, url = proxy()
        ask(url)
        process.kill()
        process.wait(20)
        assert {path.name for path in tmp_path.iterdir()} == {"data"}

    def test_a_stream_under_way_finishes_after_it_was_told_to_end(self, proxy, stub):
        pieces = [b"data: %d\n\n" % number for number in range(20)]
        stub._moves = lambda _: ("raw", "text/event-stream", pieces, 0.05)
        process, url = proxy()
        with urlopen(Request(f"{url}/v1/chat/completions", ASK), timeout=20) as answer:
            first = answer.readline()
            process.terminate()
            until(lambda: refused(url))
            assert first + answer.read() == b"".join(pieces)
        assert process.wait(20) == 0

    def test_what_takes_longer_than_it_may_is_cut_off(self, proxy, stub):
        stub._moves = lambda _: ("endless",)
        process, url = proxy(TURNGATE_PROXY_STOP_SECONDS="1")
        with urlopen(Request(f"{url}/v1/chat/completions", ASK), timeout=20) as answer:
            answer.readline()
            process.terminate()
            assert process.wait(20) == 0

    def test_an_address_in_use_is_said_in_a_line(self, proxy, start):
        _, url = proxy()
        second = start("proxy", "--port", url.rpartition(":")[2])
        _, err = second.communicate(timeout=20)
        assert second.returncode == 1
        assert err.startswith(b"turngate: cannot listen at 127.0.0.1:")
        assert err.count(b"\n") == 1

    @pytest.mark.parametrize("host", ["0.0.0.0", "::"])
    def test_it_does_not_listen_to_a_network_without_a_token(self, start, host):
        process = start("proxy", "--port", "0", "--host", host)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 1
        assert b"proxy.token" in err

    @pytest.mark.parametrize(
        "words", [("--openai-upstream", "nowhere"), ("--workers", "0"), ("--port", "70000")]
    )
    def test_wrong_options_are_said_in_words(self, start, words):
        process = start("proxy", *words)
        _, err = process.communicate(timeout=20)
        assert process.returncode in {1, 2}
        assert b"Traceback" not in err
        assert words[0].strip("-").replace("-", "_").encode() in err.replace(b"-", b"_")


class TestWorkers:
    """`--workers`."""

    def test_workers_share_the_port_and_their_counters(self, proxy):
        process, url = proxy("--workers", "2")
        workers = children(process.pid)
        assert len(workers) == 2
        for _ in range(12):
            ask(url)
        assert b"\nturngate_requests_total 12\n" in got(url, "/metrics")
        process.terminate()
        assert process.wait(20) == 0
        assert not any(map(alive, workers))

    def test_a_worker_that_dies_is_replaced_and_its_counts_stay(self, proxy):
        process, url = proxy("--workers", "2")
        for _ in range(6):
            ask(url)
        first = children(process.pid)
        os.kill(first[0], signal.SIGKILL)
        until(lambda: len(children(process.pid)) == 2 and children(process.pid) != first)
        until(lambda: b"turngate_requests_total 6\n" in got(url, "/metrics"))
        process.terminate()
        assert process.wait(20) == 0

    def test_workers_end_with_the_process_above_them(self, proxy):
        process, url = proxy("--workers", "2")
        workers = children(process.pid)
        process.kill()
        until(lambda: not any(map(alive, workers)))
        assert refused(url)

    def test_counters_of_workers_are_summed(self):
        memory = shared(3)
        workers = [Metrics(memory, number) for number in range(3)]
        for number, worker in enumerate(workers):
            worker.count("requests", number + 1)
        Metrics(memory, 1).count("requests", 10)
        assert all(worker.sums()["requests"] == 16 for worker in workers)


WHAT_IT_SEES = "import os, json; print(json.dumps(dict(os.environ)))"
ITSELF = "import os, time, sys; print(os.getpid(), flush=True); time.sleep(60)"


class TestRun:
    """`turngate run`."""

    def run(self, start, program, *options, **environ):
        return start("run", *options, "--", sys.executable, "-c", program, **environ)

    def test_the_command_finds_the_proxy_under_every_name(self, start):
        process = self.run(start, WHAT_IT_SEES)
        out, err = process.communicate(timeout=30)
        seen = json.loads(out)
        assert (process.returncode, err) == (0, b"")
        base = seen["ANTHROPIC_BASE_URL"]
        assert base.startswith("http://127.0.0.1:")
        assert {name: seen[name] for name in run.BASE_URLS} == {
            name: base + path for name, path in run.BASE_URLS.items()
        }
        assert refused(base)

    def test_the_command_is_answered_through_the_proxy(self, start, stub):
        program = (
            "import os, urllib.request as u\n"
            "r = u.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', b'{}')\n"
            "print(u.urlopen(r).read().decode())"
        )
        process = self.run(start, program, OPENAI_BASE_URL=f"{stub.url}/v1/mine")
        out, _ = process.communicate(timeout=30)
        assert json.loads(out) == {"ok": 1}
        assert stub.paths == ["/v1/mine/chat/completions"]

    @pytest.mark.parametrize(
        ("program", "code"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)]
    )
    def test_its_exit_code_is_the_commands(self, start, program, code):
        process = self.run(start, program)
        process.communicate(timeout=30)
        assert process.returncode == code

    def test_a_command_that_does_not_exist_is_said_in_a_line(self, start):
        process = start("run", "--", "/no/such/program")
        _, err = process.communicate(timeout=30)
        assert process.returncode == 1
        assert err.startswith(b"turngate: cannot run '/no/such/program'")
        assert b"Traceback" not in err

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_nothing_is_left_when_it_is_ended(self, start, number):
        process = self.run(start, ITSELF)
        command = int(process.stdout.readline())
        others = until(lambda: descendants(process.pid))
        assert command in others
        assert len(others) == 2
        process.send_signal(number)
        until(lambda: not any(map(alive, others)))

    def test_the_command_outlives_a_proxy_that_is_killed(self, start):
        process = self.run(start, ITSELF)
        command = int(process.stdout.readline())
        (proxy,) = [p for p in children(process.pid) if b"proxy" in Path(f"/proc/{p}/cmdline").read_bytes()]
        os.kill(proxy, signal.SIGKILL)
        assert alive(command)
        os.kill(command, signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM


def test_options_name_the_base_urls_that_were_set_before():
    given = {"OPENAI_BASE_URL": "http://o/v1", "ANTHROPIC_BASE_URL": "http://a", "PATH": "/bin"}
    assert run.upstream_options(given) == [
        "--openai-upstream",
        "http://o/v1",
        "--anthropic-upstream",
        "http://a",
    ]


def test_codex_is_told_by_an_option():
    assert run.command_line(["/usr/bin/codex", "exec", "x"], "http://p") == [
        "/usr/bin/codex", "-c", 'openai_base_url="http://p/v1"', "exec", "x",
    ]  # fmt: skip
    assert run.command_line(["claude"], "http://p") == ["claude"]


def test_what_opencode_was_told_before_stays():
    given = {"OPENCODE_CONFIG_CONTENT": json.dumps({"theme": "x", "provider": {"mine": {"a": 1}}})}
    told = json.loads(run.environment(given, "http://p")["OPENCODE_CONFIG_CONTENT"])
    assert told["theme"] == "x"
    assert told["provider"]["mine"] == {"a": 1}
    assert told["provider"]["anthropic"] == {"options": {"baseURL": "http://p/v1"}}


def test_whether_a_proxy_is_up_is_asked_once_in_five_seconds(proxy, monkeypatch):
    process, url = proxy()
    assert health.alive(url)
    process.terminate()
    process.wait(20)
    assert health.alive(url)
    now = time.monotonic()
    monkeypatch.setattr(health.time, "monotonic", lambda: now + health.HOLDS_SECONDS + 1)
    assert not health.alive(url)
