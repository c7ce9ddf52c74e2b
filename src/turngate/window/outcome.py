"""What came of a compaction: the record's text, the epoch, the state afterwards, the notice. Pure."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from turngate.window import compaction
from turngate.window.book import Epoch, State, SummaryNote
from turngate.window.case import FIRST_REQUEST_SHARE, Case, Job
from turngate.window.measure import Sizes
from turngate.window.notices import Compaction, Method
from turngate.window.record import digest, frame
from turngate.window.record.summary import Written
from turngate.window.request import Place

#: How often a digest that is too large for the limit is made smaller, and by how much more than it is over.
_TRIES: Final = 5
_MARGIN: Final = 1.2


def sent(job: Job, written: Written, sizes: Sizes) -> tuple[list[Place], str]:
    """The list with the record in its place, and the record's text; a digest gives way to the limit."""
    less = 0.0
    for _ in range(_TRIES):
        text = _record_text(job, written, sizes, less=less)
        between = [Place(frame.message(text), None)] if text else []
        places = [*job.stay.head, *between, *job.stay.tail]
        over = sizes.messages(place.message for place in places) - job.case.limits.hard_tokens
        if over <= 0 or not text or written.text:
            break
        less += _MARGIN * over
    return places, text


def _record_text(job: Job, written: Written, sizes: Sizes, *, less: float) -> str:
    """The text of the record; "" where nothing went."""
    removed = job.removed
    if removed is None:
        return ""
    limit = job.case.limits
    asked = digest.first_request_tokens(removed.facts, sizes.text)
    whole = min(asked, FIRST_REQUEST_SHARE * limit.hard_tokens)
    said = compaction.body(
        removed,
        written.text,
        sizes.text,
        most_tokens=max(0.0, limit.summary_tokens - less),
        first_tokens=whole - max(0.0, less - limit.summary_tokens),
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


def epoch(job: Job, places: Sequence[Place]) -> Epoch:
    """The epoch that these places make."""
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
    return Epoch(cover, tuple(plain), removed, about)


def note(job: Job, written: Written, text: str) -> SummaryNote | None:
    """What belongs to the record."""
    removed = job.removed
    return SummaryNote(text, removed.facts.to_dict(), written.text, removed.spans) if removed else None


def state_after(
    state: State, job: Job, known: tuple[int, str, str], removed: int, *, tokens: float, summary: str
) -> State:
    """The session's state after the epoch `known`, with messages that weigh `tokens`."""
    return replace(
        state,
        last_compacted_index=max(state.last_compacted_index, removed),
        epochs=(*(each for each in state.epochs if each != known), known),
        compactions=state.compactions + 1,
        floor_tokens=tokens + job.case.limits.growth_tokens,
        latched="",
        letting_drop=state.letting_drop or job.case.drop,
        summary=summary or state.summary,
    )


def left_view(case: Case, sent: Sequence[Place]) -> frozenset[str]:
    """Call ids of the results that were sent before and are not sent as they were any more."""
    stay = {id(place.message) for place in sent}
    return frozenset(
        call
        for shape, message in zip(case.shapes, case.messages, strict=True)
        if id(message) not in stay
        for call in shape.results
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
        why="; ".join(filter(None, (fell_back, job.plan.why or _over(job, tokens)))),
    )


def _over(job: Job, tokens: float) -> str:
    hard = job.case.limits.hard_tokens
    return (
        f"over the limit of {hard:,.0f} tokens: the record takes more than was planned"
        if tokens > hard
        else ""
    )
