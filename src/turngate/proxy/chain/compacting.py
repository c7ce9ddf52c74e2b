"""A request that has outgrown the window that was set: compacted, as a declared epoch that is replayed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from turngate.errors import WireError
from turngate.proxy.chain.reading import read
from turngate.wire import Wire

if TYPE_CHECKING:
    from turngate.gate import Gate
    from turngate.proxy.chain.ask import Sending

#: Formats that the window understands. In the others the history may be the server's.
WIRES: Final[frozenset[Wire]] = frozenset({"chat", "anthropic"})


def fitted(gate: Gate, sending: Sending, window_tokens: int) -> Sending:
    """The request as it fits; the very object where nothing had to be done, or nothing could be.

    What is compacted is what is sent, not what the client has, so that both keep their places: the engine's
    decisions stand below the window's.
    """
    if not window_tokens or not sending.tip or sending.wire not in WIRES:
        return sending
    # Most proxies never need it, and it takes its time to load.
    from turngate.window import Window  # noqa: PLC0415

    settings = replace(gate.settings.window, context_window_tokens=window_tokens)
    window = Window(sending.session, lambda: gate.store, settings, wire=sending.wire)
    found = window.fit(sending.body)
    if found.request is sending.body:
        return sending
    try:
        reading = read(found.request, sending.wire)
    except WireError:
        return sending
    return replace(
        sending,
        body=found.request,
        at=reading.ends[-1] if reading.ends else reading.start + 1,
        epochs=found.epochs,
        headers=found.headers,
    )
