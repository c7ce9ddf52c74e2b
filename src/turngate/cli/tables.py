"""Tables for people. The only module of the command line that loads rich."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Width where stdout is no terminal: wide enough for the demo's table on one line a row.
PIPED_WIDTH_CHARS = 120


def console() -> Console:
    """A console for stdout; rich itself honours NO_COLOR and COLUMNS."""
    width = None if sys.stdout.isatty() else PIPED_WIDTH_CHARS
    return Console(width=width, highlight=False, soft_wrap=False)


def rows(title: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, one pair a line."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name), Text(value))
    out = console()
    out.print(Text(title, style="bold"))
    out.print(table)


def size(count_bytes: int) -> str:
    """A number of bytes for people: ``12.3 MB``."""
    if count_bytes == 1:
        return "1 byte"
    amount = float(count_bytes)
    for unit in ("bytes", "kB", "MB"):
        if abs(amount) < 1000:  # noqa: PLR2004 - decimal units
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} GB"
