"""What workers count, in memory that they share: `/metrics` is the sum over all of them."""

from __future__ import annotations

import mmap
import struct
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from turngate.proxy.chain.ask import Sending

#: Name -> what it counts; all of them only grow.
COUNTERS: Final[Mapping[str, str]] = {
    "requests": "Requests that came in.",
    "followed": "Requests that the ledger looked at.",
    "decided_messages": "Messages that were new.",
    "shortened_results": "Tool results that were shortened.",
    "came_bytes": "Bytes of the bodies that the ledger looked at.",
    "sent_bytes": "Bytes of these bodies as they were sent.",
    "prefix_breaks": "Requests that did not extend what their conversation sent before.",
    "degraded": "Requests that were served while the store could not be used.",
    "retrievals": "Calls of the model that the proxy answered itself.",
    "replies_2xx": "Replies of upstreams.",
    "replies_4xx": "Replies of upstreams that refuse.",
    "replies_5xx": "Replies of upstreams that failed.",
    "faults": "Faults; the log has each kind once.",
    "input_tokens": "Fresh input tokens, as reported.",
    "cache_read_tokens": "Input tokens read from the provider's cache, as reported.",
    "cache_write_tokens": "Input tokens written to it, as reported.",
    "output_tokens": "Output tokens, as reported.",
}
_PLACES: Final[Mapping[str, int]] = {name: at for at, name in enumerate(COUNTERS)}
_ONE: Final = struct.Struct("<q")
_ALL: Final = struct.Struct(f"<{len(COUNTERS)}q")
_USAGE: Final[Mapping[str, str]] = {
    "input": "input_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "output": "output_tokens",
}


def shared(workers: int) -> mmap.mmap:
    """Memory for the counters of so many workers, to be made before they are forked; it is no file."""
    return mmap.mmap(-1, workers * _ALL.size)


class Metrics:
    """The counters of one worker. Safe from any thread."""

    def __init__(self, memory: mmap.mmap | None = None, worker: int = 0) -> None:
        """Count on where the worker before stopped.

        Args:
            memory: what the workers of one proxy share; None: there is one worker.
            worker: its number, from 0.
        """
        self._memory = shared(1) if memory is None else memory
        self._at = worker * _ALL.size
        self._lock = threading.Lock()
        #: Faults by kind, of this worker.
        self.faults: dict[str, int] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        at = self._at + _ONE.size * _PLACES[name]
        with self._lock:
            _ONE.pack_into(self._memory, at, _ONE.unpack_from(self._memory, at)[0] + by)

    def prepared(self, sending: Sending, came_bytes: int) -> None:
        """A request that the engine looked at."""
        for name, by in (
            ("followed", 1),
            ("decided_messages", sending.decided),
            ("shortened_results", sending.shortened),
            ("came_bytes", came_bytes),
            ("sent_bytes", len(sending.body)),
            ("prefix_breaks", int(bool(sending.broken))),
            ("degraded", int(sending.degraded)),
        ):
            if by:
                self.count(name, by)

    def retrieved(self, calls: int) -> None:
        """Calls that the proxy answered."""
        self.count("retrievals", calls)

    def replied(self, status: int) -> None:
        """A reply of an upstream."""
        name = f"replies_{status // 100}xx"
        if name in _PLACES:
            self.count(name)

    def usage(self, usage: Mapping[str, int]) -> None:
        """What an upstream reported."""
        for key, name in _USAGE.items():
            if usage.get(key):
                self.count(name, usage[key])

    def fault(self, kind: str) -> bool:
        """A fault; whether it is the first of its kind in this worker."""
        self.count("faults")
        with self._lock:
            self.faults[kind] = self.faults.get(kind, 0) + 1
            return self.faults[kind] == 1

    def sums(self) -> dict[str, int]:
        """The counters of all workers, those that have ended included."""
        workers = _ALL.iter_unpack(self._memory[:])
        return dict(zip(_PLACES, map(sum, zip(*workers, strict=True)), strict=True))

    def prometheus(self) -> str:
        """The sums in Prometheus' text format, version 0.0.4."""
        lines: list[str] = []
        for name, value in self.sums().items():
            full = f"turngate_{name}_total"
            lines += [f"# HELP {full} {COUNTERS[name]}", f"# TYPE {full} counter", f"{full} {value}"]
        return "\n".join(lines) + "\n"
