"""A compaction of the host's message list: the session's window does it, and the host's own keys survive."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from turngate import marker
from turngate.hermes.gauge import Gauge
from turngate.marker import Marker
from turngate.store import to_bytes
from turngate.window import Sizes, Window, clear_tool_results
from turngate.window.record import frame

if TYPE_CHECKING:
    from turngate.hermes.host import Host
    from turngate.window import Compaction

    Message = Mapping[str, Any]

#: Under this name the store keeps which session's window a conversation goes on with.
ROOM = "hermes"
#: The host's keys that say that a message is stored, or how it was sent; not true of a changed message.
_PERSISTED = "_db_persisted"
_SENT = "api_content"
#: So much of the room may be kept for what a user named in ``/compress focus``.
FOCUS_SHARE = 0.25
#: Results that a mere pruning leaves alone, and by how much it must make the list lighter.
PRUNE_KEEP, PRUNE_LEAST_SHARE = 6, 0.05
#: Characters of a memory provider's text that are handed on.
MEMORY_CHARS = 600
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Request:
    """What the host asks of a compaction."""

    current_tokens: int | None = None
    """The request as the host has it; None or less than 1: unknown."""
    focus: str = ""
    """What the user named; words of it."""
    forced: bool = False
    """The user asked for it."""
    memory: str = ""
    """What the host's memory wants to be remembered."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    messages: list[dict[str, Any]]
    """The new list."""
    notice: Compaction
    """What was done."""


def compact(
    here: Host,
    session_id: str,
    messages: Sequence[Message],
    gauge: Gauge,
    request: Request,
    *,
    model: str = "",
) -> Outcome | None:
    """A shorter list; None where nothing is won.

    Whole groups of calls and results, the newest user message, and every message that is not changed keep
    all that the host has attached to them.

    Raises:
        StoreError: the store cannot be read.
    """
    gauge.tried(forced=request.forced)
    sizes = Sizes()
    weight = sizes.messages(messages)
    room = gauge.room(weight, request.current_tokens, rough_tokens(messages))
    if request.forced:
        room = min(room, weight)
    settings = replace(
        here.settings.window,
        context_window_tokens=max(1, round(room)),
        max_history_share=1.0,
        answer_tokens=0,
        weigh_cost=False,
    )
    session = here.gate.session(session_id)
    window = Window(
        root_of(here, session_id),
        lambda: here.gate.store,
        settings,
        model=model,
        wire="chat",
        turn=lambda: session.turn,
    )
    fitted = window.fit(list(messages), force=True, pinned=focused(messages, request.focus, room, sizes))
    done = fitted.compaction
    if done is None or done.method == "none":
        return None
    if request.memory.strip():
        session.push_nudge(f"memory: {request.memory[:MEMORY_CHARS]}", key="memory")
    session.flow.open_epoch()
    return Outcome(for_host(messages, fitted.messages), done)


def for_host(before: Sequence[Message], after: Iterable[Message]) -> list[dict[str, Any]]:
    """The new list as the host takes it.

    The record is a message of its own block: of texts the host makes one with the user's message behind it,
    and adds the turn's injected text to the one that stands where the user's message stood.
    """
    same = set(map(id, before))
    return [_kept(message) if id(message) in same else _made(message) for message in after]


def prune(here: Host, session_id: str, messages: Sequence[Message]) -> Sequence[Message]:
    """Old tool results replaced by markers; the very list where that wins too little."""
    sizes = Sizes()
    least = PRUNE_LEAST_SHARE * sizes.messages(messages)

    def stand_in(text: str) -> str:
        found = marker.parse(text)
        store = here.gate.store
        if found and store.known([found.hash], session=session_id):
            return text.partition("\n")[0]
        stored = store.put(to_bytes(text), session=session_id, turn=store.turn(session_id), kind="text")
        return marker.render(Marker(stored.id, "tool", stored.size, "engine", f"{len(text):,} characters"))

    cleared = clear_tool_results(
        messages, keep=PRUNE_KEEP, at_least=least, stand_in=stand_in, wire="chat", sizes=sizes
    )
    return for_host(messages, cleared.messages) if cleared.call_ids else messages


def selected(
    here: Host, session_id: str, messages: Sequence[Message], budget_tokens: int, *, model: str = ""
) -> Sequence[Message]:
    """What one request is sent with: the very list where it fits, else the same short one every time."""
    settings = replace(here.settings.window, context_window_tokens=budget_tokens, weigh_cost=False)
    session = here.gate.session(session_id)
    window = Window(
        root_of(here, session_id),
        lambda: here.gate.store,
        settings,
        model=model,
        wire="chat",
        turn=lambda: session.turn,
    )
    fitted = window.fit(list(messages))
    same = len(fitted.messages) == len(messages) and all(map(operator.is_, fitted.messages, messages))
    return messages if same or not fitted.messages else for_host(messages, fitted.messages)


def focused(messages: Sequence[Message], focus: str, room: float, sizes: Sizes) -> list[int]:
    """Messages that have every word of `focus`, newest first, as far as a share of the room goes."""
    words = {word.lower() for word in _WORD.findall(focus)}
    left, found = FOCUS_SHARE * room, []
    for at in range(len(messages) - 1, -1, -1) if words else ():
        text = json.dumps([messages[at].get("content"), messages[at].get("tool_calls")], default=str).lower()
        cost = sizes.message(messages[at])
        if cost <= left and all(word in text for word in words):
            found.append(at)
            left -= cost
    return found


def rough_tokens(messages: Iterable[Message]) -> float:
    """The messages as the host estimates them: characters by four."""
    return sum(len(str(m.get("content") or "")) + len(str(m.get("tool_calls") or "")) for m in messages) / 4


def root_of(here: Host, session_id: str) -> str:
    """The session with which a conversation began that the host goes on with under another id."""
    body, _ = here.gate.store.load_state(session_id, ROOM)
    return str(json.loads(body)["root"]) if body else session_id


def go_on(here: Host, old: str, new: str) -> None:
    """The host goes on with a conversation under a new id: what was hidden in it stays in reach."""
    session = here.gate.session(new, parent=old)
    body, version = here.gate.store.load_state(new, ROOM)
    if body is None:
        root = root_of(here, old)
        here.gate.store.save_state(new, ROOM, json.dumps({"root": root}).encode(), version)
    session.flow.open_epoch()


def _kept(message: Message) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != _PERSISTED}


def _made(message: Message) -> dict[str, Any]:
    made = {key: value for key, value in message.items() if key not in {_PERSISTED, _SENT}}
    text = frame.text_of(message)
    return made | {"content": [{"type": "text", "text": text}]} if text else made
