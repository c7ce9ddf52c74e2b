"""The system prompt: three tiers, put together once for a session, stored, and replayed byte for byte.

A prompt that changes costs the provider's cache of all that follows it. So what changes later is told beside
the user's message, and the prompt is only built anew when a compaction has broken the prefix anyway.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from turngate.turn import documents
from turngate.turn.content import SEPARATOR, sanitise
from turngate.turn.documents import Document, States

ROOM: Final = "prompt"


def _nothing() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class PromptTiers:
    """What a system prompt is made of, steadiest first; each is asked when the prompt is built."""

    stable: Callable[[], str] = _nothing
    """The same for all sessions: who the agent is, how it works."""
    session: Callable[[], str] = _nothing
    """The same for this session: project, user, skills."""
    volatile: Callable[[], str] = _nothing
    """What may change while the session runs; later changes are told beside the user's message."""


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """A session's system prompt."""

    text: str
    """The same bytes in every turn of an epoch."""
    cuts: tuple[int, ...]
    """Where in `text` a tier ends, in characters: the places that deserve a cache mark."""
    epoch: int
    """The epoch for which it was built."""


def system_prompt(states: States, session: str, tiers: PromptTiers, epoch: int = 0) -> SystemPrompt:
    """The session's prompt: as it was stored, else built now. Who builds first builds for all.

    Args:
        states: where prompts are kept.
        session: the session's id.
        tiers: what it is built from.
        epoch: compactions so far; a later one builds it anew.

    Raises:
        StoreError: it cannot be read or written.
    """

    def step(doc: Document) -> tuple[Document | None, SystemPrompt]:
        if doc and doc["epoch"] >= epoch:
            return None, _prompt(doc)
        parts = [sanitise(tier()).strip() for tier in (tiers.stable, tiers.session, tiers.volatile)]
        built = {"parts": parts, "epoch": epoch, "told": _hash(parts[-1])}
        return built, _prompt(built)

    return documents.change(states, session, ROOM, step)


def volatile_change(states: States, session: str, tiers: PromptTiers) -> str:
    """The volatile tier as it is now, if it is not what the session was last told; "" otherwise.

    Raises:
        StoreError: the prompt cannot be read.
    """
    now = sanitise(tiers.volatile()).strip()
    doc = documents.load(states, session, ROOM)
    return now if doc and doc["told"] != _hash(now) else ""


def mark_told(states: States, session: str, text: str) -> None:
    """The model is told `text`, a change of the volatile tier: it is in a turn that is stored.

    Raises:
        StoreError: the prompt cannot be read or written.
    """

    def step(doc: Document) -> tuple[Document | None, None]:
        return (doc | {"told": _hash(text)} if doc else None), None

    documents.change(states, session, ROOM, step)


def _prompt(doc: Document) -> SystemPrompt:
    text, cuts = "", []
    for part in filter(None, doc["parts"]):
        text = SEPARATOR.join(filter(None, (text, part)))
        cuts.append(len(text))
    return SystemPrompt(text, tuple(cuts), doc["epoch"])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
