"""`doctor`: is everything as it should be, and if not, what to do."""

from __future__ import annotations

import os
import platform
import sqlite3
import stat
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

import turngate
from turngate import settings as settings_module
from turngate.cli.common import answer, count, json_option, load
from turngate.cli.hermes_doctor import advice, smoke_test
from turngate.cli.tables import console, size
from turngate.errors import SettingsError, StoreError
from turngate.gate import Gate
from turngate.hermes.smoke import MODES
from turngate.proxy.access import is_loopback
from turngate.proxy.health import alive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.cli.app import Given
    from turngate.settings import ProxySettings, Settings

#: Extra -> the module that it brings.
EXTRAS = {"tokens": "bpe_openai"}
PACKAGES = ("aiohttp", "backports-zstd", "brotli", "click", "genai-prices", "orjson", "platformdirs", "rich")

OK, NOTE, PROBLEM = "ok", "note", "problem"
_STYLES = {OK: "green", NOTE: "yellow", PROBLEM: "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    state: str
    """``ok``, ``note`` (worth knowing) or ``problem`` (to be put right)."""
    what: str
    """What was looked at, or is wrong."""
    remedy: str = ""
    """What to do about it."""


@click.command(short_help="Check store, settings and environment, and say what to do.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="Run the smoke test of the Hermes plugin instead, on a store of its own.",
)
@click.option(
    "--hermes-home",
    envvar="HERMES_HOME",
    type=click.Path(path_type=Path),
    default=Path("~/.hermes"),
    help="Hermes' home, if it is used. Default: HERMES_HOME, or ~/.hermes.",
)
@json_option
@click.pass_obj
def doctor(given: Given, mode: str | None, hermes_home: Path, as_json: bool) -> int:
    """Check the data folder, the store's integrity and limits, settings, environment names and versions.

    Only looks: nothing is created or changed. Exit code 1 when there is a problem. Where Hermes is used, its
    configuration is looked at, too.

    With --mode the plugin is tried out: quick and full check its promises, matrix checks them under each
    combination of settings, pipeline switches each feature off and compares with its last run.
    """
    if mode:
        return smoke_test(mode, load(given), as_json=as_json)
    findings = list(_examine(given, hermes_home.expanduser()))
    answer([asdict(finding) for finding in findings], as_json=as_json, show=lambda: _show(findings))
    return int(any(finding.state == PROBLEM for finding in findings))


def _examine(given: Given, hermes_home: Path) -> Iterator[Finding]:
    yield from _versions()
    yield from _environment()
    try:
        settings = load(given)
    except SettingsError as error:
        yield Finding(PROBLEM, str(error), "correct it; the store was not looked at")
        return
    yield from _settings(given, settings)
    yield from (Finding(NOTE, what, remedy) for what, remedy in advice(hermes_home, settings))
    yield _proxy(settings.proxy)
    gate = Gate.open(settings=settings)
    yield from _data_dir(gate.path)
    if gate.path.exists():
        yield from _store(gate)
    else:
        yield Finding(OK, f"no store at {gate.path} yet; it is created when something is first shortened")


def _versions() -> Iterator[Finding]:
    yield Finding(
        OK,
        f"turngate {turngate.__version__}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}",
    )
    found = {name: _version(name) for name in PACKAGES}
    yield Finding(OK, ", ".join(f"{name} {number}" for name, number in found.items() if number))
    for name, module in EXTRAS.items():
        if find_spec(module):
            yield Finding(OK, f"extra {name!r} is installed")
        else:
            yield Finding(
                OK, f"extra {name!r} is not installed", f"pip install 'turngate[{name}]', if wanted"
            )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _environment() -> Iterator[Finding]:
    for name, nearest in settings_module.unknown_environment():
        remedy = f"did you mean {nearest}?" if nearest else "unset it"
        yield Finding(NOTE, f"environment variable {name} is not a setting", remedy)


def _settings(given: Given, settings: Settings) -> Iterator[Finding]:
    path = given.config or settings_module.config_path()
    yield Finding(
        OK, f"settings file {path}" if path.exists() else f"no settings file at {path}; it is optional"
    )
    if not settings.enabled:
        yield Finding(NOTE, "turngate is switched off", "set enabled = true")
    for key, _ in settings_module.all_keys():
        yield Finding(OK, f"{key} = {_value(settings, key)}")


def _value(settings: Settings, key: str) -> str:
    value: object = settings
    for part in key.split("."):
        value = getattr(value, part)
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _proxy(settings: ProxySettings) -> Finding:
    """Whether one answers where `turngate proxy` would listen."""
    host = settings.host if is_loopback(settings.host) else "127.0.0.1"
    url = f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"
    if alive(url):
        return Finding(OK, f"a proxy answers at {url}")
    return Finding(OK, f"no proxy answers at {url}; `turngate proxy` starts one")


def _data_dir(path: Path) -> Iterator[Finding]:
    """The folder and the files in it: writable for us, and only for us."""
    folder = path.parent
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not existing.is_dir():
        yield Finding(PROBLEM, f"{existing} is not a folder", "name another with TURNGATE_DATA_DIR")
    elif not os.access(existing, os.W_OK | os.X_OK):
        yield Finding(
            PROBLEM, f"{existing} is not writable", "change its permissions, or set TURNGATE_DATA_DIR"
        )
    else:
        yield Finding(OK, f"data folder {folder}")
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield Finding(NOTE, f"{path} can be read by other users of this machine", f"chmod 600 {path}")


def _store(gate: Gate) -> Iterator[Finding]:
    try:
        problems, found = gate.store.check(), gate.store.stats()
    except StoreError as error:
        yield Finding(PROBLEM, f"the store cannot be read: {error}", "see above")
        return
    finally:
        gate.close()
    for problem in problems:
        yield Finding(PROBLEM if problem.severe else NOTE, problem.what, problem.remedy)
    limit = gate.settings.store.max_bytes
    yield Finding(
        OK,
        f"store: {count(found.contents, 'original')} of {count(found.sessions, 'session')}, "
        f"{size(found.disk_bytes)} of {size(limit)} on disk, {found.pending:,} waiting for the index",
    )


def _show(findings: list[Finding]) -> None:
    out = console()
    for finding in findings:
        line = Text(f"{finding.state:8}", _STYLES[finding.state])
        line.append(finding.what, "")
        if finding.remedy:
            line.append(f" → {finding.remedy}", "bold")
        out.print(line, soft_wrap=True)
