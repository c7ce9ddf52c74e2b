"""Claude Code's session files: JSON lines below ``~/.claude/projects``.

The format is not documented; this follows what others found (github.com/microsoft/amplifier,
ai_working/claude_code_logging/session_format_specification.md) and the client's own issue tracker:

- A line of type ``user`` or ``assistant`` holds a message. One answer of the model is spread over several
  lines, a content block each, which share ``message.id``; results of parallel calls have lines of their own.
- Lines form a tree by ``parentUuid``. A prompt whose parent is an earlier turn goes back to that turn.
- A ``compact_boundary`` line, or a user line marked ``isCompactSummary``, begins the message list anew; the
  boundary may name messages that are kept behind the summary.
- ``isSidechain`` marks a subagent's conversation, which has its own root or ``agentId``.
- A resumed session repeats lines, with the same ``uuid``.

System prompt, tool schemas and attachments are not recorded, so requests look smaller than they were.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from turngate.replay.recorded import Entry, Epoch, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_SIGNS: Final = ("uuid", "parentUuid", "sessionId", "leafUuid", "messageId")
"""Every line of a session file has one of these beside its type."""

_NOT_SENT: Final = ("isApiErrorMessage", "isVisibleInTranscriptOnly")


def is_line(value: Any) -> bool:
    """Whether a JSON value is a line of a session file."""
    typed = isinstance(value, dict) and isinstance(value.get("type"), str) and "role" not in value
    return typed and any(sign in value for sign in _SIGNS)


def session_files(home: Path) -> list[Path]:
    """The session files below Claude Code's folder (usually ``~/.claude``), oldest first."""
    return sorted((home / "projects").rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)


@dataclass(slots=True)
class _Draft:
    """A message that may still grow by further lines."""

    role: str
    line: int
    id: str = ""
    """The provider's id of the answer; empty for a user message."""
    blocks: list[Any] = field(default_factory=list)
    text: str | None = None
    """Set as long as the content is a plain string."""
    at_seconds: float | None = None
    model: str = ""
    usage: Mapping[str, Any] | None = None
    uuids: list[Any] = field(default_factory=list)

    def add(self, content: Any) -> None:
        """Content of one more line. Results go first, as the client sends them."""
        if isinstance(content, str) and not self.blocks and self.text is None:
            self.text = content
            return
        if self.text is not None:
            self.blocks, self.text = [_text_block(self.text)], None
        new = (
            [_text_block(content)]
            if isinstance(content, str)
            else content
            if isinstance(content, list)
            else []
        )
        self.blocks += [block for block in new if not (_is_unique(block) and block in self.blocks)]
        if self.role == "user":
            self.blocks.sort(key=lambda block: not _is_result(block))

    def entry(self) -> Entry:
        """The message as sent."""
        content: Any = self.blocks if self.text is None else self.text
        message = {"role": self.role, "content": content}
        size = max(1, len(self.blocks))
        return Entry(message, _dump(message), self.line, size, self.at_seconds, self.model, self.usage)


def _text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _is_unique(block: Any) -> bool:
    """Calls and results carry an id; the same one twice is one line recorded twice."""
    return isinstance(block, dict) and block.get("type") in {"tool_use", "tool_result"}


def _dump(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate or a number beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()


@dataclass(slots=True)
class _Chain:
    """One conversation, line by line."""

    path: list[_Draft] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    first: int = 0
    begin: Literal["start", "compacted", "rewound"] = "start"
    place: dict[str, int] = field(default_factory=dict)
    """uuid of a line -> number of messages up to it."""
    kept: list[_Draft] = field(default_factory=list)
    """Messages to be put behind the next summary."""

    def add(self, line: Mapping[str, Any], number: int) -> None:
        if line.get("subtype") == "compact_boundary":
            self._compact(line.get("compactMetadata"))
        elif line["type"] in {"user", "assistant"} and isinstance(line.get("message"), dict):
            self._message(line, line["message"], number)
        if isinstance(line.get("uuid"), str):
            self.place[line["uuid"]] = len(self.path)

    def _message(self, line: Mapping[str, Any], message: Mapping[str, Any], number: int) -> None:
        summary = bool(line.get("isCompactSummary"))
        if summary and self.path:
            self._compact(None)
        draft = self._draft(line, message, number)
        draft.add(message.get("content"))
        draft.uuids.append(line.get("uuid"))
        if summary:
            self.path += self.kept
            self.first = len(self.path)
            self.kept = []

    def _draft(self, line: Mapping[str, Any], message: Mapping[str, Any], number: int) -> _Draft:
        """The message this line belongs to: one that has begun already, or a new one."""
        role = str(line["type"])
        if role == "user":
            if not any(_is_result(block) for block in _blocks(message)):
                self._rewind(line.get("parentUuid"))
            if self.path and self.path[-1].role == "user":
                return self.path[-1]
        else:
            same = self._same_answer(message.get("id"))
            if same is not None:
                same.usage = message.get("usage") or same.usage
                return same
        draft = _Draft(role, number, at_seconds=_seconds(line.get("timestamp")))
        if role == "assistant":
            draft.id, draft.model = str(message.get("id") or ""), str(message.get("model") or "")
            draft.usage = message.get("usage")
        self.path.append(draft)
        return draft

    def _same_answer(self, answer_id: Any) -> _Draft | None:
        """The begun answer with this id: the last one, or the one whose first results are already there."""
        for draft in reversed(self.path[-2:]):
            if draft.role == "assistant":
                return draft if draft.id and draft.id == answer_id else None
        return None

    def _rewind(self, parent: Any) -> None:
        """Go back to the turn that a prompt continues, if that is not the newest one."""
        size = self.place.get(parent, len(self.path)) if isinstance(parent, str) else len(self.path)
        if 0 < size < len(self.path) and _asks_tools(self.path[size - 1]):
            size += 1  # its results stand behind it, and a prompt cannot do without them
        if size < len(self.path):
            self._close("rewound", shared=size)

    def _compact(self, metadata: Any) -> None:
        self.kept = self._preserved(metadata) if isinstance(metadata, dict) else self.kept
        if self.path:
            self._close("compacted", shared=0)

    def _preserved(self, metadata: Mapping[str, Any]) -> list[_Draft]:
        """Messages that a compaction keeps, by the uuids it names: all, or the first and last."""
        named = metadata.get("preservedMessages") or metadata.get("preservedSegment")
        if not isinstance(named, dict):
            return []
        listed = named.get("uuids")
        uuids = listed if isinstance(listed, list) else [named.get("headUuid"), named.get("tailUuid")]
        places = [i for i, draft in enumerate(self.path) if any(uuid in draft.uuids for uuid in uuids)]
        return self.path[min(places) : max(places) + 1] if places else []

    def _close(self, begin: Literal["compacted", "rewound"], *, shared: int) -> None:
        """End the epoch; the next one begins with the first ``shared`` messages."""
        self.epochs.append(Epoch(tuple(d.entry() for d in self.path), self.begin, self.first))
        self.path = self.path[:shared]
        self.place = {uuid: size for uuid, size in self.place.items() if size <= shared}
        self.begin, self.first = begin, shared

    def finished(self) -> tuple[Epoch, ...]:
        """All epochs in which the model answered."""
        last = Epoch(tuple(d.entry() for d in self.path), self.begin, self.first)
        return tuple(epoch for epoch in (*self.epochs, last) if any(epoch.answers))


def _blocks(message: Mapping[str, Any]) -> Iterable[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else ()


def _asks_tools(draft: _Draft) -> bool:
    return any(isinstance(block, dict) and block.get("type") == "tool_use" for block in draft.blocks)


def _seconds(timestamp: Any) -> float | None:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (TypeError, ValueError):
        return None


class Sessions:
    """The conversations of one session file: the user's own, and those of subagents."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._chains: dict[str, _Chain] = {}
        self._chain_of: dict[str, str] = {}
        self._seen: set[str] = set()

    def add(self, line: Mapping[str, Any], number: int) -> Iterator[str]:
        """Take one line; answers with what is wrong about it."""
        uuid = line.get("uuid")
        if any(line.get(flag) for flag in _NOT_SENT) or (isinstance(uuid, str) and uuid in self._seen):
            return
        if line["type"] in {"user", "assistant"} and not isinstance(line.get("message"), dict):
            yield f"a line of type {line['type']} without a message; it is left out"
            return
        key = self._key(line)
        if isinstance(uuid, str):
            self._seen.add(uuid)
            self._chain_of[uuid] = key
        self._chains.setdefault(key, _Chain()).add(line, number)

    def _key(self, line: Mapping[str, Any]) -> str:
        if not line.get("isSidechain"):
            return ""
        if line.get("agentId"):
            return str(line["agentId"])
        parent = self._chain_of.get(str(line.get("parentUuid")), "")
        return parent or str(line.get("uuid"))

    def transcripts(self) -> Iterator[Transcript]:
        """The conversations, the user's own first."""
        found = {key: epochs for key, chain in self._chains.items() if (epochs := chain.finished())}
        if self._chains and not found:
            yield Transcript(self._name, "claude-code", "anthropic", ())
        sides = sorted(found, key=bool)
        for number, key in enumerate(sides, 0 if "" in found else 1):
            name = f"{self._name}#sidechain-{number}" if key and len(found) > 1 else self._name
            yield Transcript(name, "claude-code", "anthropic", found[key], model=_model(found[key]))


def _model(epochs: tuple[Epoch, ...]) -> str:
    models = Counter(entry.model for epoch in epochs for entry in epoch.entries if entry.model)
    return models.most_common(1)[0][0] if models else ""
