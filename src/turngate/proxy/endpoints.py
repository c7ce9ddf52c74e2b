"""The proxy's own endpoints: whether it works, what it counted, and what it keeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from aiohttp import ClientError, ClientTimeout, web

import turngate
from turngate import asking
from turngate.errors import RetrieveError, StoreError, TurngateError, UnknownContentError
from turngate.flow import past_blocks
from turngate.ingress import reference
from turngate.proxy import access
from turngate.proxy.jsontext import dumps, object_of
from turngate.store import render_hits, select

if TYPE_CHECKING:
    from turngate.proxy.services import Services

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: How long the state of the upstreams is taken as it was.
UPSTREAM_SECONDS: Final = 60.0
_PROBE_SECONDS: Final = 5.0
_PROVIDERS: Final = ("openai", "anthropic", "gemini")
_MOST_BYTES: Final = 1024 * 1024
_HITS: Final = 10
_BREAKS: Final = 100


class Endpoints:
    """The handlers."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._began = time.monotonic()
        self._probed: tuple[float, dict[str, Any]] | None = None
        self._probing = asyncio.Lock()

    def add_to(self, app: web.Application) -> None:
        """Register all of them, under their names and below ``/turngate``."""
        table: tuple[tuple[str, str, Handler], ...] = (
            ("GET", "/health", self.health),
            ("GET", "/health/upstream", self.health_upstream),
            ("GET", "/ready", self.ready),
            ("GET", "/metrics", self.metrics),
            ("GET", "/stats", self.stats),
            ("POST", "/retrieve", self.retrieve),
            ("POST", "/search", self.search),
            ("GET", "/explain", self.explain),
        )
        for method, path, handler in table:
            for prefix in ("", "/turngate"):
                app.router.add_route(method, prefix + path, self._guarded(handler))

    def _guarded(self, handler: Handler) -> Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            settings = self._services.settings.proxy
            given = (
                request.remote,
                request.headers.get("Host", ""),
                request.headers.get("Authorization", ""),
            )
            if not access.allowed(settings, *given):
                return _json({"error": "only from this machine, or with the proxy's bearer token"}, 403)
            try:
                return await handler(request)
            except UnknownContentError as fault:
                return _json({"error": str(fault)}, 404)
            except StoreError as fault:
                return _json({"error": str(fault)}, 503)
            except TurngateError as fault:
                return _json({"error": str(fault)}, 400)

        return guarded

    async def health(self, _: web.Request) -> web.StreamResponse:
        """Whether the process lives, and whether its store can be used. Asks nobody else."""
        ok = self._services.engine.store_ok
        return _json(
            {
                "status": "healthy" if ok else "degraded",
                "store": ok,
                "version": turngate.__version__,
                "uptime_seconds": round(time.monotonic() - self._began, 1),
            }
        )

    async def ready(self, _: web.Request) -> web.StreamResponse:
        """Whether the store can be used now: what a balancer asks."""
        ok = await self._aside(self._services.engine.catch_up)
        return _json({"ready": ok}, 200 if ok else 503)

    async def health_upstream(self, _: web.Request) -> web.StreamResponse:
        """Whether the upstreams answer, whatever they answer; asked once a minute at most."""
        async with self._probing:
            if self._probed is None or time.monotonic() - self._probed[0] > UPSTREAM_SECONDS:
                found = await asyncio.gather(*(self._probe(name) for name in _PROVIDERS))
                self._probed = time.monotonic(), dict(zip(_PROVIDERS, found, strict=True))
        return _json(self._probed[1])

    async def _probe(self, provider: Any) -> dict[str, Any]:
        url = self._services.routes.base(provider)
        begun = time.monotonic()
        timeout = ClientTimeout(total=_PROBE_SECONDS)
        try:
            async with self._services.http.get(url, timeout=timeout, allow_redirects=False) as response:
                return {
                    "reachable": True,
                    "status": response.status,
                    "seconds": round(time.monotonic() - begun, 3),
                }
        except (ClientError, TimeoutError) as fault:
            return {"reachable": False, "error": type(fault).__name__}

    async def metrics(self, _: web.Request) -> web.StreamResponse:
        """The counters of all workers, for Prometheus."""
        text = self._services.metrics.prometheus()
        text += f"# TYPE turngate_store_up gauge\nturngate_store_up {int(self._services.engine.store_ok)}\n"
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return web.Response(body=text.encode(), headers={"Content-Type": kind})

    async def stats(self, request: web.Request) -> web.StreamResponse:
        """The counters, and what the store holds; with `session` of one conversation."""
        session = request.query.get("session")
        found = await self._aside(lambda: self._services.gate.store.stats(session=session))
        saving = asdict(found.saving) | {"tokens": found.saving.tokens}
        counted = {**self._services.metrics.sums(), "faults_by_kind": self._services.metrics.faults}
        return _json({"proxy": counted, "store": asdict(found) | {"saving": saving}})

    async def retrieve(self, request: web.Request) -> web.StreamResponse:
        """The original behind a marker, or the part that is asked for."""
        asked = await _asked(request)
        ref = reference(asking.text(asked, "hash"))
        if not ref:
            raise RetrieveError("name the hash of a marker")
        session = asking.text(asked, "session") or None
        original = await self._aside(lambda: self._services.gate.store.get(ref, session=session))
        found = select(
            original.text,
            lines=asking.lines(asked),
            pattern=asking.text(asked, "pattern") or None,
            query=asking.text(asked, "query") or None,
            path=asking.text(asked, "path") or None,
            page=asking.number(asked, "page", 0) or None,
        )
        meta = {"hash": original.id, "sha256": original.sha256, "tool": original.tool, "kind": original.kind}
        return _json(meta | asdict(found))

    async def search(self, request: web.Request) -> web.StreamResponse:
        """Stored results that answer a query."""
        asked = await _asked(request)
        query, session = asking.text(asked, "query"), asking.text(asked, "session") or None
        if not query:
            raise RetrieveError("ask a query")
        limit = max(1, min(50, asking.number(asked, "limit", _HITS)))
        gate = self._services.gate
        hits = await self._aside(
            lambda: gate.store.search(query, session=session, limit=limit, all_sessions=session is None)
        )
        return _json({"found": bool(hits), "text": render_hits(hits), "hits": [asdict(hit) for hit in hits]})

    async def explain(self, request: web.Request) -> web.StreamResponse:
        """A session's requests that did not extend what it sent before, and what its turns were given."""
        session = request.query.get("session", "")
        if not session:
            raise RetrieveError("name the session: /explain?session=…")
        gate = self._services.gate

        def work() -> dict[str, Any]:
            store = gate.store
            rows = store.ledger.requests(session, limit=_BREAKS)
            breaks = [row for row in rows if row.reason]
            return {
                "session": session,
                "requests": len(rows),
                "breaks": [{"at": row.at, "reason": row.reason, "detail": row.detail} for row in breaks],
                "blocks": [asdict(past) for past in past_blocks(store, session)],
            }

        return _json(await self._aside(work))

    async def _aside(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._services.executor, work)


async def _asked(request: web.Request) -> Mapping[str, Any]:
    raw = b""
    async for piece in request.content.iter_any():
        raw += piece
        if len(raw) > _MOST_BYTES:
            raise RetrieveError("the question is too long")
    return object_of(raw)


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=dumps(value), content_type="application/json")
