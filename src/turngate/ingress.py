"""What is decided about a tool result when it first arrives, without store or session. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from turngate import across, marker, tokens
from turngate.compress.budget import LEAST_SAVED_TOKENS, MOST_SHOWN_SHARE
from turngate.marker import Marker
from turngate.store import to_bytes

if TYPE_CHECKING:
    from turngate.across import Delta, Entry
    from turngate.across.memory import Form as FormName
    from turngate.compress import Shortened
    from turngate.settings import Settings

#: Tools whose results are terminal output, whatever the host calls them. Matched with fnmatch, case ignored.
SHELL_TOOLS = (
    "terminal",
    "terminal_*",
    "*_terminal",
    "run_terminal_*",
    "bash",
    "*_bash",
    "sh",
    "zsh",
    "shell",
    "shell_*",
    "*_shell",
    "*_shell_command",
    "powershell",
    "cmd",
    "exec",
    "exec_command",
    "execute_command",
    "run_command",
    "process",
)
#: With one of these at its head a host says that it has put the result elsewhere itself.
HOST_OFFLOAD_TAGS = ("<persisted-output>",)
#: How far into a result a host's tag is looked for: it may stand after blank lines.
HEAD_CHARS = 200
#: A command is looked for in so much of the arguments; what is longer is no call of ours.
COMMAND_CHARS = 2_000
#: From so many hidden bytes on, the marker says how to ask for them: of less, the hint would be a good part.
HINT_LEAST_BYTES = 4_000
#: A shell command that asks for something hidden; its answer would be hidden again.
_ASKS_BACK = re.compile(r"\bturngate['\"]?\s+(?:retrieve|search)\b")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A tool result at the moment it arrives."""

    name: str
    """The tool."""
    text: str
    """What it answered."""
    args: Mapping[str, Any] | str | None = None
    """Its arguments, or the JSON text of them."""
    failed: bool | None = None
    """Whether the call failed, where that is known."""
    call_id: str = ""
    """The provider's id of the call."""
    question: str | None = None
    """What the user wants to know."""
    data: bytes | None = None
    """The bytes that `text` was read from; None: its UTF-8."""

    def stored_form(self) -> bytes:
        """What the store is given."""
        return to_bytes(self.text) if self.data is None else self.data


class _Render(Protocol):
    def __call__(self, id_: str, size_bytes: int, *, redacted: bool) -> str: ...


@dataclass(frozen=True, slots=True)
class Form:
    """A way to show a result other than as it came."""

    name: FormName
    """Which way."""
    kind: str
    """The kind of output it was shortened as; "" where nothing is hidden."""
    render: _Render
    """What stands in view, given the content's id and size."""
    pays: Callable[[int, int], bool]
    """Whether it saves enough, given the tokens before and after."""
    of: tuple[str, ...] = ()
    """Call ids of the results that it refers to."""


@dataclass(frozen=True, slots=True)
class Became:
    """What became of a result."""

    shown: str
    """What is shown."""
    passed: str = ""
    """Why it passed as it came; "" where it didn't."""
    form: Form | None = None
    """The form in which it is shown; None: as it came."""
    tokens: int = 0
    """Estimate of the tokens of that form."""


def short_form(arrival: Arrival, short: Shortened) -> Form:
    """Shortened by itself."""

    def shown(id_: str, size_bytes: int, *, redacted: bool) -> str:
        return render(id_, arrival.name, size_bytes, short, redacted=redacted)

    return Form("short", short.kind, shown, saves_enough)


def same_form(arrival: Arrival, entry: Entry) -> Form:
    """One line: it is the result of an earlier call again."""
    type_ = marker_type(arrival.name)

    def shown(id_: str, size_bytes: int, *, redacted: bool) -> str:
        return across.render_same(
            id_, type_, size_bytes, call=entry.call, label=entry.label, redacted=redacted
        )

    return Form("same", "", shown, partial(across.pays, across.SAME), (entry.call,))


def delta_form(arrival: Arrival, delta: Delta) -> Form:
    """New lines, and the ranges of earlier results that the others are."""
    type_ = marker_type(arrival.name)

    def shown(id_: str, size_bytes: int, *, redacted: bool) -> str:
        return across.render_delta(id_, type_, size_bytes, delta, redacted=redacted)

    of = tuple(base.call for base in delta.bases)
    return Form("delta", "", shown, partial(across.pays, across.DELTA), of)


def passes(arrival: Arrival, settings: Settings) -> str:
    """Why this result must pass untouched, or ""."""
    return next((reason for reason, holds in _PASSES if holds(arrival, settings)), "")


def marker_type(tool: str) -> str:
    """``terminal`` for the output of a shell, else ``tool``."""
    return "terminal" if _matches(tool, SHELL_TOOLS) else "tool"


def render(id_: str, tool: str, size_bytes: int, short: Shortened, *, redacted: bool = False) -> str:
    """What stands in view: the marker's line, then the shortened text."""
    fields = (("kind", short.kind), *((("redacted", "yes"),) if redacted else ()))
    preview = f"{short.preview}{_hint(short, size_bytes)}"
    line = marker.render(Marker(id_, marker_type(tool), size_bytes, "inline", preview, fields))
    return f"{line}\n{short.text}"


def _hint(short: Shortened, size_bytes: int) -> str:
    """How to ask for what is hidden, where that is much: by the widest range of lines, or by path."""
    if short.exact or size_bytes - len(short.text) < HINT_LEAST_BYTES:
        return ""
    if short.unit != "lines":
        return "; ask by path or query"
    first, last = max(short.hidden, key=lambda gap: gap[1] - gap[0], default=(0, 0))
    by_range = f'lines="{first}-{last}", ' if last > first else ""
    return f"; ask by {by_range}pattern or query"


def saves_enough(before_tokens: int, after_tokens: int) -> bool:
    """Whether a shortening saves enough with its marker counted."""
    return (
        after_tokens <= MOST_SHOWN_SHARE * before_tokens
        and before_tokens - after_tokens >= LEAST_SAVED_TOKENS
    )


def pays(shown: str, size_bytes: int, before_tokens: int) -> bool:
    """Whether the shortening saves enough with its marker counted, and is smaller in bytes, too."""
    return saves_enough(before_tokens, tokens.estimate(shown)) and len(to_bytes(shown)) < size_bytes


def call_line(arrival: Arrival) -> str:
    """The call as one line, by whose words a search finds its result."""
    if isinstance(arrival.args, Mapping):
        return f"{arrival.name}({', '.join(f'{key}={value}' for key, value in arrival.args.items())})"
    return f"{arrival.name}({arrival.args or ''})"


def reference(ref: str) -> str:
    """The id in what a model may have copied: a whole marker, `hash|type|size`, or blanks around it."""
    found = marker.parse(ref.strip())
    return found.hash if found else ref.strip().partition("|")[0]


def _small(arrival: Arrival, settings: Settings) -> bool:
    # A character is at least a byte, so that most texts need no encoding to be measured.
    limit = settings.threshold_bytes
    if limit is None:
        return False
    return len(arrival.text) < limit and len(to_bytes(arrival.text)) < limit


def _offloaded(arrival: Arrival, _: Settings) -> bool:
    return arrival.text[:HEAD_CHARS].lstrip().startswith(HOST_OFFLOAD_TAGS)


def _asks_back(arrival: Arrival, _: Settings) -> bool:
    return bool(_ASKS_BACK.search(_command(arrival.args)))


_PASSES: tuple[tuple[str, Callable[[Arrival, Settings], bool]], ...] = (
    ("disabled", lambda _, settings: not settings.enabled),
    ("skipped tool", lambda arrival, settings: _matches(arrival.name, settings.skip_tools)),
    ("small", _small),
    ("offloaded by the host", _offloaded),
    ("retrieved", _asks_back),
)


def _command(args: Mapping[str, Any] | str | None) -> str:
    """The arguments as one text to look for a command in."""
    if isinstance(args, Mapping):
        return " ".join(value for value in args.values() if isinstance(value, str))[:COMMAND_CHARS]
    return args[:COMMAND_CHARS] if isinstance(args, str) else ""


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return _any_of(patterns).match(name.lower()) is not None


@lru_cache(maxsize=64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(translate(pattern.lower()) for pattern in patterns) or r"(?!)")
