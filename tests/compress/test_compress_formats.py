"""The table of formats: each is told by how it looks, and by its call only where it looks like it."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outputs import OUTPUTS, REPEATS

from turngate.compress import shorten
from turngate.compress.command import words_of
from turngate.compress.kinds import KINDS
from turngate.compress.kinds.formats import FORMATS
from turngate.compress.kinds.formats.match import formats_of, opened_by

DOCS = Path(__file__).parents[2] / "docs" / "shortening.md"
SEEDS = (1, 2)
LOOKS = [(name, look) for name, output in OUTPUTS.items() for look in range(len(output.looks))]
#: Texts that look a little like a format, and what they must not be taken for.
LOOKALIKES = {
    "prose with a path": (
        "find",
        "The file src/app.py holds the rules, and docs/app.md explains them.\n" * 40,
    ),
    "prose with times": ("app", "We met at 08:00:00 and left at nine, as the log of that day says.\n" * 40),
    "sentences after numbers": ("grep", "3. The third point is that nothing follows from the first.\n" * 40),
    "a list of words": ("find", "".join(f"word{n}\n" for n in range(90))),
    "numbers": ("git-log", "".join(f"{n * 1234567 % 9999999:07} and more\n" for n in range(90))),
    "a dialogue": (
        "yaml",
        "".join(f"Anna: I have seen {n} of them, and not one was red.\n" for n in range(9)) + "Go on\n" * 40,
    ),
    "code with comparisons": ("toml", "    if left == right:\n        return left\n" * 40),
    "code that raises": ("python-trace", "def f():\n    raise ValueError('Traceback')\n\n" * 40),
    "code with errors in strings": (
        "gcc",
        "    print('error: no such file')\n    log('warning: low disk')\n" * 40,
    ),
    "a poem about tests": (
        "pytest",
        "All tests have PASSED, the bard has said\nAnd none has FAILED, so go to bed\n" * 30,
    ),
}


def _told(text, command=None):
    """The kind and format of a text, which may be a command's output."""
    hints = {"tool": "terminal", "args": {"command": command}} if command else {}
    short = shorten(text, least_chars=0, **hints)
    return short.kind, short.format


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_every_row_has_a_kind_and_an_output_that_shows_it(row):
    assert row.kind in {"json", "text", *(kind.name for kind in KINDS)}
    assert row.kind == OUTPUTS[row.name].kind


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_every_row_is_named_in_the_documentation(row):
    section = DOCS.read_text("utf-8").partition("### Formats")[2].partition("\n#")[0]
    assert re.search(rf"\b{row.name}\b", section)


@pytest.mark.parametrize(("name", "look"), LOOKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_format_is_told_by_its_looks_and_its_call(name, look, seed):
    output = OUTPUTS[name]
    command = "cd /srv && " + output.command.replace("<w>", "x").replace("<n>", "1")
    assert _told(output.text(look, seed), command) == (output.kind, name)


#: What formats share their lines with others, and are told from them by the call or by rarer lines.
SHARED = {"clang": "gcc", "journald": "syslog", "ruff": "rustc", "unittest": "pytest", "git-show": "git-diff"}


@pytest.mark.parametrize(("name", "look"), LOOKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_format_is_told_by_its_looks_alone(name, look, seed):
    output = OUTPUTS[name]
    kind, told = _told(output.text(look, seed))
    assert kind == output.kind
    assert told in {name, SHARED.get(name, name)}


@pytest.mark.parametrize("name", LOOKALIKES)
def test_what_looks_a_little_like_a_format_is_not_taken_for_it(name):
    wrong, text = LOOKALIKES[name]
    assert _told(text)[1] != wrong


@pytest.mark.parametrize("name", [name for name in LOOKALIKES if "code" not in name])
@pytest.mark.parametrize("command", ["pytest", "git log", "grep -rn x .", "kubectl get pods", "psql"])
def test_a_call_makes_nothing_of_what_does_not_look_like_it(name, command):
    text = LOOKALIKES[name][1]
    assert _told(text, command)[0] == _told(text)[0]


@pytest.mark.parametrize(("name", "look"), LOOKS)
def test_a_call_of_another_format_changes_no_kind(name, look):
    output = OUTPUTS[name]
    others = {"pytest", "npm ci", "ls -lR", "cat x.csv", "dmesg", "git diff"}
    for command in sorted(others):
        assert _told(output.text(look, 1), command)[0] == output.kind, command


def test_a_call_lowers_what_its_format_needs():
    lines = [f"line {n} of what the program prints" for n in range(60)]
    lines[::6] = [f"tests/test_x.py::test_{n} PASSED" for n in range(10)]
    assert _told("\n".join(lines))[0] == "text"
    assert _told("\n".join(lines), "pytest -v")[1] == "pytest"


def test_a_text_is_told_by_its_middle_and_its_end_too():
    lines = [f"note {n}: prepared" for n in range(300)] + OUTPUTS["pytest"].text(0, 1).split("\n") * 12
    assert _told("\n".join(lines)) == ("report", "pytest")


COMMANDS = {
    "git diff HEAD~1 | head -50": "git diff",
    "cd /srv && sudo -n env A=1 pytest -q": "pytest",
    "poetry run mypy src; echo done": "mypy",
    "python -m pytest 2>&1 | tail -20": "pytest",
    "bash -lc 'cargo test --all'": "cargo test",
    "timeout 60 /usr/bin/kubectl get pods -A": "kubectl get",
    "git --no-pager log --oneline": "git log",
    "head -n 20 data/x.csv": ".csv",
    "find . -name '*.py' | xargs grep -n 'a|b'": "grep",
    'FOO=bar make -j4 2>&1 | tee "out & more.txt"': "make",
}


TEXT = OUTPUTS["pytest"].text(0, 1) * 2
SHELL = [
    "bash",
    "sh -c",
    "'",
    '"',
    "sudo",
    "env",
    "A=1",
    "|",
    "&&",
    "(",
    ")",
    "xargs",
    "python -m",
    "npm run",
    "head",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_that_prints_is_found_in_a_command_line(command):
    assert COMMANDS[command] in words_of("terminal", (command,))


def test_a_tools_own_name_says_what_it_gives():
    assert "git diff" in words_of("mcp__git__git_diff", ())
    assert "git log" in words_of("", ("git", "log", "-3"))


@pytest.mark.parametrize("command", ["cat log | grep x | head", "echo git diff", "cd pytest"])
def test_what_only_stands_on_a_command_line_is_no_command(command):
    assert words_of("", (command,)).isdisjoint({"git diff", "pytest", "cat", "head"})


@given(st.text(max_size=300) | st.lists(st.sampled_from(SHELL), max_size=30).map(" ".join))
def test_any_command_line_is_read_without_a_fault(command):
    assert all(word == word.lower() for word in words_of(command[:20], (command,)))
    assert shorten(TEXT, tool=command[:20], args={"command": command}).reason == ""


def test_every_pattern_begins_with_what_its_index_says():
    """The index by first characters leaves no pattern out that a look at all of them would find."""
    for name, look in LOOKS:
        for line in OUTPUTS[name].text(look, 3).split("\n")[: REPEATS * 2]:
            if line.strip():
                assert formats_of(line) or not _fits_any(line), line


OPENINGS = (
    "Desired=Unknown/Install/Remove/Purge/Hold",
    "               total        used        free      shared",
    "  UNIT                 LOAD   ACTIVE SUB",
    "UNIT LOAD ACTIVE",
    "COMMAND   PID USER",
    "Proto Recv-Q Send-Q",
    "NAMESPACE   NAME   READY",
    "  PID TTY          TIME CMD",
    "## main...origin/main",
    "commit 0123456789abcdef0123456789abcdef01234567",
    "On branch main",
    "Build started 1/2/2026",
    "nothing of the kind",
)


@pytest.mark.parametrize("line", OPENINGS)
def test_a_first_line_is_told_as_trying_all_of_them_would(line):
    rows = [pattern.strip() for row in FORMATS for pattern in row.opens.split("\n") if pattern.strip()]
    assert (opened_by(line) is not None) == any(re.match(pattern, line) for pattern in rows)
    assert (opened_by(line) is None) == (line == OPENINGS[-1])


def _fits_any(line):
    """Whether any pattern of the table fits, each tried by itself."""
    rows = [pattern.strip() for row in FORMATS for pattern in row.lines.split("\n") if pattern.strip()]
    return any(re.match(pattern, line) for pattern in rows)
