"""`stats` and `gc`: what the store holds, and its limits."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from turngate.cli.common import answer, count, json_option, open_existing, session_option
from turngate.cli.tables import rows, size
from turngate.regret import factors_of, for_tool

if TYPE_CHECKING:
    from turngate.cli.app import Given
    from turngate.store import Asked, GcReport, Saving, StoreStats

#: Rows of what was asked for that are shown to people.
_MOST_ASKED = 8


@click.command(short_help="Show what the store holds.")
@session_option
@json_option
@click.pass_obj
def stats(given: Given, session: str | None, as_json: bool) -> int:
    """Show what the store holds, and the tokens saved, net of markers and of what was had back."""
    with open_existing(given) as gate:
        found, asked = gate.store.stats(session=session), gate.store.asked()
        title = f"Store at {gate.path}"
    answer(
        asdict(found) | {"path": str(gate.path), "session": session, "asked": _regret(asked)},
        as_json=as_json,
        show=lambda: rows(title, [*_stats(found), *_asked(asked)]),
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


def _regret(asked: list[Asked]) -> list[dict[str, Any]]:
    """The counts, with what they make of the budget in sessions that begin now."""
    factors = factors_of(asked)
    return [asdict(row) | {"budget_factor": for_tool(factors, row.tool).get(row.kind, 1.0)} for row in asked]


def _asked(asked: list[Asked]) -> list[tuple[str, str]]:
    """What was asked for most often of what was shortened."""
    most = sorted((row for row in asked if row.asked), key=lambda row: -row.asked)[:_MOST_ASKED]
    return [
        (
            "asked for" if not nth else "",
            f"{row.asked:,} of {row.shortened:,} shortened: {row.kind} from {row.tool or 'unknown'}",
        )
        for nth, row in enumerate(most)
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
