"""`turngate run`: a proxy for one command, gone when the command is, or when anybody of them is killed."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from turngate.errors import ProxyError

if TYPE_CHECKING:
    from types import FrameType

#: Variable -> what stands behind the proxy's address in it. Official SDKs read the first one of each provider
#: (openai: OPENAI_BASE_URL; anthropic: ANTHROPIC_BASE_URL; google-genai, Gemini CLI: GOOGLE_GEMINI_BASE_URL);
#: LiteLLM and what is built on it, such as aider, read the …_API_BASE names.
BASE_URLS: Final[Mapping[str, str]] = {
    "OPENAI_BASE_URL": "/v1",
    "OPENAI_API_BASE": "/v1",
    "ANTHROPIC_BASE_URL": "",
    "ANTHROPIC_API_BASE": "",
    "GOOGLE_GEMINI_BASE_URL": "",
    "GEMINI_API_BASE": "",
}
#: What a user has set before is where requests shall go: variable -> option of `turngate proxy`.
UPSTREAMS: Final[Mapping[str, str]] = {
    "OPENAI_API_BASE": "--openai-upstream",
    "OPENAI_BASE_URL": "--openai-upstream",
    "ANTHROPIC_BASE_URL": "--anthropic-upstream",
    "GOOGLE_GEMINI_BASE_URL": "--gemini-upstream",
}
_DIED_BY_SIGNAL: Final = 128
_PR_SET_PDEATHSIG: Final = 1
_STOP_SECONDS: Final = 40


def environment(environ: Mapping[str, str], url: str) -> dict[str, str]:
    """The command's environment, with every base URL that a known agent reads."""
    out = dict(environ) | {name: url + path for name, path in BASE_URLS.items()}
    # opencode reads base URLs from its configuration only.
    given = _object(environ.get("OPENCODE_CONFIG_CONTENT", ""))
    providers = {
        "anthropic": {"options": {"baseURL": f"{url}/v1"}},
        "openai": {"options": {"baseURL": f"{url}/v1"}},
        "google": {"options": {"baseURL": f"{url}/v1beta"}},
    }
    own = given.get("provider")
    merged = given | {"provider": {**providers, **(own if isinstance(own, dict) else {})}}
    return out | {"OPENCODE_CONFIG_CONTENT": json.dumps(merged)}


def command_line(command: Sequence[str], url: str) -> list[str]:
    """The command, with options where the agent reads its base URL from those only."""
    program = PurePath(command[0]).name
    if program in {"codex", "codex.js"}:
        # Codex 0.171 takes the base URL of its built-in provider from its configuration.
        return [command[0], "-c", f'openai_base_url="{url}/v1"', *command[1:]]
    return list(command)


def upstream_options(environ: Mapping[str, str]) -> list[str]:
    """Options for the proxy from base URLs that the user had set."""
    found = {option: environ[name] for name, option in UPSTREAMS.items() if environ.get(name)}
    return [word for option, value in found.items() for word in (option, value)]


def run(command: Sequence[str], options: Sequence[str], *, before: Sequence[str] = ()) -> int:
    """Run a command behind a proxy of its own; its exit code, 128 and the signal's number if one ended it.

    Args:
        command: program and arguments.
        options: for `turngate proxy`.
        before: options that stand before the command `proxy`.

    Raises:
        ProxyError: the proxy does not start, or there is no such program.
    """
    reading, writing = os.pipe()
    line = [
        sys.executable,
        "-m",
        "turngate",
        *before,
        "proxy",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--tied",
        str(reading),
        *options,
    ]
    # The proxy must not be told to end by the terminal before the command has ended.
    proxy = subprocess.Popen(line, stdout=subprocess.PIPE, pass_fds=(reading,), start_new_session=True)  # noqa: S603
    os.close(reading)
    try:
        assert proxy.stdout is not None
        url = proxy.stdout.readline().decode().rpartition(" ")[2].strip()
        if not url.startswith("http"):
            raise ProxyError("the proxy did not start; `turngate proxy` says why")
        return _run(command_line(command, url), environment(os.environ, url))
    finally:
        os.close(writing)
        try:
            proxy.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            proxy.kill()
            proxy.wait()
        if proxy.stdout is not None:
            proxy.stdout.close()


def _run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    try:
        child = subprocess.Popen(command, env=environ, preexec_fn=_end_with_parent)  # noqa: S603, PLW1509
    except OSError as fault:
        raise ProxyError(f"cannot run {command[0]!r} ({fault.strerror}); check its name and PATH") from fault

    def forward(number: int, _: FrameType | None) -> None:
        child.send_signal(number)

    # What the terminal sends reaches the command, too; it decides what becomes of it.
    old = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGHUP)}
    old[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = child.wait()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    return code if code >= 0 else _DIED_BY_SIGNAL - code


def _end_with_parent() -> None:
    """Linux ends the command when this process is killed; elsewhere it goes on without the proxy."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
