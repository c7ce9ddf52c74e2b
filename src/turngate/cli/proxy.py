"""`proxy` and `run`: the proxy in front of any agent, by itself or around one command."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from turngate.cli.common import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.cli.app import Given

#: Option, setting of section [proxy], its type, what it says.
_Option: TypeAlias = tuple[str, str, Any, str]
_OPTIONS: tuple[_Option, ...] = (
    ("--host", "host", str, "Address to listen at. Default: 127.0.0.1; any other needs proxy.token."),
    ("--port", "port", click.IntRange(0, 65_535), "Port to listen at; 0: any free one. Default: 8787."),
    ("--openai-upstream", "openai_upstream", str, "Base URL of the OpenAI-compatible upstream."),
    ("--anthropic-upstream", "anthropic_upstream", str, "Base URL of the Anthropic-compatible upstream."),
    ("--gemini-upstream", "gemini_upstream", str, "Base URL of the Gemini-compatible upstream."),
    ("--workers", "workers", click.IntRange(1, 256), "Processes that share the port. Default: 1."),
    ("--window", "window_tokens", click.IntRange(0), "Compact what would be larger than so many tokens."),
)


def _options(command: Callable[..., Any], table: tuple[_Option, ...] = _OPTIONS) -> Callable[..., Any]:
    for option, name, kind, says in reversed(table):
        command = click.option(option, name, type=kind, help=says)(command)
    return click.option(
        "--store",
        "store_url",
        metavar="URL",
        help="Shared store: postgresql://… Default: the database on disk.",
    )(command)


def _options_of_run(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same but where it listens: that is for the one command to know."""
    return _options(command, tuple(row for row in _OPTIONS if row[1] not in {"host", "port"}))


def _overrides(given: dict[str, Any]) -> dict[str, Any]:
    url = given.pop("store_url", None)
    proxy = {name: value for name, value in given.items() if value is not None}
    return ({"proxy": proxy} if proxy else {}) | ({"store": {"url": url}} if url else {})


@click.command(short_help="Stand in front of any agent that can be given a base URL.")
@_options
@click.option("--tied", type=int, hidden=True, help="End when the other end of this pipe is closed.")
@click.pass_obj
def proxy(given: Given, /, tied: int | None, **options: Any) -> None:
    """Stand in front of any agent that can be given a base URL, until told to end.

    New tool results are shortened once, and the model is offered a tool to read what is hidden. Everything
    else passes byte for byte: OpenAI Chat Completions and Responses, Anthropic Messages, Gemini, and whatever
    else is asked of them.
    """
    from turngate.proxy import workers  # noqa: PLC0415 - aiohttp is loaded where it is used

    settings = load(given, **_overrides(options))
    logging.basicConfig(level=logging.WARNING, format="turngate: %(message)s")
    workers.main(settings, ready=lambda url: click.echo(f"turngate: listening at {url}"), tied=tied)


@click.command(
    short_help="Run a command behind a proxy of its own.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@_options_of_run
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def run(given: Given, /, command: tuple[str, ...], **options: Any) -> int:
    """Run a COMMAND behind a proxy of its own on a free port: `turngate run -- claude`.

    The base URLs that agents read are set for it; what they were set to before is where requests go. When the
    command ends, the proxy does, and its exit code is the command's.
    """
    from turngate.proxy import run as runner  # noqa: PLC0415 - nothing else needs it

    load(given, **_overrides(dict(options)))
    words = [*runner.upstream_options(os.environ), *_spelled(options)]
    before = [
        word
        for option, value in (("--data-dir", given.data_dir), ("--config", given.config))
        if value is not None
        for word in (option, str(value))
    ]
    return runner.run(command, words, before=before)


def _spelled(options: dict[str, Any]) -> list[str]:
    """The options again, as words."""
    names = {name: option for option, name, _, _ in _OPTIONS} | {"store_url": "--store"}
    given = ((names[name], value) for name, value in options.items() if value is not None)
    return [word for option, value in given for word in (option, str(value))]
