"""What `doctor` says about the Hermes plugin: mistakes in the host's configuration, and the smoke test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from turngate.cli.common import answer
from turngate.errors import StoreError, TurngateError
from turngate.gate import Gate
from turngate.hermes import smoke, state
from turngate.hermes.install import CONFIG, mistakes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from turngate.settings import Settings

_DEAD = (
    "they are a neighbour's (aphrodite, headroom) or of another store (TURNGATE_DATA_DIR); turngate leaves "
    "them alone, and only the tools of whoever wrote them can follow them"
)


def advice(home: Path, settings: Settings) -> Iterator[tuple[str, str]]:
    """What is worth knowing about a home of Hermes, each with a remedy; nothing where there is none."""
    if not (home / CONFIG).exists():
        return
    try:
        yield from mistakes(home, settings)
        yield from _dead_markers(home, settings)
    except TurngateError as error:
        yield f"Hermes' files could not be looked at: {error}", "look at them by hand"


def smoke_test(mode: str, settings: Settings, *, as_json: bool) -> int:
    """Run the smoke test; exit code 1 when a check fails."""
    report = smoke.run(mode, settings.store_path.with_name(smoke.RESULTS_FILE))
    value = report.as_dict() | {"outcomes": {outcome.name: outcome.ok for outcome in report.outcomes}}
    answer(value, as_json=as_json, show=lambda: _show(report))
    return 0 if report.ok else 1


def _show(report: smoke.Report) -> None:
    for outcome in report.outcomes:
        click.echo(
            f"{'ok' if outcome.ok else 'FAILED':8}{outcome.name}{': ' if outcome.why else ''}{outcome.why}"
        )
    for name in report.regressed:
        click.echo(f"        {name} succeeded the last time")
    passed = sum(outcome.ok for outcome in report.outcomes)
    click.echo(f"{passed} of {len(report.outcomes)} checks succeeded ({report.mode})")


def _dead_markers(home: Path, settings: Settings) -> Iterator[tuple[str, str]]:
    """Markers in the newest results that our store does not know."""
    path = home / state.FILE
    if not path.exists():
        return
    found = state.foreign_markers(path)
    gate = Gate(settings=settings)
    known: set[str] = set()
    if gate.path.exists():
        with gate:
            known = {ref for ref in found if _is_known(gate, ref)}
    dead = len(found) - len(known)
    if dead:
        yield f"{dead:,} markers in Hermes' newest tool results lead to nothing in this store", _DEAD


def _is_known(gate: Gate, ref: str) -> bool:
    try:
        gate.store.get(ref)
    except StoreError:
        return False
    return True
