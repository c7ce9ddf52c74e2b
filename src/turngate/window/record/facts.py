"""What messages leave behind: requests, files, commands, errors, decisions, todos, identifiers. Pure.

Everything is quoted, nothing is reworded. What is gathered from one span is carried into the next, so that a
later summary extends an earlier one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from turngate import marker
from turngate.events import ToolEvent, one_line, tool_event
from turngate.window.offload import Leaf, leaves
from turngate.window.record.transcript import speaker
from turngate.window.units import Message
from turngate.wire import Wire

#: Kept of each sort; what is older goes first, and stays in the transcript.
MOST_REQUESTS: Final = 200
MOST_FILES: Final = 300
MOST_COMMANDS: Final = 100
MOST_ERRORS: Final = 60
MOST_DECISIONS: Final = 60
MOST_IDENTIFIERS: Final = 400
MOST_TODOS: Final = 60
_REQUEST_CHARS: Final = 40_000
_LINE_CHARS: Final = 300
#: Of a long result so much of each end is looked at for identifiers.
_SCAN_CHARS: Final = 30_000

_TODO_TOOLS: Final = ("todo*", "*_todo", "*_todos", "update_plan", "plan")
_TODO_KEYS: Final = ("todos", "todo_list", "items", "plan", "tasks", "steps")
_TODO_LINE: Final = re.compile(r"^\s*(?:[-*]|\d+[.)])\s+\[[ xX~-]\]\s+\S.*$", re.MULTILINE)
_EXIT: Final = re.compile(
    r'(?:"exit_?code"|"returncode"|\[?exit(?:ed)?(?: with)? (?:code|status))"?\s*[:=]?\s*(-?\d+)',
    re.IGNORECASE,
)
_COMMAND_KEYS: Final = ("command", "cmd", "script", "code", "query", "sql")
#: Sentences in which an assistant says what it settled on or found out.
_DECISION: Final = re.compile(
    r"\b(?:decided?|decision|going with|go with|will use|I'll use|let's use|chose|choose|instead of"
    r"|root cause|turns out|conclusion|concluded?|confirmed"
    r"|the (?:bug|issue|problem|cause|fix|answer|result) (?:is|was)"
    r"|must not|should not|do not|don't|agreed|therefore|because)\b",
    re.IGNORECASE,
)
#: A result whose last line is an error's, though nothing says that the call failed.
_ERROR_ENDING: Final = re.compile(
    r"^\s*(?:[\w.]{0,80}(?:Error|Exception|Interrupt|Exit)\b.{0,400}"
    r"|(?:\w[\w. /-]{0,80}: )?(?:error|fatal|ERROR)\b.{0,400})\Z",
    re.MULTILINE,
)
_ENDING_CHARS: Final = 600
_SENTENCE: Final = re.compile(r"[^\n.!?]*(?:[.!?](?!\s|$)[^\n.!?]*)*[.!?]?")
#: Every repetition is bounded, so that no text makes it slow.
_IDENTIFIER: Final = re.compile(
    r"https?://[^\s\"'<>)\]}\\]{1,300}"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b(?=[a-f]{0,64}\d)(?=\d{0,64}[a-f])[0-9a-f]{7,64}\b"
    r"|(?<![\w/.])(?:[A-Za-z]:\\|~/|\.{0,2}/)?[\w.@+-]{1,80}(?:/[\w.@+-]{1,80}){1,20}/?"
    r"|\b[\w-]{1,60}\.(?:py|pyi|js|ts|tsx|jsx|go|rs|c|h|cpp|hpp|java|rb|sh|sql|md|txt|json|ya?ml|toml|cfg|ini|csv"
    r"|lock|log)\b"
    r"|\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d{2,5})?\b|\bport[ :=]{1,3}\d{2,5}\b"
    r"|\bv?\d{1,9}\.\d{1,9}(?:\.\d{1,9}){1,3}(?:[-+.]?[A-Za-z]\w{0,20})?\b"
    r"|\b[A-Z]{2,20}[A-Z0-9]{0,20}[-_][A-Z0-9_-]{0,40}\d\b|\b(?=[A-Z]{0,12}\d)(?=\d{0,12}[A-Z])[A-Z0-9]{5,12}\b"
    r"|\b[a-z]{1,40}(?:_[a-z0-9]{1,40}){0,5}_\d{3,20}\b|#\d{2,20}\b|\b\d{6,20}\b"
)


@dataclass(slots=True)
class Facts:
    """What is known of the messages that went out of view. Numbers are those of messages, from 0."""

    requests: list[tuple[int, str]] = field(default_factory=list)
    """What users said, verbatim; the first one is never dropped."""
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Path to what was last done with it (``read``, ``written``), and where."""
    commands: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Command to its last exit code (``ok`` and ``failed`` where none is stated), and where."""
    errors: dict[str, tuple[str, int]] = field(default_factory=dict)
    """A failed call to its error line, until the same call succeeds."""
    past_errors: list[tuple[int, str]] = field(default_factory=list)
    """Every call that failed, with its error line."""
    decisions: list[tuple[int, str]] = field(default_factory=list)
    """Sentences in which the assistant settled something."""
    todos: list[str] = field(default_factory=list)
    """The latest list of what is to do, as stated."""
    identifiers: dict[str, list[int]] = field(default_factory=dict)
    """A name or number to how often it occurred, how often it was used in a call, and where last."""
    markers: dict[str, str] = field(default_factory=dict)
    """Id of a marker in what went, to its line."""
    messages: int = 0
    """How many messages went."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Facts:
        """From `to_dict`."""
        files, commands, errors = (
            {name: (str(value), int(at)) for name, (value, at) in data[key].items()}
            for key in ("files", "commands", "errors")
        )
        requests, past_errors, decisions = (
            [(int(at), str(text)) for at, text in data[key]]
            for key in ("requests", "past_errors", "decisions")
        )
        return cls(
            requests,
            files,
            commands,
            errors,
            past_errors,
            decisions,
            [str(line) for line in data["todos"]],
            {name: [int(count) for count in counts] for name, counts in data["identifiers"].items()},
            {name: str(line) for name, line in data["markers"].items()},
            int(data["messages"]),
        )

    def copy(self) -> Facts:
        """Another one with the same facts."""
        return Facts.from_dict(json.loads(json.dumps(self.to_dict())))


def gather(known: Facts, messages: Sequence[Message], wire: Wire, *, first: int) -> Facts:
    """What is known after these messages; `known` stays as it is.

    Args:
        known: what was known before.
        messages: the next messages.
        wire: their format.
        first: the number of the first of them.
    """
    facts = known.copy()
    calls: dict[str, Leaf] = {}
    for number, message in enumerate(messages, first):
        who = speaker(message)
        found = list(leaves(message, wire))
        for leaf in found:
            if leaf.what == "arguments":
                calls[leaf.call_id] = leaf
                _called(facts, leaf, number)
            elif leaf.what == "result":
                _answered(facts, calls.get(leaf.call_id), leaf, number)
        _said(facts, who, [leaf.text for leaf in found if leaf.what == "said"], number)
    facts.messages += len(messages)
    _bound(facts)
    return facts


def _said(facts: Facts, who: str, texts: list[str], number: int) -> None:
    text = "\n".join(texts)
    if not text.strip():
        return
    if who in {"user", "tool"}:
        facts.requests.append((number, text[:_REQUEST_CHARS]))
    elif who == "assistant":
        facts.decisions += [(number, line) for line in _decisions(text)]
        listed = _TODO_LINE.findall(text)
        if listed:
            facts.todos = [line.strip() for line in listed]
    _mention(facts, text, number, used=who == "assistant")


def _called(facts: Facts, leaf: Leaf, number: int) -> None:
    args = _object(leaf.text)
    if any(fnmatchcase(leaf.name.lower(), pattern) for pattern in _TODO_TOOLS):
        listed = list(_todo_items(args))
        if listed:
            facts.todos = listed
    _mention(facts, leaf.text, number, used=True)


def _answered(facts: Facts, call: Leaf | None, leaf: Leaf, number: int) -> None:
    name, args = (call.name, _object(call.text)) if call else (leaf.name, {})
    event = tool_event(name, args, leaf.text)
    code = _EXIT.findall(leaf.text[-2_000:])
    command = next((args[key] for key in _COMMAND_KEYS if isinstance(args.get(key), str)), "")
    if command.strip():
        outcome = f"exit {code[-1]}" if code else ("ok" if event.ok else "failed")
        _latest(facts.commands, one_line(command, _LINE_CHARS), (outcome, number))
    for path, state in ((event.read, "read"), (event.wrote, "written")):
        if path and not (state == "read" and facts.files.get(path, ("", 0))[0] == "written"):
            _latest(facts.files, path, (state, number))
    _settle(facts, event, leaf.text, number)
    for found in marker.find_all(leaf.text[:_SCAN_CHARS]):
        facts.markers[found.hash] = f"{event.label}: {one_line(found.preview, 80)}".rstrip(": ")
    _mention(facts, leaf.text, number, used=False)


def _settle(facts: Facts, event: ToolEvent, text: str, number: int) -> None:
    """An error is open until the same call, or another on the same file, succeeds."""
    ending = _ERROR_ENDING.search(text[-_ENDING_CHARS:].rstrip())
    if event.ok and ending:
        event = replace(event, ok=False, error=one_line(ending[0], _LINE_CHARS))
    key = f"{event.tool} {event.read or event.wrote}" if event.read or event.wrote else event.label
    facts.errors.pop(key, None)
    if not event.ok:
        facts.errors[key] = (event.error, number)
        line = f"{event.label}: {event.error}"
        facts.past_errors = [each for each in facts.past_errors if each[1] != line]
        facts.past_errors.append((number, line))


def _latest(table: dict[str, tuple[str, int]], key: str, value: tuple[str, int]) -> None:
    """Set, as the newest of the table."""
    table.pop(key, None)
    table[key] = value


def _decisions(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text[:_SCAN_CHARS]):
        sentence = found[0].strip()
        if sentence and _DECISION.search(sentence):
            yield one_line(sentence, _LINE_CHARS)


def _todo_items(args: Mapping[str, Any]) -> Iterator[str]:
    """Items of a todo list, as a call states them."""
    listed = next((args[key] for key in _TODO_KEYS if args.get(key)), None)
    for item in listed if isinstance(listed, list) else [listed]:
        if isinstance(item, str) and item.strip():
            yield one_line(item, _LINE_CHARS)
        elif isinstance(item, Mapping):
            texts = [item.get(key) for key in ("status", "content", "task", "title", "step", "text")]
            line = " ".join(f"[{text}]" if not at else str(text) for at, text in enumerate(texts) if text)
            if line:
                yield one_line(line, _LINE_CHARS)


def _mention(facts: Facts, text: str, number: int, *, used: bool) -> None:
    """Count the identifiers of a text."""
    ends = text if len(text) <= 2 * _SCAN_CHARS else f"{text[:_SCAN_CHARS]}\n{text[-_SCAN_CHARS:]}"
    for name in dict.fromkeys(_IDENTIFIER.findall(ends)):
        trimmed = name.rstrip(".,:;/")
        known = facts.identifiers.get(trimmed)
        if known is None:
            # A name that the assistant came up with by itself is in no result; it is worth less.
            facts.identifiers[trimmed] = [1, 0, number]
        else:
            facts.identifiers[trimmed] = [known[0] + 1, known[1] + used, number]


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, Mapping) else {}


def weight(counts: Sequence[int]) -> tuple[int, int, int]:
    """What an identifier is ordered by: uses in calls, then occurrences, then how late it came."""
    return counts[1], min(counts[0], 5), counts[2]


def _bound(facts: Facts) -> None:
    """Let go of the oldest and the least, so that facts stay small."""
    facts.requests[1:] = facts.requests[1:][-(MOST_REQUESTS - 1) :]
    facts.decisions[:] = facts.decisions[-MOST_DECISIONS:]
    facts.past_errors[:] = facts.past_errors[-MOST_ERRORS:]
    facts.todos[:] = facts.todos[:MOST_TODOS]
    for table, most in (
        (facts.files, MOST_FILES),
        (facts.commands, MOST_COMMANDS),
        (facts.errors, MOST_ERRORS),
        (facts.markers, MOST_FILES),
    ):
        _drop(table, list(table)[: max(0, len(table) - most)])
    ranked = sorted(facts.identifiers, key=lambda name: weight(facts.identifiers[name]))
    _drop(facts.identifiers, ranked[: max(0, len(ranked) - MOST_IDENTIFIERS)])


def _drop(table: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        del table[key]
