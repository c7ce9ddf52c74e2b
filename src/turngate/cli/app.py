"""The root command: which commands there are, where they live, and how every one of them ends."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import turngate
from turngate.errors import TurngateError

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "turngate"
OK, FAILED, USAGE = 0, 1, 2

#: Command -> (module, first line of its help). Read for `--help`, so that help imports no command.
COMMANDS: dict[str, tuple[str, str]] = {
    "shorten": ("content", "Shorten a tool's output as the gate would."),
    "retrieve": ("content", "Write the original behind a marker to stdout, byte for byte."),
    "search": ("content", "Search the stored originals."),
    "stats": ("keeping", "Show what the store holds."),
    "explain": ("explain", "Show what was injected into a session's turns, and why."),
    "gc": ("keeping", "Enforce the store's age and size limits."),
    "doctor": ("doctor", "Check store, settings and environment, and say what to do."),
    "replay": ("replay", "Show what recorded sessions would have cost, under each policy."),
    "proxy": ("proxy", "Stand in front of any agent that can be given a base URL."),
    "run": ("proxy", "Run a command behind a proxy of its own."),
    "hermes": ("hermes", "Enable the plugin in Hermes, or disable it; weigh past sessions."),
    "demo": ("demo", "Pass a recorded agent session through a gate and show what happens."),
    "completion": ("completion", "Print the script that completes commands in your shell."),
}

EPILOG = "Exit codes: 0 done; 1 what was asked for failed or was not found; 2 wrong usage."


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, from its module."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"turngate.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of commands, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@dataclass(frozen=True, slots=True)
class Given:
    """The options that stand before a command."""

    data_dir: Path | None = None
    """Folder of the store."""
    config: Path | None = None
    """Settings file."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings that these options are."""


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(turngate.__version__, prog_name=PROGRAM)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the store. Default: TURNGATE_DATA_DIR, or the platform's folder for a user's data.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings file (TOML). Default: TURNGATE_CONFIG, or the platform's folder for settings.",
)
@click.pass_context
def cli(ctx: click.Context, data_dir: Path | None, config: Path | None) -> None:
    """Shorten tool output for an LLM agent once, and give every byte of it back on demand.

    A good start is `turngate demo`.
    """
    ctx.obj = Given(data_dir, config, {} if data_dir is None else {"data_dir": data_dir})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; its exit code. A user's error is a line on stderr, never a traceback."""
    try:
        code = cli.main(argv, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return USAGE if isinstance(error, click.UsageError) else FAILED
    except click.Abort:
        return _failed("interrupted")
    except BrokenPipeError:
        # The reader has seen enough: end as click does. Python would complain when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except TurngateError as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
    return code if isinstance(code, int) else OK


def _failed(message: str) -> int:
    click.echo(f"{PROGRAM}: {message}", err=True)
    return FAILED
