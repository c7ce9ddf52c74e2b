"""Asking an upstream: what is safe is tried again, and what fails has a name."""

from __future__ import annotations

import asyncio
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.request import getproxies, proxy_bypass

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    ServerTimeoutError,
    TCPConnector,
)
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable

    from aiohttp import ClientResponse

    from turngate.proxy.errors import Kind
    from turngate.settings import ProxySettings

#: Only what never reached the upstream is sent again: nobody is billed twice.
TRIES: Final = 2
#: The longest line of a head that is taken, in both directions.
HEADER_BYTES: Final = 64 * 1024
_PAUSE_SECONDS: Final = 0.2
_PIECE_BYTES: Final = 256 * 1024


class UpstreamFault(Exception):  # noqa: N818 - the fault is the upstream's, not ours
    """An upstream could not be asked, or did not answer."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message


class _Connection(ResponseHandler):
    """An upstream's connection.

    Of bytes that are no HTTP aiohttp 3.14 tells who waits for a head, but not who reads a body: he would wait
    for ever.
    """

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """Tell both."""
        causes = () if exc_cause is None else (exc_cause,)
        super().set_exception(exc, *causes)
        body = getattr(self, "_payload", None)
        if body is not None and isinstance(exc, HttpProcessingError):
            body.set_exception(ClientPayloadError("the upstream's answer is no HTTP"), exc)


def _connector() -> TCPConnector:
    made = TCPConnector(limit=0, keepalive_timeout=30)
    factory: Any = partial(_Connection, loop=asyncio.get_running_loop())
    made._factory = factory  # noqa: SLF001 - there is no other way to choose it
    return made


def client(settings: ProxySettings) -> ClientSession:
    """The client for all upstreams. Bytes pass as they come: nothing is unpacked, no cookie is kept."""
    timeout = ClientTimeout(total=None, connect=settings.connect_seconds, sock_read=settings.read_seconds)
    return ClientSession(
        connector=_connector(),
        timeout=timeout,
        auto_decompress=False,
        cookie_jar=DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        read_bufsize=2**16,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
    )


async def send(
    http: ClientSession,
    method: str,
    url: str,
    headers: Iterable[tuple[str, str]],
    body: bytes | AsyncIterable[bytes] | None,
) -> ClientResponse:
    """The upstream's answer, as soon as its head is there.

    Raises:
        UpstreamFault: no connection, no answer in time, or none at all.
    """
    tries = TRIES if body is None or isinstance(body, bytes) else 1
    target, head = URL(url, encoded=True), list(headers)
    if isinstance(body, bytes) and len(body) > _PIECE_BYTES:
        head = [pair for pair in head if pair[0].lower() != "content-length"]
        head.append(("Content-Length", str(len(body))))
    while True:
        tries -= 1
        try:
            return await http.request(
                method,
                target,
                headers=head,
                data=_pieces(body) if isinstance(body, bytes) else body,
                allow_redirects=False,
                proxy=outer_proxy(target.scheme, target.host or ""),
            )
        except ClientConnectorError as fault:
            if not tries:
                raise UpstreamFault(
                    "unreachable", f"no connection to the upstream ({_why(fault)})"
                ) from fault
            await asyncio.sleep(_PAUSE_SECONDS)
        except (TimeoutError, ServerTimeoutError) as fault:
            raise UpstreamFault("timeout", "the upstream did not answer in time") from fault
        except (ServerDisconnectedError, ClientConnectionError) as fault:
            raise UpstreamFault(
                "unreachable", "the upstream closed the connection without an answer"
            ) from fault
        except ClientError as fault:
            raise UpstreamFault(
                "protocol", f"the upstream's answer is no HTTP ({type(fault).__name__})"
            ) from fault


def _pieces(body: bytes) -> bytes | AsyncIterable[bytes]:
    """A large body in pieces: written at once it would hold up all other requests."""
    if len(body) <= _PIECE_BYTES:
        return body

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), _PIECE_BYTES):
            yield body[at : at + _PIECE_BYTES]

    return pieces()


@cache
def outer_proxy(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for a host (``HTTPS_PROXY``, ``NO_PROXY``).

    aiohttp would look for it anew with each request, and take credentials from ``.netrc`` beside those that
    the client sends.
    """
    return None if proxy_bypass(host) else getproxies().get(scheme)


def _why(fault: ClientConnectorError) -> str:
    """What is wrong; not in all kinds of this error has aiohttp the system's own."""
    reason = getattr(fault, "certificate_error", None) or getattr(fault, "os_error", fault)
    return getattr(reason, "strerror", None) or type(reason).__name__
