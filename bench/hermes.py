"""The Hermes plugin: what a session of the real agent sends with it, what its hooks and its loading cost.

The agent runs in an environment of its own, which is built on the first run (tests/hermes).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

from turngate.cli.demo import load_recording, recorded_results
from turngate.compress import shorten
from turngate.gate import Gate
from turngate.hermes import hooks
from turngate.hermes.host import Host, using
from turngate.hermes.result import output_of
from turngate.settings import Settings
from turngate.store import SqliteStore, to_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "hermes"))

import hermes_environment
from hermes_agent import Agent
from hermes_session import CALLS, both
from stub import Stub

T = TypeVar("T")

#: Turns and loads that a median is taken of.
TURNS, LOADS = 60, 9
#: Messages of the history that the observing hook is shown.
HISTORY_MESSAGES = 400
SESSION = "bench"
_LOAD = """
import sys, time
sys.argv[1:] = {argv!r}
import {module}
from hermes_cli.plugins import PluginManager, PluginManifest
manager = PluginManager()
ours = PluginManifest(name="turngate", key="turngate", source="entrypoint", path="turngate.hermes.plugin")
begun = time.perf_counter()
manager._load_plugin(ours)
print(time.perf_counter() - begun)
"""
#: What each loads of the host, with which arguments.
_PROGRAMS = {"the interactive program": ("cli", []), "one question (-z)": ("run_agent", ["-z", "hi"])}


def main(_: list[str]) -> int:
    hermes_environment.ensure()
    whole_session()
    hook_overhead()
    loading()
    return 0


def whole_session() -> None:
    """One request a call; the tokens are estimates."""
    with tempfile.TemporaryDirectory() as folder:
        without, with_plugin = both(Path(folder))
    print(f"a session of {CALLS} tool calls on the real agent, all requests together:")
    for name in ("bytes", "tokens"):
        before, after = getattr(without, name), getattr(with_plugin, name)
        print(f"  {name:7s}{before:12,} -> {after:12,}  {1 - after / before:.1%} lower")
    print(f"  breaks of the prefix: {without.breaks} without, {with_plugin.breaks} with")


def hook_overhead() -> None:
    """Per call and in ms: all of it; shortening and the disk's commit by themselves; what is left."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder) / "data")
        plain = SqliteStore(Path(folder) / "plain.sqlite3")
        with Gate.open(settings=settings) as gate, using(Host(gate)):
            for number, result in enumerate(recorded_results(load_recording())):
                rows.append(_one_result(plain, number, result.tool, result.args, result.text))
        plain.close()
        _print_overhead(rows)
        for name, (milliseconds, commits) in _other_hooks(Path(folder)).items():
            beside = f" ms, its two commits {commits:.2f}" if commits else " ms"
            print(f"  {name:26s}{milliseconds:8.2f}{beside}")


def _one_result(
    plain: SqliteStore, number: int, tool: str, args: str, text: str
) -> tuple[float, float, float]:
    """Times of the hook, of the shortening and of a commit of the same size."""
    output = output_of(text)
    call = {"tool_name": tool, "args": json.loads(args), "session_id": SESSION, "tool_call_id": f"c{number}"}
    hook, shown = _timed(lambda: hooks.transform_tool_result(**call, result=text))
    shortening, _ = _timed(lambda: shorten(output.text, tool=tool, args=args, failed=output.failed))
    commit = 0.0
    if shown is not None:
        commit, _ = _timed(lambda: plain.put(to_bytes(output.text), session=SESSION, turn=0))
    return hook, shortening, commit


def _print_overhead(rows: list[tuple[float, float, float]]) -> None:
    rest = median(hook - shortening - commit for hook, shortening, commit in rows)
    hook, shortening = median(row[0] for row in rows), median(row[1] for row in rows)
    commit = median(row[2] for row in rows if row[2])
    print("hooks, medians:")
    print(f"  {'transform_tool_result':26s}{hook:8.2f} ms, shortening {shortening:.2f}, commit {commit:.2f}")
    print(f"  beyond these two          {rest:8.2f} ms (median of the differences)")


def _other_hooks(folder: Path) -> dict[str, tuple[float, float]]:
    """Of each hook its time, and that of the commits that it asks for by themselves."""
    history = [{"role": "user", "content": f"message {number} " * 40} for number in range(HISTORY_MESSAGES)]
    calls = {
        "pre_llm_call": lambda n: hooks.pre_llm_call(session_id="o", turn_id=f"o:t:{n}", user_message="go"),
        "post_llm_call": lambda n: hooks.post_llm_call(session_id="o", turn_id=f"o:t:{n}"),
        "pre_api_request": lambda n: hooks.pre_api_request(
            session_id="o", request_messages=[*history, {"role": "user", "content": f"new {n}"}]
        ),
        "post_api_request": lambda _: hooks.post_api_request(session_id="o", usage={"prompt_tokens": 9}),
        "transform_terminal_output": lambda _: hooks.transform_terminal_output(
            output="x" * 9_000, returncode=0
        ),
    }
    with Gate.open(settings=Settings(data_dir=folder / "other")) as gate, using(Host(gate)):
        times = {
            name: [_timed(lambda n=n, act=act: act(n))[0] for n in range(TURNS)]
            for name, act in calls.items()
        }
    plain = SqliteStore(folder / "turns.sqlite3")
    commits = median(_timed(lambda n=n: _turn_commits(plain, n))[0] for n in range(TURNS))
    plain.close()
    return {name: (median(each), commits * (name == "pre_llm_call")) for name, each in times.items()}


def _turn_commits(store: SqliteStore, number: int) -> None:
    store.next_turn(SESSION)
    store.save_state(SESSION, "flow", b"{}" * 500, number)


def _timed(act: Callable[[], T]) -> tuple[float, T]:
    begun = time.perf_counter()
    out = act()
    return 1_000 * (time.perf_counter() - begun), out


def loading() -> None:
    """What the host takes for loading the plugin, in a fresh process each time."""
    stub = Stub()
    try:
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(Path(folder), stub, config={"plugins": {"enabled": []}})
            for what, (module, argv) in _PROGRAMS.items():
                times = [_load_ms(agent, _LOAD.format(module=module, argv=argv)) for _ in range(LOADS)]
                print(f"loading the plugin, {what}: {median(times):.0f} ms (median of {LOADS})")
    finally:
        stub.close()


def _load_ms(agent: Agent, code: str) -> float:
    done = subprocess.run(
        [str(hermes_environment.BIN / "python"), "-c", code],
        env=agent.environ,
        cwd=agent.work,
        capture_output=True,
        text=True,
        check=True,
    )
    return 1_000 * float(done.stdout.split()[-1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
