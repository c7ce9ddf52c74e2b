"""The face of the room: text and hints in, shortened text out. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngate.compress.budget import LEAST_SAVED_TOKENS, MOST_SHOWN_SHARE
from turngate.compress.call import Call, Doc, call_of, sample_of
from turngate.compress.kinds import format_of, mixed, recognise, view
from turngate.compress.kinds import json as json_kind
from turngate.compress.lines import Shown
from turngate.compress.notes import Notes, tag_over
from turngate.compress.result import Shortened, of, unchanged
from turngate.compress.terminal import resolve
from turngate.tokens import estimate


def shorten(
    text: str,
    *,
    tool: str | None = None,
    args: Mapping[str, Any] | str | None = None,
    failed: bool | None = None,
    question: str | None = None,
    budget: str = "default",
    least_chars: int | None = None,
    factors: Mapping[str, float] | None = None,
) -> Shortened:
    """Shorten the text of one tool result.

    Args:
        text: the result, any string.
        tool: the name of the tool that gave it.
        args: the arguments of the call, as a mapping or as the JSON text that the model wrote.
        failed: whether the call failed; what a failed run ends with is shown at greater length.
        question: what the user asked; what it names is preferred.
        budget: "default" or "wide" (`budget.CURVES`).
        least_chars: texts of fewer characters are left alone; by default what the budget says.
        factors: by kind, how much larger than usual the budget is.

    Returns:
        The shortened text, or the very object that came in with the reason why it was left alone.
        Never raises: a fault inside leaves the text alone with the reason "fault: …".
    """
    try:
        call = call_of(tool=tool, args=args, failed=failed, question=question, budget=budget)
        if not text or (call.curve.leaves_alone(text) if least_chars is None else len(text) < least_chars):
            return unchanged(text, "text", "small")
        return _shorten(text, call, factors or {})
    except Exception as fault:  # noqa: BLE001 - the boundary: a fault of ours lets the original through
        return unchanged(text, "text", f"fault: {type(fault).__name__}")


def _shorten(text: str, call: Call, factors: Mapping[str, float]) -> Shortened:
    data = resolve(text.encode("utf-8", "surrogatepass"))
    doc = Doc(text=text, data=data, call=call, notes=Notes(tag_over(text, data)))
    sample = sample_of(data, call)
    if json_kind.recognise(sample):
        shown = json_kind.shorten(_with(doc, factors, "json"), lambda inner, room: _inner(inner, room, call))
        if shown is not None:
            return replace(_checked(doc, "json", shown), format=format_of("json", sample))
    if len(data) <= view.MOST_BYTES and view.is_view(data):
        echo = view.shorten_echo(doc) if view.is_edit(call) else None
        return _checked(doc, "edit", echo) if echo else unchanged(text, "view", "view")
    found = recognise(sample)
    parts = mixed.parts_of(data, found.name, recognise)
    if parts:
        return _checked(doc, "mixed", mixed.shorten(_with(doc, factors, "mixed"), parts))
    result = _checked(doc, found.name, found.kind.shorten(_with(doc, factors, found.name)))
    return replace(result, format=found.format)


def _with(doc: Doc, factors: Mapping[str, float], kind: str) -> Doc:
    """With the budget of its kind."""
    if kind not in factors:
        return doc
    return replace(doc, call=replace(doc.call, curve=doc.call.curve.times(factors[kind])))


def _inner(text: str, budget_tokens: float, call: Call) -> Shown:
    """A text that stood inside another, as what it is."""
    data = resolve(text.encode("utf-8", "surrogatepass"))
    doc = Doc(text=text, data=data, call=call, notes=Notes(tag_over(text, data)), budget_tokens=budget_tokens)
    found = recognise(sample_of(data, call))
    parts = mixed.parts_of(data, found.name, recognise)
    return mixed.shorten(doc, parts) if parts else found.kind.shorten(doc)


def _checked(doc: Doc, kind: str, shown: Shown) -> Shortened:
    """The result, unless it saves too little."""
    text, before, after = doc.text, doc.tokens, estimate(shown.text)
    if (
        after > MOST_SHOWN_SHARE * before
        or before - after < LEAST_SAVED_TOKENS
        or len(shown.text) >= len(text)
    ):
        return unchanged(text, kind, "no gain")
    return Shortened(
        text=shown.text,
        kind=kind,
        kept=shown.kept,
        total=shown.total,
        unit=shown.unit,
        hidden=shown.hidden,
        preview=_preview(shown),
        exact=shown.exact,
    )


def _preview(shown: Shown) -> str:
    """One line that says how much is shown."""
    if shown.exact:
        return f"all {shown.total:,} {shown.unit}, exact"
    return ", ".join(filter(None, (of(shown.kept, shown.total, shown.unit), shown.within)))
