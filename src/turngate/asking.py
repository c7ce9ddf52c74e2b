"""What a model asks for through a tool of ours: its arguments read with good will. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from turngate.errors import RetrieveError

Args = Mapping[str, Any]

_RANGE: Final = re.compile(r"\s*(\d+)(?:\s*[-–:,]\s*(\d+))?\s*")


def text(args: Args, key: str) -> str:
    """A string, without blanks around it; "" for anything else."""
    value = args.get(key)
    return value.strip() if isinstance(value, str) else ""


def number(args: Args, key: str, default: int) -> int:
    """A whole number, also one that is spelled as a string."""
    value = args.get(key)
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def lines(args: Args) -> tuple[int, int] | None:
    """A range of lines, as ``41-80``, ``41``, or two numbers; None where none is asked for.

    Raises:
        RetrieveError: it is something else.
    """
    value = args.get("lines")
    if isinstance(value, list):
        value = "-".join(map(str, value))
    if value is None or value == "":
        return None
    found = _RANGE.fullmatch(str(value))
    if found is None:
        raise RetrieveError(f"lines is {value!r}; give a range such as 41-80")
    return int(found[1]), int(found[2] or found[1])
