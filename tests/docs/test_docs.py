"""What the documentation says exists, runs, and prints what it says."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import click
import pytest
from doc_examples import PAGES, ROOT, blocks, current

import turngate
from turngate import settings
from turngate.cli.app import COMMANDS, cli
from turngate.compress.kinds import KINDS

_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| `([^`]+)` \| (.*?) \|(?: (.*?) \|)?", re.MULTILINE)
#: A test that a page names: `tests/room/test_file.py::test_claim`, or the file alone.
_TEST = re.compile(r"\b(tests/[\w/]+\.py)(?:::(\w+))?")
_DOTTED = re.compile(r"turngate(?:\.\w+)+")

page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """The text without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def command_lines(text: str) -> list[str]:
    """Everything on a page that calls our program."""
    found = blocks(text)
    lines = [line for block in found if block.language == "sh" for line in block.body.splitlines()]
    typed = [line for block in found if block.language == "console" for line in block.body.splitlines()]
    lines += [line.removeprefix("$ ") for line in typed if line.startswith("$ ")]
    parts = [part for line in lines for part in re.split(r" \| |; ", line)]
    parts += _SPAN.findall(prose(text))
    return [part for part in parts if part.startswith("turngate ")]


@page
def test_examples_print_what_the_page_says(page):
    text = page.read_text(encoding="utf-8")
    assert current(text) == text, "run: python tests/docs/doc_examples.py"


@page
def test_every_command_and_option_exists(page):
    for line in command_lines(page.read_text(encoding="utf-8")):
        # What stands behind "--" is another program's.
        own = takewhile(lambda word: word != "--", shlex.split(line, comments=True)[1:])
        words = [word.partition("=")[0] for word in own]
        name = next((word for word in words if word in COMMANDS), None)
        command = cli.get_command(click.Context(cli), name) if name else None
        while isinstance(command, click.Group):
            command = next((command.commands[word] for word in words if word in command.commands), None)
        known = {"-h", "--help"} | {opt for each in (cli, command) if each for option in each.params
                                    for opt in (*option.opts, *option.secondary_opts)}  # fmt: skip
        assert name or words[0] in known, line
        assert {word for word in words if word.startswith("--")} <= known, line


@page
def test_every_relative_link_resolves(page):
    for target in _LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def anchors(file: Path) -> set[str]:
    headings = _HEADING.findall(prose(file.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@page
def test_every_test_that_is_named_exists(page):
    for file, name in _TEST.findall(page.read_text(encoding="utf-8")):
        assert not name or re.search(rf"(?:def|class) {name}\b", read(file)), f"{file}::{name}"
        assert (ROOT / file).is_file()


@page
def test_every_name_of_ours_exists(page):
    for dotted in _DOTTED.findall(" ".join(_SPAN.findall(prose(page.read_text(encoding="utf-8"))))):
        if dotted.endswith((".toml", ".sqlite3")):
            continue
        parts = dotted.split(".")[1:]
        value = turngate
        for depth, part in enumerate(parts, 1):
            value = getattr(value, part, None) or import_module(".".join(["turngate", *parts[:depth]]))


def test_every_setting_is_documented_with_its_default_and_its_environment_name():
    rows = {key: (default, env) for key, default, env in _ROW.findall(read("docs/settings.md"))}
    known = {key: (f"`{spelled(key)}`", f"`{settings.ENV_PREFIX}{key.replace('.', '_').upper()}`")
             for key, _ in settings.all_keys()}  # fmt: skip
    assert {key: rows.get(key) for key in known} == known


def spelled(key: str) -> str:
    """A default as a settings file spells it."""
    value: object = settings.Settings()
    for part in key.split("."):
        value = getattr(value, part)
    if isinstance(value, tuple):
        return f'["{settings.KEEP_DEFAULTS}"]'
    words = {None: "unset", True: "true", False: "false"}
    # 1 and 0 are the keys True and False, too.
    return (words if value is None or isinstance(value, bool) else {}).get(
        value, f'"{value}"' if isinstance(value, str) else str(value)
    )


def test_the_readmes_settings_exist():
    section = read("README.md").partition("\n## Settings\n")[2].partition("\n## ")[0]
    keys = [key for key, _, _ in _ROW.findall(section)]
    assert keys
    assert set(keys) <= {key for key, _ in settings.all_keys()}


def test_every_pattern_of_tools_that_pass_is_documented():
    listed = {pattern: why for pattern, why, _ in _ROW.findall(read("docs/settings.md"))}
    assert {pattern: listed.get(pattern) for pattern, _ in settings.SKIP_TOOL_REASONS} == dict(
        settings.SKIP_TOOL_REASONS
    )


def test_every_kind_is_documented():
    listed = {kind for kind, _, _ in _ROW.findall(read("docs/shortening.md"))}
    assert {"json", "view", "edit", *(kind.name for kind in KINDS)} <= listed


def test_every_page_is_linked_from_the_readme():
    linked = set(_LINK.findall(read("README.md")))
    assert {f"docs/{page.name}" for page in PAGES if page.parent.name == "docs"} <= linked
