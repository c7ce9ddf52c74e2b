"""The content of a user message: cleaned, and with what is told beside it.

What is told beside the user's words is a sidecar of the message (``api_content``): stored and sent again
exactly as it was sent first, while the message's own content stays as the user wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final

SIDECAR: Final = "api_content"
"""The key of a message that holds what is sent in place of its content."""

SEPARATOR: Final = "\n\n"
_SIDECAR_ROLES: Final = frozenset({"user", "assistant"})
_FENCE: Final = ("<memory-context>", "</memory-context>")
#: Lone surrogates have no UTF-8 form, and NUL is refused by databases and by some providers.
_UNSENDABLE = re.compile("[\ud800-\udfff\x00]")


def sanitise(content: Any) -> Any:
    """Content that can be sent and stored: lone surrogates become U+FFFD, NUL goes; else the same object."""
    if isinstance(content, str):
        return _clean(content)
    if not isinstance(content, list):
        return content
    parts = [_clean_part(part) for part in content]
    return content if all(new is old for new, old in zip(parts, content, strict=True)) else parts


def fence_memory(text: str) -> str:
    """Recalled memory, set apart from the user's words; "" for none. It cannot close its own fence."""
    if not text.strip():
        return ""
    start, end = _FENCE
    return f"{start}\n{text.strip().replace(end, end.replace('<', '&lt;'))}\n{end}"


def compose_user_api_content(content: Any, ext_prefetch_cache: str, plugin_user_context: str) -> str | None:
    """The text to send for a user message: its own, recalled memory, and what is injected, by blank lines.

    None when nothing is to be added, and for content that is no text (see
    `append_notes_to_multimodal_content`): the message is sent as it is.
    """
    if not isinstance(content, str):
        return None
    added = beside(ext_prefetch_cache, plugin_user_context)
    return SEPARATOR.join((content, added)) if added else None


def beside(ext_prefetch_cache: str, *injected: str) -> str:
    """What is told beside the user's words, as one text; "" for nothing."""
    return SEPARATOR.join(part for part in (fence_memory(ext_prefetch_cache), *injected) if part)


def substitute_api_content(api_msg: MutableMapping[str, Any]) -> str | None:
    """Put the sidecar of a message in the place of its content, and return it.

    Changes `api_msg`, which is the copy that is about to be sent. The sidecar never stays in it.
    """
    sidecar = api_msg.pop(SIDECAR, None)
    if isinstance(sidecar, str) and sidecar and api_msg.get("role") in _SIDECAR_ROLES:
        api_msg["content"] = sidecar
    return sidecar if isinstance(sidecar, str) else None


def drop_stale_api_content(msg: MutableMapping[str, Any]) -> None:
    """Forget the sidecar of a message whose content was rewritten: sending it would undo that."""
    msg.pop(SIDECAR, None)


def extract_api_content_sidecar(msg: Mapping[str, Any]) -> str | None:
    """The sidecar, for storing it; None where there is none."""
    sidecar = msg.get(SIDECAR)
    return sidecar if isinstance(sidecar, str) else None


def append_notes_to_multimodal_content(content: Any, notes: str) -> bool:
    """Add a text part with `notes` to the list `content`, in place; whether that was done.

    The part is content for good: it is stored and sent again with the message.
    """
    if not notes or not isinstance(content, list):
        return False
    content.append({"type": "text", "text": notes})
    return True


def with_text(content: Any, text: str) -> Any:
    """`content` with `text` behind it, as a new value."""
    if not text:
        return content
    if isinstance(content, str):
        return SEPARATOR.join((content, text)) if content else text
    return [*content, {"type": "text", "text": text}] if isinstance(content, list) else content


def outgoing(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages as they are sent: sidecars in place of contents, no keys that begin with ``_``."""
    out = []
    for message in messages:
        sent = {key: value for key, value in message.items() if not key.startswith("_")}
        substitute_api_content(sent)
        out.append(sent)
    return out


def plain_text(content: Any) -> str:
    """The text of a content: the string, or its text parts by line breaks."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _clean(text: str) -> str:
    # Pairs that stand apart (some JSON readers leave them so) are one character after all.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    clean = _UNSENDABLE.sub(lambda found: "" if found[0] == "\x00" else "\ufffd", whole)
    return text if clean == text else clean


def _clean_part(part: Any) -> Any:
    if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
        return part
    text = _clean(part["text"])
    return part if text is part["text"] else {**part, "text": text}
