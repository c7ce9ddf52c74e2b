"""Settings: defaults < TOML file < ``TURNGATE_*`` environment < arguments.

The only module that reads the environment. A section of the file is a field of `Settings` whose type is a
dataclass, so a new section is a new dataclass and a field; file keys, environment names and argument names
all follow from the fields::

    threshold_bytes = 2048            # TURNGATE_THRESHOLD_BYTES
    [store]
    max_bytes = 1073741824            # TURNGATE_STORE_MAX_BYTES
"""

from __future__ import annotations

import dataclasses
import difflib
import logging
import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import platformdirs

from turngate.errors import SettingsError

Budget = Literal["default", "wide"]

ENV_PREFIX = "TURNGATE_"
#: Names under the prefix that are read but are no setting: they say where settings come from.
ENV_OTHER = ("TURNGATE_CONFIG",)
STORE_FILE = "turngate.sqlite3"
CONFIG_FILE = "config.toml"
#: An entry of a list that stands for its built-in entries, so that a user can add to them.
KEEP_DEFAULTS = "..."

#: Tools whose results always pass whole: (pattern, why). Matched with fnmatch, case ignored.
SKIP_TOOL_REASONS: tuple[tuple[str, str], ...] = (
    ("read_file", "an edit needs the file byte for byte; a shortened read is read again"),
    ("read_terminal", "what the agent asked to see of a terminal it holds open"),
    ("turngate_*", "our own retrieval: shortening it again would loop"),
    ("aphrodite_*", "a neighbour's retrieval"),
    ("headroom_*", "a neighbour's retrieval"),
    ("memory", "the host's memory: short, and read as a fact"),
    ("memory_*", "memory servers (search, read, store)"),
    ("*_memory", "memory servers (add_memory, search_memory, …)"),
    ("*_memories", "memory servers (search_memories, list_memories, …)"),
    ("mem0_*", "a memory server"),
    ("session_search", "the host's own search in past sessions"),
    ("skill_view", "a skill is an instruction: every word of it counts"),
    ("skills_list", "which skills there are"),
    ("skill_manage", "edits of skills, confirmed word for word"),
)
DEFAULT_SKIP_TOOLS: tuple[str, ...] = tuple(pattern for pattern, _ in SKIP_TOOL_REASONS)
DEFAULT_DIRECTIVES: tuple[str, ...] = ("focus", "evidence")
DEFAULT_HERMES_TOOLS: tuple[str, ...] = ("retrieve", "search")
#: Lists in which `KEEP_DEFAULTS` means something.
_DEFAULT_WORDS = {
    "skip_tools": DEFAULT_SKIP_TOOLS,
    "active": DEFAULT_DIRECTIVES,
    "tools": DEFAULT_HERMES_TOOLS,
}

#: The least value of each number. A store under a mebibyte could not hold a single large result.
_LEAST: dict[str, int] = {
    "threshold_bytes": 0,
    "flow_budget_chars": 0,
    "max_bytes": 1024**2,
    "max_age_days": 1,
    "live_days": 0,
    "busy_timeout_ms": 0,
    "context_window_tokens": 1,
    "answer_tokens": 0,
    "soft_threshold_tokens": 0,
    "keep_recent_messages": 0,
    "chars_per_token": 1,
    "max_chunk_tokens": 1,
    "max_summary_tokens": 1,
    "summary_timeout_seconds": 1,
    "port": 0,
    "max_body_bytes": 1024,
    "connect_seconds": 1,
    "read_seconds": 1,
    "stop_seconds": 0,
    "workers": 1,
    "window_tokens": 0,
    "rounds": 0,
}

_log = logging.getLogger("turngate.settings")


def _check_numbers(settings: StoreSettings | WindowSettings | ProxySettings | Settings) -> None:
    for field in dataclasses.fields(settings):
        least, value = _LEAST.get(field.name), getattr(settings, field.name)
        if least is not None and value is not None and type(value) is not int:
            raise SettingsError(f"{field.name} is {value!r}; it must be a whole number")
        if least is not None and value is not None and value < least:
            raise SettingsError(f"{field.name} is {value}; it must be at least {least}")


@dataclasses.dataclass(frozen=True, slots=True)
class StoreSettings:
    """The store of originals: section ``[store]``."""

    max_bytes: int = 2 * 1024**3
    """Limit of the whole database on disk, index included."""
    max_age_days: int = 365
    """Originals not used for so long are removed by ``gc``."""
    live_days: int = 30
    """A session used within so many days is live; what it has in view is never removed."""
    redact: bool = False
    """Whether secrets are also replaced in the stored original, not only in the search index."""
    busy_timeout_ms: int = 5000
    """How long a write waits for another process."""
    url: str = ""
    """A database that several machines share, ``postgresql://…``; "": one file in `data_dir`."""

    def __post_init__(self) -> None:
        _check_numbers(self)


@dataclasses.dataclass(frozen=True, slots=True)
class PromptSettings:
    """Texts that a model is given: section ``[prompts]``."""

    session_inject: str | None = None
    """What a session's first turn is told; ``{VERSION}`` is replaced. None: the shipped text; "": nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class FlowSettings:
    """The block that is injected into a turn: section ``[flow]``."""

    every_turn: bool = False
    """Whether each turn's block has all that holds, for hosts that don't keep it in the history."""
    recall_in_view: bool = False
    """Whether recall also lists what was just shortened, whose marker stands in view anyway."""
    error_loop: bool = True
    """Whether the same error three times brings a nudge."""
    repeated_call: bool = True
    """Whether the same call with the same result brings a nudge."""
    stale_read: bool = True
    """Whether files that were written after they were read are named."""
    checkpoint: bool = True
    """Whether the files written before a compaction are named after it."""
    phase: bool = False
    """Whether the directive of the phase (exploring, editing, verifying) is swapped in when it changes."""


@dataclasses.dataclass(frozen=True, slots=True)
class DirectiveSettings:
    """Standing instructions from Markdown files: section ``[directives]``."""

    active: tuple[str, ...] = DEFAULT_DIRECTIVES
    """Names (files without ``.md``) of those that a session begins with; ``"..."``: the built-in ones."""
    dir: Path | None = None
    """Their folder. None: ``./directives``, else the user's, else the shipped one; the first that exists."""


@dataclasses.dataclass(frozen=True, slots=True)
class WindowSettings:
    """What happens when a conversation outgrows the model's window: section ``[window]``.

    Names as in symfonic-core's `CompactionConfig`, where it has them.
    """

    context_window_tokens: int | None = None
    """The model's window. None: what is known of the model, else 200,000."""
    max_history_share: float = 0.85
    """So much of the window the request may fill before it must be compacted."""
    answer_tokens: int | None = None
    """Kept free for the answer. None: an eighth of the window, at most 32,000."""
    soft_threshold_tokens: int | None = None
    """From here on a compaction happens if it pays. None: six tenths of what the messages may fill."""
    keep_recent_messages: int | None = None
    """At most so many of the newest messages stay. None: as many as fit."""
    chars_per_token: int | None = None
    """Measure by so many characters to a token. None: by the estimate, corrected by what is reported."""
    weigh_cost: bool = True
    """Whether a compaction that need not be waits until it saves more than it costs."""
    max_summary_tokens: int | None = None
    """What a summary may take. None: a tenth of what the messages may fill, from 400 to 4,000."""
    max_chunk_tokens: int = 30_000
    """So much of a history a summarising model is given at once."""
    compaction_model: str = ""
    """The model that writes summaries, at `summary_url`; "": they are made without a model."""
    summary_url: str = ""
    """Base URL of an OpenAI- or Anthropic-compatible endpoint."""
    summary_wire: Literal["chat", "anthropic"] = "chat"
    """Which of the two it speaks."""
    summary_api_key: str = ""
    """Its key; better in the environment than in a file."""
    summary_timeout_seconds: int = 60
    """How long one call of it may take."""
    enable_memory_flush: bool = True
    """Whether what is compacted is offered to the host's memory."""

    def __post_init__(self) -> None:
        _check_numbers(self)
        share = self.max_history_share
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise SettingsError(f"max_history_share is {share!r}; it must be above 0 and at most 1")


@dataclasses.dataclass(frozen=True, slots=True)
class HermesSettings:
    """The plugin of the Hermes agent: section ``[hermes]``."""

    tools: tuple[str, ...] = DEFAULT_HERMES_TOOLS
    """Tools that the model is offered, without ``turngate_``; ``"..."``: the built-in ones; ``all``."""
    shorten_in_terminal: bool = False
    """Whether terminal output is shortened before the host makes a tool result of it, too."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProxySettings:
    """The proxy: section ``[proxy]``."""

    host: str = "127.0.0.1"
    """Address to listen at; one that isn't loopback needs a `token`."""
    port: int = 8787
    """Port to listen at; 0: any free one."""
    openai_upstream: str = "https://api.openai.com/v1"
    """Base URL of the OpenAI-compatible upstream, as its own clients are given it."""
    anthropic_upstream: str = "https://api.anthropic.com"
    """Base URL of the Anthropic-compatible upstream."""
    gemini_upstream: str = "https://generativelanguage.googleapis.com"
    """Base URL of the Gemini-compatible upstream."""
    token: str = ""
    """Who shows it as a bearer token may use the proxy's own endpoints; better in the environment."""
    retrieve: bool = True
    """Whether the model is offered the tool that gives originals back; without it nothing is shortened."""
    adopt: bool = False
    """Whether a history that began without the proxy is treated as one that begins now."""
    window_tokens: int = 0
    """Compact what would be larger than so many tokens; 0: never."""
    rounds: int = 5
    """How often the proxy answers the model's retrievals within one request of the client."""
    workers: int = 1
    """Processes that share the port."""
    max_body_bytes: int = 64 * 1024**2
    """The largest request that is read, after its compression is undone."""
    connect_seconds: int = 10
    """How long connecting to an upstream may take."""
    read_seconds: int = 600
    """How long an upstream may be silent."""
    stop_seconds: int = 30
    """How long requests under way may take to finish when the proxy is stopped."""

    def __post_init__(self) -> None:
        _check_numbers(self)


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set."""

    enabled: bool = True
    """False: every result passes through untouched."""
    budget: Budget = "default"
    """How much of a result stays in view: ``default``, or ``wide`` for about twice as much."""
    threshold_bytes: int | None = None
    """Results of fewer bytes of UTF-8 pass; None: of fewer than 2,000 characters (wide: 4,000)."""
    skip_tools: tuple[str, ...] = DEFAULT_SKIP_TOOLS
    """Patterns (fnmatch, case ignored) of tools whose results pass; ``"..."``: the built-in ones."""
    across_results: bool = True
    """Whether a result is shown by reference to earlier ones of its session where that is clearly shorter."""
    regret: bool = True
    """Whether more is shown of what was often asked for, in sessions that begin later."""
    data_dir: Path | None = None
    """Folder of the store; None: the platform's data folder for ``turngate``."""
    flow_budget_chars: int = 4000
    """Limit of the block injected into a turn. Bytes of UTF-8, whatever the name, which hosts know it by."""
    context_engine: bool = False
    """Whether the Hermes plugin offers its context engine."""
    store: StoreSettings = dataclasses.field(default_factory=StoreSettings)
    """Section ``[store]``."""
    prompts: PromptSettings = dataclasses.field(default_factory=PromptSettings)
    """Section ``[prompts]``."""
    flow: FlowSettings = dataclasses.field(default_factory=FlowSettings)
    """Section ``[flow]``."""
    directives: DirectiveSettings = dataclasses.field(default_factory=DirectiveSettings)
    """Section ``[directives]``."""
    window: WindowSettings = dataclasses.field(default_factory=WindowSettings)
    """Section ``[window]``."""
    hermes: HermesSettings = dataclasses.field(default_factory=HermesSettings)
    """Section ``[hermes]``."""
    proxy: ProxySettings = dataclasses.field(default_factory=ProxySettings)
    """Section ``[proxy]``."""

    def __post_init__(self) -> None:
        _check_numbers(self)

    @property
    def store_path(self) -> Path:
        """The database file."""
        return (self.data_dir or default_data_dir()) / STORE_FILE


def default_data_dir() -> Path:
    """The platform's folder for a user's data. Nothing is created."""
    return Path(platformdirs.user_data_dir("turngate", appauthor=False))


def user_directives_dir() -> Path:
    """The user's own folder of directives. Nothing is created."""
    return Path(platformdirs.user_config_dir("turngate", appauthor=False)) / "directives"


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """The settings file that `load` reads when none is named: ``TURNGATE_CONFIG``, else the platform's."""
    named = _environment(environ).get("TURNGATE_CONFIG", "")
    return (
        Path(named)
        if named
        else Path(platformdirs.user_config_dir("turngate", appauthor=False)) / CONFIG_FILE
    )


def load(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    strict: bool = True,
    **overrides: Any,
) -> Settings:
    """Settings from all four sources.

    Args:
        path: the TOML file; it must exist. None: the default file, if there is one.
        environ: stands in for ``os.environ``.
        strict: False, for a host's path: what would be an error is a logged warning and the key is left out.
        overrides: settings by name; a section such as ``store`` takes a mapping or its dataclass.

    Raises:
        SettingsError: a key is unknown (the nearest known one is named), or a value is malformed or out of
            range.
    """
    environment = _environment(environ)
    problem = _raise if strict else _warn
    values: dict[str, Any] = {}
    for source, table in (
        (_file_name(path, environment), _read_file(path, environment, problem)),
        ("the environment", _from_environment(environment)),
        ("the arguments", overrides),
    ):
        _merge(values, _checked(Settings, table, source, "", problem))
    sections = {name: kind(**values.pop(name, {})) for name, kind in _sections(Settings)}
    return Settings(**sections, **values)


def unknown_environment(environ: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Environment names under our prefix that mean nothing, each with the nearest that does ("" if none)."""
    known = [*_env_names(), *ENV_OTHER]
    return [
        (name, _nearest(name, known))
        for name in sorted(_environment(environ))
        if name.startswith(ENV_PREFIX) and name not in known
    ]


def all_keys(of: type = Settings, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key, a section's as ``section.key``, with its type."""
    sections = dict(_sections(of))
    for name, kind in _types(of).items():
        if name in sections:
            yield from all_keys(kind, f"{name}.")
        else:
            yield f"{prefix}{name}", kind


def _environment(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ


@cache
def _types(of: type) -> dict[str, Any]:
    return get_type_hints(of)


def _sections(of: type) -> Iterator[tuple[str, type]]:
    """The fields that are sections, with their dataclasses."""
    for name, kind in _types(of).items():
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            yield name, kind


@cache
def _env_names() -> dict[str, str]:
    """Environment name -> key: ``TURNGATE_STORE_MAX_BYTES`` -> ``store.max_bytes``."""
    return {ENV_PREFIX + key.replace(".", "_").upper(): key for key, _ in all_keys()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """The nested table that the environment spells; unknown names are logged."""
    for name, nearest in unknown_environment(environ):
        _log.warning("environment variable %s is not a setting%s", name, _hint(nearest))
    table: dict[str, Any] = {}
    for name, key in _env_names().items():
        if name in environ:
            section, _, last = key.rpartition(".")
            (table.setdefault(section, {}) if section else table)[last] = environ[name]
    return table


def _file_name(path: Path | None, environ: Mapping[str, str]) -> str:
    return str(path or config_path(environ))


def _read_file(path: Path | None, environ: Mapping[str, str], problem: _Problem) -> dict[str, Any]:
    """The file's table; {} where the default file does not exist."""
    file = path or config_path(environ)
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if path or environ.get("TURNGATE_CONFIG"):
            problem(f"settings file {file} does not exist; create it or name another")
    except OSError as error:
        problem(f"settings file {file} cannot be read ({error.strerror}); check its permissions")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problem(f"settings file {file} is not valid TOML: {error}")
    return {}


_Problem = Callable[[str], None]


def _raise(message: str) -> None:
    raise SettingsError(message)


def _warn(message: str) -> None:
    _log.warning("%s; left out", message)


def _checked(of: type, table: Any, source: str, prefix: str, problem: _Problem) -> dict[str, Any]:
    """The table's values in the types of `of`'s fields; what is unknown or malformed goes to `problem`."""
    if dataclasses.is_dataclass(table) and isinstance(table, of):
        return {field.name: getattr(table, field.name) for field in dataclasses.fields(table)}
    if not isinstance(table, Mapping):
        problem(f"{prefix.rstrip('.')} in {source} must be a table of settings")
        return {}
    kinds, sections, values = _types(of), dict(_sections(of)), {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        kind = kinds.get(name)
        if kind is None:
            known = [*_types(Settings), *(known for known, _ in all_keys())]
            problem(f"unknown setting {key!r} in {source}{_hint(_nearest(key, known))}")
        elif name in sections:
            values[name] = _checked(kind, value, source, f"{key}.", problem)
        else:
            try:
                values[name] = _convert(name, kind, value)
            except ValueError as error:
                problem(f"setting {key!r} in {source} is {value!r}; {error}")
    return values


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        else:
            into[name] = value


def _nearest(name: str, known: list[str]) -> str:
    """The known name closest to this one; a key of a section is also found without its section."""
    short = {full.rpartition(".")[2]: full for full in known}
    found = difflib.get_close_matches(name, [*known, *short], n=1, cutoff=0.6)
    return short.get(found[0], found[0]) if found else ""


def _hint(nearest: str) -> str:
    return f"; did you mean {nearest!r}?" if nearest else "; `turngate doctor` lists the settings"


_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def _as_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _YES + _NO:
        raise ValueError("it must be true or false")
    return word in _YES


def _as_int(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int(value.replace("_", "")) if isinstance(value, str) else int("")
    except ValueError:
        raise ValueError("it must be a whole number") from None


def _as_int_or_none(value: Any) -> int | None:
    return None if value is None or value == "" else _as_int(value)


def _as_share(value: Any) -> float:
    try:
        share = float(value) if isinstance(value, int | float | str) else math.nan
    except ValueError:
        share = math.nan
    if isinstance(value, bool) or not 0 < share <= 1:
        raise ValueError("it must be a number above 0 and at most 1")
    return share


def _as_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("it must be a text")


def _as_path(value: Any) -> Path | None:
    if value is None or value == "":
        return None
    if isinstance(value, str | Path):
        return Path(value).expanduser()
    raise ValueError("it must be a path")


def _as_words(value: Any) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError("it must be a list of names, in the environment separated by commas")
    return tuple(word.strip() for word in words if word.strip())


def _with_defaults(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """`words`, the built-in ones in the place of `KEEP_DEFAULTS`."""
    kept = _DEFAULT_WORDS.get(name, ())
    return tuple(entry for word in words for entry in (kept if word == KEEP_DEFAULTS else (word,)))


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError("it must be a text")


_CONVERTERS: dict[Any, Callable[[Any], Any]] = {
    bool: _as_bool,
    float: _as_share,
    int: _as_int,
    str: _as_string,
    int | None: _as_int_or_none,
    Path | None: _as_path,
    str | None: _as_text,
    tuple[str, ...]: _as_words,
}


def _convert(name: str, kind: Any, value: Any) -> Any:
    """The value in its setting's type.

    Raises:
        ValueError: it cannot be one; the message completes "setting x is y; …".
    """
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ValueError(f"it must be one of {', '.join(get_args(kind))}")
        return value
    converted = _CONVERTERS[kind](value)
    if isinstance(converted, tuple):
        return _with_defaults(name, converted)
    if name in _LEAST and converted is not None and converted < _LEAST[name]:
        raise ValueError(f"it must be at least {_LEAST[name]}")
    return converted
