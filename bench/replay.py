"""What recorded sessions would have cost: every trajectory of a corpus, all arms, all providers.

python -m bench replay DIR [--probes FILE] [--sessions]

DIR holds `trajectories/`, and `questions/probes.jsonl` unless --probes names another file. Every request of
every session is judged by the oracle, and must extend the bytes of the one before. At last the sessions are
strung together into one of 2,000 messages, whose replay is timed.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import cycle
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import orjson

from turngate.replay.arms import ARMS, Sheet
from turngate.replay.costs import Cost, offers
from turngate.replay.probes import Probe, read_probes
from turngate.replay.rules import PROVIDERS
from turngate.replay.run import Outcome, replay
from turngate.replay.transcripts import parse, read_all
from turngate.settings import Settings
from turngate.wire import violations

if TYPE_CHECKING:
    from turngate.replay.recorded import Transcript

#: Messages of the session that is timed, and how often it is replayed; the best time counts.
LONG_MESSAGES, ROUNDS = 2_000, 3
LIMIT_SECONDS = 2.0
#: Sessions whose last request is longer are held to a limit, each; shorter ones are reported.
LARGE_TOKENS = 20_000
ALLOWED_SHARE = 0.01


class Totals:
    """Sums over sessions, by arm."""

    def __init__(self) -> None:
        self.costs = {arm: [Cost() for _ in PROVIDERS] for arm in ARMS}
        self.counts = {
            arm: dict.fromkeys(("breaks", "wrong", "faults", "retrieved", "lost", "changed", "input"), 0)
            for arm in ARMS
        }

    def add(self, outcome: Outcome) -> None:
        costs = self.costs[outcome.arm]
        self.costs[outcome.arm] = [a + b for a, b in zip(costs, outcome.costs, strict=True)]
        counts = self.counts[outcome.arm]
        for name in ("breaks", "retrieved", "lost"):
            counts[name] += getattr(outcome, name)
        counts["faults"] += sum(outcome.faults.values())
        counts["wrong"] += len(outcome.wrong)
        counts["changed"] += len(outcome.changed)
        counts["input"] += sum(turn.input_tokens for turn in outcome.turns)

    def share(self, arm: str, provider: int) -> float:
        """Cost against arm `none`."""
        return self.costs[arm][provider].dollars / self.costs["none"][provider].dollars - 1


def every_request(transcript: Transcript) -> tuple[int, int]:
    """Requests of arm `turngate` that a provider would refuse, and that do not extend the one before."""
    refused = broken = 0
    for epoch in transcript.epochs:
        arm = ARMS["turngate"](Sheet(transcript.wire), Settings())
        sent: list[bytes] = []
        for index in epoch.answers:
            kept, new = arm.request(epoch.entries, index)
            now = sent[:kept] + [shown.raw for shown in new]
            broken += now[: len(sent)] != sent
            refused += bool(violations([orjson.loads(raw) for raw in now], transcript.wire))
            sent = now
    return refused, broken


def table(title: str, totals: Totals) -> None:
    print(f"\n{title}")
    names = "".join(f"{provider:>18s}" for provider in PROVIDERS)
    print(f"{'arm':10s}{'input tokens':>14s}{names}   breaks  refused  had back  lost")
    for arm in ARMS:
        counts = totals.counts[arm]
        cells = "".join(
            f"{f'${cost.dollars:.2f} {totals.share(arm, i):+.1%}':>18s}"
            for i, cost in enumerate(totals.costs[arm])
        )
        rest = f"{counts['breaks']:9,d}{counts['wrong']:9,d}{counts['retrieved']:10,d}{counts['lost']:6,d}"
        print(f"{arm:10s}{counts['input']:14,d}{cells}{rest}")


class Run:
    """All sessions of a corpus, one by one."""

    def __init__(self, probes: tuple[Probe, ...]) -> None:
        self.probes = probes
        self.whole, self.large = Totals(), Totals()
        #: Size in tokens, name and shares of each session.
        self.rows: list[tuple[int, str, list[float]]] = []
        self.faults: list[str] = []
        self.requests = self.refused = self.broken = 0

    def take(self, transcript: Transcript) -> None:
        mine = [probe for probe in self.probes if probe.of(transcript.name)]
        found = replay(transcript, ARMS, offers(transcript.model, PROVIDERS), probes=mine)
        outcomes = {outcome.arm: outcome for outcome in found}
        none, ours = outcomes["none"], outcomes["turngate"]
        size = none.turns[-1].input_tokens
        for outcome in found:
            self.whole.add(outcome)
            if size > LARGE_TOKENS:
                self.large.add(outcome)
        shares = [a.dollars / b.dollars - 1 for a, b in zip(ours.costs, none.costs, strict=True)]
        self.rows.append((size, "/".join(Path(transcript.name).parts[-2:]), shares))
        refused, broken = every_request(transcript)
        self.refused, self.broken = self.refused + refused, self.broken + broken
        self.requests += transcript.requests

    def over(self) -> list[str]:
        """Large sessions that cost more than is allowed."""
        return [row(r) for r in self.rows if r[0] > LARGE_TOKENS and max(r[2]) > ALLOWED_SHARE]

    def show(self, *, sessions: bool) -> None:
        print(f"replay: {len(self.rows)} sessions, {self.requests:,} requests, {len(self.probes)} probes")
        table("all sessions", self.whole)
        table(f"sessions over {LARGE_TOKENS:,} tokens", self.large)
        if sessions:
            print("\nturngate against none, by session: " + ", ".join(PROVIDERS))
            print("\n".join(map(row, sorted(self.rows, reverse=True))))
        print(f"\nrequests of arm turngate that a provider would refuse: {self.refused}")
        print(
            f"requests of arm turngate that break the prefix: {self.broken}; faults: {self.faults_inside()}"
        )
        limit = f"{LARGE_TOKENS:,} tokens that cost over {ALLOWED_SHARE:.0%} more"
        print(f"sessions over {limit}: {len(self.over())}")
        for line in (*self.over(), *self.faults):
            print(line)

    def faults_inside(self) -> int:
        return sum(counts["faults"] for counts in self.whole.counts.values())

    def passed(self) -> bool:
        cheaper = all(self.whole.share("turngate", i) < 0 for i in range(len(PROVIDERS)))
        return cheaper and not (self.refused or self.broken or self.over() or self.faults_inside())


def long_session(folder: Path) -> bytes:
    """Sessions one after the other, over again if need be, as one; calls get ids of their own."""
    messages: list[dict[str, Any]] = []
    paths = sorted(folder.rglob("*.json"))
    for number, path in enumerate(cycle(paths)):
        for message in orjson.loads(path.read_bytes())["messages"]:
            for call in message.get("tool_calls") or ():
                call["id"] = f"{number}-{call['id']}"
            if "tool_call_id" in message:
                message["tool_call_id"] = f"{number}-{message['tool_call_id']}"
            if message["role"] != "system" or not messages:
                messages.append(message)
        if len(messages) >= LONG_MESSAGES:
            end = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
            return orjson.dumps({"messages": messages[: end + 1]})
    raise SystemExit(f"no session below {folder}; give a folder in the corpus format")


def speed(folder: Path) -> float:
    """Print how long reading and replaying a long session takes, best of some rounds; processor time."""
    body = long_session(folder)
    replay_long(body)  # what is loaded once is loaded
    read, replayed, messages = min(
        (replay_long(body) for _ in range(ROUNDS)), key=lambda times: sum(times[:2])
    )
    print(
        f"\n{messages:,} messages, {len(body) / 1e6:.1f} MB, all arms: read in {read:.2f} s, replayed in "
        f"{replayed:.2f} s of processor time, best of {ROUNDS}; load {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} processors"
    )
    return read + replayed


def replay_long(body: bytes) -> tuple[float, float, int]:
    """Seconds of reading and of replaying, and the number of messages."""
    start = process_time()
    (transcript,) = parse(body, "long.json", lambda _: None)
    middle = process_time()
    replay(transcript, ARMS, offers(transcript.model, PROVIDERS))
    return middle - start, process_time() - middle, len(transcript.epochs[0].entries)


def row(session: tuple[int, str, list[float]]) -> str:
    size, name, shares = session
    return f"{name:58s}{size:8,d} tokens  " + "  ".join(f"{share:+7.1%}" for share in shares)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench replay", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--probes", type=Path)
    parser.add_argument("--sessions", action="store_true", help="a line for each session")
    options = parser.parse_args(argv)
    run = Run(read_probes(options.probes or options.corpus / "questions" / "probes.jsonl"))
    start, cpu = perf_counter(), process_time()
    for transcript in read_all(
        [options.corpus / "trajectories"], lambda error: run.faults.append(str(error))
    ):
        run.take(transcript)
    run.show(sessions=options.sessions)
    print(f"{perf_counter() - start:.1f} s, {process_time() - cpu:.1f} s of processor time, judging included")
    fast = speed(options.corpus / "trajectories") < LIMIT_SECONDS
    return 0 if run.passed() and fast else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
