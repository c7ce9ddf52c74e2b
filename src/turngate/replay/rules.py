"""The prompt-cache rules of the providers, from the dated data file ``data/cache_rules.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, TypeAlias

from turngate.errors import SettingsError

Matching: TypeAlias = Literal["breakpoints", "prefix", "units"]
"""How an earlier request's prefix is found again.

``breakpoints``: it was written at a mark, and is looked for from the marks of the present request backwards.
``prefix``: whatever two requests have in common, rounded down to a step.
``units``: whole units only: an earlier input, that with its answer, or a common prefix seen before.
"""

PROVIDERS: Final = ("anthropic", "openai", "gemini", "deepseek")


@dataclass(frozen=True, slots=True)
class CacheRules:
    """What one provider does for one model."""

    provider: str
    matching: Matching
    minimum_tokens: int
    """A shorter prefix is never cached."""
    step_tokens: int
    """Beyond the minimum, what is read is rounded down to multiples of this."""
    ttl: str
    """Name of the lifetime in force."""
    ttl_seconds: int
    """An entry dies when it was not used for longer than this."""
    max_marks: int
    """Marks of one request that are honoured: the last ones."""
    look_back_blocks: int | None
    """Content blocks checked from a mark backwards, itself included; ``None``: no limit."""
    remembered_marks: int | None
    """Written marks that are still considered: the latest ones; ``None``: no limit."""
    mark_static: bool
    """A mark stands after tools and system prompt."""
    mark_last_messages: int
    """Marks stand after this many of the newest messages."""
    read_multiplier: float
    """Price of a token read from the cache, as a multiple of a fresh one's."""
    write_multiplier: float
    """Price of a token written to the cache, as a multiple of a fresh one's."""


@cache
def _data() -> dict[str, Any]:
    text = resources.files("turngate.data").joinpath("cache_rules.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def as_of() -> str:
    """The date of the rules, as ``YYYY-MM-DD``."""
    return str(_data()["as_of"])


def assumed(provider: str) -> tuple[str, ...]:
    """What the rules assume, where the provider documents nothing."""
    return tuple(_provider(provider)["assumed"])


def default_model(provider: str) -> str:
    """The model whose prices are taken when a transcript names none of this provider's."""
    return str(_provider(provider)["model"])


def owner_of(model: str) -> str:
    """The provider whose model this is by its name; empty if it is none's."""
    name = model.lower().rpartition("/")[2]
    owned = (p for p in PROVIDERS if any(fnmatchcase(name, pattern) for pattern in _provider(p)["claims"]))
    return next(owned, "")


def cache_rules(provider: str, model: str = "", *, ttl: str = "") -> CacheRules:
    """The rules of ``provider`` for ``model``; for an unknown model, those of the provider's newest.

    Raises:
        SettingsError: if the provider, or the lifetime ``ttl`` at that provider, is unknown.
    """
    entry = _provider(provider)
    rules = dict(entry["rules"])
    for row in entry["models"]:
        if any(fnmatchcase(model.lower().rpartition("/")[2], pattern) for pattern in row["match"]):
            rules |= row["set"]
    name = ttl or rules["ttl"]
    if name not in entry["ttls"]:
        known = ", ".join(entry["ttls"])
        raise SettingsError(f"{provider} has no cache lifetime {name!r}; take one of: {known}")
    return CacheRules(provider=provider, **(rules | entry["ttls"][name] | {"ttl": name}))


def _provider(provider: str) -> dict[str, Any]:
    entry: dict[str, Any] | None = _data()["providers"].get(provider)
    if entry is None:
        raise SettingsError(f"no cache rules for provider {provider!r}; take one of: {', '.join(PROVIDERS)}")
    return entry
