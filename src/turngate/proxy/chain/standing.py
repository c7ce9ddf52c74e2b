"""Which results stand in a request before its first new message, as they are sent. Read when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from turngate.proxy.chain.work import sent
from turngate.proxy.jsontext import loads
from turngate.wire import VIEWS

if TYPE_CHECKING:
    from turngate.proxy.chain.work import Work


class StandingResults(Mapping[str, str]):
    """By id of the call: the text that is sent. A call that is answered with several texts is not in it."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._end = work.fresh[0].index if work.fresh else len(work.keys)
        self._known: dict[str, str | None] = {}

    def __getitem__(self, call: str) -> str:
        if call not in self._known:
            self._known[call] = self._find(call)
        text = self._known[call]
        if text is None:
            raise KeyError(call)
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls())

    def __len__(self) -> int:
        return len(self._calls())

    def _find(self, call: str) -> str | None:
        name = call.encode("utf-8", "surrogatepass")
        for at in range(self._end - 1, -1, -1):
            raw = sent(self._work, at)
            if name in raw:
                found = [text for other, text in self._texts(raw) if other == call]
                if found:
                    return found[0] if len(found) == 1 else None
        return None

    def _calls(self) -> set[str]:
        return {call for at in range(self._end) for call, _ in self._texts(sent(self._work, at))}

    def _texts(self, raw: bytes) -> Iterator[tuple[str, str]]:
        for message in VIEWS[self._work.reading.wire](loads(b"[%b]" % raw)).messages:
            for result in message.results:
                for part in result.parts:
                    yield result.call_id, part.text
