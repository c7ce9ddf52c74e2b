"""JSON texts that a provider may send: also those that the fast parser does not take. Pure."""

from __future__ import annotations

import json
from typing import Any

import orjson

from turngate.errors import WireError
from turngate.wire.scan import scan, value_of


def loads(raw: bytes) -> Any:
    """The value of a JSON text; lone surrogates and any depth included.

    Raises:
        WireError: it is none.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return value_of(raw, scan(raw))


def dumps(value: Any) -> bytes:
    """A value as JSON, without blanks."""
    try:
        return orjson.dumps(value)
    except TypeError:  # lone surrogates, integers beyond 64 bits
        return json.dumps(value, separators=(",", ":")).encode()


def object_of(raw: bytes) -> dict[str, Any]:
    """The JSON object of a text; an empty one where it is none."""
    try:
        value = loads(raw)
    except WireError:
        return {}
    return value if isinstance(value, dict) else {}
