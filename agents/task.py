"""The task that a stub sets the real agents: which tools its model asks for, in which order."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.wire import Wire

#: Stands in both prompts, so that the stub tells the conversation from titles and the like.
TASK = "TASK-7781"
FIRST = f"{TASK}: find out which disk is full. Use the shell."
SECOND = f"{TASK}: and which one was full before?"
LAST = "The disk is full, as the logs say."
AGAIN = "It was the other disk."
OWN = "turngate_retrieve"
_MARKER = re.compile(r"<<<CCR:([0-9a-f]{16})\|")
_CALL = re.compile(r"\bcall_agent_(\d+)\b")

GENERATOR = """\
import random, sys
number = int(sys.argv[1])
chance = random.Random(number)
states = ["done", "again", "late"]
for line in range(420):
    print(f"2026-01-01T12:{line // 60:02d}:{line % 60:02d}Z INFO worker-{chance.randrange(20)} job "
          f"{chance.randrange(10**6)} took {chance.randrange(900)} ms state={chance.choice(states)}")
print(f"ERROR run {number}: disk {number} is full")
"""


@dataclass(frozen=True, slots=True)
class Tools:
    """How an agent's tools are called."""

    shell: str
    shell_args: Callable[[str], dict[str, Any]]
    read: str
    read_args: Callable[[str], dict[str, Any]]


def log(number: int) -> tuple[str, str]:
    return ("shell", f"python3 generate.py {number}")


#: Each step is what the model asks for at once.
STEPS: tuple[tuple[tuple[str, str], ...], ...] = (
    (log(1),),
    (("read", "notes.md"),),
    (log(2), log(3)),
    (("shell", "python3 generate.py 4 && exit 3"),),
    (log(5),),
    (("shell", "ls -la"),),
    (log(6), log(7)),
    (log(8),),
    (log(9),),
    (log(10),),
)
#: Steps of the resumed session.
MORE: tuple[tuple[tuple[str, str], ...], ...] = ((log(11),), (log(12),))


def set_up(folder: Path) -> None:
    """What the agent finds in its working directory."""
    (folder / "generate.py").write_text(GENERATOR)
    (folder / "notes.md").write_text(
        "# Notes\n\n" + "\n".join(f"- disk {n} is watched" for n in range(20)) + "\n"
    )


class Model:
    """The stub's model: it knows from a request alone what comes next."""

    def __init__(self, tools_of: Callable[[Any], Tools], folder: Path, *, retrieve: bool) -> None:
        self._tools_of = tools_of
        self._folder = folder
        self._retrieve = retrieve
        #: Raw bodies of the conversation itself.
        self.bodies: list[bytes] = []

    def __call__(self, body: bytes) -> Any:
        try:
            value = json.loads(body)
        except ValueError:
            return ("status", 200, b"{}", {"Content-Type": "application/json"})
        said = json.dumps({key: each for key, each in value.items() if key != "tools"})
        if TASK not in said or not value.get("tools"):
            return [("text", "Full disk")]
        self.bodies.append(body)
        asked = {int(number) for number in _CALL.findall(said)}
        resumed = SECOND in said
        steps = (*STEPS, *(MORE if resumed else ()))
        done = 0
        for at, step in enumerate(steps):
            if not {10 * at + n for n in range(len(step))} <= asked:
                break
            done = at + 1
        marker = _MARKER.search(said)
        if self._retrieve and marker and "own_agent" not in said and done >= 5:
            asks = {"hash": marker[1], "lines": "101-103"}
            return [("text", "Let me see the hidden part. "), ("call", "own_agent_1", OWN, asks)]
        if done == len(steps):
            return [("text", AGAIN if resumed else LAST)]
        tools = self._tools_of(value)
        calls = [
            ("call", f"call_agent_{10 * done + n}", *self._call(tools, kind, what))
            for n, (kind, what) in enumerate(steps[done])
        ]
        return [("text", f"Step {done}. "), *calls]

    def _call(self, tools: Tools, kind: str, what: str) -> tuple[str, dict[str, Any]]:
        if kind == "read":
            return tools.read, tools.read_args(str(self._folder / what))
        return tools.shell, tools.shell_args(what)


def names(value: Any, wire: Wire) -> list[str]:
    """Names of the tools that a request offers."""
    tools = value.get("tools") or []
    if wire == "gemini":
        return [each["name"] for tool in tools for each in tool.get("functionDeclarations", ())]
    if wire == "chat":
        return [tool["function"]["name"] for tool in tools]
    return [str(tool.get("name", tool.get("type"))) for tool in tools]
