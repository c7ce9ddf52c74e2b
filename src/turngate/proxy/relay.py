"""A request and its reply as they are: bytes in both directions, as they come."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Final

from aiohttp import ClientError, web

from turngate.proxy import upstream
from turngate.proxy.errors import shaped
from turngate.proxy.upstream import UpstreamFault

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from turngate.proxy.errors import Kind
    from turngate.proxy.routes import Provider, Route
    from turngate.proxy.services import Services

Headers = list[tuple[str, str]]

#: What belongs to one connection only (RFC 9110, 7.6.1), and what is named or asked anew on the next one.
_HOP_BY_HOP: Final = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade", "host", "expect",
})  # fmt: skip
#: What speaks of a body that was read and is sent in another form.
_OF_BODY: Final = frozenset({"content-length", "content-encoding"})
#: Replies up to this size are relayed in one piece.
_AT_ONCE_BYTES: Final = 64 * 1024

_log = logging.getLogger("turngate.proxy")


def request_headers(request: web.Request, *, decoded: bool = False, readable: bool = False) -> Headers:
    """The client's headers for the upstream.

    Args:
        request: the client's request.
        decoded: whether its body is sent without its compression, or otherwise changed.
        readable: whether the reply has to be read on its way, so that it must come without compression.
    """
    drop = _HOP_BY_HOP | _named(request.headers.get("Connection", ""))
    drop |= _OF_BODY if decoded else frozenset()
    drop |= {"accept-encoding"} if readable else frozenset()
    kept = _spelled(request.raw_headers, drop)
    return [*kept, ("Accept-Encoding", "identity")] if readable else kept


def response_headers(response: ClientResponse, *, read: bool = False) -> Headers:
    """The upstream's headers for the client; `read`: its body is another one now."""
    drop = _HOP_BY_HOP | _named(response.headers.get("Connection", ""))
    drop |= _OF_BODY if read else frozenset()
    return _spelled(response.raw_headers, drop)


def _spelled(raw: Iterable[tuple[bytes, bytes]], drop: frozenset[str]) -> Headers:
    """Headers as they were spelled, which aiohttp's own view of them is not always (``ETag``)."""
    pairs = ((name.decode("utf-8", "replace"), value) for name, value in raw)
    return [
        (name, value.decode("utf-8", "surrogateescape")) for name, value in pairs if name.lower() not in drop
    ]


def _named(connection: str) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in connection.split(",")) if connection else frozenset()


async def forward(
    request: web.Request,
    route: Route,
    services: Services,
    body: bytes | AsyncIterable[bytes] | None,
    headers: Headers,
) -> web.StreamResponse:
    """Send a request and relay what comes back."""
    try:
        response = await upstream.send(services.http, request.method, route.url, headers, body)
    except UpstreamFault as fault:
        return fault_reply(route.provider, services, fault)
    return await reply(request, route.provider, services, response)


async def reply(
    request: web.Request, provider: Provider, services: Services, response: ClientResponse
) -> web.StreamResponse:
    """Relay an answer byte for byte; a reader that is slow slows the upstream down."""
    headers = response_headers(response)
    services.metrics.replied(response.status)
    async with response:
        size = response.content_length
        if size is not None and size <= _AT_ONCE_BYTES and request.method != "HEAD":
            try:
                body = await response.read()
            except (ClientError, TimeoutError):
                return error(
                    provider, services, "protocol", "the upstream's answer ends before it is complete"
                )
            return web.Response(status=response.status, reason=response.reason, body=body, headers=headers)
        out = web.StreamResponse(status=response.status, reason=response.reason, headers=headers)
        await out.prepare(request)
        try:
            async for chunk in response.content.iter_any():
                await out.write(chunk)
            await out.write_eof()
        except ConnectionResetError:
            services.metrics.fault("client gone")
        except (ClientError, TimeoutError) as fault:
            break_off(request, services, fault)
    return out


def break_off(request: web.Request, services: Services, fault: Exception) -> None:
    """End the client's connection without an end, as the upstream ended ours: it must not look complete.

    What was relayed so far still reaches the client.
    """
    services.metrics.fault(f"upstream broke off: {type(fault).__name__}")
    if request.transport is not None:
        request.transport.close()


def error(provider: Provider, services: Services, kind: Kind, message: str) -> web.Response:
    """An error of ours in the provider's shape."""
    services.metrics.fault(kind)
    status, body = shaped(provider, kind, f"turngate: {message}")
    return web.Response(status=status, body=body, content_type="application/json")


def fault_reply(provider: Provider, services: Services, fault: UpstreamFault) -> web.Response:
    """An upstream's fault in the provider's shape."""
    _log.debug("upstream: %s", fault.kind)
    return error(provider, services, fault.kind, fault.message)
