"""How a reference to earlier results is written, and how it is read back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from turngate import marker
from turngate.across.delta import Base, Delta, Own, Run
from turngate.compress.notes import tag_for
from turngate.marker import Marker

SAME: Final = "same"
"""Mode of a marker that stands for content which an earlier result has."""
DELTA: Final = "delta"
"""Mode of a marker under which lines of earlier results are named, and the others shown."""

_OPEN: Final = "[="
_LETTERS: Final = "ABC"
#: A reference is used where it is at most this share of what came in, and saves at least so many tokens: a
#: reader has to look up, so it must be clearly shorter.
_MOST_SHARE: Final = {SAME: 0.6, DELTA: 0.6}
_LEAST_SAVED_TOKENS: Final = {SAME: 50, DELTA: 100}
_LABEL_CHARS: Final = 50
_RANGE = re.compile(
    r"\[=(?P<tag>#[0-9a-f]+)?(?P<base>[A-C])? (?P<first>\d+)–(?P<last>\d+)(?:, numbers (?P<shift>[+−]\d+))?\]"
)


def referable(call_id: str) -> bool:
    """Whether a marker can name the call as it is."""
    return 0 < len(call_id) <= marker.MAX_FIELD_CHARS and marker.clean_field(call_id) == call_id


def pays(mode: str, before_tokens: int, after_tokens: int) -> bool:
    """Whether a reference is clearly shorter."""
    return (
        after_tokens <= _MOST_SHARE[mode] * before_tokens
        and before_tokens - after_tokens >= _LEAST_SAVED_TOKENS[mode]
    )


def render_same(
    id_: str, type_: str, size_bytes: int, *, call: str, label: str, redacted: bool = False
) -> str:
    """One line: the result is the very one of an earlier call."""
    preview = f"exactly the result above of {_short(label)}"
    return marker.render(Marker(id_, type_, size_bytes, SAME, preview, _fields((call,), redacted=redacted)))


def render_delta(id_: str, type_: str, size_bytes: int, delta: Delta, *, redacted: bool = False) -> str:
    """The marker's line, for several earlier results a line for each, then the parts."""
    tag = tag_for(delta.whole(), _OPEN)
    calls = tuple(base.call for base in delta.bases)
    several = len(calls) > 1
    run = next(part for part in delta.parts if isinstance(part, Run))
    where = _LETTERS[run.base] if several else _short(delta.bases[0].label)
    example = f"{_spelled(run, tag, several=several)} is lines {run.first + 1}–{run.end} of {where} above"
    preview = f"{delta.own_lines:,} lines shown; {example}, exactly"
    line = marker.render(Marker(id_, type_, size_bytes, DELTA, preview, _fields(calls, redacted=redacted)))
    heads = [f"{_LETTERS[n]} = {_short(base.label)} ({base.call})" for n, base in enumerate(delta.bases)]
    return "\n".join([line, *(heads if several else ()), *_body(delta, tag, several=several)])


def restore(shown: str, texts: Mapping[str, str]) -> str:
    """The inverse of `render_delta`: the original, from what is shown and the earlier texts by call id.

    Raises:
        ValueError: `shown` is no delta, or refers to a text that is not there.
    """
    found = marker.parse(shown)
    calls = [value for key, value in found.fields if key == "of"] if found else []
    if found is None or found.mode != DELTA or not calls or not all(call in texts for call in calls):
        raise ValueError("not a reference to texts that are at hand")
    bases = tuple(Base(call, "", texts[call]) for call in calls)
    lines = shown.split("\n")[1 + len(calls) * (len(calls) > 1) :]
    tag = _tag_of(found.preview)
    return Delta(bases, tuple(_read(line, tag) for line in lines)).whole()


def _fields(calls: Sequence[str], *, redacted: bool) -> tuple[tuple[str, str], ...]:
    return (*(("of", call) for call in calls), *((("redacted", "yes"),) if redacted else ()))


def _body(delta: Delta, tag: str, *, several: bool) -> list[str]:
    return [
        line
        for part in delta.parts
        for line in (part.lines if isinstance(part, Own) else (_spelled(part, tag, several=several),))
    ]


def _spelled(run: Run, tag: str, *, several: bool) -> str:
    base = _LETTERS[run.base] if several else ""
    shift = f", numbers {'+' if run.shift > 0 else '−'}{abs(run.shift)}" if run.shift else ""
    return f"{_OPEN}{tag}{base} {run.first + 1}–{run.end}{shift}]"


def _tag_of(preview: str) -> str:
    found = _RANGE.search(preview)
    return (found["tag"] or "") if found else ""


def _read(line: str, tag: str) -> Run | Own:
    found = _RANGE.fullmatch(line)
    if found is None or (found["tag"] or "") != tag:
        return Own((line,))
    first, last = int(found["first"]), int(found["last"])
    shift = int((found["shift"] or "0").replace("−", "-"))
    return Run(_LETTERS.index(found["base"] or "A"), first - 1, last - first + 1, shift)


def _short(label: str) -> str:
    return label if len(label) <= _LABEL_CHARS else f"{label[: _LABEL_CHARS - 1]}…"
