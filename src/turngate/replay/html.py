"""The report as one page that needs nothing else: no request leaves it, and it works from a file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from turngate.replay.pair import pair, safe
from turngate.replay.report import Report, basis, counted, money

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from turngate.replay.recorded import Transcript
    from turngate.replay.run import Outcome

MOST_CHARS: Final = 24_000_000
"""Text of results that the page holds at most; beyond it, sessions have their figures only."""

MOST_SESSIONS: Final = 100
"""Sessions that are shown one by one; the sums are always of all."""

UNSHOWN_ARMS: Final = frozenset({"mask"})
"""Arms whose changed results all look the same."""


REVIEWED_ARM: Final = "turngate"
"""The policy whose results a reviewer is shown."""

REVIEWED: Final = 20
REVIEWED_MOST_CHARS: Final = 100_000
"""How many of them, drawn at random, and how long each may be."""


@dataclass(slots=True)
class Page:
    """Collects sessions, then renders."""

    sections: list[str] = field(default_factory=list)
    charts: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    chars: int = 0
    sessions: int = 0
    drawn: list[tuple[str, str]] = field(default_factory=list)
    """Pairs for a reviewer by their lot: those with the lowest lots are drawn."""

    def add(self, transcript: Transcript, session: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
        """One more session; ``session`` as :func:`turngate.replay.report.session_dict` has it."""
        self.sessions += 1
        self._draw(transcript.name, outcomes)
        if self.sessions > MOST_SESSIONS:
            return
        chart = f"chart{self.sessions}"
        self.charts[chart] = {o.arm: [turn.input_tokens for turn in o.turns] for o in outcomes}
        results = "".join(self._results(outcome) for outcome in outcomes)
        self.sections.append(_section(transcript, session, chart, results))

    def _draw(self, name: str, outcomes: Sequence[Outcome]) -> None:
        """Keep those pairs whose lot, a hash, is low: a random choice that is the same in every run."""
        for outcome in outcomes:
            if outcome.arm != REVIEWED_ARM:
                continue
            for message, change in outcome.changed:
                if len(change.before) > REVIEWED_MOST_CHARS:
                    continue
                lot = sha256(f"{name} {message}".encode("utf-8", "replace")).hexdigest()
                if len(self.drawn) < REVIEWED or lot < self.drawn[-1][0]:
                    self.drawn = sorted([*self.drawn, (lot, pair(message, change))])[:REVIEWED]

    def _review(self) -> str:
        if not self.drawn:
            return ""
        return (
            f"<section id='review'><h2>For a reviewer: {len(self.drawn)} results drawn at random</h2>"
            "<p class='note'>Left what the tool said, right what the model was shown. Is what matters there, "
            "and is it plain what is hidden?</p>"
            f"{''.join(body for _, body in self.drawn)}</section>"
        )

    def _results(self, outcome: Outcome) -> str:
        if outcome.arm in UNSHOWN_ARMS or not outcome.changed:
            return ""
        size = sum(len(change.before) + len(change.after) for _, change in outcome.changed)
        if self.chars + size > MOST_CHARS:
            name = escape(outcome.arm)
            return f'<p class="note">The results that {name} changed are too long for this page.</p>'
        self.chars += size
        pairs = "".join(pair(message, change) for message, change in outcome.changed)
        return f"<h3>What {escape(outcome.arm)} changed: {len(outcome.changed)} results</h3>{pairs}"

    def render(self, report: Report, faults: Iterable[str]) -> str:
        """The whole page."""
        template = resources.files("turngate.data").joinpath("replay.html").read_text(encoding="utf-8")
        body = "".join((_top(report), *self.sections, self._left_out(), self._review(), _bottom(faults)))
        charts = json.dumps(self.charts).replace("<", "\\u003c")
        return template.replace("<!--BODY-->", body).replace("<!--CHARTS-->", charts)

    def _left_out(self) -> str:
        more = self.sessions - MOST_SESSIONS
        return f'<p class="note">{more:,} more sessions are in the sums only.</p>' if more > 0 else ""


def _top(report: Report) -> str:
    count = len(report.sessions)
    lead = f"{count:,} session{'s' if count != 1 else ''}, as recorded (<b>none</b>) and under each policy."
    table = _arms_table(report.as_dict())
    notes = (
        "Tokens are estimates; caches are simulated from the providers' documented rules "
        f"(as of {basis()['rules_as_of']}); prices are list prices. Policy turngate is charged with the "
        "retrieve tool's schema, an orientation, and what had to be had back."
    )
    paragraphs = "".join(f'<p class="note">{escape(note)}</p>' for note in (notes, *report.notes()))
    return f"<h1>turngate replay</h1><p>{lead}</p>{table}{paragraphs}"


def _arms_table(arms: dict[str, dict[str, Any]]) -> str:
    """Costs by arm and provider, with the rest of what an arm did."""
    providers = list(next(iter(arms.values()))["providers"]) if arms else []
    head = "".join(f"<th>{escape(name)}</th>" for name in ("input tokens", *providers, *_COUNTS.values()))
    rows = "".join(_arm_row(name, arm) for name, arm in arms.items())
    return f'<div class="scroll"><table><tr><th>policy</th>{head}</tr>{rows}</table></div>'


_COUNTS: Final = {
    "changed": "results changed",
    "breaks": "prefix breaks",
    "retrieved": "facts had back",
    "lost": "facts lost",
}


def _arm_row(name: str, arm: dict[str, Any]) -> str:
    costs = "".join(f"<td>{_cost(cost, base=name == 'none')}</td>" for cost in arm["providers"].values())
    counts = "".join(f"<td>{counted(arm[key])}</td>" for key in _COUNTS)
    return f"<tr><td>{escape(name)}</td><td>{arm['input_tokens']:,}</td>{costs}{counts}</tr>"


def _cost(cost: dict[str, Any], *, base: bool) -> str:
    amount, above = money(cost), cost["share_above_none"]
    if base or above is None:
        return amount
    return f'{amount}<br><small class="{"more" if above > 0 else "less"}">{above:+.1%}</small>'


def _section(transcript: Transcript, session: dict[str, Any], chart: str, results: str) -> str:
    arms = session["arms"]
    legend = "".join(f'<span><i style="background: var(--{arm})"></i>{escape(arm)}</span>' for arm in arms)
    models = ", ".join(f"{o['provider']}: {o['model']}" for o in session["offers"])
    about = f"{session['format']}, {transcript.requests:,} requests; priced as {models}"
    return (
        f"<section><h2>{escape(transcript.name)}</h2><p class='note'>{escape(about)}</p>"
        f'<p class="legend">Input tokens of each request: {legend}</p><div id="{chart}"></div>'
        f"{_arms_table(arms)}{_turns(session)}{results}</section>"
    )


def _turns(session: dict[str, Any]) -> str:
    """Every request of every arm, folded."""
    return "".join(_arm_turns(name, arm) for name, arm in session["arms"].items())


def _arm_turns(name: str, arm: dict[str, Any]) -> str:
    providers = list(arm["providers"])
    head = "".join(f"<th>{escape(p)}: read / written / fresh</th><th>price</th>" for p in providers)
    rows = "".join(_turn_row(number, turn) for number, turn in enumerate(arm["turns"], 1))
    return (
        f"<details><summary>Each request under {escape(name)}</summary><div class='scroll'><table>"
        f"<tr><th>request</th><th>input tokens</th><th>bytes</th><th>of them reused</th>{head}</tr>{rows}"
        "</table></div></details>"
    )


def _turn_row(number: int, turn: dict[str, Any]) -> str:
    cells = "".join(
        f"<td>{p['read_tokens']:,} / {p['written_tokens']:,} / {p['fresh_tokens']:,}</td>"
        f"<td>{_dollars(p['dollars'])}</td>"
        for p in turn["providers"].values()
    )
    sizes = (turn["input_tokens"], turn["request_bytes"], turn["reused_bytes"])
    return f"<tr><td>{number}</td>" + "".join(f"<td>{size:,}</td>" for size in sizes) + f"{cells}</tr>"


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:.5f}"


def _bottom(faults: Iterable[str]) -> str:
    lines = "".join(f"<li>{safe(fault)}</li>" for fault in faults)
    found = f"<h2>What was wrong with the files</h2><ul>{lines}</ul>" if lines else ""
    assumptions = "".join(
        f"<li>{escape(provider)}: {escape(text)}</li>"
        for provider, texts in basis()["assumed"].items()
        for text in texts
    )
    return f"{found}<h2>What is assumed where nothing is documented</h2><ul>{assumptions}</ul>"
