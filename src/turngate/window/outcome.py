"""What came of a compaction: the record's text, the epoch, the state afterwards, the notice. Pure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from turngate.window import compaction
from turngate.window.book import Epoch, State, SummaryNote
from turngate.window.case import FIRST_REQUEST_SHARE, Job
from turngate.window.measure import Sizes
from turngate.window.notices import Compaction, Method
from turngate.window.record import frame
from turngate.window.record.summary import Written
from turngate.window.request import Place


def record_text(job: Job, written: Written, sizes: Sizes) -> str:
    """The text of the record; "" where nothing went."""
    removed = job.removed
    if removed is None:
        return ""
    limit = job.case.limits
    said = compaction.body(
        removed,
        written.text,
        sizes.text,
        most_tokens=limit.summary_tokens,
        first_tokens=FIRST_REQUEST_SHARE * limit.hard_tokens,
    )
    entries = compaction.entries_in_view(job.stay.tail, job.case.wire) + max(0, job.case.recalled)
    return frame.frame(
        said,
        removed.spans,
        removed.ref,
        removed.size_bytes,
        running=compaction.running(job.plan, job.case.units),
        entries=entries,
    )


def sent(job: Job, text: str) -> list[Place]:
    """The list with the record in its place."""
    between = [Place(frame.message(text), None)] if text else []
    return [*job.stay.head, *between, *job.stay.tail]


def epoch(job: Job, places: Sequence[Place], clean: Callable[[Any], Any]) -> Epoch:
    """The epoch that these places make; `clean` gives a value as it may be kept."""
    case = job.case
    cover, items = compaction.items(
        places, least_cover=case.epoch.cover if case.epoch else 0, total=len(case.request.messages)
    )
    plain = [item if isinstance(item, int) else compaction.as_json(item) for item in items]
    stripped = [
        compaction.as_json(message)
        for message, shape in zip(case.messages, case.shapes, strict=True)
        if job.strip and shape.signed
    ]
    removed = job.removed.facts.messages if job.removed else case.state.last_compacted_index
    about = {
        **compaction.plan_data(job.plan),
        "trigger": job.trigger,
        "why": job.plan.why,
        "verdict": str(job.verdict or ""),
        "with_thinking": stripped,
    }
    return Epoch(cover, tuple(clean(plain)), removed, about)


def note(job: Job, written: Written, text: str) -> SummaryNote | None:
    """What belongs to the record."""
    removed = job.removed
    return SummaryNote(text, removed.facts.to_dict(), written.text, removed.spans) if removed else None


def state_after(state: State, job: Job, made: Epoch, key: bytes, *, tokens: float, summary: str) -> State:
    """The session's state afterwards, with messages that weigh `tokens`."""
    known = (made.cover, key.hex())
    return replace(
        state,
        last_compacted_index=max(state.last_compacted_index, made.removed),
        epochs=(*(each for each in state.epochs if each != known), known),
        compactions=state.compactions + 1,
        floor_tokens=tokens + job.case.limits.growth_tokens,
        latched="",
        letting_drop=state.letting_drop or job.case.drop,
        summary=summary or state.summary,
    )


def flush_state(job: Job, session: str, deps: Any) -> dict[str, Any]:
    """What the host's memory is offered: copies of what went, and a key to know a repetition by."""
    assert job.removed is not None
    first = job.removed.first
    return {
        "deps": deps,
        "session": session,
        "messages": copy.deepcopy([dict(message) for message in job.gone]),
        "index_range": (first, first + len(job.gone)),
        "flush_key": f"{session}:{job.removed.spans[-1][2]}",
        "marker": job.removed.ref,
    }


def notice(
    job: Job, written: Written, *, session: str, tokens: float, number: int, flush: str, now: float
) -> Compaction:
    """What listeners are told."""
    case, removed = job.case, job.removed
    method: Method = "offload" if removed is None else "model" if written.text else "digest"
    first = removed.first if removed else 0
    fell_back = f"the model's summary failed ({written.error}); the digest stands in" if written.error else ""
    return Compaction(
        session=session,
        trigger=job.trigger,
        method=method,
        before_tokens=round(case.factor * case.tokens),
        after_tokens=round(case.factor * tokens),
        removed=len(job.gone),
        removed_span=(first, first + len(job.gone) - 1) if job.gone else (0, 0),
        kept=len(job.stay.head) + len(job.stay.tail),
        offloaded=job.stay.offloaded,
        marker=removed.ref if removed else "",
        epoch=number,
        calls=written.calls,
        model=written.model,
        usage=written.usage,
        duration_seconds=now - job.begun,
        flush=flush,
        why="; ".join(filter(None, (fell_back, job.plan.why))),
    )
