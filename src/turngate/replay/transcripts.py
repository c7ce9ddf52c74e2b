"""Readers of recorded sessions. The format is recognised by content, never by the file's name.

Read are Chat Completions and Anthropic Messages (a JSON list of messages, an object with ``messages``, a
list of such objects, or JSON lines of either), Claude Code's session files, and the database of the Hermes
agent. What is wrong is told with its line, and the rest goes on.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import orjson

from turngate.errors import TranscriptError, WireError
from turngate.hermes.state import is_state
from turngate.replay import hermes_db
from turngate.replay.claude_code import Sessions, is_line
from turngate.replay.recorded import Entry, Epoch, Transcript
from turngate.wire import Wire, elements, sniff, violations
from turngate.wire.scan import Node, scan, value_of

if TYPE_CHECKING:
    from pathlib import Path

Complain: TypeAlias = Callable[[TranscriptError], None]
"""Takes each fault that was found; returns to go on, or raises to stop."""

SUFFIXES: Final = (".json", ".jsonl", ".ndjson")
"""Files of a folder that are looked into."""

_LineOf: TypeAlias = Callable[[int], int]
"""From an offset in a body to the number of its line."""

_Kind: TypeAlias = Literal["conversation", "message", "claude-code"]
_REPLAYED: Final[Mapping[Wire | None, Literal["chat", "anthropic"]]] = {
    "chat": "chat",
    "anthropic": "anthropic",
}
"""The wires in which sessions are read."""


def find_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files themselves, and all transcripts below the folders, in the order of their names."""
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
        else:
            yield path


def read_all(paths: Iterable[Path], complain: Complain) -> Iterator[Transcript]:
    """Every conversation in these files and folders, one after the other; only one file is held at a time."""
    for path in find_files(paths):
        yield from read(path, complain)


def read(path: Path, complain: Complain) -> Iterator[Transcript]:
    """Every conversation in one file.

    Each fault goes to ``complain`` as a :class:`~turngate.errors.TranscriptError` that names file and line.
    """
    try:
        body = path.read_bytes()
    except OSError as error:
        complain(TranscriptError(f"{path}: {error.strerror}; give a file that can be read"))
        return
    if is_state(body):
        yield from hermes_db.transcripts(path, complain, parse)
        return
    yield from parse(body, str(path), complain)


def parse(body: bytes, name: str, complain: Complain) -> Iterator[Transcript]:
    """The same for the content of a file; ``name`` is what its faults and conversations are named by."""
    source = _Source(name, complain)
    if not body.strip():
        source.fault(1, "the file is empty; there is nothing to replay")
    elif _is_lines(body):
        yield from _judged(_lines(body, source), source)
    else:
        yield from _judged(_document(body, source), source)


@dataclass(frozen=True, slots=True)
class _Source:
    """A file, and whom to tell of its faults."""

    name: str
    complain: Complain

    def fault(self, line: int, text: str) -> None:
        self.complain(TranscriptError(f"{self.name}:{line}: {text}"))


def _is_lines(body: bytes) -> bool:
    """Whether the file is JSON lines: its first line is a whole value and not all there is.

    A damaged first line is made up for by a second one, unless the file as a whole is a document after all.
    """
    first, _, rest = body.strip().partition(b"\n")
    head = _loads_or_none(first)
    if isinstance(head, dict | list):
        return bool(rest) or is_line(head)
    second = _loads_or_none(rest.partition(b"\n")[0])
    return isinstance(second, dict | list) and _loads_or_none(body) is None


def _loads(line: bytes) -> Any:
    """A JSON value; what only the fast parser refuses (lone surrogates, huge numbers) the other one reads."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line.decode(), parse_constant=_no_json)


def _no_json(word: str) -> Any:
    raise ValueError(f"{word} is no JSON value")


def _loads_or_none(line: bytes) -> Any:
    try:
        return _loads(line)
    except (ValueError, RecursionError):
        return None


def _document(body: bytes, source: _Source) -> Iterator[Transcript]:
    try:
        root = scan(body)
    except WireError as error:
        source.fault(*_broken(body, str(error)))
        return
    several = root.kind == "array" and bool(root.items) and root.items[0].get("messages") is not None
    line_of = _line_of(body, range(1, body.count(b"\n") + 2))
    for number, part in enumerate(root.items if several else [root], 1):
        name = f"{source.name}#{number}" if several else source.name
        yield from _conversation(body, part, name, line_of, source)


def _broken(body: bytes, text: str) -> tuple[int, str]:
    """Where a document stops being JSON."""
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        return error.lineno, f"not JSON: {error.msg} (column {error.colno}); is the file cut off?"
    except (ValueError, RecursionError):
        pass
    return 1, text


def _conversation(
    body: bytes, node: Node, name: str, line_of: _LineOf, source: _Source
) -> Iterator[Transcript]:
    """A list of messages, or an object that holds one, at ``node`` in ``body``."""
    try:
        value = _value(body, node)
        wire = _REPLAYED.get(sniff(value))
        if wire is None:
            text = 'not a session: a list of messages, each with a "role", was expected'
            source.fault(line_of(node.start), text)
            return
        found = elements(body, wire, node)
    except WireError as error:
        source.fault(line_of(node.start), str(error))
        return
    messages = value["messages"] if isinstance(value, Mapping) else value
    head = tuple(element for element in found if element.kind != "message")
    entries = tuple(
        Entry(message, element.raw, line_of(element.start), element.blocks)
        for message, element in zip(messages, found[len(head) :], strict=True)
    )
    model = value.get("model") if isinstance(value, Mapping) else None
    yield Transcript(name, wire, wire, (Epoch(entries),), head, model if isinstance(model, str) else "")


def _value(body: bytes, node: Node) -> Any:
    """The value of a node; what the fast parser refuses, lone surrogates say, is read span by span."""
    try:
        return orjson.loads(memoryview(body)[node.start : node.end])
    except orjson.JSONDecodeError:
        return value_of(body, node)


def _line_of(body: bytes, numbers: Sequence[int]) -> _LineOf:
    """From an offset in ``body`` to the number of its line, given the numbers of all lines."""
    ends = [match.start() for match in re.finditer(b"\n", body)]
    return lambda start: numbers[bisect_right(ends, start)]


def _lines(body: bytes, source: _Source) -> Iterator[Transcript]:
    """JSON lines; the first line that can be told decides what all of them are."""
    kind: _Kind | None = None
    messages: list[tuple[int, bytes]] = []
    sessions = Sessions(source.name)
    conversations = 0
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = _loads(line)
        except (ValueError, RecursionError) as error:
            source.fault(number, f"not JSON: {error}; the line is left out")
            continue
        this = _kind(value)
        kind = kind or this
        if this is None or this != kind:
            source.fault(number, f"not a {kind or 'session'} line; the line is left out")
        elif this == "claude-code":
            for text in sessions.add(value, number):
                source.fault(number, text)
        elif this == "message":
            messages.append((number, line))
        else:
            conversations += 1
            name = f"{source.name}#{conversations}"
            yield from _conversation(line, scan(line), name, _line_of(line, [number]), source)
    if messages:
        yield from _from_messages(messages, source)
    yield from sessions.transcripts()


def _kind(value: Any) -> _Kind | None:
    if is_line(value):
        return "claude-code"
    if isinstance(value, list):
        return "conversation"
    if not isinstance(value, dict):
        return None
    return (
        "conversation" if "messages" in value else "message" if isinstance(value.get("role"), str) else None
    )


def _from_messages(messages: list[tuple[int, bytes]], source: _Source) -> Iterator[Transcript]:
    """One conversation, a message on each line."""
    body = b"[" + b"\n,".join(line.strip() for _, line in messages) + b"]"
    line_of = _line_of(body, [number for number, _ in messages])
    yield from _conversation(body, scan(body), source.name, line_of, source)


def _judged(transcripts: Iterable[Transcript], source: _Source) -> Iterator[Transcript]:
    """Transcripts that hold a request; each with a word on what its provider would have refused."""
    for transcript in transcripts:
        first = next((e.line for epoch in transcript.epochs for e in epoch.entries), 1)
        if not transcript.requests:
            source.fault(first, f"no answer of a model in {transcript.name}; there is nothing to replay")
            continue
        for epoch in transcript.epochs:
            _judge(epoch, transcript.wire, source)
        yield transcript


def _judge(epoch: Epoch, wire: Wire, source: _Source) -> None:
    """Judged is the last request of the epoch: what comes after it was perhaps never sent."""
    last = max(epoch.answers, default=0)
    entries = epoch.entries[:last]
    told: Counter[str] = Counter()
    for violation in violations([entry.message for entry in entries], wire) if entries else ():
        index = violation.path[0] if violation.path else 0
        told[violation.rule] += 1
        if told[violation.rule] <= _TOLD:
            source.fault(
                entries[int(index)].line, f"{violation.text} ({violation.rule}); replayed as recorded"
            )


_TOLD: Final = 3
"""Breaches of one rule that are told of one epoch; a broken record breaks it in every turn."""
