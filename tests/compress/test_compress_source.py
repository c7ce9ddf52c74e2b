"""Source files: heads stay in view, insides are folded, and what is no source isn't taken for it."""

import subprocess
import sys
from dataclasses import dataclass

import pytest
from bench import faithful
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.compress import Shortened, shorten
from turngate.compress.kinds.code import Role, python, roles_of, scan, trees
from turngate.compress.kinds.code.languages import LANGUAGES, language_of

WORDS = ("amber", "basil", "cedar", "delta", "ember", "fable", "grove", "heron", "inlet", "jetty")
ROUNDS = 24


def name(n: int) -> str:
    return f"{WORDS[n % 10]}_{WORDS[n // 10 % 10]}"


@dataclass(frozen=True)
class Sample:
    """A language's file: what it opens with, a definition of which there are many, and what it ends with."""

    suffix: str
    opening: str
    #: `NAME` is replaced; lines that begin with `>` are the head.
    definition: str
    ending: str = ""
    body: str = "    NAME_{i} = compute(NAME_{i}, {k});"

    def lines(self) -> tuple[list[str], list[str]]:
        """All lines, and those of heads."""
        out, heads = self.opening.splitlines(), []
        for n in range(ROUNDS):
            for line in self.definition.splitlines():
                if line.strip() == "...":
                    indent = line[: line.index(".")]
                    body = (
                        self.body.replace("{i}", str(i)).replace("{k}", str(n * 31 + i)) for i in range(9)
                    )
                    out += [(indent + row.strip()).replace("NAME", name(n)) for row in body]
                    continue
                row = line.removeprefix(">").replace("NAME", name(n))
                heads += [row] if line.startswith(">") else []
                out.append(row)
        return [*out, *self.ending.splitlines()], heads


SAMPLES = {
    "python": Sample(
        ".py",
        '"""Tools."""\n\nimport os\nfrom typing import Any\n\nLIMIT = 4\n',
        '>@cached\n>def NAME(first: int,\n>         second: str = \'a\') -> None:\n    """Say NAME."""\n'
        "    ...\n    return 1\n\n",
        body="NAME_{i} = compute(NAME_{i}, {k})",
    ),
    "javascript": Sample(
        ".js",
        "'use strict'\n\nconst fs = require('fs')\n",
        ">export async function NAME(first, second) {\n  ...\n  return second;\n}\n\n",
    ),
    "arrows": Sample(
        ".js",
        "import fs from 'fs'\nimport path from 'path'\n",
        ">const NAME = async (first, second) => {\n  ...\n  return second;\n};\n\n",
    ),
    "typescript": Sample(
        ".ts",
        "import { a } from './a';\n\nexport class Box {",
        ">  private NAME(first: string, second: number): void {\n    ...\n  }\n\n",
        "}",
    ),
    "go": Sample(
        ".go",
        'package main\n\nimport "fmt"\n',
        ">func (b *Box) NAME(first int, second string) error {\n\t...\n\treturn nil\n}\n\n",
        body="NAME_{i} := compute(NAME_{i}, {k})",
    ),
    "rust": Sample(
        ".rs",
        "use std::fmt;\nuse std::io::{self, Read};\n\nimpl Box {",
        ">    pub fn NAME(&self, first: u32) -> io::Result<()> {\n        ...\n        Ok(())\n    }\n\n",
        "}",
        body="let NAME_{i} = compute(NAME_{i}, {k});",
    ),
    "java": Sample(
        ".java",
        "package a.b;\n\nimport java.util.List;\n\npublic class Box {",
        ">    @Override\n>    public int NAME(int first, String second) {\n"
        "        ...\n        return 1;\n    }\n\n",
        "}",
    ),
    "csharp": Sample(
        ".cs",
        "using System;\n\nnamespace A.B\n{\n    public class Box\n    {",
        ">        public int NAME(int first, string second)\n        {\n"
        "            ...\n            return 1;\n        }\n\n",
        "    }\n}",
    ),
    "c": Sample(
        ".c",
        "#include <stdio.h>\n#include <stdlib.h>\n",
        ">static int NAME(int first, const char *second)\n{\n    ...\n    return 1;\n}\n\n",
    ),
    "cpp": Sample(
        ".cpp",
        "#include <vector>\n#include <string>\n\nnamespace box {\n",
        ">int Box::NAME(int first, std::string second) {\n    ...\n    return 1;\n}\n\n",
        "}",
    ),
    "ruby": Sample(
        ".rb",
        "require 'set'\n\nmodule Box",
        ">  def NAME(first, second)\n    ...\n    second\n  end\n\n",
        "end",
        body="NAME_{i} = compute(NAME_{i}, {k})",
    ),
    "php": Sample(
        ".php",
        "<?php\n\nnamespace A;\n\nuse B\\C;\n\nclass Box\n{",
        ">    public function NAME(int $first, $second)\n    {\n        ...\n        return 1;\n    }\n\n",
        "}",
        body="$NAME_{i} = compute($NAME_{i}, {k});",
    ),
    "kotlin": Sample(
        ".kt",
        "package a.b\n\nimport a.c\n\nclass Box {",
        ">    override fun NAME(first: Int, second: String): Int {\n        ...\n        return 1\n    }\n\n",
        "}",
        body="val NAME_{i} = compute(NAME_{i}, {k})",
    ),
    "swift": Sample(
        ".swift",
        "import Foundation\n\nclass Box {",
        ">    public func NAME(first: Int, second: String) -> Int {\n"
        "        ...\n        return 1\n    }\n\n",
        "}",
        body="let NAME_{i} = compute(NAME_{i}, {k})",
    ),
    "bash": Sample(
        ".sh",
        "#!/bin/bash\nset -eu\n",
        ">NAME() {\n    ...\n    echo done\n}\n\n",
        body="local NAME_{i}=$(compute $NAME_{i} {k})",
    ),
}


def read(text: str, suffix: str = "", **hints) -> Shortened:
    args = {"command": f"cat src/box{suffix}"} if suffix else None
    result = shorten(text, tool="terminal", args=args, **hints)
    assert not result.reason.startswith("fault"), result.reason
    if result.changed:
        assert faithful.check(text, result.text, kind=result.kind) == []
    return result


@pytest.fixture(params=["as installed", "without the extra"])
def extra(request, monkeypatch):
    if request.param == "without the extra":
        monkeypatch.setattr(trees, "_parsing", lambda _: None)


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_every_head_is_in_view_and_insides_are_folded(sample, named, extra):
    lines, heads = sample.lines()
    result = read("\n".join(lines), sample.suffix if named else "")
    assert result.kind == "source"
    assert set(heads) <= set(result.text.split("\n"))
    assert result.kept < 0.6 * result.total


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_language_is_told_by_its_marks(sample):
    text = "\n".join(sample.lines()[0]).encode()
    by_marks, named = language_of(text, frozenset()), language_of(text, {sample.suffix})
    assert by_marks == named


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_parser_and_indentation_find_the_same_heads(sample):
    text = "\n".join(sample.lines()[0]).encode()
    language = language_of(text, {sample.suffix})
    parsed = python.roles_of(text) if language.name == "python" else trees.roles_of(text, language)
    assert _heads(parsed) == _heads(scan.roles_of(text))


def _heads(roles: bytearray) -> list[int]:
    return [index for index, role in enumerate(roles) if role in {Role.HEAD, Role.MEMBER}]


def module(functions: int) -> tuple[str, list[str]]:
    """A Python module with heads of several shapes, and all its top-level heads."""
    out = ['"""A module."""', "", "import os", ""]
    heads: list[str] = []
    for n in range(functions):
        shapes = (
            [f"def {name(n)}_{n}(first, second):"],
            [
                f"@decorated({n})",
                f"async def {name(n)}_{n}(",
                "    first: int,",
                f"    second: int = {n},",
                "):",
            ],
            [f"class {name(n).title()}{n}(Base):"],
        )
        head = shapes[n % 3]
        heads += [line for line in head if name(n).lower() in line.lower() or "@" in line]
        out += [*head, f'    """Do {name(n)}."""']
        out += [f"    {word}_{n} = {word}({n * 7919 + at})" for at, word in enumerate(WORDS * 2)]
        out += ["", ""]
    return "\n".join(out), heads


def test_of_a_long_python_module_all_heads_at_the_top_are_in_view():
    text, heads = module(90)
    result = read(text, ".py")
    assert result.kind == "source"
    assert set(heads) <= set(result.text.split("\n"))


def test_code_quoted_in_a_docstring_is_no_definition():
    text, _ = module(9)
    quoted = 'def real():\n    """Call it.\n\ndef quoted():\n    """\n    return 1\n'
    roles = python.roles_of((text + quoted).encode())
    rows = (text + quoted).split("\n")
    assert roles[rows.index("def real():")] == Role.HEAD
    assert roles[rows.index("def quoted():")] == Role.BODY
    assert scan.roles_of((text + quoted).encode())[rows.index("def quoted():")] == Role.BODY


@pytest.mark.parametrize(
    "telling",
    [
        'raise LedgerMismatch("the sums differ")',
        "# TODO: round to cents before the sum",
        "weigh(zanzibar)",
    ],
)
def test_what_an_inside_says_that_nothing_else_does_is_in_view(telling):
    lines, _ = SAMPLES["python"].lines()
    at = max(index for index, line in enumerate(lines) if "ember_amber_4 =" in line)
    lines.insert(at, "    " + telling)
    assert telling in read("\n".join(lines), ".py", question="Where does zanzibar come from?").text


def test_broken_python_is_outlined_all_the_same():
    lines, heads = SAMPLES["python"].lines()
    lines.insert(30, "    if (:")
    text = "\n".join(lines)
    assert python.roles_of(text.encode()) is None
    assert set(heads) <= set(read(text, ".py").text.split("\n"))


def test_two_files_at_once_are_outlined():
    first, heads = SAMPLES["python"].lines()
    second, more = SAMPLES["rust"].lines()
    result = shorten("\n".join(first + second), tool="terminal", args={"command": "cat a.py b.rs"})
    assert set(heads + more) <= set(result.text.split("\n"))


def _python_rows(count: int) -> list[str]:
    return SAMPLES["python"].lines()[0][:count]


NOT_SOURCE = {
    "hits of a search": lambda rows: [f"src/{name(n)}.py:{n}:{row}" for n, row in enumerate(rows)],
    "hits without names": lambda rows: [f"def {name(n)}_{n}(first, second):" for n in range(len(rows))],
    "a diff": lambda rows: (
        ["diff --git a/x.py b/x.py", "--- a/x.py", "+++ b/x.py", "@@ -1,3 +1,4 @@"]
        + ["+" + row for row in rows]
    ),
    "a log": lambda rows: [f"2026-01-31 08:00:{n % 60:02} INFO ran {row}" for n, row in enumerate(rows)],
    "Markdown with code": lambda rows: [
        line
        for n in range(0, len(rows), 8)
        for line in (
            f"## Part {n}",
            "",
            f"How to do {name(n)}:",
            "",
            "```python",
            *rows[n : n + 8],
            "```",
            "",
        )
    ],
    "YAML": lambda rows: [
        line for n in range(len(rows)) for line in (f"{name(n)}{n}:", f"  import: {n}", "  - def")
    ],
    "an INI file": lambda rows: [
        line for n in range(len(rows)) for line in (f"[{name(n)}]", f"import = {n}")
    ],
    "a Dockerfile": lambda rows: [f"RUN python -c 'import {name(n)}' && \\" for n in range(len(rows))],
    "stack traces": lambda rows: [
        line
        for n, row in enumerate(rows)
        for line in (
            "Traceback (most recent call last):",
            f'  File "a.py", line {n}, in f',
            f"    import {name(n)}",
        )
    ],
    "a report with code": lambda rows: [
        line
        for n, row in enumerate(rows)
        for line in (f"a.py:{n}: error: bad name", f"    {row}", "    ^^^^")
    ],
    "prose": lambda rows: [
        f"The class {name(n)} defines a function, and import duties rise." for n in range(len(rows))
    ],
}


@pytest.mark.parametrize("make", NOT_SOURCE.values(), ids=NOT_SOURCE)
def test_what_quotes_source_is_no_source(make):
    assert read("\n".join(make(_python_rows(200)))).kind != "source"
    assert read("\n".join(make(_python_rows(200))), ".py").kind != "source"


def test_what_grep_found_is_no_file():
    lines, _ = SAMPLES["python"].lines()
    result = shorten("\n".join(lines), tool="terminal", args={"command": "grep -A40 def box.py"})
    assert result.kind != "source"


PIECES = (
    "class A {|def f(|fn f() {|}|)|/*|*/|{|(|  x = 1||import a|`${|@d|#if A|<<~A|lambda: (yield)|é\0|if x:"
)
TRIPLES = ['"' * 3, "'" * 3]
FRAGMENTS = st.lists(st.sampled_from([*PIECES.split("|"), *TRIPLES, "\t" * 40, "f(" * 40]), max_size=60).map(
    "\n".join
)


@settings(max_examples=60, deadline=None)
@given(st.one_of(FRAGMENTS.map(str.encode), st.binary(max_size=400)), st.sampled_from((*LANGUAGES, None)))
def test_any_text_has_a_role_for_each_line(data, language):
    roles = roles_of(data, language)
    assert len(roles) == data.count(b"\n") + 1
    assert set(roles) <= set(Role)
    assert roles == roles_of(data, language)


GARBAGE = {
    "unclosed comments": b"x /*\n",
    "unclosed quotes": b'"""\n',
    "unclosed heads": b"def f(\n",
    "marks": b"`${<",
}


@pytest.mark.parametrize("piece", GARBAGE.values(), ids=GARBAGE)
def test_a_parser_that_works_too_long_is_stopped(piece):
    data = piece * (8_000 // len(piece))
    language = next(row for row in LANGUAGES if row.name == "typescript")
    assert len(roles_of(data, language)) == data.count(b"\n") + 1


def test_a_text_that_is_read_too_often_is_given_up():
    work = trees._Work(b"x" * 100_000, steps=1_000_000, reads=3)
    assert [bool(work.read(0, None)) for _ in range(4)] == [True, True, False, False]
    assert work.is_too_much(0, False)


def test_unknown_escapes_warn_nobody(recwarn):
    text, _ = module(9)
    assert python.roles_of((text + '\nPATTERN = "\\d\\"\\w" + f"\\{text}"\n').encode()) is not None
    assert not recwarn.list


def test_importing_turngate_loads_no_parser():
    code = "import sys, turngate; sys.exit(any(name.startswith('tree_sitter') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
