"""What becomes of messages that are new: what a policy is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from turngate.wire import Message, ToolResult

Decide: TypeAlias = Callable[[ToolResult, str], str]
"""What to show of one text of a tool result that is new; the same object to let it pass."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """A new user message at the end of a request: the moment to tell the model something beside it."""

    key: bytes
    """The message's key. Whoever is asked twice with one key must answer the same."""
    message: Message
    """The message."""
    told: Mapping[bytes, frozenset[str]]
    """By key of a message of the request beside which something is said in this session: its tags."""
    model: str
    """The model that is asked; "" if the request names none."""


@dataclass(frozen=True, slots=True)
class Addition:
    """A text to stand beside a user message."""

    text: str
    """The text; nothing is added for an empty one."""
    op: Literal["append", "note"] = "append"
    """``append``: in the message. ``note``: as a one-shot system message where that is to be had."""
    tag: str = ""
    """Recorded with it, so that whoever added it can tell that it was sent; never sent itself."""


Attend: TypeAlias = Callable[[Occasion], Sequence[Addition]]
"""What to tell the model beside a new user message."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What becomes of messages that are new."""

    version: str = ""
    """Recorded with each message; another version never changes what was decided before."""
    decide: Decide | None = None
    """For tool results; None: all pass."""
    attend: Attend | None = None
    """For user messages; asked only where the session is known."""
    dropped: Callable[[bytes], None] | None = None
    """Told the key of an occasion whose additions were not recorded, and so were not sent: the store failed,
    or another process was first, and it had been asked before there was anything to add."""
