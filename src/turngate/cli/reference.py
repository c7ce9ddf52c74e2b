"""The reference in Markdown, from the help itself: `python -m turngate.cli.reference > docs/cli.md`."""

from __future__ import annotations

import click

from turngate.cli.app import COMMANDS, PROGRAM, cli

#: Width of the help texts in the document, whatever terminal writes it.
WIDTH_CHARS = 100

HEAD = """\
# The command line

Written by `python -m turngate.cli.reference`; do not edit.
"""


def reference() -> str:
    """The whole document."""
    root = _context(cli, PROGRAM)
    parts = [HEAD, _section(root, PROGRAM)]
    for name in COMMANDS:
        command = cli.get_command(root, name)
        if command is not None:
            parts += _sections(command, f"{PROGRAM} {name}")
    return "\n".join(parts)


def _sections(command: click.Command, title: str) -> list[str]:
    """A command's section, and those of its own commands."""
    own = command.commands.items() if isinstance(command, click.Group) else ()
    below = [part for name, each in own for part in _sections(each, f"{title} {name}")]
    return [_section(_context(command, title), title), *below]


def _context(command: click.Command, name: str) -> click.Context:
    return click.Context(
        command, info_name=name, terminal_width=WIDTH_CHARS, help_option_names=["-h", "--help"]
    )


def _section(context: click.Context, title: str) -> str:
    return f"## `{title}`\n\n```text\n{context.get_help().rstrip()}\n```\n"


if __name__ == "__main__":
    click.echo(reference(), nl=False)
