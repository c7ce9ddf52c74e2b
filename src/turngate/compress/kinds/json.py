"""JSON: records, nested values, JSON lines, and JSON that wraps a command's output."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from turngate.compress import jsonshow
from turngate.compress.call import Doc, Sample
from turngate.compress.exact import MOST_SHARE, records
from turngate.compress.leafpick import kept_before, pick
from turngate.compress.leafscore import leaf_tokens, score_leaves
from turngate.compress.leaves import Leaves, TooDeepError, leaves_of
from turngate.compress.lines import Shown
from turngate.compress.notes import tag_for
from turngate.compress.result import of
from turngate.compress.spelled import Parsed, Spelling, parse
from turngate.tokens import estimate

#: Strings this long with this many line breaks are a command's output, and are shortened as what they are.
WRAPPED_LEAST_CHARS = 2_000
WRAPPED_LEAST_BREAKS = 8
WRAPPED_BUDGET_SHARE = 0.7
#: Where many texts share the budget, those whose part were less only lose their middle.
WRAPPED_LEAST_TOKENS = 150.0
#: Leaves are spelled minified, so that a budget buys more of them.
BUDGET_FACTOR = 1.2
#: Text before and after a value is shown whole, up to these lengths; with more of it the whole is no JSON.
HEAD_MOST_CHARS, TAIL_MOST_CHARS = 1_000, 1_000
#: A line that begins like an object or an array, and not like a time or a level in brackets.
_OPENS = re.compile(r"^[ \t]*(?:\{[ \t\r]*(?:[\"}]|$)|\[[ \t\r]*(?:[\"{\[\]]|$))", re.MULTILINE)
#: A text that begins with a level or a name in brackets.
_LABEL = re.compile(r"\s*\[(?!true\b|false\b|null\b|NaN\b|Infinity\b)[A-Za-z]")
#: What a string costs that loses its middle.
LONG_STRING_TOKENS = 0.25 * jsonshow.LONG_STRING_CHARS
#: Shortens the text of one wrapped string within a budget.
Inner = Callable[[str, float], Shown]


def recognise(sample: Sample) -> float:
    """Whether the text begins like an object or an array, if after some lines; parsing tells the rest."""
    return 0.95 if _start(sample.head) >= 0 else 0.0


def _start(text: str) -> int:
    """Where a value may begin: at once, or after the lines that a tool prints first; -1 for nowhere."""
    if text.lstrip()[:1] in {"{", "["} and not _LABEL.match(text):
        return 0
    found = _OPENS.search(text, 0, HEAD_MOST_CHARS)
    return found.start() if found else -1


def shorten(doc: Doc, inner: Inner) -> Shown | None:
    """The value with its most telling leaves; None when the text isn't JSON after all."""
    tag = tag_for(doc.text, jsonshow.OPEN)
    start = _start(doc.text)
    if start <= 0:
        return _shorten(doc, inner, tag)
    shown = _shorten(replace(doc, text=doc.text[start:]), inner, tag)
    return replace(shown, text=doc.text[:start] + shown.text) if shown else None


def _shorten(doc: Doc, inner: Inner, tag: str) -> Shown | None:
    parsed = parse(doc.text)
    lines = None if parsed and not parsed.tail.strip() else _json_lines(doc.text)
    found = lines or parsed
    if found is None or not _is_tail(found.tail):
        return None
    try:
        leaves = leaves_of(found.value)
    except TooDeepError:
        return None
    shown = _shorten_value(doc, found, leaves, inner, tag, lines=lines is not None)
    return replace(shown, text=shown.text + found.tail) if found.tail.strip() else shown


def _is_tail(text: str) -> bool:
    """Whether it is nothing, or a few lines that a host added after a value: `[exit code: 1]`."""
    return not text.strip() or (text.lstrip(" \t\r").startswith("\n") and len(text) <= TAIL_MOST_CHARS)


def _json_lines(text: str) -> Parsed | None:
    """Two or more objects or arrays, a line each, as one array."""
    rows = [row for row in text.split("\n") if row.strip()]
    if len(rows) < 2 or any(row.lstrip()[0] not in "{[" for row in rows):  # noqa: PLR2004 - more than one
        return None
    parsed = parse("[" + ",".join(rows) + "]")
    return parsed if parsed and not parsed.tail else None


def _shorten_value(doc: Doc, parsed: Parsed, leaves: Leaves, inner: Inner, tag: str, *, lines: bool) -> Shown:
    value, spelling = parsed.value, parsed.spelling
    tokens = leaf_tokens(leaves)
    whole = doc.tokens
    budget = doc.call.curve.tokens(whole)
    total = len(leaves.spelled)
    own = doc.text[: len(doc.text) - len(parsed.tail)]
    most = min(budget, MOST_SHARE * whole)
    exact = records.fitting(own, records.Found(parsed, leaves, whole, tokens, tag, lines), most)
    if exact is not None:
        return Shown(exact, total, total, (), unit="values", exact=True)
    replaced, within = _wrapped(leaves, spelling, tokens, budget, inner)
    if replaced:
        left = budget - sum(map(estimate, replaced.values()))
        budget = max(left, (1.0 - WRAPPED_BUDGET_SHARE) * budget)
    kept = _choose(doc, leaves, tokens, BUDGET_FACTOR * budget, set(replaced))
    before = kept_before(kept, len(leaves.spelled))
    out = jsonshow.Writer(spelling, doc.notes, tag, before, leaves.sizes, replaced)
    text = out.records(value) if lines else out.write(value, 0)
    return Shown(text, len(kept), total, _ranges(kept, total), unit="values", within=within)


def _choose(doc: Doc, leaves: Leaves, tokens: list[float], budget: float, done: set[int]) -> set[int]:
    """The leaves that tell most for their cost, and those that are `done`."""
    most = LONG_STRING_TOKENS
    costs = [cost if cost < most else most for cost in tokens]  # noqa: FURB136 - thrice as fast as `min`
    return pick(leaves, score_leaves(leaves, doc.call.asked), costs, budget, done)


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
    found, whole = _longest(found, tokens, WRAPPED_BUDGET_SHARE * budget)
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


def _longest(found: list[int], tokens: list[float], room: float) -> tuple[list[int], float]:
    """The longest of the texts `found`, as many as have a part of the `room` to show something in."""
    whole = 0.0
    taken: list[int] = []
    for index in sorted(found, key=tokens.__getitem__, reverse=True):
        if room * tokens[index] < WRAPPED_LEAST_TOKENS * (whole + tokens[index]):
            break
        whole += tokens[index]
        taken.append(index)
    return sorted(taken), whole


def _ranges(kept: set[int], total: int) -> tuple[tuple[int, int], ...]:
    """The 1-based ranges of the leaves that are not kept."""
    shown = sorted(kept)
    return tuple((a + 2, b) for a, b in zip([-1, *shown], [*shown, total], strict=True) if b - a > 1)
