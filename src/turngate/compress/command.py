"""What a call's name and arguments say that its result is: the commands that it runs, and the files it reads.

Only hints come of it: a command can print anything, so what the output looks like decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

#: An argument is read so far; what is longer is a text that the call writes.
READ_CHARS = 400
#: So many arguments are read.
READ_TEXTS = 4
#: One token of a shell's command line: a quoted string, an operator, or a word; the rest is skipped.
_TOKEN = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\d?>&\d|&&|\|\|?&?|[;&\n()]|[^\s'"|&;()]+""")
_OPERATORS = frozenset({"&&", "||", "|", "|&", ";", "&", "\n", "(", ")"})
_PIPES = frozenset({"|", "|&"})
#: Words before the command proper: `sudo -n env A=1 timeout 9 git log`.
_WRAPPERS = frozenset(
    ("sudo", "env", "time", "nice", "nohup", "timeout", "stdbuf", "xargs", "exec", "command", "npx", "uvx")
)
#: Runners of a command that is named after a word: `poetry run pytest`, `python -m pytest`.
_RUNNERS = frozenset(
    ("uv", "poetry", "pipenv", "pdm", "hatch", "bundle", "pnpm", "yarn", "npm", "bun", "python", "python3")
)
_SHELLS = frozenset({"bash", "sh", "zsh"})
_RUN_WORDS = frozenset({"run", "exec", "-m"})
#: Commands that print what they are given, and those that print nothing to tell by.
_FILTERS = frozenset(
    ("head", "tail", "cat", "less", "more", "tee", "sort", "uniq", "sed", "awk", "cut", "tr", "nl", "column")
)
_SILENT = frozenset(
    (
        "cd",
        "echo",
        "export",
        "set",
        "source",
        ".",
        "true",
        "false",
        "mkdir",
        "rm",
        "cp",
        "mv",
        "touch",
        "sleep",
    )
)
_ASSIGNMENT = re.compile(r"\w+=")
_VALUE = re.compile(r"[\d.]+[smh]?\Z")
_SUFFIX = re.compile(r"[\w)\]/\\.*-](\.[A-Za-z]\w{0,7})\Z")
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def words_of(tool: str, texts: tuple[str, ...]) -> frozenset[str]:
    """Commands, with and without their first argument ("git", "git log"), and files' suffixes (".csv")."""
    return frozenset(_words(tool, texts))


def _words(tool: str, texts: tuple[str, ...]) -> Iterator[str]:
    name = [word.lower() for word in _NAME_WORD.findall(tool)]
    yield from name
    yield from map(" ".join, pairwise(name))
    for text in texts[:READ_TEXTS]:
        yield from _of_text(text[:READ_CHARS])
    if len(texts) > 1 and len(texts[0]) < READ_CHARS:  # a command as a list of its words
        yield from _named([word for word in texts[:READ_TEXTS] if len(word) < READ_CHARS])


def _of_text(text: str) -> Iterator[str]:
    for command in _commands(_TOKEN.findall(text)):
        yield from _named(command)
        for word in command:
            if found := _SUFFIX.search(word.strip("'\"")):
                yield found[1].lower()


def _commands(tokens: list[str]) -> Iterator[list[str]]:
    """The commands whose output is seen: of each pipe the last that is no filter."""
    seen: list[str] = []
    current: list[str] = []
    piped = False
    for token in [*tokens, ";"]:
        if token not in _OPERATORS:
            current.append(token)
            continue
        if current and not (piped and _program(current) in _FILTERS):
            seen = current
        current = []
        piped = token in _PIPES
        if not piped and seen:
            yield seen
            seen = []


def _program(command: list[str]) -> str:
    stripped = _stripped(command)
    return _base(stripped[0]) if stripped else ""


def _base(word: str) -> str:
    return word.strip("'\"").rpartition("/")[2].lower()


def _stripped(command: list[str]) -> list[str]:
    """The command without what only runs it."""
    at = 0
    while at < len(command):
        word = command[at]
        after_wrapper = at > 0 and (word[:1] == "-" or _VALUE.match(word))
        runs = word in _RUNNERS and len(command) > at + 2 and command[at + 1] in _RUN_WORDS
        if runs:
            at += 2
        elif word in _WRAPPERS or after_wrapper or _ASSIGNMENT.match(word):
            at += 1
        else:
            break
    return command[at:]


def _named(command: list[str]) -> Iterator[str]:
    rest = _stripped(command)
    if not rest or (name := _base(rest[0])) in _SILENT:
        return
    yield name
    yield _base(command[0])
    if name in _SHELLS and len(rest) > 1:
        yield from _of_text(rest[-1].strip("'\""))
    arguments = [word for word in rest[1:] if word[:1] != "-"]
    if arguments:
        yield f"{name} {arguments[0].lower()}"
