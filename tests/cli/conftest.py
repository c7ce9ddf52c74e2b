from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import dataclass

import pytest

from turngate.cli import main


@dataclass
class Done:
    code: int
    out: bytes
    err: str

    @property
    def text(self):
        return self.out.decode()

    @property
    def json(self):
        return json.loads(self.out)


#: Where each platform keeps a user's files, as a program finds it.
HOMES = (
    "HOME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
)


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    """The folder of the store. No test of the command line, nor a program that it starts, sees the user's."""
    for name in [name for name in os.environ if name.startswith("TURNGATE_")]:
        monkeypatch.delenv(name)
    for name in HOMES:
        monkeypatch.setenv(name, str(tmp_path))
    folder = tmp_path / "data"
    monkeypatch.setenv("TURNGATE_DATA_DIR", str(folder))
    return folder


@pytest.fixture
def run(data_dir, capsysbinary, monkeypatch):
    """Run the command line in this process."""

    def call(*argv, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in argv])
        out, err = capsysbinary.readouterr()
        return Done(code, out, err.decode())

    return call


@pytest.fixture
def log():
    rows = [f"2025-03-04 10:00:{n % 60:02d} INFO worker job {n} done" for n in range(900)]
    rows[500] = "2025-03-04 10:31:07 ERROR ledger does not add up: 1048.30 against 1048.03"
    return "\n".join(rows).encode() + b"\n"


@pytest.fixture
def stored(run, log):
    """The marker id of the log, which is in the store."""
    done = run("shorten", "--session", "mine", stdin=log)
    assert done.code == 0
    return done.text.split("CCR:")[1].split("|")[0]
