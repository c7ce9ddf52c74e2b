"""The ways of shortening that are compared: each takes one sample and answers what a model would see."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from turngate import marker
from turngate.compress import Shortened, shorten
from turngate.compress.budget import LEAST_SAVED_TOKENS, MOST_SHOWN_SHARE
from turngate.settings import Settings
from turngate.tokens import estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.corpus import Sample

HEAD_TAIL_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an arm made of one sample."""

    shown: str
    """What a model sees, marker included."""
    seconds: float
    """Of shortening alone, by the wall."""
    cpu_seconds: float = 0.0
    """The same by this thread's processor time, which other work on the machine does not lengthen."""
    kind: str = ""
    """What the text was taken for."""
    body: str | None = None
    """The shortened text without its marker; None when the original is shown."""


Arm = "Callable[[Sample], Outcome]"


def turngate(budget: str = "default") -> Callable[[Sample], Outcome]:
    """The gate's own rules: skip list, threshold, `shorten`, and the marker must still leave a gain."""
    settings = Settings()

    def arm(sample: Sample) -> Outcome:
        size = len(sample.text.encode("utf-8", "surrogatepass"))
        skipped = any(fnmatchcase((sample.tool or "").lower(), p.lower()) for p in settings.skip_tools)
        if skipped or size < settings.threshold_bytes:
            return Outcome(sample.text, 0.0)
        start, cpu_start = perf_counter(), thread_time()
        short = shorten(sample.text, tool=sample.tool, args=sample.args, budget=budget)
        seconds, cpu = perf_counter() - start, thread_time() - cpu_start
        if not short.changed:
            return Outcome(sample.text, seconds, cpu, short.kind)
        shown = marked(short, sample.text, size)
        if not pays(shown, sample.text):
            return Outcome(sample.text, seconds, cpu, short.kind)
        return Outcome(shown, seconds, cpu, short.kind, short.text)

    return arm


def marked(short: Shortened, text: str, size: int) -> str:
    """The shortened text below its marker line."""
    ref = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    line = marker.render(marker.Marker(ref, "tool", size, "inline", short.preview, (("kind", short.kind),)))
    return f"{line}\n{short.text}"


def pays(shown: str, text: str) -> bool:
    """Whether it still saves enough with the marker counted, as a session asks."""
    before, after = estimate(text), estimate(shown)
    return after <= MOST_SHOWN_SHARE * before and before - after >= LEAST_SAVED_TOKENS


def head_tail(sample: Sample) -> Outcome:
    """The first and the last 5,000 characters."""
    text = sample.text
    start = perf_counter()
    if len(text) <= 2 * HEAD_TAIL_CHARS:
        return Outcome(text, perf_counter() - start)
    cut = f"\n[… {len(text) - 2 * HEAD_TAIL_CHARS} characters left out …]\n"
    return Outcome(text[:HEAD_TAIL_CHARS] + cut + text[-HEAD_TAIL_CHARS:], perf_counter() - start)
