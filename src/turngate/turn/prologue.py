"""The prologue of a turn. Each step is a plain function that a host can replace or leave out."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from turngate.errors import TurngateError
from turngate.ledger import digest
from turngate.turn import documents
from turngate.turn.anchor import STAMP, reanchor_current_turn_user_idx
from turngate.turn.content import (
    SEPARATOR,
    SIDECAR,
    append_notes_to_multimodal_content,
    beside,
    compose_user_api_content,
    drop_stale_api_content,
    plain_text,
    sanitise,
)
from turngate.turn.context import Compacted, History, MemoryProvider, Step, TurnContext, TurnHost
from turngate.turn.documents import Document
from turngate.turn.notes import Note, consume_gateway_turn_context_notes, give_back_gateway_notes
from turngate.turn.preflight import (
    compression_made_progress,
    messages_tokens,
    should_run_preflight_estimate,
)
from turngate.turn.prompt import mark_told, system_prompt, volatile_change

ROOM: Final = "turn"
#: Hermes 0.19 tries as often before a turn; each pass costs a call of a model.
MAX_COMPACTIONS: Final = 3
_ID_CHARS: Final = 8

T = TypeVar("T")

_log = logging.getLogger("turngate.turn")


def build_turn_context(
    host: TurnHost,
    user_message: Any,
    conversation_history: History | None = None,
    task_id: str | None = None,
    *,
    steps: Sequence[Step] | None = None,
) -> TurnContext:
    """Everything that happens once in a turn, before its first call of the model.

    The same user message behind the same history is the same turn: when it was prepared before and never
    finished (a crash, a retry), it comes out as it was prepared. `finish_turn` ends it.

    Args:
        host: what the host brings.
        user_message: a text, or a list of parts.
        conversation_history: the messages before; neither it nor its messages are changed.
        task_id: the task, if the host has one.
        steps: in place of `PROLOGUE`.
    """
    history = [dict(message) for message in conversation_history or ()]
    context = TurnContext(
        user_message=user_message,
        original_user_message=user_message,
        messages=list(history),
        conversation_history=history,
        active_system_prompt=None,
        effective_task_id=task_id or "",
        turn_id="",
        current_turn_user_idx=-1,
        session_id=host.session_id,
    )
    for step in PROLOGUE if steps is None else steps:
        context = step(host, context)
    return context


def finish_turn(host: TurnHost, context: TurnContext) -> None:
    """The model has answered: the turn is over, its notes are delivered. A fault is logged, not raised."""

    def end(doc: Document) -> tuple[Document | None, None]:
        pending = doc.get("pending") or {}
        return (doc | {"pending": None} if pending.get("turn_id") == context.turn_id else None), None

    if host.notes is not None:
        _try(context, None, host.notes.confirm, context.key, context.note_ids)
    _try(context, None, documents.change, host.states, host.session_id, ROOM, end)


# The steps


def sanitise_message(_: TurnHost, context: TurnContext) -> TurnContext:
    """Take out what cannot be sent or stored; `original_user_message` stays raw."""
    return replace(context, user_message=sanitise(context.user_message))


def begin_turn(host: TurnHost, context: TurnContext) -> TurnContext:
    """Count the turn, reset what counts within one, and take up a turn that was cut off."""
    for reset in host.resets:
        _, context = _try(context, None, reset)
    key, context = _try(context, host.new_id(), turn_key, context.messages, context.user_message)
    task = context.effective_task_id or host.new_id()
    turn_id = f"{host.session_id}:{task}:{host.new_id()[:_ID_CHARS]}"
    new = {"key": key, "turn_id": turn_id, "task_id": task, "content": None}

    def begin(doc: Document) -> tuple[Document | None, Document]:
        pending = doc.get("pending")
        if pending and pending["key"] == key:
            return None, doc
        since = doc.get("since_review", 0) + 1
        due = 0 < host.review_every <= since
        begun = {"turn": doc.get("turn", 0) + 1, "since_review": 0 if due else since, "due": due}
        # A turn that was sent and never finished: its notes count as delivered if it is in the history.
        before = pending if pending and pending["content"] is not None else None
        begun |= {"pending": new, "before": before}
        return doc | begun, doc | begun

    unknown: Document = {"turn": 0, "due": False, "pending": new}
    doc, context = _try(context, unknown, documents.change, host.states, host.session_id, ROOM, begin)
    context = replace(
        context, key=key, turn=doc["turn"], epoch=doc.get("epoch", 0), should_review_memory=doc["due"]
    )
    return _as_prepared(context, doc["pending"])


def add_user_message(_: TurnHost, context: TurnContext) -> TurnContext:
    """Put the user message behind the history."""
    content = context.prepared_content if context.replayed else context.user_message
    message = {"role": "user", "content": content, STAMP: context.turn_id}
    at = len(context.messages)
    return replace(context, messages=[*context.messages, message], current_turn_user_idx=at)


def restore_prompt(host: TurnHost, context: TurnContext) -> TurnContext:
    """The system prompt as it is stored; built now if there is none."""
    tiers = host.tiers
    if tiers is None:
        return context
    states, session = host.states, context.session_id
    prompt, context = _try(context, None, system_prompt, states, session, tiers, context.epoch)
    if prompt is None:
        return context
    change, context = _try(context, "", volatile_change, states, session, tiers)
    return replace(context, active_system_prompt=prompt.text, prompt_change=change)


def preflight(host: TurnHost, context: TurnContext) -> TurnContext:
    """Compact, if the messages are too many or too large, as long as that makes progress."""
    if host.compact is None or host.threshold_tokens <= 0 or context.replayed:
        return context
    protect = host.protect_first_n, host.protect_last_n
    if not should_run_preflight_estimate(context.messages, *protect, host.threshold_tokens):
        return context
    tokens = messages_tokens(context.messages)
    for _ in range(MAX_COMPACTIONS):
        if tokens < host.threshold_tokens:
            break
        made, context = _try(context, None, host.compact, list(context.messages), tokens)
        if made is None:
            break
        size, before, tokens = len(context.messages), tokens, messages_tokens(made.messages)
        if not compression_made_progress(size, len(made.messages), before, tokens):
            break
        context = _compacted(host, context, made)
    return context


def run_hooks(host: TurnHost, context: TurnContext) -> TurnContext:
    """Ask the hooks what to tell beside the user's words."""
    if context.replayed:
        return context
    for hook in host.hooks:
        answer, context = _try(context, None, hook, context)
        text = answer.get("context") if isinstance(answer, Mapping) else answer
        context = _tell(context, text)
    return context


def take_notes(host: TurnHost, context: TurnContext) -> TurnContext:
    """Pop the host's notes: those on the agent, and those that were posted for the session.

    A turn that is taken up again has its notes; what came since waits for the next one.
    """
    if context.replayed:
        return context
    popped = consume_gateway_turn_context_notes(host.agent) if host.agent is not None else ""
    posted: tuple[Note, ...] = ()
    if host.notes is not None:
        nothing: dict[str, list[str]] = {}
        told, context = _try(context, nothing, _told, host, context)
        posted, context = _try(context, posted, host.notes.claim, context.key, told)
    context = replace(context, popped_notes=popped, note_ids=tuple(note.id for note in posted))
    return _tell(context, SEPARATOR.join(filter(None, (popped, *(note.text for note in posted)))))


def inject_block(host: TurnHost, context: TurnContext) -> TurnContext:
    """The injected block, the list of things to do, and a changed tier of the system prompt."""
    if context.replayed:
        return context
    context = _tell(context, context.prompt_change)
    block, context = _try(context, "", host.block, context)
    todo, context = _try(context, "", host.todo)
    return _tell(_tell(context, block), todo)


def prefetch_memory(host: TurnHost, context: TurnContext) -> TurnContext:
    """Ask the memory with the user's own words."""
    if host.memory is None or context.replayed:
        return context
    query = plain_text(sanitise(context.original_user_message))
    found, context = _try(context, "", _recall, host.memory, query, context.session_id)
    return replace(context, ext_prefetch_cache=sanitise(found) if isinstance(found, str) else "")


def stamp_api_content(_: TurnHost, context: TurnContext) -> TurnContext:
    """Fix what is sent: a sidecar of a text message, a part more in one of several parts."""
    at = context.current_turn_user_idx
    if not 0 <= at < len(context.messages):
        return context
    message = dict(context.messages[at])
    content = message.get("content")
    api_content = context.api_content
    if not context.replayed:
        api_content = compose_user_api_content(
            content, context.ext_prefetch_cache, context.plugin_user_context
        )
        if isinstance(content, list):
            content = list(content)
            added = beside(context.ext_prefetch_cache, context.plugin_user_context)
            append_notes_to_multimodal_content(content, added)
            message["content"] = content
    if api_content is not None:
        message[SIDECAR] = api_content
    messages = [*context.messages[:at], message, *context.messages[at + 1 :]]
    return replace(context, messages=messages, api_content=api_content)


def persist_turn(host: TurnHost, context: TurnContext) -> TurnContext:
    """Store the turn before the call, so that after a crash it is sent as it was prepared.

    Of two that prepare one turn at once, both send what the first one stored.
    """
    if context.replayed:
        return context
    at = context.current_turn_user_idx
    mine = {
        "key": context.key,
        "turn_id": context.turn_id,
        "task_id": context.effective_task_id,
        "content": context.messages[at]["content"] if 0 <= at < len(context.messages) else None,
        "api_content": context.api_content,
        "beside": context.plugin_user_context,
        "notes": context.note_ids,
    }

    def keep(doc: Document) -> tuple[Document | None, Document]:
        there = doc.get("pending")
        if there and there["key"] == context.key and there["content"] is not None:
            return None, there
        return doc | {"pending": mine, "epoch": context.epoch}, mine

    stored, context = _try(context, mine, documents.change, host.states, host.session_id, ROOM, keep)
    if stored is not mine:
        return _adopted(host, context, stored)
    if context.prompt_change:
        _, context = _try(context, None, mark_told, host.states, context.session_id, context.prompt_change)
    if host.persist is not None:
        _, context = _try(context, None, host.persist, context)
    return context


PROLOGUE: Final[tuple[Step, ...]] = (
    sanitise_message,
    begin_turn,
    add_user_message,
    restore_prompt,
    preflight,
    run_hooks,
    take_notes,
    inject_block,
    prefetch_memory,
    stamp_api_content,
    persist_turn,
)
"""The steps, in order."""


def turn_key(history: Sequence[Mapping[str, Any]], user_message: Any) -> str:
    """Tells a user message behind a history: the number of messages, the last of them, and the message."""
    last = digest({k: v for k, v in history[-1].items() if not k.startswith("_")}) if history else b""
    own = digest({"role": "user", "content": user_message})
    return hashlib.sha256(b"%d\0" % len(history) + last + own).hexdigest()[:32]


def _compacted(host: TurnHost, context: TurnContext, made: Compacted) -> TurnContext:
    """The turn on the new list: an epoch later, perhaps in a new session."""
    here = context.current_turn_user_idx
    message = context.messages[here] if 0 <= here < len(context.messages) else None
    messages = list(made.messages)
    at = reanchor_current_turn_user_idx(messages, context.user_message, message=message)
    if at < 0 and message is not None:
        messages.append(message)
        at = len(messages) - 1
    opened = made.session_id is not None and made.session_id != context.session_id
    context = replace(
        context,
        messages=messages,
        current_turn_user_idx=at,
        conversation_history=None if opened else messages[:at],
        session_id=made.session_id or context.session_id,
        epoch=context.epoch + 1,
        prompt_change="",
    )
    return restore_prompt(host, context)


def _as_prepared(context: TurnContext, pending: Document) -> TurnContext:
    """The turn as it was begun; as it was prepared, if it got so far."""
    context = replace(context, effective_task_id=pending["task_id"], turn_id=pending["turn_id"])
    if pending["content"] is None:
        return context
    return replace(
        context,
        prepared_content=pending["content"],
        api_content=pending["api_content"],
        plugin_user_context=pending["beside"],
        note_ids=tuple(pending["notes"]),
        replayed=True,
    )


def _adopted(host: TurnHost, context: TurnContext, stored: Document) -> TurnContext:
    """The turn as another prepared it in the meantime; notes that are not in it go back."""
    if context.popped_notes and context.popped_notes not in stored["beside"]:
        give_back_gateway_notes(host.agent, context.popped_notes)
    if host.notes is not None and not set(context.note_ids) <= set(stored["notes"]):
        _, context = _try(context, None, host.notes.drop, context.key)
    context = _as_prepared(context, stored)
    at = context.current_turn_user_idx
    message = context.messages[at] | {"content": context.prepared_content, STAMP: context.turn_id}
    drop_stale_api_content(message)
    messages = [*context.messages[:at], message, *context.messages[at + 1 :]]
    return stamp_api_content(host, replace(context, messages=messages))


def _told(host: TurnHost, context: TurnContext) -> dict[str, list[str]]:
    """The notes of the turn before, by its key, if that was cut off and its message is in the history."""
    before = documents.load(host.states, host.session_id, ROOM).get("before")
    if not before:
        return {}
    history = context.messages[: context.current_turn_user_idx]
    sent = any(
        message.get("role") == "user"
        and message.get("content") == before["content"]
        and message.get(SIDECAR) == before["api_content"]
        for message in history
    )
    return {before["key"]: before["notes"]} if sent else {}


def _recall(memory: MemoryProvider, query: str, session_id: str) -> str:
    return memory.prefetch(query, session_id=session_id)


def _tell(context: TurnContext, text: Any) -> TurnContext:
    """Add a text beside the user's words."""
    if not isinstance(text, str) or not text.strip():
        return context
    joined = SEPARATOR.join(filter(None, (context.plugin_user_context, sanitise(text))))
    return replace(context, plugin_user_context=joined)


def _try(
    context: TurnContext, otherwise: T, call: Callable[..., T], *arguments: Any
) -> tuple[T, TurnContext]:
    """The prologue's boundary: what the host brings may fail, and the turn goes on without it."""
    try:
        return call(*arguments), context
    except Exception as fault:  # noqa: BLE001 - fail open; the class is in the context
        level = logging.INFO if isinstance(fault, TurngateError) else logging.WARNING
        _log.log(level, "%s in the prologue of a turn; it goes on without", type(fault).__name__)
        return otherwise, replace(context, faults=(*context.faults, type(fault).__name__))
