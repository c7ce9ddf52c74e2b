"""Replies of Anthropic Messages: blocks with an index, each begun, filled and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turngate.errors import TurngateError
from turngate.proxy.jsontext import dumps, loads
from turngate.proxy.reply.base import OWN, OwnCall, Round, numbers, summed
from turngate.proxy.reply.stream import Machine, changed
from turngate.proxy.reply.whole import Whole

_USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "cache_read": ("cache_read_input_tokens",),
    "cache_write": ("cache_creation_input_tokens",),
}
#: Type of a delta -> (its field, the field of the block that it fills).
_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "compaction_delta": ("content", "content"),
}
_CALLS: Final = ("tool_use",)
#: Reasons to stop that may leave the last block torn.
_CUT: Final = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
_PARTIAL: Final = "\0partial"


class AnthropicStream(Machine):
    """A stream of Messages events."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0
        #: Usage of the rounds before.
        self._spent: list[dict[str, Any]] = []
        self.reset()

    def reset(self) -> None:
        """Forget the round."""
        self._blocks: dict[int, dict[str, Any]] = {}
        self._places: dict[int, int] = {}
        self._own: set[int] = set()
        self._usage: dict[str, Any] = {}
        self._status = ""
        self._finished = False

    def take(self, frame: bytes, value: dict[str, Any]) -> bytes:
        """An event."""
        handler = {
            "message_start": self._start,
            "content_block_start": self._block,
            "content_block_delta": self._delta,
            "content_block_stop": self._placed,
            "message_delta": self._delta_of_message,
            "message_stop": self._stop,
        }.get(str(value.get("type")))
        return handler(frame, value) if handler is not None else frame

    def _start(self, frame: bytes, value: dict[str, Any]) -> bytes:
        message = value.get("message")
        if isinstance(message, dict) and isinstance(message.get("usage"), dict):
            self._usage = dict(message["usage"])
        return frame if self.is_first else b""

    def _block(self, frame: bytes, value: dict[str, Any]) -> bytes:
        index, block = value.get("index"), value.get("content_block")
        if not isinstance(index, int) or not isinstance(block, dict):
            return frame
        self._blocks[index] = dict(block)
        if self.hide and _is_own(block):
            self._own.add(index)
            return b""
        self._places[index] = self._next
        self._next += 1
        return self._placed(frame, value)

    def _placed(self, frame: bytes, value: dict[str, Any]) -> bytes:
        """An event of a block, under the index that the client knows it by."""
        index = value.get("index")
        if index in self._own:
            return b""
        place = self._places.get(index, index) if isinstance(index, int) else index
        return frame if place == index else changed(frame, value | {"index": place})

    def _delta(self, frame: bytes, value: dict[str, Any]) -> bytes:
        block, delta = self._blocks.get(value.get("index", -1)), value.get("delta")
        if block is not None and isinstance(delta, dict):
            _fill(block, delta)
        return self._placed(frame, value)

    def _delta_of_message(self, frame: bytes, value: dict[str, Any]) -> bytes:
        delta = value.get("delta")
        if isinstance(delta, dict) and isinstance(delta.get("stop_reason"), str):
            self._status = delta["stop_reason"]
        if isinstance(value.get("usage"), dict):
            self._usage |= {key: each for key, each in value["usage"].items() if each is not None}
        if self._spent:
            frame = changed(frame, value | {"usage": summed([*self._spent, self._usage])})
        return self.hold(frame) if self.ends_later(self._own) else frame

    def _stop(self, frame: bytes, _: dict[str, Any]) -> bytes:
        self._finished = True
        return self.hold(frame) if self.ends_later(self._own) else frame

    def again(self, *, hide: bool = True) -> None:
        """A further round follows."""
        self._spent.append(self._usage)
        super().again(hide=hide)

    def round(self) -> Round:
        """What the round was."""
        blocks = [_closed(self._blocks[index]) for index in sorted(self._blocks)]
        return _round(blocks, hide=self.hide, usage=self._usage, status=self._status, finished=self._finished)


class AnthropicWhole(Whole):
    """A reply in one piece."""

    def round(self, value: dict[str, Any]) -> Round:
        """What a reply is."""
        return _round(
            _blocks(value),
            hide=self.hide,
            usage=value.get("usage") or {},
            status=str(value.get("stop_reason") or ""),
            finished=value.get("type") == "message",
        )

    def merged(self) -> dict[str, Any]:
        """All rounds as one reply."""
        content = self.visible(_blocks, _is_own)
        return self.values[-1] | {"id": self.values[0].get("id"), "content": content} | self.usage("usage")


def results(answers: Sequence[tuple[OwnCall, str]]) -> bytes:
    """One user message that answers the calls."""
    blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in answers]
    return dumps({"role": "user", "content": blocks})


def _round(
    blocks: Sequence[dict[str, Any]], *, hide: bool, usage: Mapping[str, Any], status: str, finished: bool
) -> Round:
    own = [block for block in blocks if hide and _is_own(block)]
    seen = [block for block in blocks if not (hide and _is_own(block))]
    index = next((at for at, block in enumerate(blocks) if hide and _is_own(block)), 0)
    return Round(
        own=tuple(
            OwnCall(str(block.get("id", "")), dumps(block.get("input") or {}).decode()) for block in own
        ),
        client_calls=tuple(str(block.get("id", "")) for block in seen if block.get("type") in _CALLS),
        messages=dumps({"role": "assistant", "content": list(blocks)}),
        own_call=b",".join(dumps(block) for block in own),
        own_index=index,
        text="".join(str(block.get("text", "")) for block in seen if block.get("type") == "text"),
        blocks=len(seen),
        usage=numbers(usage, _USAGE),
        finished=finished and status not in _CUT,
        status=status,
    )


def _blocks(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = value.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _is_own(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") == OWN


def _fill(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    kind = str(delta.get("type"))
    if kind in _TEXTS:
        source, target = _TEXTS[kind]
        block[target] = str(block.get(target) or "") + str(delta.get(source) or "")
    elif kind == "input_json_delta":
        block[_PARTIAL] = str(block.get(_PARTIAL, "")) + str(delta.get("partial_json") or "")
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    """A block as it would stand in a reply in one piece."""
    partial = block.pop(_PARTIAL, None)
    if partial is not None:
        block["input"] = _parsed(partial)
    return block


def _parsed(text: str) -> Any:
    try:
        return loads(text.encode("utf-8", "surrogatepass")) if text.strip() else {}
    except TurngateError:
        return {}
