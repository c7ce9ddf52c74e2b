"""What is known of models, from dated data files: windows, prices of the cache, whether thinking is bound."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, TypeAlias

Bound: TypeAlias = Literal["always", "newer", "never"]
"""Whether signed thinking is bound to what stands before it: on every account, on newer ones, never."""

WindowSource: TypeAlias = Literal["setting", "model", "default"]
"""Where a window's size is from."""

#: What is assumed of a model that nobody knows: the window of the Claude 3 and 4 families.
DEFAULT_WINDOW_TOKENS: Final = 200_000
#: What a cache read and a cache write cost of one fresh token, where the model is not known.
_USUAL: Final = (0.1, 1.25)


@dataclass(frozen=True, slots=True)
class CachePrices:
    """What input costs, in prices of one fresh input token of the model that is asked."""

    read: float
    """A token read from the prompt cache."""
    write: float
    """A token written to it."""
    ttl_seconds: float
    """How long an entry lives unused."""
    summary_input: float = 0.1
    """A fresh input token of the model that writes summaries: usually a tenth of the main model's."""
    summary_output: float = 0.5
    """An output token of it: five times its input, as with all providers' small models."""


@cache
def _data(name: str) -> dict[str, Any]:
    text = resources.files("turngate.data").joinpath(f"{name}.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def _row(name: str, model: str) -> dict[str, Any] | None:
    short = model.lower().rpartition("/")[2]
    rows: list[dict[str, Any]] = _data(name)["rows"]
    return next((row for row in rows if any(fnmatchcase(short, pattern) for pattern in row["match"])), None)


@cache
def window_tokens(model: str) -> tuple[int, WindowSource]:
    """The model's context window, and where that is from: the data file, `genai_prices`, else 200,000."""
    row = _row("model_windows", model) if model else None
    if row is not None:
        return int(row["tokens"]), "model"
    found = _looked_up(model) if model else None
    return (DEFAULT_WINDOW_TOKENS, "default") if found is None else (found, "model")


def _looked_up(model: str) -> int | None:
    from genai_prices import data  # noqa: PLC0415 - its data take a third of a second to load

    name = model.rpartition("/")[2]
    for provider in data.providers:
        for known in provider.models:
            if known.id == name and known.context_window:
                return int(known.context_window)
    return None


def thinking_bound(model: str) -> Bound:
    """Whether the model binds signed thinking to what stands before it."""
    row = _row("signed_thinking", model)
    bound: Bound = row["bound"] if row and model else "newer"
    return bound


def way_out() -> dict[str, Any]:
    """The field and the beta header with which a request gives up thinking whose prefix changed."""
    known: dict[str, Any] = _data("signed_thinking")["way_out"]
    return known


@cache
def cache_prices(model: str) -> CachePrices:
    """What the model's cache costs, from the same rules as replays are billed by; else the usual prices."""
    short = model.lower().rpartition("/")[2]
    for entry in _data("cache_rules")["providers"].values():
        if short and any(fnmatchcase(short, pattern) for pattern in entry["claims"]):
            rules = dict(entry["rules"])
            for row in entry["models"]:
                if any(fnmatchcase(short, pattern) for pattern in row["match"]):
                    rules |= row["set"]
            rules |= entry["ttls"][rules["ttl"]]
            return CachePrices(rules["read_multiplier"], rules["write_multiplier"], rules["ttl_seconds"])
    return CachePrices(*_USUAL, ttl_seconds=300)
