"""`explain`: what a session's turns were given besides the conversation, and where its prefix broke."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from turngate import flow
from turngate.cli.common import answer, json_option, open_existing
from turngate.cli.tables import console
from turngate.errors import UnknownContentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.cli.app import Given
    from turngate.flow import Past, SectionReport
    from turngate.store.ledger import RequestRow

#: Breaks that are shown, the latest ones; a session with more of them has one cause for all.
_SHOWN_BREAKS = 100


@click.command(short_help="Show what was injected into a session's turns, and why.")
@click.argument("session")
@click.option("--turn", type=click.IntRange(min=0), help="Only this turn, with the injected text.")
@json_option
@click.pass_obj
def explain(given: Given, session: str, turn: int | None, as_json: bool) -> int:
    """Show what was injected into the turns of a SESSION: each section kept, cut or dropped, and why.

    A section that is "in view" was injected in an earlier turn and has not changed. Turns in which nothing
    was said are left out. The last hundred others are remembered, the newest with their text.

    Below them stands every request that did not begin with what was sent before, so that the provider's cache
    was of no use: where the two part, and why.
    """
    with open_existing(given) as gate:
        blocks = [past for past in flow.past_blocks(gate.store, session) if turn in {None, _turn(past)}]
        requests = gate.store.ledger.requests(session, limit=_SHOWN_BREAKS, broken=True)
        breaks = [row for row in reversed(requests) if turn in {None, row.turn}]
        sent = bool(gate.store.ledger.requests(session, limit=1))
    if not blocks and not breaks and not (sent and turn is None):
        where = f"session {session!r}" if turn is None else f"turn {turn} of session {session!r}"
        raise UnknownContentError(
            f"nothing was injected into {where} that is remembered; without --turn, explain lists what is"
        )
    value = {
        "session": session,
        "turns": [_as_dict(past) for past in blocks],
        "breaks": [_break_as_dict(row) for row in breaks],
    }

    def show() -> None:
        if blocks:
            _show(blocks, with_text=turn is not None)
        if breaks or sent:
            _show_breaks(breaks)

    answer(value, as_json=as_json, show=show)
    return 0


def _turn(past: Past) -> int:
    """The turn as the session counts: the first is 1."""
    return past.turn_counter + 1


def _as_dict(past: Past) -> dict[str, Any]:
    report = past.report
    return {
        "turn": _turn(past),
        "epoch": report.epoch,
        "bytes": report.bytes,
        "budget_bytes": report.budget_bytes,
        "sections": [asdict(section) for section in report.sections],
        "text": past.text,
    }


def _break_as_dict(row: RequestRow) -> dict[str, Any]:
    return {
        "request": row.seq,
        "turn": row.turn,
        "epoch": row.epoch,
        "reason": row.reason,
        "message": row.place if row.place >= 0 else None,
        "detail": row.detail,
        "at": row.at,
    }


def _show_breaks(breaks: list[RequestRow]) -> None:
    out = console()
    for row in breaks:
        line = f"request {row.seq} in turn {row.turn} broke the prefix: {row.reason} ({row.detail})"
        out.print(Text(line), soft_wrap=True)
    if not breaks:
        out.print(Text("every request began with what was sent before"), soft_wrap=True)


def _show(blocks: list[Past], *, with_text: bool) -> None:
    out = console()
    out.print(_table(blocks))
    if with_text:
        for past in blocks:
            text = "(the text is not remembered any more)" if past.text is None else past.text or "(nothing)"
            out.print(Text(text), soft_wrap=True)


def _table(blocks: list[Past]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("turn", "epoch", "bytes"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("sections", overflow="fold")
    for past in blocks:
        lines = list(_lines(past.report.sections)) or ["nothing to say"]
        cells = (str(_turn(past)), str(past.report.epoch), f"{past.report.bytes:,}", "\n".join(lines))
        table.add_row(*map(Text, cells))
    return table


def _lines(sections: tuple[SectionReport, ...]) -> Iterator[str]:
    """A line for each section: what became of it, and why."""
    for section in sections:
        if section.outcome == "in view":
            yield f"{section.section}: {section.reason}"
        elif section.outcome == "kept":
            yield f"{section.section}: kept, {section.shown_bytes:,} bytes"
        else:
            size = f"{section.shown_bytes:,} of {section.full_bytes:,} bytes"
            yield f"{section.section}: {section.outcome}, {size}; {section.reason}"
