"""`python -m bench turn`: what the injected block costs, in time and in bytes.

The floor is what any block needs at least: to join the same five texts and to count their bytes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING

from turngate import flow
from turngate.cli.demo import load_recording, recorded_results
from turngate.events import tool_event
from turngate.flow import FlowState, Item
from turngate.gate import Gate
from turngate.settings import DirectiveSettings, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.session import Session

ROUNDS, RENDERS = 7, 500
LONG_TURNS, SHORT_TURNS, TIMED_TURNS = 1_000, 10, 40
TURNS_INJECTED = 40
LIMITS = {"block_us": 100.0, "long_to_short": 1.5, "forty_to_first": 2.0}


def full_state() -> FlowState:
    """A state whose five sections are all full, in a session with full rings."""
    library = flow.discover()
    state = FlowState(directives=tuple(library.found.values())[:6], turn_counter=-1)
    for number in range(300):
        args = {"path": f"src/file{number % 90}.py", "n": number}
        tool = "write_file" if number % 3 == 0 else "read_file"
        behind = Item(f"{number:016x}", f"read_file: src/file{number % 90}.py", "40 of 900 lines")
        state = flow.observe(state, tool_event(tool, args, f"text {number}"), behind)
    state = flow.open_epoch(state)
    for number in range(4):
        state = flow.push_nudge(
            state, f"the same error came 3 times lately; find its cause: case {number}", 9
        )
        state = flow.set_task(state, f"build-{number}", "running", "step 3 of 9")
    return flow.begin_turn(state, 0)


def microseconds(act: Callable[[], object]) -> float:
    """Median time of a call, in the round least disturbed by what else the machine does."""
    rounds = []
    for _ in range(ROUNDS):
        taken = []
        for _ in range(RENDERS):
            start = perf_counter()
            act()
            taken.append(perf_counter() - start)
        rounds.append(median(taken))
    return min(rounds) * 1e6


def block_times() -> dict[str, float]:
    state = full_state()
    block = flow.build_turn_context(state)
    assert [row.outcome for row in block.report.sections] == ["kept"] * 5, block.report
    texts = [part.text for part in block.parts]
    floor = microseconds(lambda: len("\n".join(texts).encode()))
    ours = microseconds(lambda: flow.build_turn_context(state))
    return {"block_us": ours, "floor_us": floor, "block_to_floor": ours / floor, "bytes": block.report.bytes}


def one_turn(session: Session, number: int) -> str:
    """A turn with three results: two that pass, one of a command that fails."""
    session.next_turn()
    block = session.turn_block()
    session.tool_result(
        name="read_file", args={"path": f"src/file{number % 70}.py"}, text=f"x = {number}\n" * 20
    )
    session.tool_result(name="patch", args={"path": f"src/file{number % 50}.py"}, text=f"ok {number}")
    session.tool_result(
        name="terminal", args={"command": f"make t{number}"}, text=f"no rule {number}", failed=True
    )
    return block


def turn_times() -> dict[str, float]:
    """A turn late in a long session against the tenth turn of short ones, alternating.

    Lower quartiles: most of such a turn is waiting for the disk, which others use as well.
    """
    with tempfile.TemporaryDirectory() as folder, Gate.open(folder, Settings()) as gate:
        long = gate.session("long")
        for number in range(LONG_TURNS):
            one_turn(long, number)
        late, early = [], []
        for round_ in range(TIMED_TURNS):
            short = gate.session(f"short-{round_}")
            for number in range(SHORT_TURNS - 1):
                one_turn(short, number)
            for session, number, taken in ((short, SHORT_TURNS, early), (long, LONG_TURNS + round_, late)):
                start = perf_counter()
                one_turn(session, number)
                taken.append((perf_counter() - start) * 1e6)
        assert not gate.stats().faults, gate.stats().faults
    late_us, early_us = (quantiles(taken)[0] for taken in (late, early))
    return {"long_turn_us": late_us, "short_turn_us": early_us, "long_to_short": late_us / early_us}


def injected_bytes() -> dict[str, float]:
    """The recorded session's first forty turns: bytes of the first block, and of all."""
    settings = Settings(directives=DirectiveSettings())
    sizes = []
    with tempfile.TemporaryDirectory() as folder, Gate.open(folder, settings) as gate:
        session = gate.session("s")
        for result in recorded_results(load_recording()):
            if len(sizes) == TURNS_INJECTED:
                break
            session.next_turn()
            sizes.append(len(session.turn_block().encode()))
            session.tool_result(name=result.tool, args=result.args, text=result.text, call_id=result.call_id)
    return {"first_bytes": sizes[0], "forty_bytes": sum(sizes), "forty_to_first": sum(sizes) / sizes[0]}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench turn", description=__doc__)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    found = block_times() | turn_times() | injected_bytes()
    over = [name for name, limit in LIMITS.items() if found[name] > limit]
    if args.json:
        print(json.dumps(found | {"over": over}, indent=1))
    else:
        show(found)
        print("over the limit: " + ", ".join(over) if over else "all within their limits")
    return int(bool(over))


def show(found: dict[str, float]) -> None:
    print(
        f"block with five full sections ({found['bytes']:,.0f} bytes): {found['block_us']:.0f} µs, "
        f"{found['block_to_floor']:.0f} times joining and counting its texts ({found['floor_us']:.1f} µs)"
    )
    print(
        f"a whole turn, on disk: {found['long_turn_us']:,.0f} µs after {LONG_TURNS:,} turns, "
        f"{found['short_turn_us']:,.0f} µs after {SHORT_TURNS}: {found['long_to_short']:.2f} times"
    )
    print(
        f"{TURNS_INJECTED} turns inject {found['forty_bytes']:,.0f} bytes, the first alone "
        f"{found['first_bytes']:,.0f}: {found['forty_to_first']:.2f} times"
    )
