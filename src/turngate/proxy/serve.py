"""A worker: its services, its sockets, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from turngate import compress
from turngate.errors import ProxyError
from turngate.gate import Gate
from turngate.proxy import app, upstream
from turngate.proxy.chain.deciding import Terms
from turngate.proxy.chain.engine import Engine
from turngate.proxy.metrics import Metrics
from turngate.proxy.routes import Routes
from turngate.proxy.services import Services

if TYPE_CHECKING:
    from turngate.settings import Settings

#: Version of what decides on new messages; recorded with each of them.
POLICY_VERSION: Final = f"proxy {compress.VERSION}"
#: How often what waits for the store is tried again.
_CATCH_UP_SECONDS: Final = 1.0
_THREADS: Final = 8
#: What a session remembers stands in the store, too, and takes some 100 kB here.
_KEPT_SESSIONS: Final = 32
_BACKLOG: Final = 1_024
#: For glibc's `mallopt` (malloc.h): each thread has an arena of its own, and what is cut from it leaves holes
#: that are never given back. So two arenas; blocks of 4 MB and more come from the system, which has to zero
#: smaller ones, too, for each request.
_MALLOC: Final[Mapping[int, int]] = {-8: 2, -3: 4 * 1024**2, -1: 4 * 1024**2}
#: For aiohttp's server: bodies stay as they came, since they are relayed so; agents send long headers (Codex
#: puts its turn's metadata there), and upstreams' own limits hold.
SERVER: Final[Mapping[str, Any]] = {
    "auto_decompress": False,
    "max_line_size": upstream.HEADER_BYTES,
    "max_field_size": upstream.HEADER_BYTES,
}

_log = logging.getLogger("turngate.proxy")


def terms(settings: Settings) -> Terms:
    """What decides for all requests."""
    proxy = settings.proxy
    return Terms(
        version=f"{POLICY_VERSION} {settings.budget}",
        retrieve=proxy.retrieve,
        adopt=proxy.adopt,
        settings=settings,
        refers=not proxy.window_tokens,
    )


@contextlib.asynccontextmanager
async def services(settings: Settings, metrics: Metrics | None = None) -> AsyncIterator[Services]:
    """What the requests of a worker share.

    Args:
        settings: all settings.
        metrics: the worker's counters; None: it is the only one.
    """
    gate = Gate.open(settings=settings)
    gate.kept_sessions = _KEPT_SESSIONS
    gate.injects = False
    executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="turngate")
    metrics = metrics or Metrics()
    engine = Engine(gate, terms(settings))
    routes = Routes(settings.proxy)
    try:
        async with upstream.client(settings.proxy) as http:
            shared = Services(settings, routes, http, executor, gate, engine, metrics)
            keeper = asyncio.create_task(_keep_up(shared))
            try:
                yield shared
            finally:
                keeper.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await keeper
    finally:
        await asyncio.get_running_loop().run_in_executor(executor, gate.close)
        executor.shutdown(wait=False)


async def _keep_up(shared: Services) -> None:
    """Try the store at once, so that the first request finds it open, and again while it cannot be used."""
    await _catch_up(shared)
    while True:
        await asyncio.sleep(_CATCH_UP_SECONDS)
        if not shared.engine.store_ok:
            await _catch_up(shared)


async def _catch_up(shared: Services) -> None:
    try:
        await asyncio.get_running_loop().run_in_executor(shared.executor, shared.engine.catch_up)
    except Exception as fault:  # noqa: BLE001 - it is tried again, and requests are served meanwhile
        if shared.metrics.fault(type(fault).__name__):
            _log.warning("%s while the store was opened", type(fault).__name__, exc_info=True)


async def run(
    settings: Settings,
    metrics: Metrics,
    *,
    sock: socket.socket,
    tied: int | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal asks for the end, or whoever started us is gone; then finish what is under way.

    Args:
        settings: all settings.
        metrics: the worker's counters.
        sock: a bound socket to listen at.
        tied: the reading end of a pipe; when its other end is closed, the worker ends.
        ready: called as soon as requests are accepted.
    """
    _bound_memory()
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if tied is not None:
        loop.add_reader(tied, stop.set)
    async with services(settings, metrics) as shared:
        runner = web.AppRunner(
            app.build(shared),
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=settings.proxy.stop_seconds,
            **SERVER,
        )
        await runner.setup()
        await web.SockSite(runner, sock, backlog=_BACKLOG).start()
        ready()
        await stop.wait()
        if tied is not None:
            loop.remove_reader(tied)
        await runner.cleanup()


def _bound_memory() -> None:
    """Let the C library give memory back; where it is another one, it does as it does."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, value in _MALLOC.items():
            mallopt(name, value)


def bound(settings: Settings) -> socket.socket:
    """A socket at the address of the settings, which other workers can share.

    Raises:
        ProxyError: the address is in use, or is none of this machine.
    """
    host, port = settings.proxy.host, settings.proxy.port
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if settings.proxy.workers > 1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(address)
    except OSError as fault:
        why = fault.strerror or type(fault).__name__
        raise ProxyError(f"cannot listen at {host}:{port} ({why}); name another --port or --host") from fault
    return sock


def url_of(sock: socket.socket) -> str:
    """The base URL at a socket."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
