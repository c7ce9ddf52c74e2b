"""Where the turn's user message is, after a compaction made a new list of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turngate.turn.content import plain_text

STAMP: Final = "_turn_id"
"""The key by which a copy of the turn's message is known; keys that begin with ``_`` are never sent."""

NOT_THERE: Final = -1


def reanchor_current_turn_user_idx(
    messages: Sequence[Any], user_message: Any, *, message: Mapping[str, Any] | None = None
) -> int:
    """The index of the turn's user message, or -1 if it is not there.

    Looked for from the end: first the message itself or a stamped copy of it, then one with the same content,
    then one that ends with it (a summary was merged into it), then the last user message. A message that
    merely quotes the user's words is a summary and is passed over.

    Args:
        messages: the new list.
        user_message: the content of the turn's message.
        message: the message itself, if the host still has it.
    """
    users = [at for at in range(len(messages) - 1, -1, -1) if _is_user(messages[at])]
    stamp = message.get(STAMP) if message is not None else None
    text = plain_text(user_message).strip()
    for holds in (
        lambda each: each is message,
        lambda each: stamp is not None and each.get(STAMP) == stamp,
        lambda each: _same_content(each.get("content"), user_message),
        lambda each: bool(text) and plain_text(each.get("content")).rstrip().endswith("\n" + text),
        lambda each: not _quotes(plain_text(each.get("content")), text),
    ):
        found = next((at for at in users if holds(messages[at])), None)
        if found is not None:
            return found
    return NOT_THERE


def _is_user(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "user"


def _same_content(content: Any, wanted: Any) -> bool:
    """Equal, where a text and one text block are the same."""
    return bool(_blocks(content) == _blocks(wanted))


def _blocks(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _quotes(text: str, wanted: str) -> bool:
    return bool(wanted) and wanted in text and text.strip() != wanted
