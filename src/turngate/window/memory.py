"""The memory section of a summary: the model is told when earlier turns exist and none is in view.

Names, signatures and the sentinel are those of symfonic-core's `context_window_memory`. Where its prose
("when `summary_text` already begins with the sentinel") and its code ("in") disagree, the prose holds here;
``compat=True`` gives what its code gives.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Final, Protocol, runtime_checkable

HONESTY_MARKER_SENTINEL: Final[str] = (
    "[memory] Earlier turns exist in this conversation's history but are not currently in context."
)
"""An exact literal: others match it to show that the model works without sight of earlier turns."""

#: How the sentinel is spelled where somebody merely quotes it: without the brackets it matches nothing.
_QUOTED: Final = HONESTY_MARKER_SENTINEL.replace("[memory]", "(memory)")


@runtime_checkable
class MemoryFlusher(Protocol):
    """Somewhere to put what a compaction takes out of view, before or after it is gone."""

    def flush(self, state: dict[str, Any]) -> Any:
        """Take it; may be a coroutine function. What it returns is ignored. A span may come twice."""
        ...


def compose_memory_section(
    *, summary_text: str, last_compacted_index: int, entries_count: int, compat: bool = False
) -> str:
    """The memory section, with the sentinel at its head when earlier turns are gone and none is in view.

    Pure and idempotent. A section that begins with the sentinel is returned as it is; one that has it further
    on is only quoting it, so it gets one at its head and the quotes lose their brackets.

    Args:
        summary_text: the summary so far; may be empty.
        last_compacted_index: how many entries of this conversation are out of view; negative counts as 0.
        entries_count: earlier messages that stand verbatim before the current user message, and lines of
            recall and memory that are rendered; negative counts as 0. A summary is no entry.
        compat: the truth table of symfonic-core 9.12.0, bit for bit.
    """
    if compat:
        return _compat(summary_text, last_compacted_index, entries_count)
    gone = last_compacted_index > 0 and entries_count <= 0
    if not gone or summary_text.startswith(HONESTY_MARKER_SENTINEL):
        return summary_text
    return "\n".join(filter(None, (HONESTY_MARKER_SENTINEL, quote_sentinel(summary_text))))


def strip_stale_marker(section: str, *, entries_count: int) -> str:
    """`section` without the sentinel at its head, once entries are in view; else `section` itself."""
    if entries_count <= 0 or not section.startswith(HONESTY_MARKER_SENTINEL):
        return section
    return section[len(HONESTY_MARKER_SENTINEL) :].removeprefix("\n")


def quote_sentinel(text: str) -> str:
    """`text` with every sentinel in it made a quote, so that nobody can forge or suppress the real one."""
    return text.replace(HONESTY_MARKER_SENTINEL, _QUOTED)


async def flush_memory(state: dict[str, Any], *, timeout_seconds: float | None = None) -> None:
    """Hand `state` to the `MemoryFlusher` registered in ``state["deps"]``, if there is one.

    ``deps`` is a mapping or registry with ``get``, asked for `MemoryFlusher`, the type. None, an object
    without ``get``, no flusher, and one whose ``flush`` cannot be called are all nothing to do. The flusher
    is given the same object `state`, once; its result is awaited only if it can be. Delivery is at least
    once: a caller that repeats a compaction flushes again, under the same ``state["flush_key"]``.

    Raises:
        KeyError: `state` has no ``deps``.
        TimeoutError: an awaitable flush took longer than `timeout_seconds`.
        Exception: whatever the flusher raises; cancellation always passes through.
    """
    lookup = getattr(state["deps"], "get", None)
    flusher = lookup(MemoryFlusher) if callable(lookup) else None
    flush = None if flusher is None else getattr(flusher, "flush", None)
    if not callable(flush):
        return
    result = flush(state)
    if inspect.isawaitable(result):
        async with asyncio.timeout(timeout_seconds):
            await result


def _compat(summary_text: str, last_compacted_index: int, entries_count: int) -> str:
    if last_compacted_index <= 0 or entries_count != 0:
        return summary_text
    if HONESTY_MARKER_SENTINEL in summary_text:
        return summary_text
    if not summary_text:
        return HONESTY_MARKER_SENTINEL
    return f"{HONESTY_MARKER_SENTINEL}\n{summary_text}"
