"""What commands share: the gate they open, the JSON they print."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from turngate import settings
from turngate.errors import StoreUnavailableError
from turngate.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.cli.app import Given
    from turngate.settings import Settings

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs instead of text.")
session_option = click.option("--session", metavar="ID", help="Only what this session may see.")


def load(given: Given, **overrides: Any) -> Settings:
    """The settings, with the options of the command line."""
    return settings.load(given.config, **given.overrides, **overrides)


def open_gate(given: Given, **overrides: Any) -> Gate:
    """A gate whose database is created when something is first stored."""
    return Gate.open(settings=load(given, **overrides))


def open_existing(given: Given) -> Gate:
    """A gate for looking: where there is no database, it is not created.

    Raises:
        StoreUnavailableError: there is none yet.
    """
    gate = open_gate(given)
    if not gate.settings.store.url and not gate.path.exists():
        raise StoreUnavailableError(
            f"there is no store at {gate.path} yet; shorten something first, or name its folder: --data-dir"
        )
    return gate


def session_of_today() -> str:
    """The session of what is shortened by hand: one a day, so that old ones stop being live and can go."""
    return f"cli-{datetime.now(UTC):%Y-%m-%d}"


def write_bytes(data: bytes, *, close_line: bool = False) -> None:
    """Exactly these bytes to stdout; with `close_line` a terminal gets a line end that they lack, too."""
    sys.stdout.buffer.write(data)
    if close_line and data and not data.endswith(b"\n") and sys.stdout.isatty():
        sys.stdout.buffer.write(b"\n")


def print_json(value: object) -> None:
    """One JSON document; everything beyond ASCII is escaped, so that lone surrogates survive, too."""
    click.echo(json.dumps(value, indent=2, default=str))


def count(number: int, word: str) -> str:
    """A number of things: ``1 line``, ``1,204 lines``."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def warn(message: str) -> None:
    """A line for the person at the terminal."""
    click.echo(f"turngate: {message}", err=True)


def answer(value: object, *, as_json: bool, show: Callable[[], object]) -> None:
    """`value` as JSON, or what `show` prints."""
    if as_json:
        print_json(value)
    else:
        show()
