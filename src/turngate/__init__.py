"""turngate: the one gate through which everything enters an LLM agent's context.

    import turngate

    gate = turngate.Gate.open()
    session = gate.session("my-conversation")
    shown = session.tool_result(name="terminal", args={"command": "make"}, text=output, failed=True)
    hidden = session.retrieve(marker_id, lines=(41, 80)).text

Public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turngate.compress import Shortened, shorten
    from turngate.errors import (
        RetrieveError,
        SettingsError,
        StoreCorruptError,
        StoreError,
        StoreFullError,
        StoreUnavailableError,
        TranscriptError,
        TurngateError,
        UnknownContentError,
        WireError,
    )
    from turngate.gate import Gate
    from turngate.marker import Marker
    from turngate.session import Session
    from turngate.settings import Settings, StoreSettings
    from turngate.store import Hit, Original, Retrieved, SqliteStore, Store
    from turngate.tally import Flow, Stats

__version__ = "0.1.0"

#: Public name -> the module it comes from.
_HOME = {
    "Flow": "tally",
    "Gate": "gate",
    "Hit": "store",
    "Marker": "marker",
    "Original": "store",
    "RetrieveError": "errors",
    "Retrieved": "store",
    "Session": "session",
    "Settings": "settings",
    "SettingsError": "errors",
    "Shortened": "compress",
    "SqliteStore": "store",
    "Stats": "tally",
    "Store": "store",
    "StoreCorruptError": "errors",
    "StoreError": "errors",
    "StoreFullError": "errors",
    "StoreSettings": "settings",
    "StoreUnavailableError": "errors",
    "TranscriptError": "errors",
    "TurngateError": "errors",
    "UnknownContentError": "errors",
    "WireError": "errors",
    "shorten": "compress",
}

__all__ = [
    "Flow",
    "Gate",
    "Hit",
    "Marker",
    "Original",
    "RetrieveError",
    "Retrieved",
    "Session",
    "Settings",
    "SettingsError",
    "Shortened",
    "SqliteStore",
    "Stats",
    "Store",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreSettings",
    "StoreUnavailableError",
    "TranscriptError",
    "TurngateError",
    "UnknownContentError",
    "WireError",
    "__version__",
    "shorten",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'turngate' has no attribute {name!r}")
    value = getattr(import_module(f"turngate.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
