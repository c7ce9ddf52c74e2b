"""Help, the reference made from it, completion, and how the program starts and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest

import turngate
from turngate.cli.app import COMMANDS, cli
from turngate.cli.reference import reference

ROOT = Path(__file__).parents[2]
#: Commands that answer nothing: they run until they are ended.
RUNNING = {"proxy", "run"}


def every_command():
    """Each command by its path, those of groups too."""
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", each) for inner, each in command.commands.items())


@pytest.fixture
def command(request):
    return dict(every_command())[request.param]


@pytest.mark.parametrize("command", [name for name, _ in every_command()], indirect=True)
class TestEveryCommand:
    def test_it_and_its_options_have_help(self, command):
        assert command.help
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, option.name

    def test_its_line_in_the_list_is_its_own(self, command):
        assert command.short_help == COMMANDS.get(command.name, (None, command.short_help))[1]
        assert command.short_help

    def test_it_offers_json(self, command):
        if command.name in RUNNING:
            return
        assert isinstance(command, click.Group) or "as_json" in {option.name for option in command.params}


def test_the_reference_is_current():
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == reference(), "run: python -m turngate.cli.reference > docs/cli.md"


def test_the_list_of_commands_has_them_all(run):
    done = run("--help")
    assert done.code == 0
    assert all(f"\n  {name} " in done.text for name in COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(run, shell):
    assert "_TURNGATE_COMPLETE" in run("completion", shell).text
    assert run("completion", shell, "--json").json["shell"] == shell


def test_the_version_is_the_packages(run):
    assert version("turngate") in run("--version").text


def start(code, **environ):
    """Run Python code in a fresh interpreter; its stdout."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environ},
    )
    return done.stdout


HEAVY = ("aiohttp", "genai_prices", "rich", "sqlite3", "orjson", "bpe_openai")


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, turngate; print([m for m in {(*HEAVY, 'click')} if m in sys.modules])"
    assert start(code).strip() == "[]"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from turngate.cli import main; main(['--help']);"
        f"print('loaded', [m for m in {HEAVY} if m in sys.modules])"
    )
    assert start(code).endswith("loaded []\n")


def test_every_public_name_can_be_had():
    assert {name for name in turngate.__all__ if getattr(turngate, name, None) is None} == set()
    assert set(turngate._HOME) | {"__version__"} == set(turngate.__all__)
    assert set(turngate.__all__) <= set(dir(turngate))
    with pytest.raises(AttributeError):
        turngate.nothing  # noqa: B018


WHERE = """
from turngate import Gate, settings
print(Gate.open().path, settings.config_path(), sep=chr(10))
"""


def test_no_test_here_sees_the_users_store_or_settings(tmp_path, data_dir, monkeypatch):
    assert [Path(word).is_relative_to(tmp_path) for word in start(WHERE).splitlines()] == [True, True]
    assert start(WHERE).startswith(f"{data_dir}{os.sep}")
    monkeypatch.delenv("TURNGATE_DATA_DIR")
    assert [Path(word).is_relative_to(tmp_path) for word in start(WHERE).splitlines()] == [True, True]


def test_what_a_test_stores_lands_in_its_own_folder(data_dir):
    done = subprocess.run(
        [sys.executable, "-m", "turngate", "shorten", __file__], capture_output=True, check=True
    )
    assert done.stdout.startswith(b"<<<CCR:")
    assert [path.name for path in data_dir.glob("*.sqlite3")] == ["turngate.sqlite3"]


@pytest.mark.parametrize("argv", ["completion bash --json", "demo", "shorten FILE"])
def test_to_a_reader_that_has_seen_enough_nothing_is_said(argv):
    command = f"{sys.executable} -m turngate {argv.replace('FILE', __file__)} | (exec 0<&-; sleep 0.6)"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_no_color_is_honoured(data_dir):
    code = "from turngate.cli import main; main(['doctor'])"
    assert "\x1b" not in start(code, NO_COLOR="1", FORCE_COLOR="1", TERM="xterm-256color")
