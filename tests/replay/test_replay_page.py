"""The report in a real browser: the chart draws, a result unfolds, and no request leaves the page."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess

import aiohttp
import pytest

from turngate.cli import main

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
ARGS = json.dumps({"command": "make run"})
LOG = "\n".join(f"10:00:{n % 60:02} INFO worker job {n} done in {n * 7 % 91} ms" for n in range(700))


@pytest.fixture
def page(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    messages = [{"role": "user", "content": "Go"}]
    for i in range(8):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "bash", "arguments": ARGS}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": f"run {i}\n{LOG}"},
        ]
    (tmp_path / "s.json").write_text(json.dumps([*messages, {"role": "assistant", "content": "done"}]))
    assert main(["replay", str(tmp_path / "s.json"), "--html", str(tmp_path / "r.html")]) == 0
    capsys.readouterr()
    return tmp_path / "r.html"


@pytest.fixture
def browser(tmp_path):
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-port=0",
        "--no-first-run",
        "--window-size=1200,900",
    ]
    command = [BROWSER, *flags, f"--user-data-dir={tmp_path / 'profile'}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = next(filter(None, (re.search(r"ws://([\d.:]+)/", line) for line in process.stderr)))
    yield found[1]
    process.kill()
    process.wait()
    process.stderr.close()


class Tab:
    """A page of the browser, spoken to in its own protocol."""

    def __init__(self, socket):
        self.socket, self.number, self.requests, self.errors = socket, 0, [], []

    async def call(self, method, **params):
        self.number += 1
        await self.socket.send_json({"id": self.number, "method": method, "params": params})
        while True:
            message = await self.socket.receive_json()
            if message.get("method") == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"])
            if message.get("id") == self.number:
                return message["result"]

    async def value(self, expression):
        result = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        return result["result"].get("value")


async def look(address, path):
    async with aiohttp.ClientSession() as client:
        async with client.get(f"http://{address}/json") as answer:
            (target, *_) = [t for t in await answer.json(content_type=None) if t["type"] == "page"]
        async with client.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            for domain in ("Network", "Runtime", "Page"):
                await tab.call(f"{domain}.enable")
            await tab.call("Page.navigate", url=path.as_uri())
            await tab.value(
                "new Promise(done => { const t = setInterval(() => document.readyState === 'complete' "
                "&& location.protocol === 'file:' && (clearInterval(t), done(1)), 20) })"
            )
            seen = {
                "arms": await tab.value(
                    "[...document.querySelectorAll('svg polyline')].map(p => p.dataset.arm)"
                ),
                "points": await tab.value("document.querySelector('polyline').points.length"),
                "height": await tab.value("document.querySelector('svg').getBoundingClientRect().height"),
                "folded": await tab.value("document.querySelector('details.result pre').checkVisibility()"),
            }
            seen["label"] = await tab.value("document.querySelector('details.result summary').textContent")
            await tab.value("document.querySelector('details.result summary').click()")
            seen["unfolded"] = await tab.value(
                "document.querySelector('details.result pre').checkVisibility()"
            )
            seen["text"] = await tab.value("document.querySelector('details.result pre').textContent")
            seen["places"] = await tab.value(
                "[...document.querySelector('details.result').querySelectorAll('pre')]"
                ".map(p => p.getBoundingClientRect()).map(r => [r.left, r.top])"
            )
            seen["notes"] = await tab.value(
                "[...document.querySelectorAll('details.result mark')].map(m => m.textContent)"
            )
            seen["ground"] = await tab.value(
                "getComputedStyle(document.querySelector('details.result mark')).backgroundColor"
            )
            return seen, tab


def test_results_are_drawn_for_a_reviewer_the_same_in_every_run(page):
    text = page.read_text(encoding="utf-8")
    review = text[text.index("For a reviewer: 8 results drawn at random") :]
    assert review.count('<details class="result">') == 8
    first = review[: review.index("</summary>")]
    assert main(["replay", str(page.with_name("s.json")), "--html", str(page)]) == 0
    assert first in page.read_text(encoding="utf-8")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium to open the page in: apt-get install chromium")
def test_the_chart_draws_a_result_unfolds_side_by_side_and_no_request_leaves_the_page(page, browser):
    seen, tab = asyncio.run(look(browser, page))
    assert sorted(seen["arms"]) == ["head-tail", "mask", "none", "turngate"]
    assert seen["points"] == 9
    assert seen["height"] > 100
    assert seen["folded"] is False
    assert seen["unfolded"] is True
    assert seen["text"] == f"run 0\n{LOG}"
    (left, top), (right, same_top) = seen["places"]
    assert left < right
    assert top == same_top
    assert seen["label"].startswith("bash: make run message 2: ")
    assert any("characters left out" in note for note in seen["notes"])
    assert any(note.startswith("<<<CCR:") for note in seen["notes"])
    assert seen["ground"] != "rgba(0, 0, 0, 0)"
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith("data:")] == [page.as_uri()]
