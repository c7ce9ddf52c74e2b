"""One worker, or several that share a port: started, watched, and ended together."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turngate.errors import ProxyError
from turngate.proxy import access, serve

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
    with tempfile.TemporaryDirectory(prefix="turngate-") as name:
        folder = Path(name)
        if settings.proxy.workers == 1:
            sock.listen()
            ready(serve.url_of(sock))
            asyncio.run(serve.run(settings, folder, sock=sock, tied=tied))
        else:
            _Supervisor(settings, folder, sock, tied).run(ready)


class _Supervisor:
    """The process above the workers. It serves nothing itself."""

    def __init__(self, settings: Settings, folder: Path, sock: socket.socket, tied: int | None) -> None:
        if not hasattr(os, "fork"):
            raise ProxyError("workers cannot share a port on this platform; run with one, or several proxies")
        self._settings = settings
        self._folder = folder
        self._sock = sock
        self._tied = tied
        #: Workers hold the reading end: when this process is gone, however it went, they end.
        self._alive = os.pipe()
        self._born: dict[int, float] = {}
        self._stopping = False

    def run(self, ready: Callable[[str], None]) -> None:
        """Start the workers, and replace those that end, until told to end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        for _ in range(self._settings.proxy.workers):
            self._start()
        ready(serve.url_of(self._sock))
        if self._tied is not None:
            threading.Thread(target=self._until_untied, args=(self._tied,), daemon=True).start()
        while self._born:
            ended, status = os.wait()
            born = self._born.pop(ended, 0.0)
            if self._stopping:
                continue
            _log.warning("a worker ended (status %d); another one takes its place", status)
            if time.monotonic() - born < _SHORT_LIFE_SECONDS:
                time.sleep(_PAUSE_SECONDS)
            self._start()

    @staticmethod
    def _until_untied(tied: int) -> None:
        os.read(tied, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _stop(self, _: int, __: FrameType | None) -> None:
        self._stopping = True
        for worker in self._born:
            os.kill(worker, signal.SIGTERM)

    def _start(self) -> None:
        worker = os.fork()
        if worker:
            self._born[worker] = time.monotonic()
            return
        code = 1
        try:
            os.close(self._alive[1])
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            # Each worker has its own queue of connections at the same port; the first socket serves nobody.
            own = serve.bound(self._at_port())
            self._sock.close()
            asyncio.run(serve.run(self._settings, self._folder, sock=own, tied=self._alive[0]))
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)

    def _at_port(self) -> Settings:
        proxy = replace(self._settings.proxy, port=self._sock.getsockname()[1])
        return replace(self._settings, proxy=proxy)
