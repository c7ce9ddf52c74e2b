"""Source files: heads of definitions, imports and constants rather than the insides of functions.

A file that comes without line numbers was mostly asked for to be read about. Of each definition its head
says what it is for, at a tenth of the cost. What an inside says that nothing else does still wins by its own
score: error messages, what is left to do, and what the question names.
"""

from __future__ import annotations

import re
from functools import partial

from turngate.compress.call import SAMPLE_LINE_CHARS, Doc, Sample
from turngate.compress.command import words_of
from turngate.compress.kinds.code import Role, language_of, roles_of
from turngate.compress.kinds.code.languages import SUFFIXES
from turngate.compress.lines import Shown, Ways, shorten_lines
from turngate.compress.select import COST_EXPONENT, COST_OFFSET_TOKENS
from turngate.compress.units import Units

_MODIFIERS = (
    r"(?:(?:pub(?:\([\w: ]+\))?|export|default|declare|public|private|protected|internal|static|final"
    r"|abstract|sealed|open|override|async|suspend|inline|unsafe|partial|data)\ )*"
)
#: Lines that define or import, in any of the languages.
_DEFINES = re.compile(
    rf"""\s*{_MODIFIERS}(?:
        (?:def|class|func|fn|fun|function\*?|struct|enum|interface|trait|impl|protocol|extension|record)
            \ [\w$<(*&\[].*(?:[:{{(,)\]]|end|\w)\s*$
      | (?:namespace|module|mod|type|macro_rules!)\ [\w.:\\]+\s*[;{{=(<].*$
      | (?:const|let|var)\ [\w${{].*=\s*(?:async\s*)?(?:function\b|\(.*=>|require\().*$
      | from\ [\w.]+\ import\ [\w(*].*$
      | import\ (?:static\ )?[\w.*]+(?:\ as\ \w+)?(?:,\ ?[\w.]+(?:\ as\ \w+)?)*;?\s*(?:\#.*)?$
      | import\ (?:type\ )?(?:[\w${{*].*\ from\ )?['"(].*$
      | \#\s*(?:include\s*[<"]|define\ \w|ifndef\ \w|ifdef\ \w|pragma\ )
      | (?:use|using)\ (?:static\ |namespace\ )?[\w:\\.=\ ]+(?:\{{[^}}]*\}})?;\s*$
      | package\ [\w.]+;?\s*$ | <\?php | extern\ crate\ \w+;
      | require(?:_relative|_once)?[\ (]+['"]
      | (?:typedef|template)\ ?[<\w].*$
      | (?:static\ |extern\ |const\ )*(?:unsigned\ )?
        (?:void|int|char|bool|float|double|size_t|long|string|String|auto)\ [*&]*[\w:]+\(.*[{{,)]\s*$
      | [\w-]+\ ?\(\)\ ?\{{\s*$
    )""",
    re.VERBOSE,
)
_OPENERS = frozenset(
    word
    for words in (
        "pub export default declare public private protected internal static final abstract sealed open",
        "override async suspend inline unsafe partial data def class func fn fun function function* struct",
        "enum interface trait impl protocol extension record namespace module mod type macro_rules! const",
        "let var from import # #include #define #ifndef #ifdef #pragma use using package extern require",
        "require_relative require_once typedef template unsigned void int char bool float double size_t",
        "long string String auto",
    )
    for word in words.split()
)
#: Lines as code has them: comments, insides, and what ends in a sign.
_CODE = re.compile(
    r"\s*(?://|/\*|\*|#|--|\"{3}|'{3})|\s*@\w|\s+\S|.*[{}()\[\];,:\\=>|&+'\"`]\s*$"
    r"|[\w.$\[\]'\"]+(?:\s*:\s*[^=]+)?\s*(?:[-:+*/|&?]|\|\|)?=\s*\S"
    r"|(?:return|if|for|while|else|elif|try|finally|end|fi|done|esac|do|then|break|raise|throw|var|let|const|val"
    r"|local|export|set|static|pass|assert|yield|await|async|with|print|echo|case|switch|goto|del|global|public"
    r"|private)\b"
)
#: Lines that quote code amid something else: frames, numbered and marked lines, results of searches.
_QUOTES = re.compile(
    r'\s*(?:Traceback|File "|at \S+[ (]|\d+\s*[:|│]|[│├└║]|>>>|\$ )|[+] |[-+]{3} |[\w./\\-]+\.\w{1,5}:|```'
    r"|E   |=+ |\[\w+\] |={5}|_{3,} |[.FEsx]+ +\["
)
LEAST_DEFINITIONS = 2
LEAST_CODE_SHARE = 0.85
#: With the suffix of a source file among the call's words, or an interpreter named in the first line.
NAMED_LEAST_DEFINITIONS, NAMED_LEAST_CODE_SHARE = 1, 0.75
#: More lines that define are a list of definitions: what a search found.
MOST_DEFINITIONS_SHARE = 0.75
CONFIDENCE, NAMED_CONFIDENCE = 0.75, 0.88
#: Lines looked at behind an opening comment.
SAMPLE_LINES = 40
_SEARCHES = frozenset({"grep", "rg", "ag", "ack", "git grep", "search"})
#: The comments or the docstring that a file may open with.
_OPENING = re.compile(
    r"""(?:\s*(?:
        (?://|--|\#(?!\s*(?:include|define|if|pragma)|!?\[))[^\n]*
      | /\*.*?\*/
      | (?:__\w+__\ *=\ *)?[rRuU]?(?:\"{3}.*?\"{3}|'{3}.*?'{3})
      | __\w+__\ *=\ *(?:\[[^]]*\]|[^\[\n]+)
    ))+""",
    re.DOTALL | re.VERBOSE,
)
#: A document quotes code between such lines.
_FENCE = "\n```"
_SHEBANG = re.compile(r"#!\s*/\S+")

#: What a head is worth for each unit of its rank (`select`), whatever it costs.
HEAD_RANK: dict[int, float] = {Role.HEAD: 2.0, Role.MEMBER: 1.2}
#: Added to the score of a line.
WORTH: dict[int, float] = {
    Role.DOC: 0.8,
    Role.IMPORT: 0.4,
    Role.CONSTANT: 0.8,
    Role.BODY: -2.2,
    Role.END: -2.0,
}
#: What is left to do, and why something fails.
TOLD = 1.6
_TELLS = (b"TODO", b"FIXME", b"raise ", b"throw ")


def recognise(sample: Sample) -> float:
    """Lines that define or import, among others that only code has."""
    if not _SEARCHES.isdisjoint(sample.words):
        return 0.0
    lines = _behind_opening(sample)
    defining = [_may_define(line) and bool(_DEFINES.match(line)) for line in lines]
    # A line that comes again and again is a setting of a configuration.
    definitions = len({line.strip() for line, defines in zip(lines, defining, strict=True) if defines})
    if not definitions or _FENCE in sample.head or definitions > MOST_DEFINITIONS_SHARE * len(lines) + 3:
        return 0.0
    named = not SUFFIXES.isdisjoint(sample.words) or bool(_SHEBANG.match(sample.head))
    if definitions < (NAMED_LEAST_DEFINITIONS if named else LEAST_DEFINITIONS):
        return 0.0
    code = sum(
        1
        for line, defines in zip(lines, defining, strict=True)
        if (defines or _CODE.match(line)) and not _QUOTES.match(line)
    )
    if code < (NAMED_LEAST_CODE_SHARE if named else LEAST_CODE_SHARE) * len(lines):
        return 0.0
    return NAMED_CONFIDENCE if named else CONFIDENCE


def _may_define(line: str) -> bool:
    """Whether the first word of a line is one that `_DEFINES` may match: cheaper, and mostly not so."""
    word = line.split(None, 1)[0]
    return word in _OPENERS or "(" in word or "<" in word


def _behind_opening(sample: Sample) -> tuple[str, ...]:
    """The first lines behind the comments or the docstring that a text may open with."""
    opening = _OPENING.match(sample.head)
    if opening is None:
        return sample.lines
    lines = sample.head[opening.end() :].split("\n", SAMPLE_LINES)[:SAMPLE_LINES]
    return tuple([line[:SAMPLE_LINE_CHARS] for line in lines if line and not line.isspace()])


def shorten(doc: Doc) -> Shown:
    """The lines of a source file."""
    words = words_of(doc.call.tool, doc.call.texts)
    roles = roles_of(doc.data, language_of(doc.data, words))
    return shorten_lines(doc, Ways(bonus=partial(_bonus, roles), places=False))


def _bonus(roles: bytearray, units: Units, total: list[float]) -> None:
    """By the roles of the lines that the units are of."""
    lines = range(len(units.rows)) if units.lines is None else units.lines
    for index, line in enumerate(lines):
        role = roles[line]
        if role in HEAD_RANK:
            total[index] += HEAD_RANK[role] * (units.tokens[index] + COST_OFFSET_TOKENS) ** COST_EXPONENT
        elif role:
            total[index] += WORTH[role]
    for index in _telling(units.blob):
        if roles[lines[index]] == Role.BODY:
            total[index] += TOLD


def _telling(blob: bytes) -> set[int]:
    """The units that hold one of the words."""
    found: set[int] = set()
    for word in _TELLS:
        number = before = 0
        at = blob.find(word)
        while at >= 0:
            number += blob.count(b"\n", before, at)
            found.add(number)
            before, at = at, blob.find(word, at + 1)
    return found
