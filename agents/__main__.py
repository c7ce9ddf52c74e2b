"""`python -m agents [NAME …]`: the real agents, unmodified and headless, with and without the proxy.

They are installed from the npm registry into `.agents` (about 1 GB) and talk to a stub upstream of ours, so
no account is needed. For each: does it finish as it does without us, how many bytes reach the upstream, how
many requests break the prefix, is a retrieval in a stream unseen, does its own session log still replay.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "proxy"))

from upstream import Upstream, listening  # noqa: E402

from agents import task  # noqa: E402
from turngate.wire import Wire, request_prefix, violations  # noqa: E402

HOME = ROOT / ".agents"
PACKAGES = (
    "@anthropic-ai/claude-code@2.1.197",
    "@openai/codex@0.171.0",
    "opencode-ai@1.18.33",
    "@google/gemini-cli@0.61.0",
)
SECONDS = 240


@dataclass(frozen=True, slots=True)
class Agent:
    """How an agent is run."""

    name: str
    wire: Wire
    first: Callable[[str], list[str]]
    """Command line of a session, given the upstream's base URL."""
    again: Callable[[str], list[str]]
    """The same, resumed."""
    env: Callable[[str], dict[str, str]]
    tools: task.Tools
    files: tuple[tuple[str, str], ...] = ()
    """What must stand in its home: path and content."""


def _text(key: str, **more: Any) -> Callable[[str], dict[str, Any]]:
    return lambda what: {key: what, **more}


def _opencode(base: str) -> dict[str, str]:
    models = {"stub-model": {"name": "stub", "tool_call": True, "limit": {"context": 400000, "output": 8000}}}
    options = {"baseURL": f"{base}/v1", "apiKey": "k"}
    provider = {
        "stub": {"npm": "@ai-sdk/openai-compatible", "name": "stub", "options": options, "models": models}
    }
    config = {"provider": provider, "model": "stub/stub-model", "autoupdate": False, "share": "disabled"}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _codex(base: str) -> list[str]:
    provider = f'{{name="stub", base_url="{base}/v1", wire_api="responses", env_key="STUB_KEY"}}'
    return ["-c", f"model_providers.stub={provider}", "-c", 'model_provider="stub"', "-m", "gpt-5.5"]


CODEX = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
AGENTS = (
    Agent(
        "claude",
        "anthropic",
        lambda _: ["claude", "-p", task.FIRST, "--allowedTools", "Bash", "Read"],
        lambda _: ["claude", "-p", task.SECOND, "--continue", "--allowedTools", "Bash", "Read"],
        lambda base: {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "k", "IS_SANDBOX": "1"},
        task.Tools("Bash", _text("command", description="run it"), "Read", _text("file_path")),
    ),
    Agent(
        "codex",
        "responses",
        lambda base: ["codex", "exec", *_codex(base), *CODEX, task.FIRST],
        lambda base: ["codex", "exec", *_codex(base), *CODEX, "resume", "--last", task.SECOND],
        lambda _: {"STUB_KEY": "k"},
        task.Tools("exec_command", _text("cmd"), "exec_command", lambda path: {"cmd": f"cat {path}"}),
    ),
    Agent(
        "opencode",
        "chat",
        lambda _: ["opencode", "run", "-m", "stub/stub-model", task.FIRST],
        lambda _: ["opencode", "run", "-m", "stub/stub-model", "--continue", task.SECOND],
        _opencode,
        task.Tools("bash", _text("command", description="run it"), "read", _text("filePath")),
    ),
    Agent(
        "gemini",
        "gemini",
        lambda _: ["gemini", "--yolo", "--skip-trust", "-m", "gemini-3-pro", "-p", task.FIRST],
        lambda _: [
            "gemini",
            "--yolo",
            "--skip-trust",
            "-m",
            "gemini-3-pro",
            "--resume",
            "latest",
            "-p",
            task.SECOND,
        ],
        lambda base: {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": base},
        task.Tools("run_shell_command", _text("command"), "read_file", _text("file_path")),
        (
            (".gemini/settings.json", '{"security":{"auth":{"selectedType":"gemini-api-key"}}}'),
            (".gemini/projects.json", '{"projects":{}}'),
        ),
    ),
)


@dataclass(slots=True)
class Outcome:
    """What a session came to."""

    codes: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    requests: int = 0
    sent_bytes: int = 0
    breaks: int = 0
    invalid: int = 0
    """Faults in all requests for which the provider would refuse them."""
    worst: int = 0
    """The most such faults in one request."""
    streamed: bool = False
    """Whether every request in which a retrieval stands answered asks for a stream."""
    rounds: int = 0
    """Requests in which a retrieval stands answered."""
    seen: bool = False
    """Whether our tool's name is in what the agent printed, or keeps."""
    why: str = ""


def install() -> None:
    if not all((HOME / "node_modules" / ".bin" / agent.name).exists() for agent in AGENTS):
        HOME.mkdir(exist_ok=True)
        line = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(HOME), *PACKAGES]
        subprocess.run(line, check=True)


async def session(agent: Agent, *, proxied: bool) -> Outcome:
    """One session, resumed once, in a home and a working directory of its own."""
    with tempfile.TemporaryDirectory() as name:
        home, work = Path(name) / "home", Path(name) / "work"
        home.mkdir()
        work.mkdir()
        task.set_up(work)
        for place, content in agent.files:
            (home / place).parent.mkdir(parents=True, exist_ok=True)
            (home / place).write_text(content)
        model = task.Model(lambda value: _tools(agent, value), work, retrieve=proxied)
        stub = Upstream(model)
        async with listening(stub.app()) as base:
            proxy, url = await _proxy(base, Path(name)) if proxied else (None, base)
            outcome = Outcome()
            try:
                for line in (agent.first(url), agent.again(url)):
                    code, said = await _run(agent, line, url, home, work)
                    outcome.codes.append(code)
                    outcome.said.append(said)
            finally:
                if proxy is not None:
                    proxy.terminate()
                    await proxy.wait()
        _judge(agent, model, outcome)
        answered = [
            _streams(body, path)
            for body, path in zip(stub.bodies, stub.paths, strict=True)
            if b"own_agent" in body
        ]
        outcome.streamed = bool(answered) and all(answered)
        outcome.seen = any(task.OWN in said for said in outcome.said) or _kept(home)
        return outcome


def _tools(agent: Agent, value: Any) -> task.Tools:
    offered = task.names(value, agent.wire)
    if agent.name == "codex" and "exec_command" not in offered:
        shell = next((name for name in ("shell_command", "shell") if name in offered), "shell")
        args: Callable[[str], dict[str, Any]] = (
            _text("command") if shell == "shell_command" else lambda what: {"command": ["bash", "-lc", what]}
        )
        return task.Tools(shell, args, shell, lambda path: args(f"cat {path}"))
    return agent.tools


async def _proxy(base: str, folder: Path) -> tuple[asyncio.subprocess.Process, str]:
    options = [
        "--port", "0",
        "--openai-upstream", f"{base}/v1", "--anthropic-upstream", base, "--gemini-upstream", base,
    ]  # fmt: skip
    line = [sys.executable, "-m", "turngate", "--data-dir", str(folder / "data"), "proxy", *options]
    proxy = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE)
    assert proxy.stdout is not None
    said = (await proxy.stdout.readline()).decode()
    return proxy, said.rpartition(" ")[2].strip()


async def _run(agent: Agent, line: Sequence[str], url: str, home: Path, work: Path) -> tuple[int, str]:
    env = {
        "PATH": f"{HOME / 'node_modules' / '.bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "TERM": "dumb",
        "CI": "1",
        "NO_COLOR": "1",
        **agent.env(url),
    }
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *line,
        env=env,
        cwd=work,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        out, _ = await asyncio.wait_for(child.communicate(), SECONDS)
    except TimeoutError:
        child.kill()
        out, _ = await child.communicate()
        return -1, out.decode("utf-8", "replace")
    return child.returncode or 0, out.decode("utf-8", "replace")


def _judge(agent: Agent, model: task.Model, outcome: Outcome) -> None:
    before = b""
    for body in model.bodies:
        found = violations(body, agent.wire)
        outcome.invalid += len(found)
        outcome.worst = max(outcome.worst, len(found))
        now = request_prefix(body, agent.wire)
        if not now.startswith(before):
            outcome.breaks += 1
            outcome.why = outcome.why or _where(before, now)
        before = now
        outcome.requests += 1
        outcome.sent_bytes += len(body)
        outcome.rounds += b"own_agent" in body
        if found and not outcome.why:
            outcome.why = found[0].text


def _streams(body: bytes, path: str) -> bool:
    return "streamGenerateContent" in path or json.loads(body).get("stream") is True


def _where(before: bytes, now: bytes) -> str:
    at = next(
        (n for n, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now))
    )
    return f"{before[max(0, at - 60) : at + 60]!r} | {now[max(0, at - 60) : at + 60]!r}"


def _kept(home: Path) -> bool:
    """Whether the agent keeps anything of a call of ours."""
    files = (path for path in home.rglob("*") if path.is_file() and path.stat().st_size < 50_000_000)
    return any(b"own_agent" in path.read_bytes() for path in files)


def _finishes(outcome: Outcome) -> bool:
    return outcome.codes == [0, 0] and task.LAST in outcome.said[0] and task.AGAIN in outcome.said[1]


def main(wanted: Sequence[str]) -> int:
    if shutil.which("npm") is None:
        print("npm is missing; the agents come from its registry")
        return 1
    install()
    print(
        "agent     finishes       requests  bytes to upstream   breaks      invalid  retrieval  seen  resumed"
    )
    bad = 0
    for agent in AGENTS:
        if wanted and agent.name not in wanted:
            continue
        alone, ours = (asyncio.run(session(agent, proxied=proxied)) for proxied in (False, True))
        share = ours.sent_bytes / max(1, alone.sent_bytes) - 1
        pairs = (
            f"{_finishes(alone)!s:5s} / {_finishes(ours)!s:5s}",
            f"{alone.requests:3d} / {ours.requests:3d}",
            f"{alone.sent_bytes:9d} {share:+7.1%}",
            f"{alone.breaks:3d} / {ours.breaks:3d}",
            f"{alone.invalid:3d} / {ours.invalid:3d}",
            f"{('streamed' if ours.streamed else 'whole') if ours.rounds else 'no':9s}",
            f"{'YES' if ours.seen else 'no':4s}",
            "yes" if ours.codes[1:] == [0] else "NO",
        )
        print(f"{agent.name:9s} {'  '.join(pairs)}", flush=True)
        for label, outcome in (("without", alone), ("with", ours)):
            if not _finishes(outcome) or outcome.why:
                print(f"  {label}: codes {outcome.codes}; {outcome.why[:600]}")
                for said in outcome.said:
                    print("   ", said.strip()[-400:].replace("\n", "\n    "))
        # What the agent itself rewrites or gets wrong (Gemini CLI does, when it resumes) is not ours.
        fine = _finishes(ours) and ours.breaks <= alone.breaks and ours.streamed and not ours.seen
        fine = fine and ours.worst <= alone.worst
        bad += not fine or share > -0.5
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
