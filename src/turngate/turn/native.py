"""The provider's own one-shot note, by model: a system message that is hidden after the next user message."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

#: What is put around a model's name: a gateway's prefix, a date, a version, a variant.
_PREFIX = re.compile(r"^.*/|^(?:[a-z]+\.)*anthropic\.")
_SUFFIX = re.compile(r"(?:-latest|[-@]\d{8}.*|-v\d+(?::\d+)?|:[\w-]+|\[\w+\])$")


@dataclass(frozen=True, slots=True)
class NativeNote:
    """How a model takes a one-shot note."""

    role: str
    """Role of the message."""
    clear_at: str
    """When it is hidden."""
    beta: str
    """Beta header that the request needs."""
    source: str
    """Where that is documented."""


def native_note(model: str, *, after_results: bool = False) -> NativeNote | None:
    """How `model` takes a one-shot note; None where it takes none, so that a note is a text like any other.

    Args:
        model: its name, as the request has it.
        after_results: whether the note would stand directly behind tool results.
    """
    form, models = _data()
    entry = models.get(_bare(model))
    if entry is None or (after_results and not entry["after_results"]):
        return None
    return NativeNote(form["role"], form["clear_at"], form["beta"], form["source"])


def _bare(model: str) -> str:
    """The name alone, with hyphens for dots."""
    name = _PREFIX.sub("", model.strip().lower())
    while (shorter := _SUFFIX.sub("", name)) != name:
        name = shorter
    return name.replace(".", "-")


@cache
def _data() -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    data = json.loads(resources.files("turngate").joinpath("data/native_notes.json").read_text("utf-8"))
    return data["form"], data["models"]
