"""The digest: what stands in view for messages that went, made without a model. Pure.

Quotes only, each with the number of its message, within a limit of tokens. What did not fit is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from turngate.events import one_line
from turngate.window.offload import excerpt
from turngate.window.record.facts import Facts, weight

#: A request in the digest is quoted whole up to so many tokens; the first one always, up to what it is given.
_REQUEST_TOKENS: Final = 250
_MORE: Final = "… {} more, not shown"


@dataclass(frozen=True, slots=True)
class Room:
    """What a digest may take."""

    tokens: float
    """In all, the first request apart."""
    first_request_tokens: float
    """The first request; a longer one is shortened."""
    count: Callable[[str], float]
    """Tokens of a text."""


def render(facts: Facts, room: Room) -> str:
    """The digest, the most needed first; "" where nothing is known."""
    parts = [_first_request(facts, room)]
    left = room.tokens
    for section in _SECTIONS:
        lines = list(section.lines(facts))
        text = _section(section.title, lines, min(left, section.share * room.tokens), room)
        left -= room.count(text) if text else 0
        parts.append(text)
    return "\n".join(filter(None, parts))


def first_request_tokens(facts: Facts, count: Callable[[str], float]) -> float:
    """What the first request takes in a digest when it is quoted whole."""
    return count(facts.requests[0][1]) if facts.requests else 0.0


def _first_request(facts: Facts, room: Room) -> str:
    if not facts.requests:
        return ""
    number, text = facts.requests[0]
    whole = room.count(text) <= room.first_request_tokens
    shown = text if whole else excerpt(text, room.first_request_tokens, room.count)
    return f"## The first request, message {number}{'' if whole else ', shortened'}\n{shown}"


def _section(title: str, lines: Sequence[str], limit: float, room: Room) -> str:
    """A title and as many lines, the first ones, as fit; "" if not even one does."""
    left = limit - room.count(f"## {title}\n{_MORE}")
    kept = 0
    for line in lines:
        left -= room.count(line) + 1
        if left < 0:
            break
        kept += 1
    if not kept:
        return ""
    more = [_MORE.format(len(lines) - kept)] if kept < len(lines) else []
    return "\n".join([f"## {title}", *lines[:kept], *more])


def _requests(facts: Facts) -> Iterator[str]:
    for number, text in reversed(facts.requests[1:]):
        yield f"[{number}] {excerpt(text, _REQUEST_TOKENS)}"


def _errors(facts: Facts) -> Iterator[str]:
    for call, (line, number) in reversed(facts.errors.items()):
        yield f"[{number}] {one_line(call, 120)}: {line}"


def _past_errors(facts: Facts) -> Iterator[str]:
    still = {number for _, number in facts.errors.values()}
    for number, line in reversed(facts.past_errors):
        if number not in still:
            yield f"[{number}] {line}"


def _decisions(facts: Facts) -> Iterator[str]:
    for number, line in reversed(facts.decisions):
        yield f"[{number}] {line}"


def _files(facts: Facts) -> Iterator[str]:
    newest = list(reversed(facts.files.items()))
    for state in ("written", "read"):
        for path, (was, number) in newest:
            if was == state:
                yield f"[{number}] {state}: {path}"


def _commands(facts: Facts) -> Iterator[str]:
    for command, (outcome, number) in reversed(facts.commands.items()):
        yield f"[{number}] {outcome}: {command}"


def _identifiers(facts: Facts) -> Iterator[str]:
    """Names in lines of several, those that calls used first."""
    ranked = sorted(facts.identifiers, key=lambda name: weight(facts.identifiers[name]), reverse=True)
    for at in range(0, len(ranked), 4):
        yield " · ".join(ranked[at : at + 4])


def _markers(facts: Facts) -> Iterator[str]:
    for ref, line in reversed(facts.markers.items()):
        yield f"{ref} {line}"


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the digest."""

    title: str
    #: At most so much of the whole; what a section leaves goes to those behind it.
    share: float
    lines: Callable[[Facts], Iterator[str]]


_SECTIONS: Final = (
    _Section("Still to do, as stated last", 0.25, lambda facts: iter(facts.todos)),
    _Section("Errors still open", 0.2, _errors),
    _Section("Errors met on the way, newest first", 0.25, _past_errors),
    _Section("Later requests, newest first", 0.35, _requests),
    _Section("Decided or found out, newest first", 0.25, _decisions),
    _Section("Files, newest first", 0.25, _files),
    _Section("Commands, newest first", 0.3, _commands),
    _Section("Names and numbers that occurred", 0.5, _identifiers),
    _Section("Stored outputs: id, call", 1.0, _markers),
)
