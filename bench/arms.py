"""The ways of shortening that are compared: each takes one sample and answers what a model would see."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from turngate.compress import shorten
from turngate.ingress import Arrival, passes, pays, render
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
    """The shortened text without its marker; None when the original is shown, or a reference to others."""
    readable: str | None = None
    """What a reader has in view of it, where it refers to earlier results; None: what is shown."""

    @property
    def view(self) -> str:
        """Where a probe's answer may stand to count as in view."""
        return self.shown if self.readable is None else self.readable


def turngate(budget: str = "default") -> Callable[[Sample], Outcome]:
    """What a session would show, decided by the session's own rules, without a store."""
    settings = Settings(budget=budget)

    def arm(sample: Sample) -> Outcome:
        arrival = Arrival(sample.tool or "", sample.text, sample.args)
        if passes(arrival, settings):
            return Outcome(sample.text, 0.0)
        start, cpu_start = perf_counter(), thread_time()
        short = shorten(sample.text, tool=sample.tool, args=sample.args, budget=budget)
        seconds, cpu = perf_counter() - start, thread_time() - cpu_start
        if short.changed:
            data = arrival.stored_form()
            shown = render(sha256(data).hexdigest()[:16], arrival.name, len(data), short)
            if pays(shown, len(data), estimate(sample.text)):
                return Outcome(shown, seconds, cpu, short.kind, short.text)
        return Outcome(sample.text, seconds, cpu, short.kind)

    return arm


def head_tail(sample: Sample) -> Outcome:
    """The first and the last 5,000 characters."""
    text = sample.text
    start = perf_counter()
    if len(text) <= 2 * HEAD_TAIL_CHARS:
        return Outcome(text, perf_counter() - start)
    cut = f"\n[… {len(text) - 2 * HEAD_TAIL_CHARS} characters left out …]\n"
    return Outcome(text[:HEAD_TAIL_CHARS] + cut + text[-HEAD_TAIL_CHARS:], perf_counter() - start)
