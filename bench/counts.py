"""Exact o200k counts, kept between runs by the hash of the text."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from turngate.tokens import count_exact

CACHE = Path(".bench") / "o200k.json"


class Counts:
    """Counts exactly; long texts are looked up first."""

    LONG_CHARS = 2_000

    def __init__(self) -> None:
        self._known: dict[str, int] = json.loads(CACHE.read_text()) if CACHE.exists() else {}
        self._fresh = False

    def __call__(self, text: str) -> int:
        if len(text) < self.LONG_CHARS:
            return count_exact(text)
        key = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        if key not in self._known:
            self._known[key] = count_exact(text)
            self._fresh = True
        return self._known[key]

    def save(self) -> None:
        if self._fresh:
            CACHE.parent.mkdir(exist_ok=True)
            CACHE.write_text(json.dumps(self._known))
