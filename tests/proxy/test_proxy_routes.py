"""A request goes to the upstream that its path or headers name, under the path that it has there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from turngate.errors import SettingsError
from turngate.proxy.routes import Routes
from turngate.settings import ProxySettings

OPENAI, ANTHROPIC, GEMINI = (
    "https://api.openai.com",
    "https://api.anthropic.com",
    "https://generativelanguage.googleapis.com",
)
DEFAULT = Routes(ProxySettings())


def routed(path, headers=None, method="POST", **upstreams):
    return Routes(ProxySettings(**upstreams)).route(path, CIMultiDict(headers or {}), method)


@pytest.mark.parametrize(
    ("path", "url", "wire", "purpose"),
    [
        ("/v1/chat/completions", f"{OPENAI}/v1/chat/completions", "chat", "generate"),
        ("/chat/completions", f"{OPENAI}/v1/chat/completions", "chat", "generate"),
        ("/v1/responses", f"{OPENAI}/v1/responses", "responses", "generate"),
        ("/responses", f"{OPENAI}/v1/responses", "responses", "generate"),
        ("/v1/responses/input_tokens", f"{OPENAI}/v1/responses/input_tokens", "responses", "count"),
        ("/v1/responses/compact", f"{OPENAI}/v1/responses/compact", None, "other"),
        ("/v1/messages", f"{ANTHROPIC}/v1/messages", "anthropic", "generate"),
        ("/v1/messages?beta=true", f"{ANTHROPIC}/v1/messages?beta=true", "anthropic", "generate"),
        ("/messages", f"{ANTHROPIC}/v1/messages", "anthropic", "generate"),
        ("/v1/messages/count_tokens", f"{ANTHROPIC}/v1/messages/count_tokens", "anthropic", "count"),
        ("/v1/messages/batches", f"{ANTHROPIC}/v1/messages/batches", None, "other"),
        (
            "/v1beta/models/gemini-3-pro:generateContent?key=k",
            f"{GEMINI}/v1beta/models/gemini-3-pro:generateContent?key=k",
            "gemini",
            "generate",
        ),
        (
            "/models/g:streamGenerateContent?alt=sse",
            f"{GEMINI}/v1beta/models/g:streamGenerateContent?alt=sse",
            "gemini",
            "generate",
        ),
        (
            "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
            f"{GEMINI}/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
            "gemini",
            "generate",
        ),
        ("/v1beta/models/g:countTokens", f"{GEMINI}/v1beta/models/g:countTokens", "gemini", "count"),
        ("/v1beta/cachedContents", f"{GEMINI}/v1beta/cachedContents", None, "other"),
        ("/upload/v1beta/files", f"{GEMINI}/upload/v1beta/files", None, "other"),
        ("http://elsewhere.example/v1/files?a=b", f"{OPENAI}/v1/files?a=b", None, "other"),
        ("@elsewhere.example/x", f"{OPENAI}/v1/@elsewhere.example/x", None, "other"),
        ("/v1/embeddings", f"{OPENAI}/v1/embeddings", None, "other"),
        ("/embeddings", f"{OPENAI}/v1/embeddings", None, "other"),
        ("/unheard/of?x=%2F&y", f"{OPENAI}/v1/unheard/of?x=%2F&y", None, "other"),
        ("/", f"{OPENAI}/v1/", None, "other"),
    ],
)
def test_each_path_has_its_place(path, url, wire, purpose):
    route = routed(path)
    assert (route.url, route.wire, route.purpose) == (url, wire, purpose)


@pytest.mark.parametrize(
    ("headers", "base"),
    [
        ({"x-api-key": "k"}, ANTHROPIC),
        ({"Anthropic-Version": "2023-06-01"}, ANTHROPIC),
        ({"authorization": "Bearer sk-ant-oat01-x"}, ANTHROPIC),
        ({"X-Goog-Api-Key": "k"}, GEMINI),
        ({"Authorization": "Bearer sk-x"}, OPENAI),
        ({}, OPENAI),
    ],
)
def test_headers_tell_where_the_path_does_not(headers, base):
    assert routed("/v1/models", headers, "GET").upstream.removesuffix("/v1") == base


@pytest.mark.parametrize(
    ("upstreams", "path", "url"),
    [
        ({"openai_upstream": "http://h:8000"}, "/v1/chat/completions", "http://h:8000/v1/chat/completions"),
        ({"openai_upstream": "http://h:8000"}, "/chat/completions", "http://h:8000/v1/chat/completions"),
        ({"openai_upstream": "http://h:8000/"}, "/v1/chat/completions", "http://h:8000/chat/completions"),
        ({"openai_upstream": "https://h/api/paas/v4"}, "/v1/responses", "https://h/api/paas/v4/responses"),
        ({"openai_upstream": "https://h/v1/"}, "/v1/responses", "https://h/v1/responses"),
        ({"anthropic_upstream": "https://h/api/anthropic"}, "/v1/messages", "https://h/api/anthropic/v1/messages"),
        ({"anthropic_upstream": "https://h/v1"}, "/v1/messages", "https://h/v1/messages"),
        ({"anthropic_upstream": "https://h/x/v1/"}, "/messages", "https://h/x/v1/messages"),
        (
            {"gemini_upstream": "https://h/v1"},
            "/models/g:generateContent",
            "https://h/v1/models/g:generateContent",
        ),
        (
            {"gemini_upstream": "https://h/v1beta"},
            "/v1/models/g:generateContent",
            "https://h/v1/models/g:generateContent",
        ),
    ],
)  # fmt: skip
def test_an_upstream_may_have_a_path_of_its_own(upstreams, path, url):
    assert routed(path, **upstreams).url == url


def test_only_a_post_carries_a_known_body():
    assert routed("/v1/responses", method="GET").wire is None


@pytest.mark.parametrize("streamed", [True, False])
def test_geminis_path_tells_whether_the_reply_is_a_stream(streamed):
    name = "streamGenerateContent" if streamed else "generateContent"
    assert routed(f"/v1beta/models/g:{name}").streaming is streamed
    assert routed("/v1/messages").streaming is None


@pytest.mark.parametrize(
    "url", ["", "api.openai.com", "ftp://h/", "https://u:p@h/", "https://h/?a=b", "https:// h"]
)
def test_an_upstream_that_is_no_base_url_is_refused_by_name(url):
    with pytest.raises(SettingsError, match="gemini_upstream"):
        Routes(ProxySettings(gemini_upstream=url))


def test_a_port_beyond_all_ports_is_refused():
    with pytest.raises(SettingsError, match="65535"):
        Routes(ProxySettings(port=70_000))


_SPELLED = st.text("abc/.%2F:~-_?&=+é ", max_size=30)


@given(_SPELLED)
def test_what_stands_below_the_version_is_sent_as_it_is_spelled(rest):
    path = f"/v1/{rest}"
    route = DEFAULT.route(path, {}, "GET")
    assert route.url == route.upstream.removesuffix("/v1") + path


@given(_SPELLED, st.dictionaries(st.sampled_from(["Host", "X-Forwarded-Host", "X-Base-Url"]), st.text()))
def test_no_request_can_name_an_upstream(rest, headers):
    for path in (rest, f"//evil.example/{rest}", f"http://evil.example/{rest}", f"@evil.example/{rest}"):
        route = DEFAULT.route(path, headers)
        assert route.upstream in {f"{OPENAI}/v1", ANTHROPIC, GEMINI}
        assert route.path.startswith("/")
