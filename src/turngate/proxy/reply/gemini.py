"""Replies of Gemini: each event is a whole response with a few parts more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turngate.proxy.jsontext import dumps
from turngate.proxy.reply.base import OWN, OwnCall, Round, numbers, summed
from turngate.proxy.reply.stream import Machine, changed
from turngate.proxy.reply.whole import Whole

_USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("promptTokenCount",),
    "output": ("candidatesTokenCount",),
    "cache_read": ("cachedContentTokenCount",),
}
#: The reason to end of a reply whose calls are whole.
_WHOLE: Final = "STOP"


class GeminiStream(Machine):
    """A stream of responses."""

    def __init__(self) -> None:
        super().__init__()
        self._spent: list[dict[str, Any]] = []
        self._id: Any = None
        self.reset()

    def reset(self) -> None:
        """Forget the round."""
        self._parts: list[dict[str, Any]] = []
        self._usage: dict[str, Any] = {}
        self._status = ""
        self._has_own = False

    def take(self, frame: bytes, value: dict[str, Any]) -> bytes:
        """A response with further parts."""
        new = self._joined(value)
        candidate = _first_candidate(value)
        if candidate is None:
            return self._out(frame, new, value)
        parts = _parts(candidate)
        for part in parts:
            _join(self._parts, part)
        seen = [part for part in parts if not (self.hide and _is_own(part))]
        self._has_own = self._has_own or len(seen) < len(parts)
        if candidate.get("finishReason"):
            self._status = str(candidate["finishReason"])
        if len(seen) < len(parts):
            candidate = candidate | {"content": candidate["content"] | {"parts": seen}}
            new = new | {"candidates": [candidate, *value["candidates"][1:]]}
        if self._status and self.ends_later(self._has_own):
            return self._held_end(frame, new, value, candidate, seen)
        return b"" if self._has_own and not seen else self._out(frame, new, value)

    def _joined(self, value: dict[str, Any]) -> dict[str, Any]:
        """A response as a piece of the whole reply: with its id, and the usage of all rounds."""
        new = value
        if isinstance(value.get("usageMetadata"), dict):
            self._usage = value["usageMetadata"]
            if self._spent:
                new = new | {"usageMetadata": summed([*self._spent, self._usage])}
        if self._id is None:
            self._id = value.get("responseId")
        elif not self.is_first and value.get("responseId", self._id) != self._id:
            new = new | {"responseId": self._id}
        return new

    def _held_end(
        self,
        frame: bytes,
        new: dict[str, Any],
        value: dict[str, Any],
        candidate: dict[str, Any],
        seen: list[dict[str, Any]],
    ) -> bytes:
        """Hold the end of a round; its parts go out before where another round may take its place."""
        calls = any(_call(part) and not _is_own(part) for part in self._parts)
        if seen and (calls or not self._has_own):
            return self.hold(self._out(frame, new, value))
        rest = new.get("candidates", [])[1:]
        # A client of Google's takes a reply without parts for none; the provider itself ends with a text of
        # nothing.
        content = (candidate.get("content") or {"role": "model"}) | {"parts": [{"text": ""}]}
        ended = candidate | {"content": content}
        self.hold(self.changed(frame, new | {"candidates": [ended, *rest]}))
        if not seen:
            return b""
        going = {key: each for key, each in candidate.items() if key not in {"finishReason", "finishMessage"}}
        return self.changed(frame, new | {"candidates": [going, *rest]})

    def _out(self, frame: bytes, new: dict[str, Any], value: dict[str, Any]) -> bytes:
        return frame if new is value else self.changed(frame, new)

    def changed(self, frame: bytes, value: Any) -> bytes:
        """A frame with another value."""
        return changed(frame, value)

    def again(self, *, hide: bool = True) -> None:
        """A further round follows."""
        self._spent.append(self._usage)
        super().again(hide=hide)

    def round(self) -> Round:
        """What the round was."""
        return _round(self._parts, hide=self.hide, usage=self._usage, status=self._status)


class GeminiWhole(Whole):
    """A reply in one piece."""

    def round(self, value: dict[str, Any]) -> Round:
        """What a reply is."""
        candidate = _first_candidate(value) or {}
        status = str(candidate.get("finishReason") or "")
        usage = value.get("usageMetadata") or {}
        return _round(_parts(candidate), hide=self.hide, usage=usage, status=status)

    def merged(self) -> dict[str, Any]:
        """All rounds as one reply."""
        last = self.values[-1]
        candidate = _first_candidate(last) or {}
        content = (candidate.get("content") or {"role": "model"}) | {
            "parts": self.visible(_parts_of, _is_own)
        }
        candidates = [candidate | {"content": content}, *last.get("candidates", ())[1:]]
        named = {"responseId": self.values[0].get("responseId")} if "responseId" in last else {}
        return last | {"candidates": candidates} | named | self.usage("usageMetadata")


def results(answers: Sequence[tuple[OwnCall, str]]) -> bytes:
    """One content that answers the calls."""
    parts = [
        {
            "functionResponse": {
                **({"id": call.id} if call.id else {}),
                "name": OWN,
                "response": {"output": text},
            }
        }
        for call, text in answers
    ]
    return dumps({"role": "user", "parts": parts})


def _round(parts: Sequence[dict[str, Any]], *, hide: bool, usage: Mapping[str, Any], status: str) -> Round:
    own = [part for part in parts if hide and _is_own(part)]
    seen = [part for part in parts if not (hide and _is_own(part))]
    calls = [call for part in own if (call := _call(part)) is not None]
    return Round(
        own=tuple(
            OwnCall(str(call.get("id") or ""), dumps(call.get("args") or {}).decode()) for call in calls
        ),
        client_calls=tuple(str(call.get("id") or call.get("name")) for part in seen if (call := _call(part))),
        messages=dumps({"role": "model", "parts": list(parts)}),
        own_call=b",".join(dumps(part) for part in own),
        own_index=next((at for at, part in enumerate(parts) if hide and _is_own(part)), 0),
        text="".join(str(part.get("text", "")) for part in seen if not part.get("thought")),
        blocks=len(seen),
        usage=numbers(usage, _USAGE),
        finished=status == _WHOLE,
        status=status,
    )


def _join(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    """Add a part; text goes on where the part before is text of the same kind, without a signature."""
    last = parts[-1] if parts else None
    if (
        last is not None
        and _is_plain(last)
        and _is_plain(part)
        and last.get("thought") == part.get("thought")
    ):
        parts[-1] = last | {"text": last["text"] + part["text"]}
    else:
        parts.append(part)


def _is_plain(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}


def _first_candidate(value: Mapping[str, Any]) -> dict[str, Any] | None:
    candidates = value.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    return first if isinstance(first, dict) else None


def _parts_of(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _parts(_first_candidate(value) or {})


def _parts(candidate: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _call(part: Mapping[str, Any]) -> dict[str, Any] | None:
    call = part.get("functionCall")
    return call if isinstance(call, dict) else None


def _is_own(part: Any) -> bool:
    call = _call(part) if isinstance(part, dict) else None
    return call is not None and call.get("name") == OWN
