"""Whether a proxy is up, as our other doors ask it: once in five seconds, so that no turn waits for it."""

from __future__ import annotations

import time
from typing import Final
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

#: How long an answer holds (Aphrodite's `_alive` has it so).
HOLDS_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 1.0

_answers: dict[str, tuple[float, bool]] = {}


def alive(url: str) -> bool:
    """Whether the proxy at this base URL answers; what was found holds for `HOLDS_SECONDS`."""
    now = time.monotonic()
    known = _answers.get(url)
    if known is None or now - known[0] > HOLDS_SECONDS:
        known = _answers[url] = now, _ask(url)
    return known[1]


def _ask(url: str) -> bool:
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(url.rstrip("/") + "/turngate/health", timeout=_WAIT_SECONDS) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004 - HTTP's word for yes
    except (URLError, OSError, ValueError):
        return False
