"""What happened: tool calls as events, signatures that tell like from unlike, sums over the last turns.

Pure: no clock, no store. An event keeps no arguments and no output, only signatures and a short label.

A signature is 64 bits. Two kinds exist: the default, which looks through what changes from run to run, and
``compat``, which is bit for bit the FNV-1a of Aphrodite's `flow` module.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Any, Literal

import orjson

Verb = Literal["read", "write", "search", "check", "run"]

#: Events kept per session.
RING = 200
LABEL_CHARS = 80
ERROR_CHARS = 160
PATH_CHARS = 300
#: How much of each end of a text is looked at for its error line and its exit code.
SCAN_CHARS = 20_000
TAIL_CHARS = 300
#: A traceback that a text ends in begins within so many of its last characters.
TRACEBACK_CHARS = 5_000

_FNV_OFFSET, _FNV_PRIME, _FNV_MASK = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF
#: What Unicode calls White_Space; `str.strip` takes away \x1c to \x1f as well, which Rust's `trim` does not.
_WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + ("\u2028\u2029\u202f\u205f\u3000")
)
#: Arguments that differ although the call is the same.
COMPAT_VOLATILE = frozenset({"timeout", "timestamp", "session_id", "tool_call_id"})
VOLATILE = COMPAT_VOLATILE | {"call_id", "tool_use_id"}
#: Deeper values are compared with their volatile keys.
_MAX_DEPTH = 32

#: Tools by what they do; fnmatch patterns, case ignored. The first match counts.
TOOL_VERBS: tuple[tuple[str, Verb], ...] = (
    ("read_file", "read"),
    ("read", "read"),
    ("view", "read"),
    ("view_file", "read"),
    ("open_file", "read"),
    ("cat", "read"),
    ("write", "write"),
    ("write_*", "write"),
    ("patch", "write"),
    ("apply_patch", "write"),
    ("edit", "write"),
    ("edit_*", "write"),
    ("multi_edit", "write"),
    ("multiedit", "write"),
    ("create_file", "write"),
    ("replace_in_file", "write"),
    ("str_replace*", "write"),
    ("insert*", "write"),
    ("notebook_edit", "write"),
    ("notebookedit", "write"),
    ("search_files", "search"),
    ("search*", "search"),
    ("grep*", "search"),
    ("glob*", "search"),
    ("find*", "search"),
    ("list_*", "search"),
    ("ls", "search"),
)
#: Shell commands by what they do, matched at the start of any part of the command.
_COMMAND_VERBS: tuple[tuple[Verb, re.Pattern[str]], ...] = (
    (
        "check",
        re.compile(
            r"(?:\S*/)?(?:python[\d.]* -m |uv run |poetry run |npx |sudo )*"
            r"(?:pytest|py\.test|unittest|tox|nox|mypy|pyright|ruff|flake8|pylint|tsc|eslint|jest|vitest|ctest|make"
            r"|(?:cargo|go|dotnet|npm|pnpm|yarn|gradle|\./gradlew|mvn) "
            r"(?:run )?(?:test|check|build|clippy|vet|lint))\b"
        ),
    ),
    ("read", re.compile(r"(?:cat|head|tail|less|sed -n|bat)\b")),
    ("search", re.compile(r"(?:grep|rg|ag|find|fd|ls|tree|git (?:log|grep|diff|show|status|blame))\b")),
)
_COMMAND_PARTS = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_PATH_KEYS = ("path", "file_path", "filename", "file", "target_file", "notebook_path")
_COMMAND_KEYS = ("command", "cmd", "script", "code")


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """A tool call that was answered."""

    tool: str
    """The tool."""
    turn: int = 0
    """The turn counter at the time; set when the event is recorded."""
    seq: int = 0
    """Its number in the session, from 1; set when the event is recorded."""
    sig: int = 0
    """`normalize_args_sig` of the call."""
    result_sig: int = 0
    """Signature of the answer, exact."""
    ok: bool = True
    """Whether it succeeded, as far as is known."""
    error_sig: int = 0
    """`error_sig` of what went wrong; 0 where nothing did."""
    error: str = ""
    """The line that says what went wrong, at most 160 characters."""
    size_bytes: int = 0
    """Size of the answer as it came."""
    verb: Verb = "run"
    """What kind of call it was."""
    read: str = ""
    """The path it read, or ""."""
    wrote: str = ""
    """The path it wrote, or ""."""
    label: str = ""
    """The call in a few words."""


@dataclass(frozen=True, slots=True)
class WindowStats:
    """Sums over the last turns."""

    reads: int = 0
    """Calls that read a file."""
    writes: int = 0
    """Calls that wrote one; such a call counts as nothing else."""
    searches: int = 0
    """Calls that searched or listed."""
    errors: int = 0
    """Calls that failed."""
    distinct_error_sigs: int = 0
    """How many different errors these were."""
    new_files: int = 0
    """Paths written in the window that were neither read nor written before."""
    total_calls: int = 0
    """All calls."""


def tool_event(
    tool: str,
    args: object = None,
    text: str = "",
    *,
    failed: bool | None = None,
    size_bytes: int | None = None,
) -> ToolEvent:
    """The event of a call, from what a host knows of it; where `failed` is None, the text may say it."""
    known = _arguments(args)
    verb = _verb(tool, known)
    bad = _failed(text, verb) if failed is None else failed
    line = error_line(text) if bad else ""
    path = _path(known) if verb in {"read", "write"} else ""
    return ToolEvent(
        tool=one_line(tool, LABEL_CHARS),
        sig=normalize_args_sig(tool, known),
        result_sig=_digest(text),
        ok=not bad,
        error_sig=error_sig("", line) if bad else 0,
        error=line,
        size_bytes=len(text.encode("utf-8", "surrogatepass")) if size_bytes is None else size_bytes,
        verb=verb,
        read=path if verb == "read" else "",
        wrote=path if verb == "write" and not bad else "",
        label=label(tool, known),
    )


def turn_window(events: Iterable[ToolEvent], turn_counter: int, n: int) -> WindowStats:
    """Sums over events with ``turn > turn_counter - n``; a larger n than the counter takes in turn 0."""
    before: set[str] = set()
    window: list[ToolEvent] = []
    new: set[str] = set()
    for event in events:
        if event.turn > turn_counter - n:
            window.append(event)
            if event.wrote and event.wrote not in before:
                new.add(event.wrote)
        before.add(event.wrote or event.read)
    failed = [event for event in window if not event.ok]
    return WindowStats(
        reads=sum(event.verb == "read" for event in window),
        writes=sum(bool(event.wrote) for event in window),
        searches=sum(event.verb == "search" for event in window),
        errors=len(failed),
        distinct_error_sigs=len({event.error_sig for event in failed}),
        new_files=len(new),
        total_calls=len(window),
    )


def error_sig(error_type: str | None, message: str | None, *, compat: bool = False) -> int:
    """Signature of an error: its type and the line that tells what it is.

    ``compat``: FNV-1a over the type, byte 1, and the first line, trimmed. By default the last line of a
    Python traceback stands for it, and numbers, ids, times, folders and terminal colours don't count.
    """
    if compat:
        first = (message or "").split("\n", 1)[0].strip(_WHITE_SPACE)
        return fnv1a(f"{error_type or ''}\x01{first}".encode("utf-8", "surrogatepass"))
    return _digest(f"{error_type or ''}\x01{normal_error(message or '')}")


def normalize_args_sig(tool: str, args: object, *, compat: bool = False) -> int:
    """Signature of a call: the tool and its arguments, which may be the JSON text that the model wrote.

    ``compat``: FNV-1a over the tool, byte 1, and then: the string ``command``, right-trimmed, if there is
    one; else for an object ``key=JSON`` and byte 0x1F for each key in order, without `COMPAT_VOLATILE`; else
    the JSON. By default every argument counts, ``cwd`` too; volatile keys don't, at any depth; nor do key
    order and blanks outside quotes in a command.
    """
    known = _arguments(args)
    if compat:
        return fnv1a(f"{tool}\x01{_compat_args(known)}".encode("utf-8", "surrogatepass"))
    return _digest(f"{tool}\x01{_canonical(known)}")


def fnv1a(data: bytes) -> int:
    """64-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/)."""
    value = _FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & _FNV_MASK
    return value


def error_line(text: str) -> str:
    """The line of a failed call's output that says most about why, on one line, or ""."""
    lines = [
        line for line in _output(text).splitlines() if line.strip() and not _EXIT_LINE.fullmatch(line.strip())
    ]
    found = _traceback_end(lines) or next((line for line in lines if _SAYS_ERROR.search(line)), "")
    return one_line(_ANSI.sub("", found or (lines[-1] if lines else "")), ERROR_CHARS)


def normal_error(message: str) -> str:
    """`message` reduced to what stays the same when the same thing goes wrong again."""
    lines = [line for line in _ends(message).splitlines() if line.strip()]
    telling = _traceback_end(lines) or (lines[0] if lines else "")
    plain = _ANSI.sub("", telling[:_NORMAL_CHARS])
    return " ".join(_VARIES.sub(_constant, plain).split())


def label(tool: str, args: object) -> str:
    """A call in a few words, for people and models: ``terminal: pytest -q``."""
    known = _arguments(args)
    values = known if isinstance(known, Mapping) else {"": known}
    keys = (*_COMMAND_KEYS, "pattern", "query", "url", *_PATH_KEYS, *values)
    first = next((value for key in keys if isinstance(value := values.get(key), str) and value.strip()), "")
    return one_line(f"{tool}: {first}" if first else tool, LABEL_CHARS)


def one_line(text: str, limit_chars: int) -> str:
    """`text` on one line, control characters and lone surrogates made harmless, cut with ``…``."""
    head = text[: limit_chars * 4]
    if not head.isprintable():
        head = "".join(char if char.isprintable() else " " for char in head)
    line = " ".join(head.split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1] + "…"


_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_EXIT = re.compile(
    r'(?:"exit_?code"|"returncode"|\[?exit (?:code|status))"?\s*[:=]?\s*(-?\d+)', re.IGNORECASE
)
_EXIT_LINE = re.compile(r"\[exit code: -?\d+\]")
_ERROR_ENVELOPE = re.compile(r'\s*\{"error"\s*:\s*"[^"]')
_SAYS_ERROR = re.compile(
    r"\b(?:error|exception|fatal|panic(?:ked)?|failed|failure|cannot|can't|denied|not found|no such)\b"
    r"|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
_TRACEBACK = "Traceback (most recent call last)"
_EXCEPTION_LINE = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_NORMAL_CHARS = 400

#: What varies between two occurrences of one error, in the order of precedence, and what stands for it.
_VARIES = re.compile(
    r"(?P<keep>(?:exit (?:code|status)|errno|HTTP(?:/[\d.]+)?|status(?: code)?)[ :=]*\d+)"
    r"|(?P<time>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?)"
    r"|(?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b"
    r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b)"
    r"|(?P<path>(?:[A-Za-z]:)?[\w.@%+~-]*(?:[\\/]+[\w.@%+~-]+)+)"
    r"|(?P<number>(?<![A-Za-z_\d])\d+(?:[.,]\d+)*)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![A-Za-z_\d])\d+(?:[.,]\d+)*")
_STANDS_FOR = {"time": "<time>", "id": "<id>", "number": "#"}


def _constant(found: re.Match[str]) -> str:
    """What stands for a part that varies. Of a path the last name stays, or two files would be one error."""
    kind = found.lastgroup or "keep"
    if kind == "path":
        return _NUMBER.sub("#", re.split(r"[\\/]", found[0])[-1])
    return _STANDS_FOR.get(kind, found[0])


def _traceback_end(lines: list[str]) -> str:
    """The last line of the last Python traceback among `lines`, or ""."""
    starts = [at for at, line in enumerate(lines) if _TRACEBACK in line]
    after = lines[starts[-1] + 1 :] if starts else []
    return next((line.strip() for line in after if _EXCEPTION_LINE.match(line)), "")


def _ends(text: str) -> str:
    """Both ends of a long text."""
    return text if len(text) <= 2 * SCAN_CHARS else f"{text[:SCAN_CHARS]}\n{text[-SCAN_CHARS:]}"


def _output(text: str) -> str:
    """What a tool printed, out of the JSON that a host may wrap it in."""
    if text[:1] == "{" and len(text) < 10 * SCAN_CHARS:
        try:
            table = orjson.loads(text)
        except orjson.JSONDecodeError:
            return _ends(text)
        parts = [table.get(key) for key in ("error", "output", "stderr", "stdout")]
        return _ends("\n".join(part for part in parts if isinstance(part, str))) or _ends(text)
    return _ends(text)


def _failed(text: str, verb: Verb) -> bool:
    """Whether a result says itself that the call failed.

    By a non-zero exit code, by being nothing but an error, or, if it is something that ran, by ending in a
    traceback.
    """
    codes = _EXIT.findall(text[-TAIL_CHARS:])
    if codes:
        return int(codes[-1]) != 0
    return bool(_ERROR_ENVELOPE.match(text[:TAIL_CHARS])) or (
        verb in {"run", "check"} and _ends_in_traceback(text)
    )


def _ends_in_traceback(text: str) -> bool:
    tail = text[-TRACEBACK_CHARS:]
    if _TRACEBACK not in tail:
        return False
    lines = _ANSI.sub("", tail).rstrip().splitlines()
    return _traceback_end(lines) == lines[-1].strip()


def _verb(tool: str, args: object) -> Verb:
    lower = tool.lower()
    found = next((verb for pattern, verb in TOOL_VERBS if fnmatchcase(lower, pattern)), None)
    return found or _command_verb(args)


def _command_verb(args: object) -> Verb:
    command = _first(args, _COMMAND_KEYS)[:2_000].lstrip()
    parts = [part for part in _COMMAND_PARTS.split(command) if not part.startswith("cd ")]
    for verb, pattern in _COMMAND_VERBS:
        if any(pattern.match(part) for part in parts):
            return verb
    return "run"


def _path(args: object) -> str:
    path = _first(args, _PATH_KEYS).strip()[:PATH_CHARS]
    return one_line(posixpath.normpath(path.replace("\\", "/")), PATH_CHARS) if path else ""


def _first(args: object, keys: Sequence[str]) -> str:
    if not isinstance(args, Mapping):
        return ""
    return next((value for key in keys if isinstance(value := args.get(key), str)), "")


def _arguments(args: object) -> Any:
    """Arguments as values; a text that is not JSON stands for itself."""
    if isinstance(args, str):
        try:
            return orjson.loads(args)
        except orjson.JSONDecodeError:
            return args
    return args


_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_QUOTED_OR_BLANKS = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[ \t]+""", re.DOTALL)


def _canonical(args: object) -> str:
    try:
        return orjson.dumps(_stable(args, 0), default=_type_name, option=_CANONICAL).decode()
    except (orjson.JSONEncodeError, RecursionError):
        # Numbers beyond 64 bits, lone surrogates: Python's own spelling tells them apart as well.
        return repr(args)


def _type_name(value: object) -> str:
    return type(value).__name__


def _stable(value: Any, depth: int) -> Any:
    """`value` without volatile keys, commands without needless blanks."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {
            key: _command(item)
            if key in _COMMAND_KEYS and isinstance(item, str)
            else _stable(item, depth + 1)
            for key, item in value.items()
            if key not in VOLATILE
        }
    return [_stable(item, depth + 1) for item in value] if isinstance(value, list | tuple) else value


def _command(text: str) -> str:
    """A command with one blank wherever blanks only part words."""
    parted = _QUOTED_OR_BLANKS.sub(lambda found: " " if found[0][0] in " \t" else found[0], text)
    return "\n".join(line for raw in parted.splitlines() if (line := raw.strip()))


def _compat_args(args: object) -> str:
    if isinstance(args, Mapping):
        command = args.get("command")
        if isinstance(command, str):
            return command.rstrip(_WHITE_SPACE)
        keys = sorted(key for key in args if key not in COMPAT_VOLATILE)
        return "".join(f"{key}={_compact_json(args[key])}\x1f" for key in keys)
    return _compact_json(args)


def _compact_json(value: Any) -> str:
    """JSON as Rust's serde_json spells it: no blanks, nothing beyond ASCII escaped, floats in its way."""
    if isinstance(value, float):
        return _rust_float(value)
    if isinstance(value, Mapping):
        pairs = (
            f"{json.dumps(str(key), ensure_ascii=False)}:{_compact_json(item)}" for key, item in value.items()
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_compact_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=_type_name)


def _rust_float(value: float) -> str:
    """The shortest digits, as Python has them; an exponent only below 1e-5 and from 1e16 on, not padded."""
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN
        return "null"
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa
    return _fixed(mantissa) if int(exponent) == _PYTHON_ONLY_EXPONENT else f"{mantissa}e{int(exponent)}"


#: Python writes 1e-05 where serde_json still writes 0.00001.
_PYTHON_ONLY_EXPONENT = -5


def _fixed(mantissa: str) -> str:
    """``1.5`` with exponent -5 as ``0.000015``."""
    sign, digits = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    return f"{sign}0.0000{digits.replace('.', '')}"


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
