"""`demo`: a recorded session through the gate, one original back, and what each policy would have cost."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from turngate import marker, store, tokens
from turngate.cli.common import answer, count, json_option
from turngate.cli.replay import sums_table
from turngate.cli.tables import console, size
from turngate.gate import Gate
from turngate.replay.arms import ARMS
from turngate.replay.costs import offers
from turngate.replay.html import Page
from turngate.replay.report import Report, session_dict
from turngate.replay.rules import PROVIDERS
from turngate.replay.run import replay
from turngate.replay.transcripts import parse
from turngate.settings import Settings

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.errors import TranscriptError
    from turngate.tally import Stats

#: Recorded from real commands by examples/record.py; Chat Completions form.
RECORDING = "data/demo_session.json.zst"
SESSION = "demo"
#: What the report calls it.
RECORDED = "demo session"
#: Widths of the table's two wide columns: with the others, 110 characters.
CALL_CHARS, HIDDEN_CHARS = 44, 32
_SHOWN = re.compile(r"([\d,]+) of ([\d,]+) (\w+)")


@dataclass(frozen=True, slots=True)
class Result:
    """A recorded tool result with the call that it answers."""

    tool: str
    """The tool."""
    args: str
    """Its arguments, as the model wrote them."""
    call_id: str
    """Joins call and result."""
    text: str
    """What it answered."""
    turn: int
    """Number of the assistant message with the call."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one result."""

    call: str
    """Tool and command."""
    kind: str
    """Kind of output; empty where it passed through."""
    tokens_before: int
    """Estimate, as it came in."""
    tokens_after: int
    """Estimate, as it is shown, marker included."""
    hash: str
    """Marker id; empty where it passed through."""
    hidden: str
    """How much of it is hidden, in its own units."""

    @property
    def saved_share(self) -> float:
        """Share of the tokens saved."""
        return 1 - self.tokens_after / max(self.tokens_before, 1)


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One hidden result, had back through a gate that was opened afresh."""

    hash: str
    """Marker id."""
    bytes: int
    """Size of what came back."""
    identical: bool
    """Whether it is what the tool had answered, byte for byte."""


@click.command(short_help="Pass a recorded agent session through a gate and show what happens.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the report. Default: a new file in the folder for temporary files.",
)
@json_option
def demo(page: Path | None, as_json: bool) -> int:
    """Pass a recorded agent session through a gate, and show what became of each tool result.

    The session was recorded from real commands (pip, pytest, git, grep, compilers, a JSON API, logs). It
    passes through as if each result had just arrived; then the largest hidden one is had back. At last the
    session is replayed under four policies, and a report is written. Uses a store in a temporary folder;
    yours is not touched.
    """
    recording = load_recording()
    results = list(recorded_results(recording))
    with tempfile.TemporaryDirectory(prefix="turngate-demo-") as folder:
        with Gate.open(folder, Settings()) as gate:
            rows = [row for row, _ in _through(gate, results)]
            stats = gate.stats()
        trip = _round_trip(Path(folder), results, rows)
    value = {
        "results": [asdict(row) | {"saved_share": round(row.saved_share, 4)} for row in rows],
        "total": stats.as_dict(),
        "round_trip": asdict(trip),
    }
    page = page or _new_file()
    report = _compare(recording, page)
    value |= {"policies": report.as_dict(), "report": str(page)}
    answer(value, as_json=as_json, show=lambda: _show(rows, stats, trip, report, page))
    return 0 if trip.identical else 1


def _compare(recording: dict[str, Any], page: Path) -> Report:
    """What the session would have cost under each policy; the report is written to `page`."""
    report, html = Report(), Page()
    for transcript in parse(json.dumps(recording).encode(), RECORDED, _refuse):
        terms = offers(transcript.model, PROVIDERS)
        outcomes = replay(transcript, ARMS, terms)
        report.add(transcript, terms, outcomes)
        html.add(transcript, session_dict(transcript, terms, outcomes), outcomes)
    page.write_text(html.render(report, ()), encoding="utf-8")
    return report


def _new_file() -> Path:
    """An empty file of a name that nobody could have prepared."""
    handle, name = tempfile.mkstemp(prefix="turngate-demo-", suffix=".html")
    os.close(handle)
    return Path(name)


def _refuse(error: TranscriptError) -> None:
    raise error


def load_recording() -> dict[str, Any]:
    """The packaged session."""
    data = files("turngate").joinpath(RECORDING).read_bytes()
    session: dict[str, Any] = json.loads(zstd.decompress(data))
    return session


def recorded_results(session: dict[str, Any]) -> Iterator[Result]:
    """The tool results of a session in Chat Completions form, in order."""
    calls: dict[str, dict[str, str]] = {}
    turn = 0
    for message in session["messages"]:
        if message["role"] == "assistant":
            turn += 1
            calls |= {call["id"]: call["function"] for call in message.get("tool_calls") or ()}
        elif message["role"] == "tool":
            call_id = message["tool_call_id"]
            call = calls[call_id]
            yield Result(call["name"], call["arguments"], call_id, message["content"], turn)


def _through(gate: Gate, results: list[Result]) -> Iterator[tuple[Row, str]]:
    """Each result through the gate: its row, and what is shown of it."""
    session = gate.session(SESSION)
    for result in results:
        while session.turn < result.turn:
            session.next_turn()
        shown = session.tool_result(
            name=result.tool, args=result.args, text=result.text, call_id=result.call_id
        )
        yield _row(result, shown), shown


def _row(result: Result, shown: str) -> Row:
    found = marker.parse(shown) if shown is not result.text else None
    return Row(
        call=f"{result.tool}: {_brief(result.args)}",
        kind=found.get("kind") if found else "",
        tokens_before=tokens.estimate(result.text),
        tokens_after=tokens.estimate(shown),
        hash=found.hash if found else "",
        hidden=_hidden(found.preview) if found else "",
    )


def _hidden(preview: str) -> str:
    """What "42 of 1,204 lines" in a marker's preview leaves out: "1,162 of 1,204 lines"."""
    parts = [(int(a.replace(",", "")), int(b.replace(",", "")), c) for a, b, c in _SHOWN.findall(preview)]
    return ", ".join(f"{total - kept:,} of {total:,} {unit}" for kept, total, unit in parts if total > kept)


def _brief(args: str) -> str:
    """The first argument: the command, the path or the address."""
    return str(next(iter(json.loads(args).values()), ""))


def _round_trip(folder: Path, results: list[Result], rows: list[Row]) -> RoundTrip:
    """Have the largest hidden result back, as after a restart."""
    hidden = [(result, row) for result, row in zip(results, rows, strict=True) if row.hash]
    if not hidden:
        return RoundTrip("", 0, identical=False)
    result, row = max(hidden, key=lambda pair: len(pair[0].text))
    with Gate.open(folder, Settings()) as gate:
        data = gate.session(SESSION).original(row.hash).data
    return RoundTrip(row.hash, len(data), identical=data == store.to_bytes(result.text))


def _show(rows: list[Row], stats: Stats, trip: RoundTrip, report: Report, page: Path) -> None:
    out = console()
    out.print(_table(rows))
    total = stats.total
    out.print(
        f"{total.results} tool results, {total.shortened} shortened: {total.tokens_before:,} → "
        f"{total.tokens_after:,} tokens, {stats.tokens_saved:,} saved ({stats.saved_share:.1%}) "
        f"net of markers; {size(total.bytes_before)} → {size(total.bytes_after)}."
    )
    out.print("Token counts are estimates; nothing was counted by a model's tokenizer.")
    for name, number in stats.faults.items():
        out.print(f"fault: {name}, {count(number, 'time')}; the originals passed through")
    state = "identical" if trip.identical else "DIFFERENT"
    out.print(f"round trip: {trip.hash} {trip.bytes} bytes {state}")
    out.print()
    out.print(sums_table(report, PROVIDERS))
    out.print(
        "What the whole session would have cost: caches simulated by each provider's rules, list prices."
    )
    out.print(f"report: {page}", soft_wrap=True)


def _table(rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("call", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    for name in ("before", "after", "saved"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("hidden", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> tuple[Text, ...]:
    style = "" if row.hash else "dim"
    return (
        Text(_cut(row.call, CALL_CHARS), style),
        Text(row.kind or "-", style),
        Text(f"{row.tokens_before:,}", style),
        Text(f"{row.tokens_after:,}", style),
        Text(f"{row.saved_share:.0%}" if row.hash else "", "green"),
        Text(_cut(row.hidden or ("inside long lines" if row.hash else "-"), HIDDEN_CHARS), style),
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
