"""What is known of the call that a text is the result of, and a sample of the text to recognise it by."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from turngate.compress.budget import CURVES, Curve
from turngate.compress.command import words_of
from turngate.compress.notes import Notes
from turngate.compress.units import WORD_TABLE
from turngate.tokens import estimate

#: Enough lines to tell a kind by; each is cut, so that one endless line costs no more than a short one.
SAMPLE_LINES = 16
SAMPLE_LINE_CHARS = 160
SAMPLE_HEAD_CHARS = 8_000
#: Of a text much longer than the head, so many of the lines come from its middle, and so many from its end.
SPREAD_LINES = 4
SPREAD_BYTES = 1_200

_WORD = re.compile(r"[A-Za-z]+")
_NUMBER = re.compile(rb"\d{3,}")
#: Shorter words of a question say nothing.
ASKED_LEAST_BYTES = 3
#: Words that a question has whatever it asks for.
_STOP = frozenset(
    word
    for words in (
        b"the and for are was were what which where when who why how does did has have had with this that",
        "these those from into there here give tell show find name line file value follows after before",
        b"begins output text can you please should would could will not all any its about between",
    )
    for word in words.split()
)


@dataclass(frozen=True, slots=True)
class Call:
    """The call behind a result."""

    tool: str = ""
    #: Every string among the arguments.
    texts: tuple[str, ...] = ()
    #: None when it isn't known whether the call failed.
    failed: bool | None = None
    #: The words of the user's question that say what is wanted.
    asked: frozenset[bytes] = frozenset()
    curve: Curve = CURVES["default"]

    def verbs(self) -> set[str]:
        """The words of the tool's name and the first word of each argument, in small letters."""
        first = [match[0] for text in self.texts if (match := _WORD.match(text.lstrip()))]
        return {word.lower() for word in (*_WORD.findall(self.tool.replace("_", " ")), *first)}


def call_of(
    *,
    tool: str | None,
    args: Mapping[str, Any] | str | None,
    failed: bool | None,
    question: str | None,
    budget: str,
) -> Call:
    """The call, from what the caller knows; an unknown budget is taken for the default."""
    return Call(
        tool=tool or "",
        texts=tuple(_strings(args)) if args else (),
        failed=failed,
        asked=asked(question) if question else frozenset(),
        curve=CURVES.get(budget, CURVES["default"]),
    )


def asked(question: str) -> frozenset[bytes]:
    """The telling words and numbers of a question, as the scoring compares them."""
    data = question.encode("utf-8", "surrogatepass")
    words = {word for word in data.translate(WORD_TABLE).split() if len(word) >= ASKED_LEAST_BYTES}
    return frozenset((words - _STOP) | set(_NUMBER.findall(data)))


def _strings(value: object) -> Iterator[str]:
    """Every string in arguments, which may come as the JSON text that the model wrote."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value) if value[:1] in '{["' else value
        except orjson.JSONDecodeError:
            yield str(value)
            return
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack.extend(reversed(list(item.values())))
        elif isinstance(item, list | tuple):
            stack.extend(reversed(item))


@dataclass(frozen=True)
class Doc:
    """A text on its way through a kind."""

    #: As it came.
    text: str
    #: In UTF-8, as a terminal shows it, with the same line breaks.
    data: bytes
    call: Call
    notes: Notes
    #: Set for a text inside another; None when the call's curve says it.
    budget_tokens: float | None = None

    @cached_property
    def tokens(self) -> int:
        """An estimate for the text as it came."""
        return estimate(self.text)


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a text, resolved as a terminal would."""

    head: str
    lines: tuple[str, ...]
    #: What the call leads one to expect: commands and suffixes of files (`command.words_of`).
    words: frozenset[str]

    def share(self, pattern: re.Pattern[str]) -> float:
        """The share of the sample's lines that `pattern` matches at their start."""
        return sum(map(bool, map(pattern.match, self.lines))) / max(1, len(self.lines))


def sample_of(data: bytes, call: Call) -> Sample:
    """A sample of `data` (UTF-8), which the result of `call` is or holds."""
    head = data[:SAMPLE_HEAD_CHARS].decode("utf-8", "replace")
    told = _told(head.split("\n", SAMPLE_LINES * 2)[: SAMPLE_LINES * 2])[:SAMPLE_LINES]
    if len(data) > 2 * len(head):
        told[SAMPLE_LINES - 2 * SPREAD_LINES :] = [
            *_lines_at(data, len(data) // 2),
            *_lines_at(data, len(data) - SPREAD_BYTES),
        ]
    return Sample(
        head, tuple(told), words_of(call.tool, call.texts) if call.tool or call.texts else frozenset()
    )


def _lines_at(data: bytes, start: int) -> list[str]:
    """Some whole lines of `data` from `start` on."""
    lines = data[start : start + SPREAD_BYTES].decode("utf-8", "replace").split("\n")[1:-1]
    return _told(lines)[:SPREAD_LINES]


def _told(lines: list[str]) -> list[str]:
    """The beginnings of the lines that aren't blank."""
    return [line[:SAMPLE_LINE_CHARS] for line in lines if line and not line.isspace()]
