"""JSON: records, nested values, JSON lines, and JSON that wraps a command's output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turngate.compress import jsonshow
from turngate.compress.call import Doc, Sample
from turngate.compress.leafscore import leaf_tokens, score_leaves
from turngate.compress.leaves import Leaves, TooDeepError, leaves_of
from turngate.compress.lines import Shown
from turngate.compress.notes import tag_for
from turngate.compress.result import of
from turngate.compress.select import fill
from turngate.compress.spelled import Spelling, parse
from turngate.tokens import estimate

#: A leaf's cost counts with this exponent; half of it is blended away with its record.
COST_EXPONENT = 0.3
#: Strings this long with this many line breaks are a command's output, and are shortened as what they are.
WRAPPED_LEAST_CHARS = 2_000
WRAPPED_LEAST_BREAKS = 8
WRAPPED_BUDGET_SHARE = 0.7
#: Leaves that tell less are never shown.
FLOOR = 0.25
#: Shortens the text of one wrapped string within a budget.
Inner = Callable[[str, float], Shown]


def recognise(sample: Sample) -> float:
    """Whether the text begins like an object or an array; parsing tells the rest."""
    return 0.95 if sample.head.lstrip()[:1] in {"{", "["} else 0.0


def shorten(doc: Doc, inner: Inner) -> Shown | None:
    """The value with its most telling leaves; None when the text isn't JSON after all."""
    parsed = parse(doc.text)
    lines = parsed is None
    if parsed is None:
        parsed = _json_lines(doc.text)
    if parsed is None:
        return None
    value, spelling = parsed
    try:
        leaves = leaves_of(value)
    except TooDeepError:
        return None
    return _shorten_value(doc, value, leaves, spelling, inner, lines=lines)


def _json_lines(text: str) -> tuple[Any, Spelling] | None:
    """Two or more objects or arrays, a line each, as one array."""
    rows = [row for row in text.split("\n") if row.strip()]
    if len(rows) < 2 or any(row.lstrip()[0] not in "{[" for row in rows):  # noqa: PLR2004 - more than one
        return None
    return parse("[" + ",".join(rows) + "]")


def _shorten_value(
    doc: Doc, value: Any, leaves: Leaves, spelling: Spelling, inner: Inner, *, lines: bool
) -> Shown:
    tokens = leaf_tokens(leaves)
    budget = doc.call.curve.tokens(estimate(doc.text))
    replaced, within = _wrapped(leaves, spelling, tokens, budget, inner)
    if replaced:
        budget *= 1.0 - WRAPPED_BUDGET_SHARE
    kept = _choose(doc, leaves, tokens, budget, set(replaced)) | set(replaced)
    tag = tag_for(doc.text, jsonshow.OPEN)
    before = jsonshow.kept_before(kept, len(leaves.spelled))
    out = jsonshow.Writer(spelling, doc.notes, tag, before, leaves.sizes, replaced)
    text = out.records(value) if lines else out.write(value, 0)
    total = len(leaves.spelled)
    return Shown(text, len(kept), total, _ranges(kept, total), unit="values", within=within)


def _choose(doc: Doc, leaves: Leaves, tokens: list[float], budget: float, done: set[int]) -> set[int]:
    """The leaves that tell most for their cost."""
    scores = score_leaves(leaves, doc.call.asked)
    long = 0.25 * jsonshow.LONG_STRING_CHARS
    costs = [min(cost, long) for cost in tokens]
    ranked = [
        (score / cost**COST_EXPONENT, -index)
        for index, (score, cost) in enumerate(zip(scores, costs, strict=True))
        if score >= FLOOR and index not in done
    ]
    ranked.sort(reverse=True)
    kept, _ = fill([-negative for _, negative in ranked], costs, budget)
    return kept or {max(range(len(costs)), key=scores.__getitem__)}


def _wrapped(
    leaves: Leaves, spelling: Spelling, tokens: list[float], budget: float, inner: Inner
) -> tuple[dict[int, str], str]:
    """Each long text among the leaves, shortened and quoted again; and how much of the first is shown."""
    if not spelling.marks:
        return {}, ""
    line_break = spelling.marks[2] + "n"
    found = [
        index
        for index, text in enumerate(leaves.spelled)
        if len(text) > WRAPPED_LEAST_CHARS and text.count(line_break) >= WRAPPED_LEAST_BREAKS
    ]
    whole = sum(tokens[index] for index in found)
    out: dict[int, str] = {}
    within = ""
    for index in found:
        text = spelling.text(leaves.spelled[index])
        shown = inner(text, WRAPPED_BUDGET_SHARE * budget * tokens[index] / whole)
        quoted = jsonshow.quote(shown.text)
        as_it_was = f'"{spelling.raw(leaves.spelled[index])}"'
        out[index] = quoted if len(quoted) < len(as_it_was) else as_it_was
        within = within or of(shown.kept, shown.total, shown.unit)
    return out, within


def _ranges(kept: set[int], total: int) -> tuple[tuple[int, int], ...]:
    """The 1-based ranges of the leaves that are not kept."""
    shown = sorted(kept)
    return tuple((a + 2, b) for a, b in zip([-1, *shown], [*shown, total], strict=True) if b - a > 1)
