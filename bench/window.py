"""The window's promises on random histories, beside its peers, and on recorded sessions.

python -m bench window [DIR] [--cases N] [--peers N] [--seed N]

Without DIR the needles are left out. `--peers N` compares N histories with LangChain and symfonic-core, which
are installed into an environment of their own under .bench/ when it is missing.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
from collections import Counter
from multiprocessing import Pool
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Any

from bench.histories import broken, valid
from bench.memory_store import MemoryStore
from bench.needle import HEAD, WINDOWS, run
from bench.window_rules import Trial
from turngate.settings import WindowSettings
from turngate.window import Sizes, Window, trim
from turngate.window.cut import Target, plan
from turngate.window.units import units
from turngate.wire import violations

PEERS = ("langchain==1.5.2", "langchain-core==1.8.3", "symfonic-core==9.12.0")
HOME = Path(".bench/window-peers")
LEAST_SHARE = 0.95
MOST_SUMMARIES = 4
MOST_PLANNING_MS = 20.0
MOST_RATIO = 2.3


def one(seed: int) -> tuple[int, int, int, list[str]]:
    """One history: its seed, compactions, requests over the limit, and everything that is wrong.

    Nine in ten are short and fitted before one or two calls; the others grow through several compactions.
    """
    rng = Random(seed)
    wire = ("chat", "anthropic")[rng.randint(0, 1)]
    bound = wire == "anthropic" and rng.randint(0, 1) == 1
    whole, short = rng.randint(0, 3) > 0, rng.randint(0, 9) > 0
    turns = 2 if short else 8
    messages = (
        valid(rng, wire, thinking=bool(rng.randint(0, 1)), most_turns=turns)
        if whole
        else broken(rng, wire, most_turns=turns)
    )
    trial = Trial(rng, messages, wire, bound=bound, most_calls=1 if short else 6)
    try:
        faults = list(trial.faults())
    except Exception as fault:  # noqa: BLE001 - a bench reports whatever is wrong
        faults = [f"raised {fault!r}"]
    return seed, trial.compactions, trial.cannot, faults


def cases(number: int, seed: int) -> bool:
    """Random histories, on every processor."""
    start, compactions, cannot = perf_counter(), 0, 0
    wrong: Counter[str] = Counter()
    example: dict[str, tuple[int, str]] = {}
    with Pool(os.cpu_count()) as pool:
        for at, more, over, faults in pool.imap_unordered(one, range(seed, seed + number), chunksize=50):
            compactions, cannot = compactions + more, cannot + over
            for fault in faults:
                wrong[fault[:24]] += 1
                example.setdefault(fault[:24], (at, fault))
    print(
        f"{number:,} random histories: {compactions:,} compactions, {cannot:,} requests that must stay over "
        f"their limit, {sum(wrong.values())} faults; {perf_counter() - start:.0f} s"
    )
    for kind, count in wrong.most_common():
        print(f"  {count} x {example[kind][1][:100]} (seed {example[kind][0]})")
    return not wrong


def peers(number: int, seed: int) -> bool:
    """The share of valid histories that come out invalid, for each peer and for us."""
    home = _installed()
    histories = []
    for at in range(seed, seed + number):
        rng = Random(at)
        messages = valid(rng, "chat")
        histories.append((messages, rng.randint(1, max(2, len(messages))), rng.randint(20, 3_000)))
    lines = "".join(
        json.dumps({"messages": messages, "keep": keep, "tokens": tokens}) + "\n"
        for messages, keep, tokens in histories
    )
    worker = [str(home / "bin" / "python"), str(Path(__file__).with_name("window_worker.py"))]
    answer = subprocess.run(worker, input=lines, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise SystemExit(f"the peers failed:\n{answer.stderr[-2000:]}")
    bad: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for (messages, keep, tokens), line in zip(histories, answer.stdout.splitlines(), strict=True):
        outs = {name: _picked(messages, kept) for name, kept in json.loads(line).items()}
        outs["turngate trim, by tokens"] = trim(messages, tokens, wire="chat").messages
        outs["turngate trim, by messages"] = trim(messages, max_messages=keep, wire="chat").messages
        outs["turngate window"] = _fitted(messages, keep, tokens)
        newest = [message for message in messages if message["role"] == "user"][-1]
        for name, out in outs.items():
            bad[name] += bool(violations(out, "chat"))
            lost[name] += newest not in out
    print(f"\n{number:,} valid histories (Chat Completions), cut:")
    print(f"{'':44s}{'invalid':>9s}{'newest user message gone':>27s}")
    for name in outs:
        print(f"{name:44s}{bad[name] / number:9.2%}{lost[name] / number:27.2%}")
    return not any(bad[name] + lost[name] for name in outs if name.startswith("turngate"))


def _picked(messages: list[Any], kept: list[int]) -> list[Any]:
    return [{"role": "user", "content": "summary"} if at < 0 else messages[at] for at in kept]


def _fitted(messages: list[Any], keep: int, tokens: int) -> list[Any]:
    store = MemoryStore()
    settings = WindowSettings(
        context_window_tokens=tokens, max_history_share=1.0, answer_tokens=0, keep_recent_messages=keep
    )
    return list(Window("s", lambda: store, settings, wire="chat").fit(messages, force=True).messages)


def _installed() -> Path:
    ready = HOME / "ready"
    if not ready.exists():
        print(f"building {HOME} with {', '.join(PEERS)} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
        subprocess.run([str(HOME / "bin" / "python"), "-m", "pip", "install", "-q", *PEERS], check=True)
        ready.touch()
    return HOME.absolute()


def forty_turns() -> bool:
    """The seed's defaults, 40 turns of 2,000-character messages, a model that summarises."""
    asked, notices = [], []
    seed = WindowSettings(
        max_history_share=0.5, chars_per_token=4, keep_recent_messages=10, soft_threshold_tokens=4_000,
        answer_tokens=0,
    )  # fmt: skip
    store = MemoryStore()

    def summariser(ask: Any) -> str:
        asked.append(ask)
        return "a summary of the turns so far"

    window = Window("s", lambda: store, seed, summariser=summariser, listeners=[notices.append])
    messages: list[Any] = []
    readable = True
    for turn in range(40):
        messages.append({"role": "user", "content": f"{turn} ".ljust(2_000, "u")})
        out = list(window.fit(messages).messages)
        readable = readable and out[-min(10, len(messages)) :] == messages[-10:]
        messages.append({"role": "assistant", "content": f"{turn} ".ljust(2_000, "a")})
    made = [n for n in notices if getattr(n, "method", "none") != "none"]
    gains = ", ".join(f"{n.before_tokens:,} to {n.after_tokens:,}" for n in made)
    print(f"\n40 turns at the seed's defaults: {len(asked)} calls of the summariser ({gains}); ", end="")
    print(f"the last 10 messages {'stayed readable' if readable else 'did NOT stay readable'}")
    progress = all(n.after_tokens <= 0.95 * n.before_tokens for n in made)
    return readable and progress and len(asked) <= MOST_SUMMARIES


def planning() -> bool:
    """How long planning takes, and whether it is linear. Sizes of messages are known, as in a session."""
    print("\nplanning, by processor time, median of 25:")
    taken = {number: _plan_ms(number) for number in (1_000, 2_000, 4_000)}
    for number, (cold, whole, cut) in taken.items():
        print(
            f"  {number:,} messages: {whole:.1f} ms (of it the cut {cut:.1f}); the first time, with every "
            f"message measured, {cold:.0f} ms"
        )
    ratio = taken[2_000][1] / taken[1_000][1]
    print(f"  1,000 to 2,000 messages: {ratio:.2f} times as long")
    return taken[2_000][1] < MOST_PLANNING_MS and ratio <= MOST_RATIO


def _plan_ms(number: int) -> tuple[float, float, float]:
    messages, sizes = long_history(number), Sizes()
    start = process_time()
    parts = units(messages, "chat", sizes)
    cold = (process_time() - start) * 1e3
    total = sum(unit.tokens for unit in parts)
    target = Target(total / 2, total / 4, 2_000)
    whole = _median_ms(lambda: plan(units(messages, "chat", sizes), target, lambda unit: unit.tokens / 2))
    cut = _median_ms(lambda: plan(parts, target, lambda unit: unit.tokens / 2))
    return cold, whole, cut


def _median_ms(act: Any) -> float:
    times = []
    gc.disable()  # as timeit does: what is collected is mostly this program's
    for _ in range(25):
        start = process_time()
        act()
        times.append(process_time() - start)
    gc.enable()
    return median(times) * 1e3


def long_history(number: int) -> list[dict[str, Any]]:
    """Turns with two parallel calls each, 500 to 2,000 characters a message."""
    out: list[dict[str, Any]] = []
    while len(out) < number:
        at = len(out)
        calls = [
            {
                "id": f"c{at}_{k}",
                "type": "function",
                "function": {"name": "read", "arguments": f'{{"path":"{at}"}}'},
            }
            for k in range(2)
        ]
        out.append({"role": "user", "content": f"question {at} " * 40})
        out.append({"role": "assistant", "content": None, "tool_calls": calls})
        out += [
            {"role": "tool", "tool_call_id": call["id"], "content": f"line {at} of it\n" * 130}
            for call in calls
        ]
        out.append({"role": "assistant", "content": f"answer {at} " * 60})
    return out[:number]


def needles(root: Path) -> bool:
    """Facts of recorded sessions after compaction: as they came, and shortened on arrival."""
    good = True
    for gate in (False, True):
        print(f"\nrecorded sessions, results {'shortened on arrival' if gate else 'as they came'}:\n{HEAD}")
        for window in WINDOWS:
            found = run(root, window, gate=gate)
            good = good and found.share >= LEAST_SHARE and not found.invalid
            print(found.row())
            for probe in found.missed[:3]:
                print(f"    not found: {probe.id} in {probe.file}: {probe.question[:80]}")
    return good


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench window", description=__doc__)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--peers", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    good = [cases(options.cases, options.seed), forty_turns(), planning()]
    if options.peers:
        good.append(peers(options.peers, options.seed))
    if options.corpus:
        good.append(needles(options.corpus))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
