"""Whether to compact before a turn, and whether compacting was of any use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from turngate import tokens
from turngate.tokens import estimate_media

#: A compaction that saves no more than 5 % of the tokens (of as many messages) would only be repeated:
#: Hermes 0.19 uses the same share in its prologue and after an overflow.
_LEAST_LEFT_TWENTIETHS: Final = 19
#: Role and punctuation of a message, as o200k-like chat formats count them.
_MESSAGE_TOKENS: Final = 4
#: Type of a content block -> kind of media, for its fixed cost. What it carries is never counted as text.
_MEDIA: Final[Mapping[str, str]] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "document": "file",
    "file": "file",
    "input_file": "file",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
}


def compression_made_progress(orig_len: int, new_len: int, orig_tokens: int, new_tokens: int) -> bool:
    """Whether there are fewer messages now, or more than 5 % fewer tokens."""
    return new_len < orig_len or 20 * new_tokens < _LEAST_LEFT_TWENTIETHS * orig_tokens


def should_run_preflight_estimate(
    messages: Sequence[Mapping[str, Any]], protect_first_n: int, protect_last_n: int, threshold_tokens: int
) -> bool:
    """Whether a full estimate is worth its time: many messages, or few that are large.

    Args:
        messages: the conversation.
        protect_first_n: messages at the beginning that no compaction touches.
        protect_last_n: the same at the end.
        threshold_tokens: where compaction begins.
    """
    if len(messages) > protect_first_n + protect_last_n + 1:
        return True
    total = 0
    for message in messages:
        total += message_tokens(message)
        if total >= threshold_tokens:
            return True
    return False


def message_tokens(message: Mapping[str, Any]) -> int:
    """Estimate of a message's tokens: texts, call arguments, and media at their fixed cost."""
    return _MESSAGE_TOKENS + sum(_costs(message.get("content"))) + sum(_costs(message.get("tool_calls")))


def messages_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Estimate of all messages together."""
    return sum(map(message_tokens, messages))


def _costs(value: Any) -> Iterator[int]:
    if isinstance(value, str):
        yield tokens.estimate(value)
    elif isinstance(value, Mapping):
        kind = _MEDIA.get(str(value.get("type")))
        if kind is not None:
            yield estimate_media(kind)
        else:
            for each in value.values():
                yield from _costs(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _costs(each)
