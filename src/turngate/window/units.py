"""A history as exchanges: what must stay together or go together.

A unit is a run of messages: a call with all its parallel results and whatever stands between them, or a
single message. Nothing else pairs messages, so a cut between units never splits a pair, even in broken input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from turngate.window.measure import Sizes
from turngate.wire import Wire
from turngate.wire.view import blocks, string

Message: TypeAlias = Mapping[str, Any]

SYSTEM_ROLES: Final = frozenset({"system", "developer"})
THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_RESULT_END: Final = "tool_result"


class Shape(NamedTuple):
    """What the cut must know of a message. A tuple, since a history has thousands."""

    role: str
    """Its role."""
    calls: tuple[str, ...] = ()
    """Ids of the calls it makes."""
    results: tuple[str, ...] = ()
    """Ids of the calls it answers."""
    user: bool = False
    """Whether a user (or the host for one) says something in it, results of tools aside."""
    signed: bool = False
    """Whether it holds signed thinking."""
    compaction: bool = False
    """Whether it holds the provider's own compaction."""


class Unit(NamedTuple):
    """Messages that stay or go together. A tuple, since a history has thousands."""

    first: int
    """Index of its first message."""
    end: int
    """Index after its last message."""
    tokens: float
    """Its size."""
    system: bool = False
    """Whether it holds a system message."""
    user: bool = False
    """Whether it is a user's message alone."""
    asked: bool = False
    """Whether a user's message without results is in it."""
    spoken: bool = False
    """Whether a user says something in it, be it beside results of tools."""
    open: bool = False
    """Whether a call in it still waits for its result."""
    signed: bool = False
    """Whether it holds signed thinking."""
    compaction: bool = False
    """Whether it holds the provider's own compaction."""

    @property
    def messages(self) -> int:
        """How many messages it has."""
        return self.end - self.first


def shapes(messages: Sequence[Message], wire: Wire) -> list[Shape]:
    """The shape of each message."""
    read = _READERS[wire]
    return [read(message) for message in messages]


def units(messages: Sequence[Message], wire: Wire, sizes: Sizes, *, record: int | None = None) -> list[Unit]:
    """The history as units, in order, in linear time; a record at the index `record` belongs to no other."""
    read = shapes(messages, wire)
    ends, waiting = _reach(read, wire, record)
    found: list[Unit] = []
    first = 0
    while first < len(read):
        end = at = first
        while at <= end:
            end = max(end, ends[at])
            at += 1
        if end == first:
            found.append(_lone(read[first], first, sizes.message(messages[first]), waiting[first]))
        else:
            weight = sizes.messages(messages[first : end + 1])
            found.append(_unit(read[first : end + 1], first, weight, any(waiting[first : end + 1])))
        first = end + 1
    return found


def _lone(shape: Shape, first: int, weight: float, waits: bool) -> Unit:
    """The unit of a message that stands alone."""
    asked = shape.user and not shape.results
    system = shape.role in SYSTEM_ROLES
    return Unit(
        first,
        first + 1,
        weight,
        system,
        asked,
        asked,
        shape.user,
        waits,
        shape.signed,
        shape.compaction,
    )


def _unit(members: Sequence[Shape], first: int, weight: float, waits: bool) -> Unit:
    """The unit of several messages."""
    lone = [_lone(member, first, 0.0, waits)[3:] for member in members]
    system, user, asked, spoken, _, signed, compaction = zip(*lone, strict=True)
    end = first + len(members)
    return Unit(
        first,
        end,
        weight,
        any(system),
        all(user),
        any(asked),
        any(spoken),
        waits,
        any(signed),
        any(compaction),
    )


def _reach(read: Sequence[Shape], wire: Wire, record: int | None) -> tuple[list[int], list[bool]]:
    """For each message the last one it must stay with, and whether a call of it waits for its result."""
    ends = list(range(len(read)))
    waiting = [False] * len(read)
    called: dict[str, int] = {}
    unanswered: dict[str, int] = {}
    early: dict[str, int] = {}
    for at, (role, calls, results, *_) in enumerate(read):
        for call_id in results:
            start = called.get(call_id)
            if start is None:
                early.setdefault(call_id, at)
            else:
                ends[start] = max(ends[start], at)
                unanswered.pop(call_id, None)
        for call_id in calls:
            start = early.pop(call_id, None)
            if start is not None:
                ends[start] = max(ends[start], at)
            called[call_id] = unanswered[call_id] = at
        if wire == "anthropic" and role == "system":
            # It must follow a user message and precede an assistant's, so it keeps both.
            start = at if at - 1 in {-1, record} else at - 1
            ends[start] = max(ends[start], min(at + 1, len(read) - 1))
    newest = max((at for at, shape in enumerate(read) if shape.role == "assistant"), default=-1)
    for at in unanswered.values():
        waiting[at] = at >= newest
    return ends, waiting


_USER: Final = Shape("user", user=True)
_ASSISTANT: Final = Shape("assistant")


def _chat(message: Message) -> Shape:
    role = message.get("role")
    if role == "user":
        return _USER
    if role == "assistant":
        return _calling(message) if message.get("tool_calls") or message.get("function_call") else _ASSISTANT
    if role in {"tool", "function"}:
        answered = string(message.get("tool_call_id")) or string(message.get("name"))
        return Shape(str(role), results=(answered,) if answered else ())
    return Shape(string(role))


def _calling(message: Message) -> Shape:
    calls = message.get("tool_calls")
    plain = calls if type(calls) is list else []
    ids = [call["id"] for call in plain if type(call) is dict and type(call.get("id")) is str]
    if len(ids) != len(plain) or plain is not calls:
        ids = [string(call.get("id")) for _, call in blocks(calls)]
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping):
        ids.append(string(legacy.get("name")))
    return Shape("assistant", tuple(filter(None, ids)))


def _anthropic(message: Message) -> Shape:
    role, content = string(message.get("role")), message.get("content")
    if isinstance(content, str):
        return Shape(role, user=role == "user")
    found = [block for _, block in blocks(content)]
    kinds = [string(block.get("type")) for block in found]
    return Shape(
        role,
        calls=tuple(_ids(found, kinds, "id", lambda kind: kind in _CALLS)),
        results=tuple(_ids(found, kinds, "tool_use_id", lambda kind: kind.endswith(_RESULT_END))),
        user=role == "user" and (not kinds or any(not kind.endswith(_RESULT_END) for kind in kinds)),
        signed=any(kind in THINKING for kind in kinds),
        compaction="compaction" in kinds,
    )


def _ids(found: list[Message], kinds: list[str], key: str, wanted: Callable[[str], bool]) -> Iterator[str]:
    for block, kind in zip(found, kinds, strict=True):
        if wanted(kind) and string(block.get(key)):
            yield string(block.get(key))


_READERS: Final[Mapping[Wire, Callable[[Message], Shape]]] = {"chat": _chat, "anthropic": _anthropic}
"""Wire -> what reads a message's shape."""
