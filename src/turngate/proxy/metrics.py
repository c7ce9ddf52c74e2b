"""What a worker counts, in a file of its own that the others read: `/metrics` is the sum over all workers."""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

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
_NAMES: Final = tuple(COUNTERS)
_BYTES: Final = 8 * len(_NAMES)
_USAGE: Final[Mapping[str, str]] = {
    "input": "input_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "output": "output_tokens",
}
_SUFFIX: Final = ".counts"


class Metrics:
    """The counters of one worker. Safe from any thread."""

    def __init__(self, folder: Path) -> None:
        """`folder`: shared by the workers of one proxy, and nobody else's."""
        self._folder = folder
        self._lock = threading.Lock()
        self._values = dict.fromkeys(_NAMES, 0)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{os.getpid()}-{id(self):x}{_SUFFIX}"
        with path.open("w+b") as file:
            file.truncate(_BYTES)
            self._memory = mmap.mmap(file.fileno(), _BYTES)
        #: Faults by kind, of this worker.
        self.faults: dict[str, int] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._values[name] += by
            struct.pack_into("<q", self._memory, 8 * _NAMES.index(name), self._values[name])

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
        if name in self._values:
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
        sums = dict.fromkeys(_NAMES, 0)
        for values in self._all():
            for name, value in zip(_NAMES, values, strict=True):
                sums[name] += value
        return sums

    def _all(self) -> Iterator[tuple[int, ...]]:
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            raw = path.read_bytes()
            if len(raw) == _BYTES:
                yield struct.unpack(f"<{len(_NAMES)}q", raw)

    def prometheus(self) -> str:
        """The sums in Prometheus' text format, version 0.0.4."""
        lines: list[str] = []
        for name, value in self.sums().items():
            full = f"turngate_{name}_total"
            lines += [f"# HELP {full} {COUNTERS[name]}", f"# TYPE {full} counter", f"{full} {value}"]
        return "\n".join(lines) + "\n"

    def json(self) -> bytes:
        """The sums, and this worker's faults by kind."""
        return orjson.dumps({**self.sums(), "faults_by_kind": self.faults})

    def close(self) -> None:
        """Flush what was counted; the file stays for the sums."""
        self._memory.flush()
