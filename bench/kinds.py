"""`python -m bench kinds DIR`: what outputs are taken for, by folder, and how long it takes to tell."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from time import thread_time_ns

from bench import corpus
from turngate.compress import shorten
from turngate.compress.call import Call, sample_of
from turngate.compress.kinds import json as json_kind
from turngate.compress.kinds import recognise, view
from turngate.compress.terminal import resolve

ROUNDS = 9
#: The target is for outputs of 10 kB; an output is looked at up to this size.
MOST_BYTES = 10_000


def microseconds(text: str) -> float:
    """The least time of several that it took to tell the kind of the first 10 kB of `text`."""
    data = text.encode("utf-8", "surrogatepass")[:MOST_BYTES]
    return min(_once(data) for _ in range(ROUNDS))


def _once(data: bytes) -> float:
    start = thread_time_ns()
    sample = sample_of(resolve(data), Call())
    if not json_kind.recognise(sample) and not view.is_view(data):
        recognise(sample)
    return (thread_time_ns() - start) / 1_000


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench kinds", description=__doc__)
    parser.add_argument("corpus", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    table: dict[str, Counter[str]] = defaultdict(Counter)
    times: list[float] = []
    for sample in corpus.outputs(args.corpus):
        table[sample.kind][shorten(sample.text, least_chars=0).kind] += 1
        times.append(microseconds(sample.text))
    times.sort()
    figures = {"median_us": median(times), "p95_us": times[int(0.95 * len(times))]}
    if args.json:
        print(json.dumps({"kinds": table, **figures}, indent=1))
        return 0
    names = sorted({name for row in table.values() for name in row})
    print(f"{'':20s}" + "".join(f"{name:>10s}" for name in names))
    for folder, row in sorted(table.items()):
        print(f"{folder:20s}" + "".join(f"{row[name] or '':>10}" for name in names))
    print(f"\nrecognition: {figures['median_us']:.0f} µs median, {figures['p95_us']:.0f} µs P95, up to 10 kB")
    return 0
