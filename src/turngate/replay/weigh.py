"""How many tokens a message costs: an estimate, part by part, media at their fixed cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from turngate import tokens
from turngate.wire.view import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGE_TOKENS: Final = 4
"""Role and separators of a message: 3 to 4 in OpenAI's cookbook, "How to count tokens with tiktoken"."""

_MEDIA: Final = {
    "image": "image",
    "image_url": "image",
    "document": "file",
    "file": "file",
    "input_audio": "audio",
    "container_upload": "file",
}
"""Type of a block -> kind of medium in the table of fixed costs."""

_PROVIDER: Final = {"chat": "openai", "anthropic": "anthropic"}
_OPAQUE: Final = frozenset({"signature", "encrypted_content", "cache_control", "id", "tool_use_id", "type"})
"""Fields that a model does not read as text."""


def message_tokens(message: Mapping[str, Any], wire: str) -> int:
    """An estimate of what one message adds to a request's input."""
    provider = _PROVIDER.get(wire, "")
    texts = list(_texts(message.get("content"), provider))
    texts += _call_texts(message)
    return MESSAGE_TOKENS + sum(text if isinstance(text, int) else tokens.estimate(text) for text in texts)


def value_tokens(value: Any) -> int:
    """An estimate for a tool's definition or a system block."""
    return tokens.estimate(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _call_texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Chat Completions keeps calls and reasoning beside the content."""
    for _, call in blocks(message.get("tool_calls")):
        yield from _strings(call)
    for key in ("function_call", "reasoning_content"):
        value = message.get(key)
        yield from (value,) if isinstance(value, str) else _strings(value)


def _strings(value: Any) -> Iterator[str]:
    """Name and arguments of a call: strings, in an object or one below it."""
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        if isinstance(inner, str):
            if key not in _OPAQUE:
                yield inner
        else:
            yield from _strings(inner)


def _texts(content: Any, provider: str) -> Iterator[str | int]:
    """The texts of a content value, and the fixed costs of its media."""
    if isinstance(content, str):
        yield content
        return
    for _, block in blocks(content):
        kind = str(block.get("type"))
        if kind in _MEDIA:
            yield tokens.estimate_media(_MEDIA[kind], provider=provider)
        elif kind == "tool_result":
            yield from _texts(block.get("content"), provider)
        else:
            text = block.get("text") if kind == "text" else block.get("thinking")
            rest = {k: v for k, v in block.items() if k not in _OPAQUE}
            yield text if isinstance(text, str) else json.dumps(rest, ensure_ascii=False)
