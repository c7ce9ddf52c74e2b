"""The languages whose files are outlined, and how a text is told to be in one."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """Where a tree-sitter grammar is found."""

    module: str
    function: str = "language"


@dataclass(frozen=True, slots=True)
class Language:
    """One programming language."""

    name: str
    #: How its files' names end, parted by blanks.
    suffixes: str
    #: What lines begin with that hardly another language has, as regular expressions.
    marks: tuple[bytes, ...] = ()
    #: None where tree-sitter isn't needed.
    grammar: Grammar | None = None


#: Where a text has as many marks of two languages, the first is taken.
LANGUAGES: tuple[Language, ...] = (
    Language(
        "python",
        ".py .pyi .pyw",
        (
            rb"[ \t]*(?:async )?def \w+\(",
            rb"[ \t]*class \w+(?:\(.*\))?:",
            rb"from [\w.]+ import ",
            rb"import [\w.]+(?: as \w+)?$",
        ),
    ),
    Language(
        "typescript",
        ".ts .mts .cts",
        (
            rb"(?:export )?(?:interface|type|declare|abstract class) \w+",
            rb"import (?:type )?[\w{*].* from ",
            rb"[ \t]*(?:public|private|protected|readonly) \w+.*: \w+",
            rb"(?:export )?(?:async )?function \w+\(.*\w: \w",
        ),
        Grammar("tree_sitter_typescript", "language_typescript"),
    ),
    Language("tsx", ".tsx", (), Grammar("tree_sitter_typescript", "language_tsx")),
    Language(
        "javascript",
        ".js .mjs .cjs .jsx",
        (
            rb"(?:export )?(?:default )?(?:async )?function\*? ?\w*\(",
            rb"(?:export )?(?:const|let|var) [\w{]",
            rb"import [\w{*].* from ",
            rb"module\.exports|exports\.\w+|['\"]use strict",
        ),
        Grammar("tree_sitter_javascript"),
    ),
    Language(
        "go",
        ".go",
        (
            rb"package \w+$",
            rb"func (?:\(\w+ \*?[\w.\[\]]+\) )?\w+(?:\[.*\])?\(",
            rb"type \w+ (?:struct|interface)\b",
            rb"import (?:\(|\"[\w./]+\")$",
        ),
        Grammar("tree_sitter_go"),
    ),
    Language(
        "rust",
        ".rs",
        (
            rb"[ \t]*(?:pub(?:\([\w: ]+\))? )?(?:(?:async|const|unsafe) )*(?:fn|trait|mod|use) [\w:]+",
            rb"[ \t]*(?:unsafe )?impl\b",
            rb"#!?\[\w+",
        ),
        Grammar("tree_sitter_rust"),
    ),
    Language(
        "java",
        ".java",
        (
            rb"package [\w.]+;",
            rb"import (?:static )?[\w.]+(?:\.\*)?;",
            rb"(?:public |abstract |final )*(?:class|interface|enum|record) \w+",
            rb"[ \t]+(?:public|private|protected) (?!func |fun )[\w<>\[\], ]+\(.*\{",
        ),
        Grammar("tree_sitter_java"),
    ),
    Language(
        "csharp",
        ".cs",
        (
            rb"using (?:static )?[\w.]+;",
            rb"namespace [\w.]+$",
            rb"[ \t]*\[\w+(?:\(.*\))?\]$",
            rb".*\{ get; ",
        ),
        Grammar("tree_sitter_c_sharp"),
    ),
    Language(
        "cpp",
        ".cpp .cc .cxx .hpp .hh .hxx .ino .cu",
        (
            rb"#include <\w+>",
            rb"(?:inline )?namespace \w*",
            rb"[ \t]*(?:template ?<|using (?:namespace )?[\w:]+|(?:public|private|protected):$)",
            rb"(?:class|struct) \w+.*[{:]$",
            rb"[\w:<>*& ]+\w::~?\w+\(",
        ),
        Grammar("tree_sitter_cpp"),
    ),
    Language(
        "c",
        ".c .h",
        (
            rb"#(?:include [<\"]|define |ifdef |ifndef |if |endif)",
            rb"(?:static |extern )?(?:inline )?[A-Za-z_][\w *]* \**\w+\(.*[,){]$",
            rb"typedef |struct \w+ \{",
        ),
        Grammar("tree_sitter_c"),
    ),
    Language(
        "ruby",
        ".rb .rake .gemspec",
        (
            rb"require(?:_relative)? ['\"]",
            rb"[ \t]*def (?:self\.)?\w+[?!]?(?: |\(|$)",
            rb"[ \t]*(?:module|class) [A-Z][\w:]*(?: < .*)?$",
            rb"[ \t]*end$",
        ),
        Grammar("tree_sitter_ruby"),
    ),
    Language(
        "php",
        ".php .phtml",
        (
            rb"<\?php",
            rb"(?:use|namespace) [\w\\]+;",
            rb"[ \t]*(?:(?:public|private|protected|static|final) )+function ",
            rb"[ \t]*\$\w+ = ",
        ),
        Grammar("tree_sitter_php", "language_php"),
    ),
    Language(
        "kotlin",
        ".kt .kts",
        (
            rb"(?:import|package) [\w.]+$",
            rb"[ \t]*(?:(?:override|private|internal|suspend|inline|public) )*fun ",
            rb"(?:data|sealed|open) class ",
            rb"[ \t]*val \w+",
        ),
        Grammar("tree_sitter_kotlin"),
    ),
    Language(
        "swift",
        ".swift",
        (
            rb"import [A-Z]\w+$",
            rb"[ \t]*(?:(?:public|private|static|override|internal|mutating|@\w+) )*func \w+",
            rb"(?:public )?(?:extension|protocol) \w+",
            rb"[ \t]*(?:guard let\b|init\()",
        ),
        Grammar("tree_sitter_swift"),
    ),
    Language(
        "bash",
        ".sh .bash .zsh .ksh",
        (
            rb"#!\S*(?:/|env )(?:ba|z|k|da)?sh",
            rb"[\w-]+ ?\(\) ?\{",
            rb"[ \t]*(?:fi|done|esac)$",
            rb"[A-Z_]+=|[ \t]*local \w+",
        ),
        Grammar("tree_sitter_bash"),
    ),
)
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes.split()}
SUFFIXES = frozenset(_BY_SUFFIX)
_MARKS = {
    language.name: re.compile(b"^(?:" + b"|".join(language.marks) + b")", re.MULTILINE)
    for language in LANGUAGES
    if language.marks
}
#: So much of a text is looked at.
GUESS_BYTES = 8_000


def language_of(data: bytes, words: AbstractSet[str]) -> Language | None:
    """The language of `data`: the one whose suffix is among the call's `words`, or that with most marks."""
    named = {_BY_SUFFIX[word] for word in words if word in _BY_SUFFIX}
    if len(named) == 1:
        return named.pop()
    head = data[:GUESS_BYTES]
    counts = {name: len(marks.findall(head)) for name, marks in _MARKS.items()}
    best = max(LANGUAGES, key=lambda language: counts.get(language.name, 0))
    return best if counts.get(best.name) else None
