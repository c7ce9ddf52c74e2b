"""A session of 40 tool calls on the real agent, with and without the plugin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import hermes_commands
from hermes_agent import TOOLSETS, Agent
from hermes_wire import breaks
from stub import Request, Stub, call, say

from turngate import tokens

CALLS = 40
#: So large that neither arm is compacted.
CONTEXT_TOKENS = 1_000_000
TASK = "The tests fail, the native part does not build, the worker had failures. Find out why."


@dataclass(frozen=True)
class Arm:
    """What one of the two sent."""

    requests: list[Request]
    answer: str

    @property
    def bytes(self) -> int:
        return sum(len(request.raw) for request in self.requests)

    @property
    def tokens(self) -> int:
        """Estimate over all requests; a text is estimated once."""
        known: dict[str, int] = {}
        total = 0
        for request in self.requests:
            for message in (*request.messages, request.body["tools"]):
                text = str(message)
                known[text] = known.get(text) or tokens.estimate(text)
                total += known[text]
        return total

    @property
    def breaks(self) -> int:
        return breaks(self.requests)


def run(folder: Path, *, plugin: bool, calls_per_request: int = 1) -> Arm:
    """Play the session; the host asks for a number of calls at once."""
    stub = Stub()
    try:
        config = {"plugins": {"enabled": ["turngate"] if plugin else []}}
        agent = Agent(folder, stub, config=config | {"model": {"context_length": CONTEXT_TOKENS}})
        commands = hermes_commands.install(agent.user, folder / "programs")[:CALLS]
        assert len(commands) == CALLS
        batches = [commands[at : at + calls_per_request] for at in range(0, CALLS, calls_per_request)]
        stub.play(
            *(call(*(("terminal", {"command": c}) for c in batch)) for batch in batches), say("found it")
        )
        with agent.process() as process:
            answer = process.turn(TASK, toolsets=TOOLSETS)["answer"]
        return Arm(stub.requests, answer)
    finally:
        stub.close()


def both(folder: Path, *, calls_per_request: int = 1) -> tuple[Arm, Arm]:
    """Without and with the plugin, at the same time."""
    with ThreadPoolExecutor(2) as pool:
        arms = [
            pool.submit(run, folder / name, plugin=plugin, calls_per_request=calls_per_request)
            for name, plugin in (("without", False), ("with", True))
        ]
        return arms[0].result(), arms[1].result()
