"""What a turn knows once its prologue has run, and what a host brings to it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from turngate.turn.documents import MemoryStates, States
from turngate.turn.notes import NoteBox
from turngate.turn.prompt import PromptTiers

Messages: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TurnContext:
    """A turn at its beginning. Made by `build_turn_context`, used up by the host's loop."""

    user_message: Any
    """What the user said, cleaned: a text, or a list of parts."""
    original_user_message: Any
    """What the user said, as it came, for transcripts and questions to a memory. Nothing is added to it."""
    messages: Messages
    """The working list: the history and the turn's user message; the host's loop adds to it."""
    conversation_history: Messages | None
    """The history before the turn; None when a compaction has opened a new session."""
    active_system_prompt: str | None
    """The session's system prompt; None where the host brings none."""
    effective_task_id: str
    """The task; made up where the host names none."""
    turn_id: str
    """``{session}:{task}:{8 hex digits}``; the same when a turn that was cut off is taken up again."""
    current_turn_user_idx: int
    """Index of the turn's user message in `messages`."""
    should_review_memory: bool = False
    """Whether the host should look over its memory after this turn."""
    plugin_user_context: str = ""
    """What is told beside the user's words: notes, the injected block, what hooks returned."""
    ext_prefetch_cache: str = ""
    """What the memory recalled for this message."""
    session_id: str = ""
    """The session; a compaction may have opened it."""
    turn: int = 0
    """The session's turn, from 1."""
    epoch: int = 0
    """Compactions of the session so far."""
    key: str = ""
    """Hash of the user message and of what it follows: tells a retry from another turn."""
    api_content: str | None = None
    """What is sent as the content of the user message; None: its own content."""
    prompt_change: str = ""
    """The volatile tier of the system prompt, if it has changed since the model was told."""
    popped_notes: str = ""
    """Notes that were popped off the host's agent for this turn."""
    note_ids: tuple[str, ...] = ()
    """The posted notes that are sent with this turn."""
    prepared_content: Any = None
    """The content of the user message as it was prepared before, if the turn is taken up again."""
    replayed: bool = False
    """Whether this turn was prepared before and was cut off: then it is sent as it was prepared."""
    faults: tuple[str, ...] = ()
    """Classes of faults in what the host brought; the turn goes on without."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction made of the messages."""

    messages: Messages
    """The new list."""
    session_id: str | None = None
    """The session that it opened; None: the same goes on."""


class MemoryProvider(Protocol):
    """A memory beside the conversation."""

    def prefetch(self, query: str, *, session_id: str) -> str:
        """What it recalls for `query`; "" for nothing."""
        ...


Compact: TypeAlias = Callable[[Messages, int], Compacted | None]
"""From the messages and the estimate of their tokens to fewer; None: it cannot."""

Hook: TypeAlias = Callable[[TurnContext], str | Mapping[str, Any] | None]
"""Returns a text to tell beside the user's words, or ``{"context": text}``, or nothing."""


def _no_text() -> str:
    return ""


def _no_block(_: TurnContext) -> str:
    return ""


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class TurnHost:
    """What a host, or a subagent, brings to a turn. Everything but the session's id may be left out."""

    session_id: str
    """The session."""
    states: States = field(default_factory=MemoryStates)
    """Where turns, prompts and notes are kept; a store, so that they survive a crash."""
    agent: Any = None
    """Carries notes of a gateway (see `consume_gateway_turn_context_notes`)."""
    notes: NoteBox | None = None
    """Notes that were posted for the session."""
    tiers: PromptTiers | None = None
    """What the system prompt is built from."""
    block: Callable[[TurnContext], str] = _no_block
    """The injected block of the turn (`turngate.flow`)."""
    todo: Callable[[], str] = _no_text
    """The agent's list of things to do, if the model should see it."""
    hooks: tuple[Hook, ...] = ()
    """Asked before the call, in order."""
    memory: MemoryProvider | None = None
    """Asked for what it recalls."""
    compact: Compact | None = None
    """Compacts the messages."""
    threshold_tokens: int = 0
    """From this estimate on, `compact` is called; 0: never."""
    protect_first_n: int = 3
    """Messages at the beginning that the compaction keeps."""
    protect_last_n: int = 20
    """Messages at the end that the compaction keeps."""
    resets: tuple[Callable[[], None], ...] = ()
    """Called at the beginning of each turn: retry counters and the like."""
    review_every: int = 0
    """A look over the memory is due every so many turns; 0: never."""
    persist: Callable[[TurnContext], None] | None = None
    """Stores the turn in the host's own transcript, before the call."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""
    new_id: Callable[[], str] = _new_id
    """Makes identifiers of at least 8 hex digits."""


Step: TypeAlias = Callable[[TurnHost, TurnContext], TurnContext]
"""One step of the prologue: from what is known of the turn to more of it."""

History: TypeAlias = Sequence[Mapping[str, Any]]
