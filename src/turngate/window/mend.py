"""A list that is no longer valid, made so: every call has its one result, right behind it. Pure."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from turngate.window.units import Message
from turngate.wire import Violation, Wire, sniff, violations
from turngate.wire.view import blocks, message_list, string

MISSING: Final = "[no result: this call was not answered]"
_REMOVED: Final = "messages[{}]: a result that answers no call, or answers it again, was removed"
_MOVED: Final = "messages[{}]: a result was moved to its call"
_STUBBED: Final = "messages[{}]: call {} had no result and got one that says so"

Result: TypeAlias = tuple[int, str, Any]
"""Index of the message that holds it, id of the call, the message or block."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """A list that was repaired."""

    messages: Sequence[Message]
    """The list; the very object given where nothing had to be repaired."""
    repairs: tuple[str, ...] = ()
    """What was done, in words."""
    left: list[Violation] = field(default_factory=list)
    """What a provider would still refuse."""


def repair(messages: Sequence[Message], *, wire: Wire | None = None) -> Repaired:
    """A list in which every call has its one result, right behind it.

    Promises: a list that pairs calls and results correctly comes back as it is. Results without a call, and
    second results, are removed; results that stand elsewhere are moved to their call; a call without a result
    gets one that says so, unless it is in the last message and may still be answered. Nothing else is
    touched, and everything that was done is said. What cannot be repaired so is in `Repaired.left`.

    Raises:
        WireError: it is no list of messages.
    """
    message_list(messages)
    known: Wire = wire or sniff(messages, ("chat", "anthropic")) or "chat"
    before = violations(messages, known)
    if not before:
        return Repaired(messages)
    mender = _MENDERS[known](messages)
    fixed = mender.mended()
    if not mender.said:
        return Repaired(messages, (), before)
    return Repaired(fixed, tuple(mender.said), violations(fixed, known))


class _Mender(abc.ABC):
    """Finds the result of each call; how they are put together is the wire's."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.said: list[str] = []
        #: Message and id of a call -> its result.
        self.mine: dict[tuple[int, str], Result] = {}
        self._assign()

    @abc.abstractmethod
    def calls(self, at: int) -> list[str]:
        """Ids of the calls of a message."""

    @abc.abstractmethod
    def results(self, at: int) -> Iterator[Result]:
        """The results in a message."""

    @abc.abstractmethod
    def only_results(self, at: int) -> bool:
        """Whether a message holds results and nothing else."""

    @abc.abstractmethod
    def mended(self) -> list[Message]:
        """The list."""

    def owed(self, at: int) -> list[Result]:
        """The results that belong behind a message; index -1: one of ours."""
        out: list[Result] = []
        for call_id in dict.fromkeys(self.calls(at)):
            found = self.mine.get((at, call_id))
            if found is None and self._is_over(at):
                self.said.append(_STUBBED.format(at, call_id))
                found = (-1, call_id, None)
            if found is not None:
                out.append(found)
        return out

    def _assign(self) -> None:
        """Each result goes to the first call before it with its id that has none."""
        waiting: dict[str, list[int]] = {}
        for at in range(len(self.messages)):
            for result in self.results(at):
                owners = waiting.get(result[1])
                if owners:
                    self.mine[owners.pop(0), result[1]] = result
                else:
                    self.said.append(_REMOVED.format(at))
            for call_id in dict.fromkeys(self.calls(at)):
                waiting.setdefault(call_id, []).append(at)

    def _is_over(self, at: int) -> bool:
        """Whether the conversation went on without the results of this message's calls."""
        return any(self.says_more(later) for later in range(at + 1, len(self.messages)))

    def says_more(self, at: int) -> bool:
        """Whether a message has anything but results."""
        return not any(self.results(at))

    def moved(self, at: int, owed: Sequence[Result]) -> None:
        """Say which results stood elsewhere than behind message `at`."""
        for result in owed:
            between = range(at + 1, result[0])
            if result[0] >= 0 and any(not any(self.results(each)) for each in between):
                self.said.append(_MOVED.format(result[0]))


class _ChatMender(_Mender):
    def calls(self, at: int) -> list[str]:
        message = self.messages[at]
        found = blocks(message.get("tool_calls")) if message.get("role") == "assistant" else []
        return [string(call.get("id")) for _, call in found if string(call.get("id"))]

    def results(self, at: int) -> Iterator[Result]:
        message = self.messages[at]
        if message.get("role") == "tool":
            yield at, string(message.get("tool_call_id")), message

    def only_results(self, at: int) -> bool:
        return self.messages[at].get("role") == "tool"

    def mended(self) -> list[Message]:
        out: list[Message] = []
        for at, message in enumerate(self.messages):
            if message.get("role") == "tool":
                continue
            out.append(message)
            owed = self.owed(at)
            self.moved(at, owed)
            # As they came; what was never answered, last.
            owed.sort(key=lambda each: (each[0] < 0, each[0]))
            out += [found or _stub(call_id) for _, call_id, found in owed]
        return out


def _stub(call_id: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": MISSING}


class _AnthropicMender(_Mender):
    def calls(self, at: int) -> list[str]:
        return [string(block.get("id")) for block in _of(self.messages[at], "assistant", "tool_use")]

    def results(self, at: int) -> Iterator[Result]:
        for block in _of(self.messages[at], "user", "tool_result"):
            yield at, string(block.get("tool_use_id")), block

    def only_results(self, at: int) -> bool:
        return any(self.results(at)) and not _without_results(self.messages[at])

    def says_more(self, at: int) -> bool:
        return super().says_more(at) or bool(_without_results(self.messages[at]))

    def mended(self) -> list[Message]:
        out: list[Message] = []
        owed: list[Result] = []
        for at, message in enumerate(self.messages):
            if message.get("role") != "user" and owed:
                out.append({"role": "user", "content": _contents(owed)})
                owed = []
            if message.get("role") == "user":
                out += self._user(at, owed)
                owed = []
            else:
                out.append(message)
            if message.get("role") == "assistant":
                owed = self.owed(at)
                self._say_moved(at, owed)
        if owed:
            out.append({"role": "user", "content": _contents(owed)})
        return out

    def _say_moved(self, at: int, owed: Sequence[Result]) -> None:
        self.said += [_MOVED.format(found[0]) for found in owed if found[0] > at + 1]

    def _user(self, at: int, owed: Sequence[Result]) -> list[Message]:
        """A user's message with the results that belong there, first; none if nothing is left of it."""
        message = self.messages[at]
        here = [block for _, _, block in self.results(at)]
        if [block for _, _, block in owed] == here and _results_first(message):
            return [message]
        rest = _without_results(message)
        if here and _results_first(message) is False:
            self.said.append(f"messages[{at}]: results were moved to the front")
        content = [*_contents(owed), *rest]
        return [{**message, "content": content}] if content else []


def _contents(owed: Sequence[Result]) -> list[Any]:
    return [
        block or {"type": "tool_result", "tool_use_id": call_id, "content": MISSING}
        for _, call_id, block in owed
    ]


def _of(message: Message, role: str, kind: str) -> list[Mapping[str, Any]]:
    if message.get("role") != role:
        return []
    return [block for _, block in blocks(message.get("content")) if block.get("type") == kind]


def _without_results(message: Message) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for _, block in blocks(content) if block.get("type") != "tool_result"]


def _results_first(message: Message) -> bool:
    kinds = [block.get("type") == "tool_result" for _, block in blocks(message.get("content"))]
    return kinds == sorted(kinds, reverse=True)


_MENDERS: Final[Mapping[Wire, Callable[[Sequence[Message]], _Mender]]] = {
    "chat": _ChatMender,
    "anthropic": _AnthropicMender,
}
"""Wire -> who mends its lists."""
