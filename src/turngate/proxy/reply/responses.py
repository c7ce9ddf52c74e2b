"""Replies of the Responses API: items with an index, and events with a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from turngate.proxy.jsontext import dumps
from turngate.proxy.reply.base import OWN, OwnCall, Round, numbers, summed
from turngate.proxy.reply.stream import Machine, changed
from turngate.proxy.reply.whole import Whole
from turngate.wire.scan import find, scan, value_of
from turngate.wire.sse import parse, with_data

_USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "cache_read": ("input_tokens_details", "cached_tokens"),
    "cache_write": ("input_tokens_details", "cache_write_tokens"),
}
#: The events that begin a stream; of later rounds the client must not see them.
_BEGINS: Final = frozenset({"response.created", "response.in_progress", "response.queued"})
#: The events that end one, with the whole response in them.
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
#: Calls that the client answers.
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call")


class ResponsesStream(Machine):
    """A stream of Responses events."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0
        self._number = 0
        self._shown: list[Any] = []
        self._spent: list[dict[str, Any]] = []
        #: The id that the client knows the whole reply by.
        self._id: Any = None
        self.reset()

    def reset(self) -> None:
        """Forget the round."""
        self._items: dict[int, dict[str, Any]] = {}
        self._places: dict[int, int] = {}
        self._own: set[int] = set()
        self._response: dict[str, Any] = {}
        self._finished = False
        #: The number of its end.
        self._end: int | None = None

    def take(self, frame: bytes, value: dict[str, Any]) -> bytes:
        """An event."""
        if isinstance(value.get("response"), dict) and _offers(value["response"]):
            frame = with_data(frame, _without_tool(parse(frame).data, ("response", "tools")))
            value = value | {"response": value["response"] | {"tools": _tools(value["response"])}}
        kind = str(value.get("type"))
        if kind in _BEGINS and not self.is_first:
            return b""
        if self._id is None and isinstance(value.get("response"), dict):
            self._id = value["response"].get("id")
        if kind in _ENDS:
            return self._ends(frame, value)
        index = value.get("output_index")
        if isinstance(index, int):
            self._keep(kind, index, value)
            if index in self._own:
                return b""
            value = _with(value, "output_index", self._places.get(index, index))
        return self._numbered(frame, value)

    def _keep(self, kind: str, index: int, value: dict[str, Any]) -> None:
        item = value.get("item")
        if not isinstance(item, dict):
            return
        self._items[index] = item
        if kind == "response.output_item.added" or index not in self._places:
            if self.hide and _is_own(item):
                self._own.add(index)
            elif index not in self._places:
                self._places[index] = self._next
                self._next += 1

    def _numbered(self, frame: bytes, value: dict[str, Any]) -> bytes:
        """An event under the next number, as its bytes came if that is its number anyway."""
        number = value.get("sequence_number")
        if isinstance(number, int):
            if self.is_first and not self._own and not self._number:
                self._number = number
            value = _with(value, "sequence_number", self._number)
            self._number += 1
        return frame if not isinstance(value, _Changed) else changed(frame, dict(value))

    def _ends(self, frame: bytes, value: dict[str, Any]) -> bytes:
        response = value.get("response")
        self._response = response if isinstance(response, dict) else {}
        self._finished = value.get("type") == "response.completed"
        if not self._own and self.is_first:
            return self._numbered(frame, value)
        output = [*self._shown, *self._visible()]
        usage = summed([*self._spent, self._response.get("usage") or {}])
        merged = self._response | {"id": self._id, "output": output} | ({"usage": usage} if usage else {})
        self._end = self._number
        out = self._numbered(frame, _Changed(value | {"response": merged}))
        return self.hold(out) if self.ends_later(self._own) else out

    def _all(self) -> list[dict[str, Any]]:
        """The items in order: from their own events, or else from the end."""
        if self._items:
            return [self._items[index] for index in sorted(self._items)]
        output = self._response.get("output")
        return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []

    def _visible(self) -> list[dict[str, Any]]:
        return [item for item in self._all() if not (self.hide and _is_own(item))]

    def again(self, *, hide: bool = True) -> None:
        """A further round follows."""
        # The end that was held back had a number; the client never saw it.
        self._number = self._number if self._end is None else self._end
        self._shown += self._visible()
        self._spent.append(self._response.get("usage") or {})
        super().again(hide=hide)

    def round(self) -> Round:
        """What the round was."""
        status = str(self._response.get("status") or "")
        usage = self._response.get("usage") or {}
        return _round(
            self._all(), hide=self.hide, usage=usage, status=status, finished=self._finished, id_=self._id
        )


class ResponsesWhole(Whole):
    """A reply in one piece."""

    def known(self, body: bytes, value: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
        """A reply without our tool in the request's tools, which it repeats."""
        if not _offers(value):
            return body, value
        return _without_tool(body, ("tools",)), value | {"tools": _tools(value)}

    def round(self, value: dict[str, Any]) -> Round:
        """What a reply is; the client knows it by the id of the first round."""
        status = str(value.get("status") or "")
        return _round(
            _items_of(value), hide=self.hide, usage=value.get("usage") or {}, status=status,
            finished=status == "completed", id_=self.values[0].get("id"),
        )  # fmt: skip

    def merged(self) -> dict[str, Any]:
        """All rounds as one reply."""
        output = self.visible(_items_of, _is_own)
        return self.values[-1] | {"id": self.values[0].get("id"), "output": output} | self.usage("usage")


def results(answers: Sequence[tuple[OwnCall, str]]) -> bytes:
    """An output for each call."""
    return b",".join(
        dumps({"type": "function_call_output", "call_id": call.id, "output": text}) for call, text in answers
    )


def _round(
    items: Sequence[dict[str, Any]],
    *,
    hide: bool,
    usage: Mapping[str, Any],
    status: str,
    finished: bool,
    id_: Any,
) -> Round:
    own = [item for item in items if hide and _is_own(item)]
    seen = [item for item in items if not (hide and _is_own(item))]
    return Round(
        own=tuple(OwnCall(str(item.get("call_id", "")), str(item.get("arguments") or "")) for item in own),
        client_calls=tuple(str(item.get("call_id", "")) for item in seen if item.get("type") in _CALLS),
        messages=b",".join(dumps(item) for item in items),
        own_call=b",".join(dumps(item) for item in own),
        own_index=next((at for at, item in enumerate(items) if hide and _is_own(item)), 0),
        text="".join(_text(item) for item in seen),
        blocks=len(seen),
        usage=numbers(usage, _USAGE),
        finished=finished,
        status=status,
        id=id_ if isinstance(id_, str) else "",
    )


def _text(item: Mapping[str, Any]) -> str:
    content = item.get("content")
    if item.get("type") != "message" or not isinstance(content, list):
        return ""
    parts = (part for part in content if isinstance(part, dict) and part.get("type") == "output_text")
    return "".join(str(part.get("text", "")) for part in parts)


def _is_own(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call" and item.get("name") == OWN


def _offers(response: Mapping[str, Any]) -> bool:
    """Whether a response repeats the request's tools, and so ours."""
    tools = response.get("tools")
    return isinstance(tools, list) and any(_is_our_tool(tool) for tool in tools)


def _tools(response: Mapping[str, Any]) -> list[Any]:
    return [tool for tool in response["tools"] if not _is_our_tool(tool)]


def _without_tool(data: bytes, path: tuple[str, ...]) -> bytes:
    """A JSON text without our tool in the list at that path; every other byte as it was."""
    place = find(scan(data), path)
    kept = [data[item.start : item.end] for item in place.items if not _is_our_tool(value_of(data, item))]
    return data[: place.start] + b"[" + b",".join(kept) + b"]" + data[place.end :]


def _is_our_tool(tool: Any) -> bool:
    return isinstance(tool, dict) and tool.get("name") == OWN


def _items_of(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    output = value.get("output")
    return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


class _Changed(dict[str, Any]):
    """An event that is not as it came."""


def _with(value: dict[str, Any], key: str, new: Any) -> dict[str, Any]:
    return value if value.get(key) == new else _Changed(value | {key: new})
