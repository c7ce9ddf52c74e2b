"""`hermes`: enable the plugin in Hermes, disable it, and see what it would save in past sessions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from turngate.cli.common import answer, json_option, warn
from turngate.cli.tables import console
from turngate.errors import TranscriptError
from turngate.hermes import state
from turngate.hermes.install import Change, apply, beside_the_host, plan_install, plan_uninstall

if TYPE_CHECKING:
    from collections.abc import Callable

home_option = click.option(
    "--home",
    envvar="HERMES_HOME",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("~/.hermes"),
    help="Hermes' home. Default: HERMES_HOME, or ~/.hermes.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")


@dataclass(frozen=True, slots=True)
class Row:
    """A session in the list."""

    id: str
    """Its id."""
    started: str
    """When it began, UTC."""
    model: str
    """Its model."""
    results: int
    """Tool results in its history."""
    would_shorten: int
    """Of these, how many the plugin would shorten."""
    already: int
    """How many it has shortened."""
    tokens: int
    """Estimate of the tokens of all results."""
    tokens_with: int
    """The same, with the plugin."""
    saved_share: float
    """Share of the tokens that it would save."""


@click.group(short_help="Enable the plugin in Hermes, or disable it; weigh past sessions.")
def hermes() -> None:
    """Turn the plugin on and off in the Hermes agent, and see what it would have saved."""


@hermes.command(short_help="Enable the plugin.")
@home_option
@dry_run_option
@click.option("--engine", is_flag=True, help="Select turngate's context engine, too.")
@click.option("--folder", is_flag=True, help="Put a plugin folder there, too; the entry point does without.")
@json_option
def install(home: Path, dry_run: bool, engine: bool, folder: bool, as_json: bool) -> int:
    """Enable the plugin in Hermes' config.yaml; comments, order and everything else stay as they are.

    Can be repeated. `turngate hermes uninstall` takes it back.
    """
    _carry_out(
        plan_install(home.expanduser(), engine=engine, folder=folder), dry_run=dry_run, as_json=as_json
    )
    if not beside_the_host():
        warn("hermes-agent is not installed in this Python; install turngate into Hermes' own environment")
    if engine:
        warn(
            "the engine runs with TURNGATE_CONTEXT_ENGINE=1, or context_engine = true in turngate's settings"
        )
    return 0


@hermes.command(short_help="Disable the plugin.")
@home_option
@dry_run_option
@json_option
def uninstall(home: Path, dry_run: bool, as_json: bool) -> int:
    """Take the plugin out of Hermes' config.yaml. What was stored stays; `turngate gc` removes it in time."""
    _carry_out(plan_uninstall(home.expanduser()), dry_run=dry_run, as_json=as_json)
    return 0


@hermes.command(short_help="List past sessions and what would be saved in them.")
@home_option
@click.option("--limit", default=20, type=click.IntRange(min=1), help="How many, newest first. Default: 20.")
@json_option
def sessions(home: Path, limit: int, as_json: bool) -> int:
    """List Hermes' sessions from its state.db, and what the plugin would save of their tool results.

    Tokens are estimates, of the results as they stand in the history. Nothing is stored or changed.
    `turngate replay` on the same file says what all requests would have cost.
    """
    path = home.expanduser() / state.FILE
    if not path.exists():
        raise TranscriptError(f"there is no {path}; name Hermes' home with --home")
    rows = [_row(path, talk) for talk in state.talks(path)[:limit]]
    answer([asdict(row) for row in rows], as_json=as_json, show=lambda: _show(rows))
    return 0


def _carry_out(changes: list[Change], *, dry_run: bool, as_json: bool) -> None:
    if not dry_run:
        apply(changes)
    value = [{"path": str(change.path), "diff": change.diff} for change in changes]
    answer(
        {"changes": value, "dry_run": dry_run}, as_json=as_json, show=lambda: _show_changes(changes, dry_run)
    )


def _show_changes(changes: list[Change], dry_run: bool) -> None:
    if not changes:
        click.echo("nothing to change")
    for change in changes:
        click.echo(change.diff, nl=False)
    if changes and dry_run:
        click.echo("not changed: --dry-run")


def _row(path: Path, talk: state.Talk) -> Row:
    worth = state.worth(path, talk.id)
    return Row(
        id=talk.id,
        started=f"{datetime.fromtimestamp(talk.started_at_seconds, UTC):%Y-%m-%d %H:%M}",
        model=talk.model,
        results=worth.results,
        would_shorten=worth.shortened,
        already=worth.already,
        tokens=worth.tokens_before,
        tokens_with=worth.tokens_after,
        saved_share=round(worth.saved_share, 4),
    )


#: Heading -> what stands below it.
_COLUMNS: dict[str, Callable[[Row], Any]] = {
    "session": lambda row: row.id,
    "started": lambda row: row.started,
    "model": lambda row: row.model,
    "results": lambda row: f"{row.results:,}",
    "would shorten": lambda row: f"{row.would_shorten:,}",
    "already": lambda row: f"{row.already:,}",
    "tokens": lambda row: f"{row.tokens:,}",
    "with": lambda row: f"{row.tokens_with:,}",
    "saved": lambda row: f"{row.saved_share:.0%}",
}
_TEXT_COLUMNS = 3


def _show(rows: list[Row]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if number >= _TEXT_COLUMNS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell(row)) for cell in _COLUMNS.values()))
    console().print(table)
