"""A worker: its services, its sockets, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aiohttp import web

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
POLICY_VERSION: Final = "proxy 1"
#: How often what waits for the store is tried again.
_CATCH_UP_SECONDS: Final = 1.0
_THREADS: Final = 8


def terms(settings: Settings) -> Terms:
    """What decides for all requests."""
    version = f"{POLICY_VERSION} {settings.budget}"
    return Terms(version, retrieve=settings.proxy.retrieve, adopt=settings.proxy.adopt, settings=settings)


@contextlib.asynccontextmanager
async def services(settings: Settings, folder: Path) -> AsyncIterator[Services]:
    """What the requests of a worker share.

    Args:
        settings: all settings.
        folder: where the workers of one proxy keep their counters.
    """
    gate = Gate.open(settings=settings)
    executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="turngate")
    metrics = Metrics(folder)
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
        metrics.close()


async def _keep_up(shared: Services) -> None:
    """Try the store at once, so that the first request finds it open, and again while it cannot be used."""
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(shared.executor, shared.engine.catch_up)
    while True:
        await asyncio.sleep(_CATCH_UP_SECONDS)
        if not shared.engine.store_ok:
            await loop.run_in_executor(shared.executor, shared.engine.catch_up)


async def run(settings: Settings, folder: Path, *, reuse_port: bool = False) -> None:
    """Serve until a signal asks for the end; then finish what is under way."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with services(settings, folder) as shared:
        runner = web.AppRunner(
            app.build(shared),
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=settings.proxy.stop_seconds,
        )
        await runner.setup()
        site = web.TCPSite(runner, settings.proxy.host, settings.proxy.port, reuse_port=reuse_port or None)
        await site.start()
        await stop.wait()
        await runner.cleanup()


def main(settings: Settings) -> None:
    """One worker."""
    with tempfile.TemporaryDirectory(prefix="turngate-") as folder:
        asyncio.run(run(settings, Path(folder)))
