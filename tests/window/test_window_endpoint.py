"""A summarising model behind an endpoint, as the settings name it, in both formats."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from window_shapes import a, h, loop, words

from turngate.settings import WindowSettings
from turngate.window import Endpoint
from turngate.window.record.frame import text_of

SMALL = WindowSettings(context_window_tokens=8_000, weigh_cost=False)
ANSWERS = {
    "chat": {
        "model": "m-2",
        "choices": [{"message": {"content": "by chat"}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 3, "details": {}},
    },
    "anthropic": {
        "model": "m-2",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "by messages"}],
        "usage": {"input_tokens": 900, "output_tokens": 3},
    },
}
PATHS = {"chat": "/v1/chat/completions", "anthropic": "/v1/messages"}


def served(answer, use, *, status=200):
    """Run `use(base URL)` beside a server that gives this answer; what it was asked."""
    asked = []

    async def handle(request):
        asked.append((request.path, request.headers, await request.json()))
        return web.json_response(answer, status=status)

    async def run():
        app = web.Application()
        app.router.add_post("/{path:.*}", handle)
        async with TestServer(app) as server:
            return await use(f"http://{server.host}:{server.port}/v1")

    return asyncio.run(run()), asked


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
def test_an_endpoint_of_the_settings_writes_the_summary(make_window, notices, wire):
    async def use(url):
        settings = replace(
            SMALL, summary_url=url, compaction_model="m-1", summary_wire=wire, summary_api_key="k"
        )
        return await make_window(settings).fit_async(loop(8))

    fitted, asked = served(ANSWERS[wire], use)
    path, headers, body = asked[0]
    assert path == PATHS[wire]
    assert "k" in (headers.get("authorization", ""), headers.get("x-api-key", "")) or headers[
        "authorization"
    ].endswith(" k")
    assert (body["model"], body["messages"][0]["role"]) == ("m-1", "user")
    assert any("by " in text_of(message) for message in fitted.messages)
    assert "hm" not in "".join(text_of(message) for message in fitted.messages).split()
    assert (fitted.compaction.method, fitted.compaction.model) == ("model", "m-2")
    assert 900 in fitted.compaction.usage.values()


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [({"error": "overloaded"}, 529, "529"), ({"unexpected": 1}, 200, "without a message")],
)
def test_an_endpoint_that_answers_with_an_error_leaves_the_digest(make_window, answer, status, told):
    async def use(url):
        return await make_window(SMALL, summariser=Endpoint(url, "m")).fit_async(loop(8))

    fitted, asked = served(answer, use, status=status)
    assert fitted.compaction.method == "digest"
    assert told in fitted.compaction.why
    assert len(asked) == 2


def test_a_key_is_not_shown_by_repr():
    assert "sesame" not in repr(Endpoint("http://x", "m", "sesame"))


def test_d1_compactions_that_could_do_nothing_do_not_disable_later_ones(make_window):
    window = make_window(SMALL)
    few = [h("start"), a(text="ok"), h(words(30_000))]
    for _ in range(3):
        fitted = window.fit(few, force=True)
        assert fitted.over
    grown = [*few[:2], *loop(14)]
    assert not window.fit(grown).over
