"""Errors in the shape of the provider that the client believes to talk to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

if TYPE_CHECKING:
    from turngate.proxy.routes import Provider

Kind = Literal[
    "invalid",
    "authentication",
    "permission",
    "not_found",
    "method",
    "conflict",
    "too_large",
    "media",
    "upgrade",
    "internal",
    "unreachable",
    "protocol",
    "timeout",
    "stopping",
]
"""What went wrong, in words of no provider."""

#: Kind -> (HTTP status, Anthropic's type, OpenAI's type, Google's canonical status).
#: Anthropic: docs "Errors"; OpenAI: docs "Error codes"; Google: google/rpc/code.proto.
_KINDS: Final[Mapping[Kind, tuple[int, str, str, str]]] = {
    "invalid": (400, "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
    "authentication": (401, "authentication_error", "authentication_error", "UNAUTHENTICATED"),
    "permission": (403, "permission_error", "permission_error", "PERMISSION_DENIED"),
    "not_found": (404, "not_found_error", "invalid_request_error", "NOT_FOUND"),
    "method": (405, "invalid_request_error", "invalid_request_error", "UNIMPLEMENTED"),
    "conflict": (409, "invalid_request_error", "invalid_request_error", "ABORTED"),
    "too_large": (413, "request_too_large", "invalid_request_error", "INVALID_ARGUMENT"),
    "media": (415, "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
    "upgrade": (426, "invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION"),
    "internal": (500, "api_error", "server_error", "INTERNAL"),
    "unreachable": (502, "api_error", "server_error", "UNAVAILABLE"),
    "protocol": (502, "api_error", "server_error", "UNAVAILABLE"),
    "timeout": (504, "timeout_error", "server_error", "DEADLINE_EXCEEDED"),
    "stopping": (503, "overloaded_error", "server_error", "UNAVAILABLE"),
}


def status_of(kind: Kind) -> int:
    """The HTTP status of a kind."""
    return _KINDS[kind][0]


def shaped(provider: Provider, kind: Kind, message: str) -> tuple[int, bytes]:
    """HTTP status and JSON body of an error.

    Args:
        provider: whose shape it takes.
        kind: what went wrong.
        message: what it is, and what to do about it.
    """
    return status_of(kind), orjson.dumps(_SHAPES[provider](kind, message))


def stream_error(provider: Provider, kind: Kind, message: str) -> bytes:
    """The same as a frame of a stream that has begun, in which a status can no longer be told."""
    data = orjson.dumps(_SHAPES[provider](kind, message))
    return (b"event: error\n" if provider == "anthropic" else b"") + b"data: " + data + b"\n\n"


def _anthropic(kind: Kind, message: str) -> Mapping[str, Any]:
    return {"type": "error", "error": {"type": _KINDS[kind][1], "message": message}}


def _openai(kind: Kind, message: str) -> Mapping[str, Any]:
    error = {"message": message, "type": _KINDS[kind][2], "param": None, "code": f"turngate_{kind}"}
    return {"error": error}


def _gemini(kind: Kind, message: str) -> Mapping[str, Any]:
    status, _, _, word = _KINDS[kind]
    return {"error": {"code": status, "message": message, "status": word}}


_SHAPES: Final = {"anthropic": _anthropic, "openai": _openai, "gemini": _gemini}
