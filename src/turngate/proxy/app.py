"""The application of one worker: our own paths, and everything else to its upstream."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE

from turngate.proxy import exchange, relay
from turngate.proxy.decode import BodyError, TooLargeError, UnknownEncodingError, decoded
from turngate.proxy.endpoints import Endpoints
from turngate.proxy.errors import Kind

if TYPE_CHECKING:
    from turngate.proxy.routes import Route
    from turngate.proxy.services import Services

_log = logging.getLogger("turngate.proxy")

_BODY_KINDS: Final[tuple[tuple[type[BodyError], Kind], ...]] = (
    (TooLargeError, "too_large"),
    (UnknownEncodingError, "media"),
    (BodyError, "invalid"),
)


def build(services: Services) -> web.Application:
    """The application."""
    app = web.Application(client_max_size=0)
    app.on_response_prepare.append(_as_the_upstream)
    Endpoints(services).add_to(app)

    async def anything(request: web.Request) -> web.StreamResponse:
        return await serve(request, services)

    app.router.add_route("*", "/{path:.*}", anything)
    return app


async def _as_the_upstream(_: web.Request, response: web.StreamResponse) -> None:
    """Take out what the server says of itself: it is not what the client asked."""
    if response.headers.get("Server") == SERVER_SOFTWARE:
        del response.headers["Server"]


async def serve(request: web.Request, services: Services) -> web.StreamResponse:
    """Answer any request that is for an upstream. A fault of ours is an error in the provider's shape."""
    services.metrics.count("requests")
    route = services.routes.route(request.raw_path, request.headers, request.method)
    try:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            message = "WebSockets are not relayed; use HTTP with server-sent events"
            return relay.error(route.provider, services, "upgrade", message)
        if route.wire is None:
            return await _as_it_is(request, route, services)
        return await _with_body(request, route, services)
    except ConnectionResetError:
        services.metrics.fault("client gone")
        raise
    except Exception as fault:  # one request must not end the process
        if services.metrics.fault(type(fault).__name__):
            _log.exception("a request failed")
        if request.writer.output_size:
            # No second answer fits into one that has begun.
            relay.break_off(request, services, fault)
            raise ConnectionResetError from fault
        return relay.error(route.provider, services, "internal", f"{type(fault).__name__} in the proxy")


async def _as_it_is(request: web.Request, route: Route, services: Services) -> web.StreamResponse:
    body = request.content.iter_any() if request.can_read_body else None
    return await relay.forward(request, route, services, body, relay.request_headers(request))


async def _with_body(request: web.Request, route: Route, services: Services) -> web.StreamResponse:
    most = services.settings.proxy.max_body_bytes
    try:
        raw = await _read(request, most)
        encoding = request.headers.get("Content-Encoding", "")
        body = decoded(raw, encoding, most) if encoding else raw
    except BodyError as fault:
        kind = next(kind for of, kind in _BODY_KINDS if isinstance(fault, of))
        return relay.error(route.provider, services, kind, str(fault))
    if not exchange.follows(body):
        return await relay.forward(request, route, services, raw, relay.request_headers(request))
    return await exchange.handle(request, route, body, services)


async def _read(request: web.Request, most_bytes: int) -> bytes:
    """The body as it came.

    Raises:
        TooLargeError: it is larger than is read.
    """
    if (request.content_length or 0) > most_bytes:
        raise TooLargeError(
            f"the body is larger than {most_bytes:,} bytes; raise proxy.max_body_bytes, or send less"
        )
    pieces, size = [], 0
    async for piece in request.content.iter_any():
        size += len(piece)
        if size > most_bytes:
            raise TooLargeError(
                f"the body is larger than {most_bytes:,} bytes; raise proxy.max_body_bytes, or send less"
            )
        pieces.append(piece)
    return b"".join(pieces)
