"""Facts that a session needs: a file of probes, each with an answer that stands in a tool result.

A line of the file is an object with ``file`` (the transcript's path, or its end), ``question`` and
``answers``; with ``first_message_index`` (the message that brings the fact) and ``used_message_index`` (the
answer that uses it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from turngate.errors import TranscriptError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from turngate.replay.recorded import Transcript


@dataclass(frozen=True, slots=True)
class Probe:
    """One fact."""

    file: str
    question: str
    answer: str
    first: int
    """Index of the message that brings it."""
    used: int
    """Index of the message that uses it; the one after ``first`` if the file does not say."""

    def of(self, name: str) -> bool:
        """Whether it belongs to the transcript of this name."""
        path = name.partition("#")[0]
        return path == self.file or path.endswith("/" + self.file.lstrip("/"))


def read_probes(path: Path) -> tuple[Probe, ...]:
    """The probes of a file that say which message brings their fact; others are of no use to a replay.

    Raises:
        TranscriptError: the file cannot be read, or a line is no probe; the message names it.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise TranscriptError(
            f"{path}: {error.strerror}; give a file of probes, one JSON object a line"
        ) from error
    found = [_probe(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    return tuple(probe for probe in found if probe is not None)


def _probe(line: bytes, place: str) -> Probe | None:
    try:
        value: Any = orjson.loads(line)
        first = value.get("first_message_index")
        file, question, answer = str(value["file"]), str(value["question"]), str(value["answers"][0])
    except (orjson.JSONDecodeError, AttributeError, KeyError, IndexError, TypeError) as error:
        raise TranscriptError(
            f'{place}: no probe; give "file", "question" and "answers" on each line'
        ) from error
    if not isinstance(first, int):
        return None
    used = value.get("used_message_index")
    return Probe(file, question, answer, first, used if isinstance(used, int) else first + 1)


def text_of(message: Any) -> str:
    """All strings of a message, as the model may find a fact in them."""
    return "\n".join(_strings(message))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def misplaced(probe: Probe, transcript: Transcript) -> bool:
    """Whether the message that should bring the fact does not: no policy can lose what was never there.

    Of a session with compactions, whose messages have no lasting numbers, this is never said.
    """
    if len(transcript.epochs) != 1:
        return False
    entries = transcript.epochs[0].entries
    if not 0 <= probe.first < len(entries):
        return True
    return not in_view(probe, [text_of(entries[probe.first].message)])


def in_view(probe: Probe, texts: Sequence[str]) -> bool:
    """Whether the fact stands in one of these texts, as it is or as JSON spells it."""
    spelled = {probe.answer, orjson.dumps(probe.answer).decode()[1:-1]}
    return any(answer in text for text in texts for answer in spelled)
