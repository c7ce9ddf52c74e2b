"""What replies in one piece have in common: rounds are read, and made one where something is ours."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from typing import Any

from turngate.proxy.jsontext import dumps, object_of
from turngate.proxy.reply.base import Round, summed


class Whole(abc.ABC):
    """A reply of one wire, perhaps of several rounds."""

    def __init__(self) -> None:
        self.hide = True
        #: The rounds as they came.
        self.values: list[dict[str, Any]] = []
        self._last = b""
        self._touched = False

    def read(self, body: bytes) -> Round:
        """The upstream's reply."""
        self._last, value = self.known(body, object_of(body))
        self.values.append(value)
        found = self.round(value)
        self._touched = self._touched or bool(found.own)
        return found

    def again(self, *, hide: bool = True) -> None:
        """A further round follows."""
        self.hide = hide

    def body(self) -> bytes:
        """The reply for the client; the very bytes of the only round where nothing of ours is in it."""
        return dumps(self.merged()) if self._touched else self._last

    def known(self, body: bytes, value: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
        """A reply as the client may know it."""
        return body, value

    @abc.abstractmethod
    def round(self, value: dict[str, Any]) -> Round:
        """What a reply is."""

    @abc.abstractmethod
    def merged(self) -> dict[str, Any]:
        """All rounds as one reply."""

    def usage(self, key: str) -> dict[str, Any]:
        """The usage of all rounds, as the field `key` has it; {} where none tells."""
        total = summed(value.get(key) or {} for value in self.values)
        return {key: total} if total else {}

    def visible(
        self, pieces_of: Callable[[dict[str, Any]], Iterable[Any]], is_own: Callable[[Any], bool]
    ) -> list[Any]:
        """The blocks, items or parts of all rounds that the client sees: those of ours only if not hidden."""
        *before, last = self.values
        shown = [piece for value in before for piece in pieces_of(value) if not is_own(piece)]
        return shown + [piece for piece in pieces_of(last) if not (self.hide and is_own(piece))]
