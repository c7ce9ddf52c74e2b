"""Hermes' own database as recorded sessions: each as the Chat Completions request that it was sent in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from turngate.errors import TranscriptError
from turngate.hermes import state

if TYPE_CHECKING:
    from pathlib import Path

    from turngate.replay.recorded import Transcript

#: What came before the host compacted in place is a conversation of its own: how it was cut isn't recorded.
_NAMES = {"now": "", "before": " (before compaction)"}

Parse = Callable[[bytes, str, Callable[[TranscriptError], None]], Iterator["Transcript"]]


def transcripts(
    path: Path, complain: Callable[[TranscriptError], None], parse: Parse
) -> Iterator[Transcript]:
    """Every conversation in ``state.db``, oldest first; `parse` reads a request's body."""
    try:
        talks = state.talks(path)
        for talk in reversed(talks):
            for which, suffix in _NAMES.items():
                messages = state.messages(path, talk.id, which=which)
                if messages:
                    head = [{"role": "system", "content": talk.system}] if talk.system else []
                    body = json.dumps({"model": talk.model, "messages": [*head, *messages]}).encode()
                    yield from parse(body, f"{path}#{talk.id}{suffix}", complain)
    except TranscriptError as error:
        complain(error)
