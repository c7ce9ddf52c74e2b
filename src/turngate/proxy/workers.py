"""One worker, or several that share a port: started, watched, and ended together."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from turngate.errors import ProxyError
from turngate.proxy import access, serve
from turngate.proxy.metrics import Metrics, shared

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from turngate.settings import Settings

#: A worker that ends sooner than so is not started again at once.
_SHORT_LIFE_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 1.0

_log = logging.getLogger("turngate.proxy")


def main(settings: Settings, *, ready: Callable[[str], None], tied: int | None = None) -> None:
    """Run the proxy until it is told to end.

    Args:
        settings: all settings.
        ready: told the base URL as soon as requests are accepted.
        tied: the reading end of a pipe; when its other end is closed, the proxy ends.

    Raises:
        SettingsError: it would offer originals to a network without a token.
        ProxyError: it cannot listen at its address, or workers cannot share a port here.
    """
    access.check_bind(settings.proxy)
    sock = serve.bound(settings)
    url = serve.url_of(sock)
    if settings.proxy.workers == 1:
        asyncio.run(serve.run(settings, Metrics(), sock=sock, tied=tied, ready=lambda: ready(url)))
    else:
        _Supervisor(settings, sock, tied).run(lambda: ready(url))


class _Supervisor:
    """The process above the workers. It serves nothing itself."""

    def __init__(self, settings: Settings, sock: socket.socket, tied: int | None) -> None:
        if not hasattr(os, "fork"):
            raise ProxyError("workers cannot share a port on this platform; run with one, or several proxies")
        self._settings = settings
        self._sock = sock
        self._counts = shared(settings.proxy.workers)
        self._tied = tied
        #: Workers hold the reading end: when this process is gone, however it went, they end.
        self._alive = os.pipe()
        #: What a worker writes to once it accepts requests.
        self._ready = os.pipe()
        #: Process -> the worker's number, and when it was started.
        self._born: dict[int, tuple[int, float]] = {}
        self._stopping = False

    def run(self, ready: Callable[[], None]) -> None:
        """Start the workers, and replace those that end, until told to end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        if self._tied is not None:
            threading.Thread(target=self._until_untied, args=(self._tied,), daemon=True).start()
        for worker in range(self._settings.proxy.workers):
            self._start(worker)
        threading.Thread(target=self._tell, args=(ready,), daemon=True).start()
        while self._born:
            ended, status = os.wait()
            worker, born = self._born.pop(ended, (0, 0.0))
            if self._stopping:
                continue
            _log.warning("a worker ended (status %d); another one takes its place", status)
            if time.monotonic() - born < _SHORT_LIFE_SECONDS:
                time.sleep(_PAUSE_SECONDS)
            self._start(worker)

    def _tell(self, ready: Callable[[], None]) -> None:
        """Say that all workers accept requests, once they do."""
        for _ in range(self._settings.proxy.workers):
            os.read(self._ready[0], 1)
        ready()

    @staticmethod
    def _until_untied(tied: int) -> None:
        os.read(tied, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _stop(self, *_: int | FrameType | None) -> None:
        self._stopping = True
        self._end(list(self._born))

    @staticmethod
    def _end(processes: list[int]) -> None:
        for process in processes:
            # One that has just ended is not yet struck off.
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def _told_to_end(self) -> bool:
        """Asked again after each step, since a signal may come between any two."""
        return self._stopping

    def _start(self, worker: int) -> None:
        if self._told_to_end():
            return
        process = os.fork()
        if not process:
            self._work(worker)
        self._born[process] = worker, time.monotonic()
        if self._told_to_end():
            self._end([process])

    def _work(self, worker: int) -> NoReturn:
        """The life of a worker."""
        code = 1
        try:
            os.close(self._alive[1])
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            # Each worker has its own queue of connections at the same port; the first socket serves nobody.
            own = serve.bound(self._at_port())
            self._sock.close()
            metrics = Metrics(self._counts, worker)
            running = serve.run(self._settings, metrics, sock=own, tied=self._alive[0], ready=self._say_ready)
            asyncio.run(running)
            code = 0
        except Exception:  # noqa: BLE001 - the supervisor starts another one
            _log.exception("a worker failed")
        finally:
            sys.stdout.flush()
            os._exit(code)

    def _say_ready(self) -> None:
        os.write(self._ready[1], b".")

    def _at_port(self) -> Settings:
        proxy = replace(self._settings.proxy, port=self._sock.getsockname()[1])
        return replace(self._settings, proxy=proxy)
