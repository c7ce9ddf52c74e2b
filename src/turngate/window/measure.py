"""How many tokens a message takes: text by estimate, media at a fixed cost, whatever the block is called."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from turngate import tokens

Count: TypeAlias = Callable[[str], float]
"""Tokens of a text. Need not be whole: a message's are summed before they are compared."""

#: What a message's frame costs: 3, and 1 for the role (OpenAI cookbook, "How to count tokens").
FRAME_TOKENS: Final = 4
#: Remembered texts: a long session's messages, several times over.
_REMEMBERED: Final = 20_000
#: Remembered messages; they are kept alive by it.
_SEEN: Final = 4_000
#: A string this long without a blank is data in base64, not text.
_OPAQUE_CHARS: Final = 1_024
_OPAQUE: Final = re.compile(r"(?:data:[\w/+.-]+[;,])?[A-Za-z0-9+/=_-]+")
#: Fields that cost nothing by themselves: names of the wire, seals, marks.
_FREE: Final = frozenset(
    {"role", "type", "id", "tool_call_id", "tool_use_id", "signature", "cache_control", "encrypted_content"}
)
#: Fields that hold text, however it looks.
_TEXT: Final = frozenset({"text", "content", "arguments", "input", "thinking", "reasoning_content"})
#: Type of a block -> what `tokens.estimate_media` calls it.
_MEDIA: Final[Mapping[str, str]] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "video_url": "video",
    "input_video": "video",
    "document": "file",
    "file": "file",
    "input_file": "file",
    "media": "file",
    "container_upload": "file",
}
#: Types that are looked at no further.
_PLAIN: Final = frozenset({"text", "function", "tool_use", "tool_result", "thinking"})
#: Sources of an Anthropic document that are read as text.
_TEXT_SOURCES: Final = frozenset({"text", "content"})
#: Redacted thinking is the encrypted text in base64: so many characters to a token.
_SEALED_CHARS_PER_TOKEN: Final = 5.4


class Sizes:
    """Tokens of texts and messages; a text that was seen before is not counted anew."""

    def __init__(
        self, count: Count = tokens.estimate, *, frame_tokens: float = FRAME_TOKENS, provider: str = ""
    ) -> None:
        """The measure of a text, of a message's frame, and of media (of no provider: the highest cost)."""
        self._count = count
        self._frame = frame_tokens
        self._provider = provider
        self._known: OrderedDict[int, float] = OrderedDict()
        self._seen: dict[int, tuple[Any, Any, Any, float]] = {}

    @classmethod
    def by_chars(cls, chars_per_token: int) -> Sizes:
        """As symfonic-core measures: a fixed number of characters to a token, no frame."""
        return cls(lambda text: len(text) / chars_per_token, frame_tokens=0)

    def text(self, text: str) -> float:
        """Tokens of a text."""
        if not text:
            return 0
        # Python keeps a string's hash; 64 bits are enough for an estimate.
        key = hash(text)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._count(text)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known

    def message(self, message: Mapping[str, Any]) -> float:
        """Tokens of a message, whatever it holds.

        A host passes the same objects again before every call. One that was changed in place, deep inside, is
        taken for the one it was: this is an estimate.
        """
        content, calls = message.get("content"), message.get("tool_calls")
        seen = self._seen.get(id(message))
        if seen is not None and seen[0] is message and seen[1] is content and seen[2] is calls:
            return seen[3]
        weight = self._frame + (self.value if message.get("type") in _MEDIA else self._members)(message)
        if len(self._seen) >= _SEEN:
            self._seen.clear()
        self._seen[id(message)] = (message, content, calls, weight)
        return weight

    def forget(self) -> None:
        """Let go of the messages; what their texts weigh stays known."""
        self._seen.clear()

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> float:
        """Tokens of all of them."""
        return sum(map(self.message, messages))

    def value(self, value: Any, key: str = "") -> float:
        """Tokens of a JSON value: its text, the names of fields left out."""
        kind = type(value)
        if kind is str:
            return self._string(value, key)
        if value is None:
            return 0
        if kind is dict or isinstance(value, Mapping):
            return self._object(value)
        if kind is list or (isinstance(value, Sequence) and not isinstance(value, bytes)):
            total = 0.0
            for item in value:
                total += self.value(item, key)
            return total
        return 1

    def _string(self, text: str, key: str) -> float:
        if len(text) <= _OPAQUE_CHARS or key in _TEXT or not _OPAQUE.fullmatch(text[:_OPAQUE_CHARS]):
            return self.text(text)
        return self._media("file")

    def _object(self, value: Mapping[str, Any]) -> float:
        kind = value.get("type")
        if type(kind) is not str or kind in _PLAIN:
            return self._members(value)
        if kind == "redacted_thinking":
            return len(str(value.get("data", ""))) / _SEALED_CHARS_PER_TOKEN
        media = _MEDIA.get(kind)
        source = value.get("source")
        if media and not (isinstance(source, Mapping) and source.get("type") in _TEXT_SOURCES):
            return self._media(media)
        return self._members(value)

    def _members(self, value: Mapping[str, Any]) -> float:
        # One flat loop: of a long history this is most of what planning costs.
        total, known = 0.0, self._known
        for name, item in value.items():
            if name in _FREE or item is None:
                continue
            if type(item) is not str:
                total += self.value(item, name)
            elif name in _TEXT:
                seen = known.get(hash(item))
                total += self.text(item) if seen is None else seen
            else:
                total += self._string(item, name)
        return total

    def _media(self, kind: str) -> int:
        return tokens.estimate_media(kind, provider=self._provider)
