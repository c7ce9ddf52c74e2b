"""The real Hermes agent in a home of its own: run it, and see what it did."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import sqlite3
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import hermes_environment as environment
from stub import MODEL, Stub

from turngate.gate import Gate
from turngate.settings import Settings

TOOLSETS = "terminal,file,todo,turngate,context_engine"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5"
    "ErkJggg=="
)


@dataclass
class Done:
    code: int
    out: str
    err: str


def merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """`base` with `more` laid over it, section by section."""
    both = {key: base.get(key) for key in base} | more
    for key in base.keys() & more.keys():
        if isinstance(base[key], dict) and isinstance(more[key], dict):
            both[key] = merged(base[key], more[key])
    return both


class Process:
    """The agent's process; a context manager. What it is asked to do is in driver.py."""

    def __init__(self, agent: Agent):
        self._log = (agent.home / "driver.log").open("w+")
        self._process = subprocess.Popen(
            [str(environment.BIN / "python"), str(Path(__file__).with_name("driver.py"))],
            cwd=agent.work,
            env=agent.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        self._process.stdin.write(json.dumps({"do": do} | request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"the agent died: {self._log.read()[-3000:]}")
        answer = json.loads(line)
        if "raised" in answer:
            raise AssertionError(answer["raised"])
        return answer

    def turn(self, message: Any, *, name: str = "one", toolsets: str = TOOLSETS) -> dict[str, Any]:
        return self.ask("turn", name=name, message=message, toolsets=toolsets.split(","))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        self._log.close()


class Screen:
    """The interactive program in a terminal of its own; a context manager."""

    def __init__(self, agent: Agent, args: tuple[str, ...]):
        self._main, side = pty.openpty()
        self._process = subprocess.Popen(
            [str(environment.BIN / "hermes"), "chat", "--cli", *args],
            cwd=agent.work,
            env=agent.environ | {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        self._seen = b""

    def enter(self, line: str, until: str, seconds: float = 40) -> str:
        """Type a line, and wait for a text that was not there before; what has been shown since."""
        begun = len(self._seen)
        os.write(self._main, line.encode())
        self._read(0.6)
        os.write(self._main, b"\r")
        return self.wait(until, seconds, begun)

    def wait(self, until: str, seconds: float = 40, begun: int = 0) -> str:
        end = time.monotonic() + seconds
        while until not in self._plain(begun):
            if time.monotonic() > end:
                raise AssertionError(f"no {until!r} in: {self._plain(begun)[-3000:]}")
            self._read(0.2)
        self._read(1.0)
        return self._plain(begun)

    def _plain(self, begun: int) -> str:
        text = self._seen[begun:].decode(errors="replace")
        return _CONTROL.sub("", text)

    def _read(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self._main], [], [], left)
            if ready:
                try:
                    self._seen += os.read(self._main, 65536)
                except OSError:
                    return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.write(self._main, b"/quit")
            self._read(0.5)
            os.write(self._main, b"\r")
            self._read(3)
        finally:
            if self._process.poll() is None:
                self._process.terminate()
            self._process.wait(20)
            os.close(self._main)


_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")


class Agent:
    """A user's home, an empty folder to work in, and the agent between them and the stub."""

    def __init__(self, folder: Path, stub: Stub, *, config: dict[str, Any] | None = None, env=None):
        self.stub, self.env = stub, env or {}
        self.home, self.work, self.user = folder / "home", folder / "work", folder / "user"
        for place in (self.home, self.work, self.user):
            place.mkdir(parents=True)
        self.configure(config or {})

    def configure(self, more: dict[str, Any]) -> None:
        """Write the host's configuration; JSON is YAML, too."""
        base = {
            "model": {
                "provider": "custom",
                "default": MODEL,
                "base_url": self.stub.url,
                "api_key": "sk-dummy",
                "context_length": 65536,
                "supports_vision": True,
            },
            "plugins": {"enabled": ["turngate"]},
            "auxiliary": {"title_generation": {"enabled": False}},
            "agent": {"api_max_retries": 1},
            "memory": {"memory_enabled": False, "user_profile_enabled": False},
            "security": {"tirith_enabled": False},
        }
        (self.home / "config.yaml").write_text(json.dumps(merged(base, more), indent=1))

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": f"{environment.BIN}:/usr/bin:/bin",
            "HOME": str(self.user),
            "HERMES_HOME": str(self.home),
            "TURNGATE_DATA_DIR": str(self.data_dir),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_PROXY": "127.0.0.1,localhost",
            "HERMES_DISABLE_UPDATE_CHECK": "1",
            **self.env,
        }

    @property
    def data_dir(self) -> Path:
        return self.user / "data"

    def run(self, *args: str, timeout: float = 110) -> Done:
        """Run `hermes` with these arguments."""
        done = subprocess.run(
            [str(environment.BIN / "hermes"), *args],
            cwd=self.work,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def chat(self, prompt: str, *extra: str, resume: str = "", toolsets: str = TOOLSETS) -> Done:
        """One user turn, in a new session or in an old one."""
        more = ("--resume", resume) if resume else ()
        return self.run("chat", "-q", prompt, "-Q", "-t", toolsets, *more, *extra)

    def process(self) -> Process:
        """A process of the agent in which several conversations can go on."""
        return Process(self)

    def screen(self, *args: str) -> Screen:
        """The interactive program."""
        return Screen(self, args)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of the host's own database."""
        connection = sqlite3.connect(f"file:{self.home / 'state.db'}?mode=ro", uri=True)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

    @property
    def session(self) -> str:
        """The session that began last."""
        return self.rows("SELECT id FROM sessions ORDER BY started_at DESC, rowid DESC LIMIT 1")[0][0]

    def gate(self) -> Gate:
        """A gate on the plugin's own store."""
        return Gate.open(self.data_dir, Settings())

    def log(self) -> str:
        file = self.home / "logs" / "agent.log"
        return file.read_text() if file.exists() else ""
