"""Enabling the plugin in a user's home of the host, and disabling it again, repeatably."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.hermes.config_text import items_of, value_of, with_item, with_value, without_item
from turngate.hermes.schemas import TOOLSET

if TYPE_CHECKING:
    from turngate.settings import Settings

PLUGIN = "turngate"
CONFIG = "config.yaml"
_INIT = '''"""The plugin is part of the package turngate; this folder only leads to it."""

from turngate.hermes.plugin import register

__all__ = ["register"]
'''


@dataclass(frozen=True, slots=True)
class Change:
    """A file that is to be written, or removed."""

    path: Path
    """Which."""
    before: str | None
    """What is in it; None where there is none."""
    after: str | None
    """What will be; None where it goes."""

    @property
    def diff(self) -> str:
        """The change, as people read it."""
        before, after = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        return "".join(unified_diff(before, after, str(self.path), str(self.path), n=2))


@dataclass(frozen=True, slots=True)
class _Facts:
    """What of the host's configuration matters to us."""

    enabled: bool
    """The plugin is on the list of those that are loaded."""
    disabled: bool
    """It is on the list of those that are not."""
    engine: str
    """The engine selected, "" for the host's default."""
    wanted: bool
    """Our own settings switch our engine on."""
    compression: bool
    """The host compacts at all."""
    toolsets: tuple[str, ...]
    """The toolsets of the command line, where they are listed one by one."""


_MISTAKES: tuple[tuple[Callable[[_Facts], bool], str, str], ...] = (
    (
        lambda facts: facts.disabled,
        "Hermes has turngate in plugins.disabled, which wins over plugins.enabled",
        "turngate hermes install",
    ),
    (
        lambda facts: not facts.enabled and not facts.disabled,
        "Hermes does not load turngate: it is not in plugins.enabled",
        "turngate hermes install",
    ),
    (
        lambda facts: not facts.compression,
        "compression.enabled is false: Hermes then asks no engine at all, nor recovers from an overflow",
        "set compression.enabled to true; the built-in compressor does not run beside another engine",
    ),
    (
        lambda facts: facts.engine == PLUGIN and not facts.wanted,
        "context.engine is turngate, but the engine is not switched on: Hermes takes its built-in one",
        "set TURNGATE_CONTEXT_ENGINE=1, or context_engine = true in the settings file",
    ),
    (
        lambda facts: facts.wanted and facts.engine in {"", "compressor"},
        "the engine is switched on, but Hermes does not select it",
        "turngate hermes install --engine",
    ),
    (
        lambda facts: facts.wanted and facts.engine not in {"", "compressor", PLUGIN},
        "two engines: Hermes selects another one than turngate's, and only one runs",
        "turngate hermes install --engine, or unset TURNGATE_CONTEXT_ENGINE",
    ),
    (
        lambda facts: bool(facts.toolsets) and TOOLSET not in facts.toolsets,
        "platform_toolsets.cli lists toolsets one by one and leaves out turngate: nothing can be had back",
        "add turngate to the list, and context_engine for the engine; the same with hermes -t",
    ),
)


def plan_install(home: Path, *, engine: bool = False, folder: bool = False) -> list[Change]:
    """What enables the plugin: nothing where it is enabled already.

    Args:
        home: the host's home.
        engine: whether the context engine is selected, too.
        folder: whether the plugin is put there as a folder instead of being found by its entry point.

    Raises:
        EditError: the configuration is written in a way that is not edited.
    """

    def edited(text: str) -> str:
        text = without_item(text, "plugins", "disabled", PLUGIN)
        text = with_item(text, "plugins", "enabled", PLUGIN)
        return with_value(text, "context", "engine", PLUGIN) if engine else text

    return [*_config_change(home, edited), *(_folder_files(home) if folder else ())]


def plan_uninstall(home: Path) -> list[Change]:
    """What disables it: the rest of the configuration stays."""

    def edited(text: str) -> str:
        text = without_item(text, "plugins", "enabled", PLUGIN)
        ours = value_of(text, "context", "engine") == PLUGIN
        return with_value(text, "context", "engine", "compressor") if ours else text

    place = home / "plugins" / PLUGIN
    removed = [Change(path, _read(path), None) for path in sorted(place.glob("*")) if path.is_file()]
    return [*_config_change(home, edited), *removed]


def apply(changes: list[Change]) -> None:
    """Make the changes, each file at once and with the permissions it had."""
    for change in changes:
        if change.after is None:
            change.path.unlink(missing_ok=True)
            shutil.rmtree(change.path.parent / "__pycache__", ignore_errors=True)
            if not any(change.path.parent.iterdir()):
                change.path.parent.rmdir()
        else:
            _write(change.path, change.after)


def mistakes(home: Path, settings: Settings) -> Iterator[tuple[str, str]]:
    """What in the host's configuration keeps us from working: what is wrong, and the remedy.

    Raises:
        EditError: the configuration is written in a way that is not read here.
    """
    text = _read(home / CONFIG) or ""
    engine = value_of(text, "context", "engine")
    facts = _Facts(
        enabled=PLUGIN in items_of(text, "plugins", "enabled"),
        disabled=PLUGIN in items_of(text, "plugins", "disabled"),
        engine=engine,
        wanted=settings.context_engine,
        compression=value_of(text, "compression", "enabled") != "false",
        toolsets=tuple(items_of(text, "platform_toolsets", "cli")),
    )
    yield from ((what, remedy) for holds, what, remedy in _MISTAKES if holds(facts))


def beside_the_host() -> bool:
    """Whether the host is installed where we are, so that it finds the plugin by its entry point."""
    return find_spec("hermes_cli") is not None


def _config_change(home: Path, edited: Callable[[str], str]) -> list[Change]:
    path = home / CONFIG
    before = _read(path)
    after = edited(before or "")
    return [] if after == (before or "") else [Change(path, before, after)]


def _folder_files(home: Path) -> Iterator[Change]:
    place = home / "plugins" / PLUGIN
    manifest = files("turngate").joinpath("hermes/plugin.yaml").read_text(encoding="utf-8")
    for name, after in (("plugin.yaml", manifest), ("__init__.py", _INIT)):
        before = _read(place / name)
        if before != after:
            yield Change(place / name, before, after)


def _read(path: Path) -> str | None:
    # Line ends stay as they are.
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("wb", dir=target.parent, delete=False) as file:
        file.write(text.encode("utf-8"))
    if target.exists():
        shutil.copymode(target, file.name)
    else:
        Path(file.name).chmod(0o600)
    Path(file.name).replace(target)
