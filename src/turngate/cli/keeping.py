"""`stats` and `gc`: what the store holds, and its limits."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from turngate.cli.common import answer, count, json_option, open_existing, session_option
from turngate.cli.tables import rows, size

if TYPE_CHECKING:
    from turngate.cli.app import Given
    from turngate.store import GcReport, Saving, StoreStats


@click.command(short_help="Show what the store holds.")
@session_option
@json_option
@click.pass_obj
def stats(given: Given, session: str | None, as_json: bool) -> int:
    """Show what the store holds, and the tokens saved, net of markers and of what was had back."""
    with open_existing(given) as gate:
        found = gate.store.stats(session=session)
        title = f"Store at {gate.path}"
    answer(
        asdict(found) | {"path": str(gate.path), "session": session},
        as_json=as_json,
        show=lambda: rows(title, _stats(found)),
    )
    return 0


@click.command(short_help="Enforce the store's age and size limits.")
@json_option
@click.pass_obj
def gc(given: Given, as_json: bool) -> int:
    """Remove originals over the age limit and, while the store is over its size limit, the oldest.

    What a live session has in view is never removed. The limits are settings: store.max_bytes,
    store.max_age_days and store.live_days.
    """
    with open_existing(given) as gate:
        report, limit = gate.store.gc(), gate.settings.store.max_bytes
        title = f"Store at {gate.path}"
    answer(asdict(report), as_json=as_json, show=lambda: rows(title, _gc(report, limit)))
    return 1 if report.over_limit else 0


def _stats(found: StoreStats) -> list[tuple[str, str]]:
    return [
        ("originals", f"{found.contents:,}"),
        ("their size", size(found.content_bytes)),
        ("compressed", size(found.stored_bytes)),
        ("seen", count(found.sightings, "time")),
        ("sessions", f"{found.sessions:,}"),
        ("waiting for the index", f"{found.pending:,}"),
        ("on disk", f"{size(found.disk_bytes)}, index included"),
        *_saving(found.saving, contents=found.contents),
    ]


def _saving(saving: Saving, *, contents: int) -> list[tuple[str, str]]:
    """What was saved; originals without sums come from a turngate that kept none."""
    if contents and not saving.came_in:
        return [("saved", "not known: these originals were stored before savings were summed up")]
    return [
        ("results shortened", f"{saving.results:,}"),
        ("tokens kept out of view", f"{saving.came_in - saving.shown:,} of {saving.came_in:,} (estimates)"),
        ("tokens had back", f"{saving.had_back:,}"),
        ("saved, net", f"{saving.tokens:,} tokens"),
    ]


def _gc(report: GcReport, max_bytes: int) -> list[tuple[str, str]]:
    over = ", exceeded by what live sessions have in view; raise store.max_bytes" * report.over_limit
    return [
        ("removed", f"{count(report.removed, 'original')} of {size(report.removed_bytes)}"),
        ("freed", size(report.freed_bytes)),
        ("on disk now", size(report.disk_bytes)),
        ("size limit", f"{size(max_bytes)}{over}"),
    ]
