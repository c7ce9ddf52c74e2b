"""`replay`: what recorded sessions would have cost."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from turngate.cli.common import count, json_option, load, warn
from turngate.cli.tables import console
from turngate.errors import TranscriptError
from turngate.replay.arms import ARMS
from turngate.replay.claude_code import session_files
from turngate.replay.costs import offers
from turngate.replay.html import Page
from turngate.replay.probes import Probe, misplaced, read_probes
from turngate.replay.report import BASE, Report, basis, compacted_dict, counted, money, session_dict
from turngate.replay.rules import PROVIDERS, as_of
from turngate.replay.run import replay as run_replay
from turngate.replay.transcripts import find_files, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from turngate.cli.app import Given
    from turngate.replay.recorded import Transcript
    from turngate.settings import Settings

#: Sessions listed one by one in the terminal; the sums are of all.
LISTED = 20


@click.command(short_help="Show what recorded sessions would have cost, under each policy.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--arm",
    "arms",
    multiple=True,
    type=click.Choice(list(ARMS)),
    help="Policy to replay; none is always among them.",
)
@click.option(
    "--provider", "providers", multiple=True, type=click.Choice(PROVIDERS), help="Provider to price at."
)
@click.option("--model", default="", metavar="NAME", help="Price as this model instead of the recorded one.")
@click.option(
    "--probes", type=click.Path(path_type=Path), help="Charge what these facts need; one JSON object a line."
)
@click.option(
    "--window",
    "window_tokens",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Keep every policy's requests within a window of this size.",
)
@click.option(
    "--html", "page", type=click.Path(path_type=Path, dir_okay=False), help="Write a report as one page."
)
@click.option(
    "--claude-code",
    is_flag=True,
    help="Replay your own Claude Code sessions, too; they are only read.",
)
@click.option(
    "--claude-dir",
    envvar="CLAUDE_CONFIG_DIR",
    type=click.Path(path_type=Path),
    default=Path("~/.claude"),
    help="Where Claude Code keeps its files. Default: CLAUDE_CONFIG_DIR, or ~/.claude.",
)
@json_option
@click.pass_obj
def replay(  # noqa: PLR0917 - click passes every option
    given: Given,
    files: tuple[Path, ...],
    arms: tuple[str, ...],
    providers: tuple[str, ...],
    model: str,
    probes: Path | None,
    window_tokens: int | None,
    page: Path | None,
    claude_code: bool,
    claude_dir: Path,
    as_json: bool,
) -> int:
    """Replay recorded sessions request by request: what would have been sent, cached, paid and hidden.

    FILES are transcripts, or folders of them: Chat Completions or Anthropic messages (a JSON list, an object
    with "messages", JSON lines), Claude Code sessions, and Hermes' state.db. Policies: none (as recorded),
    head-tail (first and last 5,000 characters of a result), mask (all but the last 5 results replaced),
    turngate.

    Tokens are estimates; caches are simulated by the providers' documented rules; prices are list prices.
    Nothing is sent or stored.
    """
    paths = list(find_files(files)) + (session_files(claude_dir.expanduser()) if claude_code else [])
    if not paths:
        raise click.UsageError(
            "nothing to replay; name files or folders of transcripts, or give --claude-code"
        )
    job = _Job(
        arms=tuple(arm for arm in ARMS if not arms or arm in {BASE, *arms}),
        providers=providers or PROVIDERS,
        model=model,
        probes=read_probes(probes) if probes else (),
        window_tokens=window_tokens,
        settings=load(given),
        page=Page() if page else None,
        emit=_emit if as_json else None,
    )
    if as_json:
        click.echo(f'{{"basis": {_json(basis(job.providers))},\n"sessions": [')
    with _progress(paths) as steps:
        for path in steps:
            for transcript in read(path, job.complain):
                job.take(transcript)
    if as_json:
        ends = {"total": job.report.as_dict(), "notes": job.report.notes(), "faults": job.faults}
        click.echo(
            "],\n" + ",\n".join(f"{_json(name)}: {_json(value)}" for name, value in ends.items()) + "}"
        )
    else:
        _show(job)
    if page and job.page:
        page.write_text(job.page.render(job.report, job.faults), encoding="utf-8")
        click.echo(f"report: {page}", err=as_json)
    return 0 if job.report.sessions else 1


class _Job:
    """One run: what was asked for, and what has come out so far."""

    def __init__(
        self,
        *,
        arms: tuple[str, ...],
        providers: Sequence[str],
        model: str,
        probes: tuple[Probe, ...],
        window_tokens: int | None,
        settings: Settings,
        page: Page | None,
        emit: Callable[[dict[str, Any], bool], None] | None,
    ) -> None:
        self.arms, self.providers, self.model, self.probes = arms, providers, model, probes
        self.settings, self.page, self._emit = settings, page, emit
        self.window_tokens = window_tokens
        #: Arm -> its compactions, of the last session.
        self.compacted: dict[str, list[dict[str, Any]]] = {}
        self.report = Report()
        self.faults: list[str] = []

    def complain(self, error: TranscriptError) -> None:
        """Tell of a fault, and go on."""
        self.faults.append(str(error))
        warn(str(error))

    def take(self, transcript: Transcript) -> None:
        """Replay one session."""
        terms = offers(transcript.model, self.providers, model=self.model)
        mine = list(self._probes_of(transcript))
        outcomes = run_replay(
            transcript,
            self.arms,
            terms,
            settings=self.settings,
            probes=mine,
            window_tokens=self.window_tokens,
        )
        self.compacted = {
            outcome.arm: [compacted_dict(each, outcome, terms) for each in outcome.compactions]
            for outcome in outcomes
        }
        first = not self.report.sessions
        self.report.add(transcript, terms, outcomes)
        if self._emit or self.page:
            session = session_dict(transcript, terms, outcomes)
            if self._emit:
                self._emit(session, first)
            if self.page:
                self.page.add(transcript, session, outcomes)

    def _probes_of(self, transcript: Transcript) -> Iterator[Probe]:
        for probe in self.probes:
            if not probe.of(transcript.name):
                continue
            if misplaced(probe, transcript):
                text = f"the answer to {probe.question!r} does not stand in message {probe.first}"
                self.complain(TranscriptError(f"{transcript.name}: {text}; the probe is left out"))
            else:
                yield probe


def _json(value: object) -> str:
    return orjson.dumps(value, default=str).decode()


def _emit(session: dict[str, Any], first: bool) -> None:
    """One session as soon as it is done, so that none is held."""
    click.echo(("" if first else ",") + _json(session))


@contextmanager
def _progress(paths: list[Path]) -> Iterator[Iterator[Path]]:
    """The paths, with a bar on stderr where a person looks at it."""
    quiet = not sys.stderr.isatty() or len(paths) == 1
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as bar:
        yield iter(bar.track(paths, description="replaying"))


def _show(job: _Job) -> None:
    report, out = job.report, console()
    if not report.sessions:
        return
    out.print(sums_table(report, job.providers))
    if len(report.sessions) > 1:
        out.print(_sessions_table(report, job.providers, job.arms[-1]))
    if job.window_tokens:
        _show_window(job, out)
    for arm, sums in report.sums.items():
        if sums.faults:
            out.print(f"{arm}: {count(sums.faults, 'fault')}; what they met was sent as recorded")
        if sums.wrong:
            out.print(
                f"{arm}: {count(sums.wrong, 'rule')} broken that the record keeps; a provider would refuse it"
            )
    requests = sum(session.requests for session in report.sessions)
    out.print(f"{count(len(report.sessions), 'session')}, {count(requests, 'request')}.")
    for note in report.notes():
        out.print(fill(note, out.width), highlight=False, markup=False)
    out.print(f"Tokens are estimates; caches are simulated by rules as of {as_of()}; prices are list prices.")


def _show_window(job: _Job, out: Console) -> None:
    """What was done to stay within the window: of one session each compaction, of several their number."""
    if len(job.report.sessions) == 1:
        for arm, compacted in job.compacted.items():
            for each in compacted:
                text = "\n".join(_compacted_lines(arm, each, job.providers))
                out.print(text, highlight=False, markup=False, soft_wrap=True)
    for arm, sums in job.report.sums.items():
        over = f"; {count(sums.over, 'request')} too large all the same" if sums.over else ""
        out.print(f"{arm}: {count(sums.compactions, 'compaction')}{over}")


def _compacted_lines(arm: str, each: dict[str, Any], providers: Sequence[str]) -> Iterator[str]:
    """A compaction: what it came to, what the request behind it cost, what became of each message and why."""
    yield (
        f"{arm}, before message {each['message']} ({each['trigger']}): {each['before_tokens']:,} tokens "
        f"became {each['after_tokens']:,}; {count(each['removed'], 'message')} went, {each['kept']:,} stay, "
        f"{each['offloaded']:,} of them shortened"
    )
    costs = {name: each["providers"].get(name, {}).get("dollars") for name in providers}
    known = [
        f"{money({'dollars': c, 'known_dollars': c})} at {name}" for name, c in costs.items() if c is not None
    ]
    if known:
        yield f"    that request cost {', '.join(known)}"
    for step in each["plan"]:
        last = step["end"] - 1
        which = f"{step['first']}" if last == step["first"] else f"{step['first']}-{last}"
        yield f"    {which}: {step['action']}, {step['reason']}"


def sums_table(report: Report, providers: Sequence[str]) -> Table:
    """Arms against providers."""
    table = _table("policy", "input tokens", *providers, "changed", "breaks", "back", "lost")
    for arm, sums in report.as_dict().items():
        costs = [_cost(sums["providers"][provider], base=arm == BASE) for provider in providers]
        counts = [counted(sums[name]) for name in ("changed", "breaks", "retrieved", "lost")]
        table.add_row(arm, f"{sums['input_tokens']:,}", *costs, *counts)
    return table


def _cost(cost: dict[str, Any], *, base: bool) -> str:
    amount = money(cost)
    return amount if base else f"{amount} {_percent(cost['share_above_none'])}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:+.1%}"


def _sessions_table(report: Report, providers: Sequence[str], arm: str) -> Table:
    """The largest sessions, and what one arm saves in each."""
    largest = sorted(report.sessions, key=lambda session: -session.input_tokens)[:LISTED]
    table = _table(f"{arm} against none, by session", "requests", "tokens", *providers)
    for session in largest:
        shares = [_percent(session.shares[arm][provider]) for provider in providers]
        name = Text(_tail(session.name), no_wrap=True)
        table.add_row(name, f"{session.requests:,}", f"{session.input_tokens:,}", *shares)
    return table


def _tail(name: str, limit: int = 48) -> str:
    """The end of a path, which tells sessions apart."""
    return name if len(name) <= limit else "…" + name[1 - limit :]


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table
