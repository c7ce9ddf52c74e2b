"""`completion`: the script that completes commands in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from turngate.cli.app import PROGRAM, cli
from turngate.cli.common import answer, json_option


@click.command(short_help="Print the script that completes commands in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
def completion(shell: str, as_json: bool) -> int:
    """Print the script that completes commands in your SHELL.

    \b
    bash: turngate completion bash > ~/.local/share/bash-completion/completions/turngate
    zsh:  turngate completion zsh > "${fpath[1]}/_turngate"
    fish: turngate completion fish > ~/.config/fish/completions/turngate.fish
    """  # noqa: D301 - click reads \b as "keep these lines"
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    script = kind(cli, {}, PROGRAM, "_TURNGATE_COMPLETE").source()
    answer({"shell": shell, "script": script}, as_json=as_json, show=lambda: click.echo(script))
    return 0
