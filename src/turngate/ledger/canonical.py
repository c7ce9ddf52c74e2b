"""When two messages are the same message: the canonical form, and the chain of keys that rests on it.

Clients spell one history differently from request to request: cache marks move, optional fields are null or
absent, a text is a string or one text block, call arguments are serialised anew. None of that makes another
message. Everything else does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

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
    """Hash of a message's canonical form.

    Raises:
        WireError: it is nested too deep.
    """
    try:
        form = json.dumps(_clean(message), sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise WireError("a message is nested too deep to be compared; it passes as it is") from None
    return _hash(form.encode())


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:KEY_BYTES]


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(_fields(value))
    if _is_list(value):
        return [_clean(item) for item in value]
    return value


def _fields(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, each in value.items():
        absent = each is None or each == [] or (key in _DEFAULTS and each is _DEFAULTS[key])
        if key not in MARKS and not absent:
            yield key, _FORMS.get(key, _clean)(each)


def _content(value: Any) -> Any:
    """A text is one text block."""
    return [{"type": "text", "text": value}] if isinstance(value, str) else _clean(value)


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


_FORMS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "content": _content,
    "arguments": _arguments,
    "input": _plain,
}
"""Fields with a form of their own; below arguments nothing is left out."""
