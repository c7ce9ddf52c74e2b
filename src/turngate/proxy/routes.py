"""Which upstream a request belongs to, and under which path it is asked there. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from turngate.errors import SettingsError

if TYPE_CHECKING:
    from turngate.settings import ProxySettings
    from turngate.wire import Wire

Provider = Literal["openai", "anthropic", "gemini"]
Purpose = Literal["generate", "count", "other"]

_BASE: Final = re.compile(r"(https?://[^/?#\s@]+)(/[^?#\s]*)?")
_VERSION: Final = re.compile(r"/(v\d+(?:(?:alpha|beta)\d*)?)(?=/|$)")
_VERSION_LAST: Final = re.compile(r"/(v\d+(?:(?:alpha|beta)\d*)?)/?$")
_MAX_PORT: Final = 65_535


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes."""

    provider: Provider
    """Whose upstream it is, and whose shape errors have."""
    wire: Wire | None
    """The format of its body; None: it passes through as it is."""
    purpose: Purpose
    """Whether it asks for a reply, for a count of tokens, or for anything else."""
    upstream: str
    """The upstream's scheme and host, and the path its base URL has."""
    path: str
    """What is asked there: path and query, as the client spelled them."""
    streaming: bool | None
    """Whether the reply is a stream, where the path tells; None: the body does."""

    @property
    def url(self) -> str:
        """The whole URL."""
        return self.upstream + self.path


@dataclass(frozen=True, slots=True)
class _Rules:
    """How a provider's paths are written."""

    version: str
    """What clients leave out that take it for a part of the base URL."""
    owns_version: bool
    """Whether an upstream's path stands in for the version, as in OpenAI's base URLs."""
    heads: frozenset[str]
    """First words of paths that stand below the version."""
    calls: tuple[tuple[re.Pattern[str], Wire, Purpose, bool | None], ...]
    """Paths below the version that carry a body of a known format."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RULES: Final[Mapping[Provider, _Rules]] = {
    "openai": _Rules(
        version="v1",
        owns_version=True,
        heads=_words(
            "assistants audio batches chat chatkit completions containers conversations embeddings evals "
            "files fine_tuning images models moderations organization realtime responses threads uploads "
            "vector_stores videos"
        ),
        calls=(
            (re.compile(r"/chat/completions/?"), "chat", "generate", None),
            (re.compile(r"/responses/?"), "responses", "generate", None),
            (re.compile(r"/responses/input_tokens/?"), "responses", "count", False),
        ),
    ),
    "anthropic": _Rules(
        version="v1",
        owns_version=False,
        heads=_words("complete files messages models organizations skills"),
        calls=(
            (re.compile(r"/messages/?"), "anthropic", "generate", None),
            (re.compile(r"/messages/count_tokens/?"), "anthropic", "count", False),
        ),
    ),
    "gemini": _Rules(
        version="v1beta",
        owns_version=False,
        heads=_words("batches cachedContents corpora files fileSearchStores models operations tunedModels"),
        calls=(
            (re.compile(r"/(?:[^?]*/)?models/[^/:]+:generateContent"), "gemini", "generate", False),
            (re.compile(r"/(?:[^?]*/)?models/[^/:]+:streamGenerateContent"), "gemini", "generate", True),
            (re.compile(r"/(?:[^?]*/)?models/[^/:]+:countTokens"), "gemini", "count", False),
        ),
    ),
}

Headers = Mapping[str, str]


def _bearer_starts(prefix: str) -> Callable[[Headers], bool]:
    return lambda headers: headers.get("Authorization", "")[7:].startswith(prefix)


def _has(name: str) -> Callable[[Headers], bool]:
    return lambda headers: name in headers


#: What tells whose request it is where the path doesn't; the first that holds.
_SIGNS: Final[tuple[tuple[Callable[[Headers], bool], Provider], ...]] = (
    (_has("anthropic-version"), "anthropic"),
    (_has("x-goog-api-key"), "gemini"),
    (_has("x-api-key"), "anthropic"),
    (_bearer_starts("sk-ant-"), "anthropic"),
)


class Routes:
    """The table of routes for given upstreams."""

    def __init__(self, settings: ProxySettings) -> None:
        """Read the upstreams.

        Raises:
            SettingsError: one of them is no base URL, or the port is none.
        """
        if settings.port > _MAX_PORT:
            raise SettingsError(f"port is {settings.port}; it must be at most {_MAX_PORT}")
        bases: Mapping[Provider, str] = {
            "openai": settings.openai_upstream,
            "anthropic": settings.anthropic_upstream,
            "gemini": settings.gemini_upstream,
        }
        self._upstreams = {name: _Upstream(name, base) for name, base in bases.items()}

    def route(self, path_qs: str, headers: Headers, method: str = "POST") -> Route:
        """The route of a request.

        Args:
            path_qs: path and query, as they were spelled.
            headers: its headers, by names in any case.
            method: only a POST carries a body of a known format.
        """
        path, mark, query = path_qs.partition("?")
        path = _below_host(path)
        version, tail = _split_version(path)
        found = _call(tail) if method == "POST" else None
        provider, wire, purpose, streaming = found or (_owner(path, headers), None, _OTHER, None)
        upstream = self._upstreams[provider]
        return Route(
            provider,
            wire,
            purpose,
            upstream.base,
            upstream.path(path, version, tail) + mark + query,
            streaming,
        )

    def base(self, provider: Provider) -> str:
        """An upstream's scheme, host and path."""
        return self._upstreams[provider].base


_OTHER: Final[Purpose] = "other"


class _Upstream:
    """A base URL, taken apart."""

    def __init__(self, provider: Provider, url: str) -> None:
        found = _BASE.fullmatch(url)
        if found is None:
            raise SettingsError(
                f"{provider}_upstream is {url!r}; it must be a URL such as https://example.org/v1, without "
                "credentials and query"
            )
        rules = _RULES[provider]
        path = found[2] or ""
        last = _VERSION_LAST.search(path)
        if rules.owns_version:
            # "https://host" means the version of the API is part of each path, "https://host/" that none is.
            self._version: str | None = None if path else rules.version
        else:
            self._version = last[1] if last else rules.version
            path = path[: last.start()] if last else path
        self._owns_version = rules.owns_version
        self._heads = rules.heads
        self.base = found[1] + path.rstrip("/")

    def path(self, whole: str, version: str, tail: str) -> str:
        """A client's path as this upstream has it."""
        if not version and tail.split("/", 2)[1] not in self._heads:
            return whole
        if self._owns_version:
            version = "" if self._version is None else version or self._version
        else:
            version = version or self._version or ""
        return f"/{version}{tail}" if version else tail


def _below_host(path: str) -> str:
    """A path that begins with a slash: whatever host a client spells there is none that is asked."""
    if path.startswith("/"):
        return path
    _, mark, rest = path.partition("://")
    return "/" + (rest.partition("/")[2] if mark else path)


def _split_version(path: str) -> tuple[str, str]:
    """A path's version ("" if it names none) and the rest, which begins with a slash."""
    found = _VERSION.match(path)
    if found is None:
        return "", path
    return found[1], path[found.end() :] or "/"


def _call(tail: str) -> tuple[Provider, Wire, Purpose, bool | None] | None:
    for provider, rules in _RULES.items():
        for pattern, wire, purpose, streaming in rules.calls:
            if pattern.fullmatch(tail):
                return provider, wire, purpose, streaming
    return None


def _owner(path: str, headers: Headers) -> Provider:
    """Whose a path of no known format is."""
    if path.startswith(("/v1beta", "/v1alpha", "/upload/v1beta")):
        return "gemini"
    if "/messages" in path and path.startswith(("/v1/messages", "/messages")):
        return "anthropic"
    return next((provider for holds, provider in _SIGNS if holds(headers)), "openai")
