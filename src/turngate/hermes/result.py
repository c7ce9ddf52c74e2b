"""The host's tool results: which part of one is output, and how its shortened form goes back in. Pure.

The host's tools answer with a JSON object, mostly with one long string in it: ``{"output": "...",
"exit_code": 0, "error": null}``. The lines of that string are what a reader counts and asks for, so the
string passes the gate, not the JSON around it; every other byte of the result stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turngate.wire import Path, splice
from turngate.wire.scan import spell

#: A string of the object is its output where it makes up so much of the whole.
OUTPUT_SHARE = 0.6
#: The key under which the marker of an object stands that was shortened as a whole.
MARKER_KEY = "turngate"
#: Any of these says how a command ended.
_EXIT_KEYS = ("exit_code", "returncode", "exitCode")
#: The host says here that a non-zero exit code is no failure, such as grep's 1.
_MEANING_KEY = "exit_code_meaning"


@dataclass(frozen=True, slots=True)
class Output:
    """What of a result passes the gate."""

    text: str
    """It."""
    path: Path = ()
    """Where it stands in the result; (): it is the result itself."""
    failed: bool | None = None
    """Whether the call failed, where the result says it."""


def output_of(result: str) -> Output:
    """The output inside a result: its one long string, or the result itself."""
    table = _object(result)
    strings = {key: value for key, value in table.items() if isinstance(value, str)}
    key = max(strings, key=lambda name: len(strings[name]), default="")
    # Measured as it is spelled in the result: escapes count.
    if strings and len(_spelled(strings[key])) >= OUTPUT_SHARE * len(result):
        return Output(strings[key], (key,), _failed(table))
    return Output(result, failed=_failed(table))


def with_shown(result: str, output: Output, shown: str) -> str:
    """`result` with `shown` in the place of its output; an object stays an object.

    Raises:
        WireError: `result` is not the one that `output` was taken from.
    """
    if output.path:
        body = result.encode("utf-8", "surrogatepass")
        return splice(body, {output.path: shown}).decode("utf-8", "surrogatepass")
    line, _, rest = shown.partition("\n")
    if not _object(rest):
        # A reference to earlier results has no object of its own.
        return f"{{{_spelled(MARKER_KEY)}: {_spelled(shown)}}}" if _object(result) else shown
    return f"{{{_spelled(MARKER_KEY)}: {_spelled(line)}, {rest.lstrip()[1:].lstrip()}"


def _object(text: str) -> dict[str, Any]:
    """The object that `text` spells; {} where it spells something else."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _failed(table: Mapping[str, Any]) -> bool | None:
    code = next((table[key] for key in _EXIT_KEYS if isinstance(table.get(key), int)), None)
    if code is not None:
        return code != 0 and not table.get(_MEANING_KEY)
    return True if table.get("error") else None


def _spelled(text: str) -> str:
    return spell(text).decode()
