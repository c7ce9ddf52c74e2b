"""Replies of Chat Completions: one message, its calls in pieces that are told apart by an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turngate.proxy.jsontext import dumps, object_of
from turngate.proxy.reply.base import OWN, OwnCall, Round, numbers, summed
from turngate.proxy.reply.stream import Machine, changed

_USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("prompt_tokens",),
    "output": ("completion_tokens",),
    "cache_read": ("prompt_tokens_details", "cached_tokens"),
    "cache_write": ("prompt_tokens_details", "cache_write_tokens"),
}
#: Fields of a delta that are no text of the message.
_NO_TEXT: Final = frozenset({"role", "tool_calls", "function_call", "index"})


class ChatStream(Machine):
    """A stream of chunks."""

    def __init__(self) -> None:
        super().__init__()
        self._spent: list[dict[str, Any]] = []
        self._id: Any = None
        self.reset()

    def reset(self) -> None:
        """Forget the round."""
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: dict[int, dict[str, Any]] = {}
        self._own: set[int] = set()
        self._places: dict[int, int] = {}
        self._usage: dict[str, Any] = {}
        self._status = ""

    def take(self, frame: bytes, value: dict[str, Any]) -> bytes:
        """A chunk."""
        choice = _first_choice(value)
        new = value
        if isinstance(value.get("usage"), dict):
            self._usage = value["usage"]
            if self._spent:
                new = new | {"usage": summed([*self._spent, self._usage])}
        if choice is not None:
            delta = choice.get("delta")
            seen = self._seen(delta) if isinstance(delta, dict) else delta
            if isinstance(choice.get("finish_reason"), str):
                self._status = choice["finish_reason"]
            if seen is not delta:
                new = new | {"choices": [choice | {"delta": seen}, *value["choices"][1:]]}
                if not seen and not self._status and value.get("usage") is None:
                    return b""
        if self._id is None:
            self._id = value.get("id")
        elif not self.is_first and value.get("id") != self._id:
            new = new | {"id": self._id}
        out = frame if new is value else changed(frame, new)
        return self.hold(out) if self._own and self._status else out

    def done(self, frame: bytes) -> bytes:
        """The end in words."""
        return self.hold(frame) if self._own else frame

    def _seen(self, delta: dict[str, Any]) -> dict[str, Any]:
        """A delta without what is ours; the very object where nothing is."""
        for key, value in delta.items():
            if key not in _NO_TEXT and value is not None:
                _grow(self._message, key, value)
        seen = delta
        pieces = delta.get("tool_calls")
        if isinstance(pieces, list):
            kept = [new for piece in pieces if (new := self._piece(piece)) is not None]
            if kept != pieces:
                seen = {key: value for key, value in delta.items() if key != "tool_calls"}
                seen |= {"tool_calls": kept} if kept else {}
                seen = {} if not kept and not any(seen.get(key) for key in seen if key != "role") else seen
        if not self.is_first and seen.get("role") and not any(v for k, v in seen.items() if k != "role"):
            return {}
        return seen

    def _piece(self, piece: Any) -> Any:
        """A piece of a call as the client sees it; None for one of ours."""
        if not isinstance(piece, dict) or not isinstance(piece.get("index"), int):
            return piece
        index = piece["index"]
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = {"type": "function"}
            if self.hide and _name(piece) == OWN:
                self._own.add(index)
            else:
                self._places[index] = len(self._places)
        for key, value in piece.items():
            if key != "index" and value is not None:
                _grow(call, key, value)
        if index in self._own:
            return None
        place = self._places[index]
        return piece if place == index else piece | {"index": place}

    def again(self, *, hide: bool = True) -> None:
        """A further round follows."""
        self._spent.append(self._usage)
        super().again(hide=hide)

    def round(self) -> Round:
        """What the round was."""
        calls = [self._calls[index] for index in sorted(self._calls)]
        message = self._message | ({"tool_calls": calls} if calls else {})
        return _round(message, hide=self.hide, usage=self._usage, status=self._status)


class ChatWhole:
    """A reply in one piece."""

    def __init__(self) -> None:
        self._hide = True
        self._bodies: list[tuple[bytes, dict[str, Any]]] = []
        self._touched = False

    def read(self, body: bytes) -> Round:
        """The upstream's reply."""
        value = object_of(body)
        self._bodies.append((body, value))
        choice = _first_choice(value) or {}
        message = choice.get("message")
        found = _round(
            message if isinstance(message, dict) else {},
            hide=self._hide,
            usage=value.get("usage") or {},
            status=str(choice.get("finish_reason") or ""),
        )
        self._touched = self._touched or bool(found.own)
        return found

    def again(self, *, hide: bool = True) -> None:
        """A further round follows."""
        self._hide = hide

    def body(self) -> bytes:
        """The reply for the client."""
        if not self._touched:
            return self._bodies[-1][0]
        first, last = self._bodies[0][1], self._bodies[-1][1]
        messages = [(_first_choice(value) or {}).get("message") or {} for _, value in self._bodies]
        merged: dict[str, Any] = dict(messages[-1])
        for key in merged:
            texts = [text for message in messages if isinstance(text := message.get(key), str)]
            if key not in _NO_TEXT and texts:
                merged[key] = "".join(texts)
        calls = [
            call for call in merged.pop("tool_calls", None) or () if not (self._hide and _name(call) == OWN)
        ]
        merged |= {"tool_calls": calls} if calls else {}
        choices = [(_first_choice(last) or {}) | {"message": merged}, *last.get("choices", ())[1:]]
        usage = summed(value.get("usage") or {} for _, value in self._bodies)
        return dumps(last | {"id": first.get("id"), "choices": choices} | ({"usage": usage} if usage else {}))


def results(answers: Sequence[tuple[OwnCall, str]]) -> bytes:
    """A tool message for each call."""
    return b",".join(
        dumps({"role": "tool", "tool_call_id": call.id, "content": text}) for call, text in answers
    )


def _round(message: Mapping[str, Any], *, hide: bool, usage: Mapping[str, Any], status: str) -> Round:
    calls = [call for call in message.get("tool_calls") or () if isinstance(call, dict)]
    own = [call for call in calls if hide and _name(call) == OWN]
    seen = [call for call in calls if not (hide and _name(call) == OWN)]
    text = message.get("content")
    return Round(
        own=tuple(OwnCall(str(call.get("id", "")), _arguments(call)) for call in own),
        client_calls=tuple(str(call.get("id", "")) for call in seen),
        messages=dumps({key: value for key, value in message.items() if key != "refusal" or value}),
        own_call=b",".join(dumps(call) for call in own),
        own_index=next((at for at, call in enumerate(calls) if call in own), 0),
        text=text if isinstance(text, str) else "",
        blocks=int(bool(text)) + len(seen),
        usage=numbers(usage, _USAGE),
        finished=bool(status),
        status=status,
    )


def _first_choice(value: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) and first.get("index", 0) == 0 else None


def _name(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    return str(function.get("name", "")) if isinstance(function, dict) else ""


def _arguments(call: Mapping[str, Any]) -> str:
    return str((call.get("function") or {}).get("arguments") or "")


def _grow(into: dict[str, Any], key: str, value: Any) -> None:
    """Add a piece to what is there: strings and lists grow, objects grow by fields."""
    before = into.get(key)
    if isinstance(before, str) and isinstance(value, str) and key not in {"id", "type", "name"}:
        into[key] = before + value
    elif isinstance(before, list) and isinstance(value, list):
        into[key] = [*before, *value]
    elif isinstance(value, dict):
        inner = dict(before) if isinstance(before, dict) else {}
        for name, each in value.items():
            if each is not None:
                _grow(inner, name, each)
        into[key] = inner
    elif not (isinstance(before, str) and value == ""):
        into[key] = value
