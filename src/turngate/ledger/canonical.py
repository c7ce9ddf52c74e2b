"""When two messages are the same message: the canonical form, and the chain of keys that rests on it.

Clients spell one history differently from request to request: cache marks move, optional fields are null or
absent, a text is a string or one text block, call arguments are serialised anew. None of that makes another
message. Everything else does.

A message's shape tells its wire as far as that matters: Gemini's have ``parts``, Responses items a ``type``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from turngate.errors import WireError
from turngate.wire import Wire
from turngate.wire.prefix import MARKS

#: 160 bits: more than the 128 that forging a key in a shared database would have to beat.
KEY_BYTES: Final = 20
#: Raised when the canonical form changes, so that old keys are not taken for new ones.
_FORM: Final = b"turngate ledger 1"
#: Fields whose absence means the same as this value (Anthropic Messages API, ``tool_result``).
_DEFAULTS: Final[Mapping[str, Any]] = {"is_error": False}
#: Beyond this a float no longer tells neighbouring whole numbers apart.
_EXACT_FLOAT: Final = 2.0**53


def root_key(scope: str | bytes, wire: Wire) -> bytes:
    """The key above the first message.

    Args:
        scope: who may share what was sent: in a proxy a keyed hash of the credential.
        wire: the format; the same words in another format are another history.
    """
    raw = scope.encode("utf-8", "surrogatepass") if isinstance(scope, str) else scope
    return _hash(b"\0".join((_FORM, wire.encode(), raw)))


def child_key(parent: bytes, digest: bytes) -> bytes:
    """The key of a message with this digest behind the message (or root) of that key."""
    return _hash(parent + digest)


def digest(message: Any) -> bytes:
    """Hash of a message's canonical form, in whatever wire it is.

    Raises:
        WireError: it is nested too deep.
    """
    try:
        form = json.dumps(_form(message), sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise WireError("a message is nested too deep to be compared; it passes as it is") from None
    return _hash(form.encode())


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:KEY_BYTES]


_Forms: TypeAlias = Mapping[str, Callable[[Any], Any]]
"""Fields that have a form of their own."""


def _form(message: Any) -> Any:
    if isinstance(message, str):  # Responses: the whole input
        message = {"role": "user", "content": message}
    if not isinstance(message, Mapping):
        return _clean(message, _FORMS)
    if "parts" in message and "content" not in message:
        return _clean({"role": "user"} | dict(message), _GEMINI)
    kind = message.get("type")
    if kind is None:
        return _clean(message, _FORMS)
    given = {"status"} if kind not in _OWN_STATUS else set()
    given |= {"id"} if kind not in _OWN_ID else set()
    given |= {"type"} if kind == "message" and "role" in message else set()
    return _clean({key: each for key, each in message.items() if key not in given}, _RESPONSES)


def _clean(value: Any, forms: _Forms) -> Any:
    if isinstance(value, Mapping):
        return dict(_fields(value, forms))
    if _is_list(value):
        return [_clean(item, forms) for item in value]
    return value


def _fields(value: Mapping[str, Any], forms: _Forms) -> Iterator[tuple[str, Any]]:
    for key, each in value.items():
        absent = each is None or each == [] or (key in _DEFAULTS and each is _DEFAULTS[key])
        if key not in MARKS and not absent:
            form = forms.get(key)
            name = _SPELLINGS.get(key, key) if forms is _GEMINI else key
            yield name, _clean(each, forms) if form is None else form(each)


def _content(value: Any) -> Any:
    """A text is one text block, whatever its wire calls that."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    clean = _clean(value, _FORMS)
    return [_block(each) for each in clean] if isinstance(clean, list) else clean


def _block(value: Any) -> Any:
    plain = isinstance(value, dict) and value.get("type") in ("input_text", "output_text")
    return value | {"type": "text"} if plain else value


def _arguments(value: Any) -> Any:
    """The value that a JSON text spells; a text that is not JSON stands for itself."""
    if not isinstance(value, str):
        return {"json": _plain(value)}
    try:
        return {"json": _plain(json.loads(value, parse_constant=_no_json))}
    except (ValueError, RecursionError):
        return {"text": value}


def _no_json(word: str) -> Any:
    raise ValueError(word)


def _plain(value: Any) -> Any:
    """Arguments as values: nulls and any names count, ``2.0`` is ``2``."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if _is_list(value):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_FLOAT:
        return int(value)
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_FORMS: Final[_Forms] = {"content": _content, "arguments": _arguments, "input": _plain}
"""Of messages with a role; below arguments nothing is left out."""

_RESPONSES: Final[_Forms] = {**_FORMS, "output": _content}
_GEMINI: Final[_Forms] = {"args": _plain, "response": _plain}

_OWN_ID: Final = frozenset({"item_reference", "local_shell_call_output", "mcp_approval_request"})
"""Responses items whose ``id`` says something. That of others the server gave: a client may leave it out."""

_OWN_STATUS: Final = frozenset({"apply_patch_call_output"})
"""Responses items whose ``status`` says something: how the client's work ended."""

_SPELLINGS: Final[Mapping[str, str]] = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "thought_signature": "thoughtSignature",
    "inline_data": "inlineData",
    "file_data": "fileData",
}
"""Gemini's names in their other spelling."""
