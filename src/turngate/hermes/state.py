"""The host's own database of sessions, ``state.db``: read, never written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from turngate import tokens
from turngate.compress import shorten
from turngate.errors import TranscriptError
from turngate.hermes.result import output_of
from turngate.marker import find_all

FILE = "state.db"
MAGIC = b"SQLite format 3\0"

_SESSIONS = (
    "SELECT id, COALESCE(model, ''), started_at, COALESCE(system_prompt, '') FROM sessions"
    " ORDER BY started_at DESC, rowid DESC"
)
#: A compaction in place leaves the old messages in the table, marked.
_MESSAGES = (
    "SELECT role, content, api_content, tool_calls, tool_call_id, tool_name FROM messages"
    " WHERE session_id = ? AND {which} ORDER BY id"
)
_WHICH = {"now": "active = 1", "before": "active = 0 AND compacted = 1"}
_PARTS = "\x00json:"
_RECENT = "SELECT content FROM messages WHERE role = 'tool' ORDER BY id DESC LIMIT ?"


@dataclass(frozen=True, slots=True)
class Talk:
    """A session of the host."""

    id: str
    """Its id."""
    model: str
    """The model, as the host names it."""
    started_at_seconds: float
    """Unix time."""
    system: str
    """The system prompt."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What the plugin would save, or has saved, in a session. Tokens are estimates."""

    results: int
    """Tool results."""
    shortened: int
    """Of these, how many would be shortened."""
    already: int
    """Of these, how many have been."""
    tokens_before: int
    """All of their tokens as they stand in the history."""
    tokens_after: int
    """With those that would be shortened in short form."""

    @property
    def saved_share(self) -> float:
        """Share of the tokens that would be saved."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0


def is_state(head: bytes) -> bool:
    """Whether a file that begins so may be one."""
    return head.startswith(MAGIC)


def talks(path: Path) -> list[Talk]:
    """The sessions, newest first.

    Raises:
        TranscriptError: the file is no database of the host's, or cannot be read.
    """
    return [Talk(*row) for row in _rows(path, _SESSIONS)]


def messages(path: Path, session: str, *, which: str = "now") -> list[dict[str, Any]]:
    """A session's messages as they go over the wire (Chat Completions), without the system prompt.

    Args:
        path: the database.
        session: the session's id.
        which: ``now``: those in the history; ``before``: those that compactions have taken out.

    Raises:
        TranscriptError: as `talks`.
    """
    return [_message(row) for row in _rows(path, _MESSAGES.format(which=_WHICH[which]), session)]


def worth(path: Path, session: str) -> Worth:
    """What the plugin would save of a session's tool results. Nothing is stored."""
    names: dict[str, tuple[str, str]] = {}
    counts = [0, 0, 0, 0, 0]
    for message in messages(path, session):
        for call in message.get("tool_calls", ()):
            names[call["id"]] = (call["function"]["name"], call["function"]["arguments"])
        if message["role"] == "tool" and isinstance(message["content"], str):
            tool, args = names.get(message["tool_call_id"], (message.get("name", ""), ""))
            for at, number in enumerate(_weighed(message["content"], tool, args)):
                counts[at] += number
    return Worth(*counts)


def _weighed(content: str, tool: str, args: str) -> tuple[int, int, int, int, int]:
    output = output_of(content)
    already = bool(find_all(output.text[:200]))
    before = tokens.estimate(content)
    short = shorten(output.text, tool=tool, args=args, failed=output.failed)
    saved = 0 if already else tokens.estimate(output.text) - tokens.estimate(short.text)
    return 1, int(saved > 0), int(already), before, before - saved


def foreign_markers(path: Path, *, limit: int = 2_000) -> dict[str, int]:
    """Markers in the last tool results: id -> how often."""
    found: dict[str, int] = {}
    for (content,) in _rows(path, _RECENT, limit):
        for marker in find_all(content or ""):
            found[marker.hash] = found.get(marker.hash, 0) + 1
    return found


def _rows(path: Path, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            yield from connection.execute(sql, values)
    except sqlite3.Error as error:
        raise TranscriptError(
            f"{path}: {error}; it is no state.db of Hermes, or one of another version"
        ) from error


def _message(row: Sequence[Any]) -> dict[str, Any]:
    role, content, sent, calls, call_id, tool = row
    message: dict[str, Any] = {"role": role, "content": sent or _content(content or "")}
    if calls:
        message["tool_calls"] = [_call(call) for call in json.loads(calls)]
    if role == "tool":
        message["tool_call_id"] = call_id or ""
        if tool:
            message["name"] = tool
    return message


def _content(stored: str) -> Any:
    """A message's content; the host writes one of several parts as JSON behind a mark."""
    return json.loads(stored.removeprefix(_PARTS)) if stored.startswith(_PARTS) else stored


def _call(call: dict[str, Any]) -> dict[str, Any]:
    """A call without the host's own keys."""
    return {"id": call.get("id", ""), "type": "function", "function": call.get("function", {})}
