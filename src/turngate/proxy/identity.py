"""Who sends a request, and in which conversation: what clients say of themselves. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate.errors import TurngateError
from turngate.proxy.jsontext import loads

if TYPE_CHECKING:
    from turngate.wire import Wire

#: Where a credential stands, in this order.
_CREDENTIALS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
#: Headers that hold a session's id. Claude Code sends the first; Codex the next two; opencode the others.
_SESSION_HEADERS: Final = (
    "x-claude-code-session-id",
    "session_id",
    "session-id",
    "x-session-id",
    "x-opencode-session",
    "x-session-affinity",
)
#: Codex puts a JSON object there.
_TURN_METADATA: Final = "x-codex-turn-metadata"
#: Claude Code's user id ends so; newer ones hold a JSON object instead.
_IN_USER_ID: Final = re.compile(r"session_([0-9a-f-]{36})$")
_CACHE_KEY: Final = re.compile(rb'"prompt_cache_key"\s*:\s*"((?:[^"\\\x00-\x1f]|\\.)*+)"')
_USER_ID: Final = re.compile(rb'"user_id"\s*:\s*("(?:[^"\\\x00-\x1f]|\\.)*+")')
_MAX_CHARS: Final = 200


def credential_of(headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    """What the client proves itself with; "" where it sends nothing of the kind."""
    found = next((headers[name] for name in _CREDENTIALS if headers.get(name)), "")
    return found or query.get("key", "")


def session_of(headers: Mapping[str, str], body: bytes, wire: Wire) -> str:
    """The session that the client names; "" where it names none."""
    named = next((headers[name] for name in _SESSION_HEADERS if headers.get(name)), "")
    named = named or _in_json(headers.get(_TURN_METADATA, "")) or _BODY[wire](body)
    return named[:_MAX_CHARS]


def _in_json(text: str) -> str:
    try:
        value: Any = loads(text.encode()) if text else None
    except TurngateError:
        return ""
    found = value.get("session_id") if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _cache_key(body: bytes) -> str:
    found = _CACHE_KEY.search(body)
    return found[1].decode("utf-8", "replace") if found else ""


def _user_id(body: bytes) -> str:
    """Anthropic's `metadata.user_id`, in which Claude Code names its session."""
    spelled = _USER_ID.findall(body)
    if not spelled:
        return ""
    text = str(loads(spelled[-1]))
    inside = _IN_USER_ID.search(text)
    return inside[1] if inside else _in_json(text) if text.startswith("{") else ""


_BODY: Final[Mapping[Wire, Callable[[bytes], str]]] = {
    "chat": _cache_key,
    "responses": _cache_key,
    "anthropic": _user_id,
    "gemini": lambda _: "",
}
