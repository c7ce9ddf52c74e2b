"""Replies of Chat Completions: one message, its calls in pieces that are told apart by an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turngate.proxy.jsontext import dumps
from turngate.proxy.reply.base import OWN, OwnCall, Round, numbers, summed
from turngate.proxy.reply.stream import Machine, changed
from turngate.proxy.reply.whole import Whole

_USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("prompt_tokens",),
    "output": ("completion_tokens",),
    "cache_read": ("prompt_tokens_details", "cached_tokens"),
    "cache_write": ("prompt_tokens_details", "cache_write_tokens"),
}
#: Fields of a delta that are no text of the message.
_NO_TEXT: Final = frozenset({"role", "tool_calls", "function_call", "index"})
#: Reasons to finish that may leave the last call torn.
_CUT: Final = frozenset({"length", "content_filter"})


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
        #: Calls in the order in which they came; which of them are ours; their indexes, as given.
        self._calls: list[dict[str, Any]] = []
        self._own: set[int] = set()
        self._given: list[Any] = []
        self._usage: dict[str, Any] = {}
        self._status = ""

    def take(self, frame: bytes, value: dict[str, Any]) -> bytes:
        """A chunk."""
        choice, new = _first_choice(value), self._joined(value)
        delta = None if choice is None else choice.get("delta")
        if choice is not None and isinstance(delta, dict):
            seen = self._seen(delta)
            self._status = _reason(choice) or self._status
            if self._own and self._status and any(seen.values()):
                self.hold(changed(frame, _with_choice(new, choice | {"delta": {}})))
                going = choice | {"delta": seen, "finish_reason": None}
                return changed(frame, _with_choice(new | {"usage": None}, going))
            if seen is not delta:
                if not (any(seen.values()) or self._status or value.get("usage")):
                    return b""
                new = _with_choice(new, choice | {"delta": seen})
        out = frame if new is value else changed(frame, new)
        return self.hold(out) if self._status and self.ends_later(self._own) else out

    def done(self, frame: bytes) -> bytes:
        """The end in words."""
        return self.hold(frame) if self.ends_later(self._own) else frame

    def _joined(self, value: dict[str, Any]) -> dict[str, Any]:
        """A chunk as one of the whole reply: with its id, and the usage of all rounds."""
        new = value
        if isinstance(value.get("usage"), dict):
            self._usage = value["usage"]
            if self._spent:
                new = new | {"usage": summed([*self._spent, self._usage])}
        if self._id is None:
            self._id = value.get("id")
        elif not self.is_first and value.get("id") != self._id:
            new = new | {"id": self._id}
        return new

    def _seen(self, delta: dict[str, Any]) -> dict[str, Any]:
        """A delta without what is ours; the very object where nothing is.

        Clients add up strings: the role is told in the first round only.
        """
        for key, value in delta.items():
            if key not in _NO_TEXT and value is not None:
                _grow(self._message, key, value)
        seen = {key: value for key, value in delta.items() if key != "role" or self.is_first}
        pieces = delta.get("tool_calls")
        if isinstance(pieces, list) and pieces:
            seen["tool_calls"] = [new for piece in pieces if (new := self._piece(piece)) is not None]
            if not seen["tool_calls"]:
                del seen["tool_calls"]
        return delta if seen == delta else seen

    def _piece(self, piece: Any) -> Any:
        """A piece of a call as the client sees it; None for one of ours."""
        if not isinstance(piece, dict):
            return piece
        at = self._call_of(piece)
        for key, value in piece.items():
            if key != "index" and value is not None:
                _grow(self._calls[at], key, value)
        if at in self._own:
            return None
        index = piece.get("index")
        if not isinstance(index, int):
            return piece
        ours = {self._given[each] for each in self._own}
        ours -= {given for each, given in enumerate(self._given) if each not in self._own}
        place = index - sum(isinstance(each, int) and each < index for each in ours)
        return piece if place == index else piece | {"index": place}

    def _call_of(self, piece: dict[str, Any]) -> int:
        """The call that a piece belongs to.

        Some servers give no index, or the same one to all calls: then an id (a name) of its own begins one.
        """
        index, id_ = piece.get("index"), piece.get("id")
        known = [at for at, given in enumerate(self._given) if given == index]
        if known:
            before = self._calls[known[-1]].get("id")
            another = id_ and before and id_ != before
            if not another and not (index is None and _name(piece)):
                return known[-1]
        if self.hide and _name(piece) == OWN:
            self._own.add(len(self._calls))
        self._given.append(index)
        self._calls.append({"type": "function"})
        return len(self._calls) - 1

    def again(self, *, hide: bool = True) -> None:
        """A further round follows."""
        self._spent.append(self._usage)
        super().again(hide=hide)

    def round(self) -> Round:
        """What the round was."""
        message = self._message | ({"tool_calls": self._calls} if self._calls else {})
        return _round(message, hide=self.hide, usage=self._usage, status=self._status)


class ChatWhole(Whole):
    """A reply in one piece."""

    def round(self, value: dict[str, Any]) -> Round:
        """What a reply is."""
        choice = _first_choice(value) or {}
        message = choice.get("message")
        return _round(
            message if isinstance(message, dict) else {},
            hide=self.hide,
            usage=value.get("usage") or {},
            status=str(choice.get("finish_reason") or ""),
        )

    def merged(self) -> dict[str, Any]:
        """All rounds as one reply."""
        first, last = self.values[0], self.values[-1]
        messages = [(_first_choice(value) or {}).get("message") or {} for value in self.values]
        merged: dict[str, Any] = {"role": "assistant", "content": None}
        for message in messages:
            for key, each in message.items():
                if key not in _NO_TEXT and (each is not None or key not in merged):
                    _grow(merged, key, each)
        calls = messages[-1].get("tool_calls") or ()
        calls = [call for call in calls if not (self.hide and _name(call) == OWN)]
        merged |= {"tool_calls": calls} if calls else {}
        choices = [(_first_choice(last) or {}) | {"message": merged}, *last.get("choices", ())[1:]]
        return last | {"id": first.get("id"), "choices": choices} | self.usage("usage")


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
        finished=bool(status) and status not in _CUT,
        status=status,
    )


def _first_choice(value: Mapping[str, Any]) -> dict[str, Any] | None:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) and first.get("index", 0) == 0 else None


def _reason(choice: Mapping[str, Any]) -> str:
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) else ""


def _with_choice(value: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any]:
    return value | {"choices": [choice, *value["choices"][1:]]}


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
