"""The environment of the real Hermes agent: `.venv-hermes`, with this package installed in it.

    python tests/hermes/hermes_environment.py

It is built when it is missing or when what it depends on has changed, and kept otherwise.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-hermes"
BIN = FOLDER / "bin"
PINNED = ("hermes-agent==0.19.0",)
_STAMP = FOLDER / ".ready"
#: What of pyproject.toml an installed package knows.
_INSTALLED_KEYS = ("version", "dependencies", "entry-points", "scripts")


class EnvironmentImpossibleError(Exception):
    """The agent cannot be installed here; the message says what the installer said."""


def ensure() -> Path:
    """The folder of the environment's programs, built where needed.

    Raises:
        EnvironmentImpossibleError: there is no way to build it, such as no network.
    """
    wanted = _stamp()
    if _is_ready(wanted):
        return BIN
    with (ROOT / ".venv-hermes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_ready(wanted):
            _build()
            _STAMP.write_text(wanted)
    return BIN


def _is_ready(wanted: str) -> bool:
    return _STAMP.exists() and _STAMP.read_text() == wanted


def _stamp() -> str:
    """Changes with whatever calls for another installation."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    facts = [PINNED, sys.version_info[:2], {key: project.get(key) for key in _INSTALLED_KEYS}]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _build() -> None:
    if uv := shutil.which("uv"):
        _run(uv, "venv", "-q", "--allow-existing", "--python", sys.executable, str(FOLDER))
        _run(uv, "pip", "install", "-q", "--python", str(BIN / "python"), *PINNED, "-e", str(ROOT))
    else:
        _run(sys.executable, "-m", "venv", str(FOLDER))
        _run(str(BIN / "python"), "-m", "pip", "install", "-q", *PINNED, "-e", str(ROOT))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise EnvironmentImpossibleError(f"hermes-agent cannot be installed: {last[0]}")


if __name__ == "__main__":
    try:
        ensure()
    except EnvironmentImpossibleError as error:
        print(f"{error}; the tests of the Hermes plugin will be skipped", file=sys.stderr)  # noqa: T201
