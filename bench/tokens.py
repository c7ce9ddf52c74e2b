"""`python -m bench tokens DIR`: error of the token estimate against exact o200k counts, and its speed."""

from __future__ import annotations

import argparse
import json
from hashlib import sha256
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from bench import corpus
from bench.counts import Counts
from turngate.tokens import estimate


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench tokens", description=__doc__)
    parser.add_argument("corpus", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    figures = measure(args.corpus)
    if args.json:
        print(json.dumps(figures, indent=1))
        return 0
    print(f"{'':18s} {'texts':>6s} {'median error':>13s} {'95th':>7s} {'ms per 1,000 tokens':>20s}")
    for name, row in figures.items():
        print(
            f"{name:18s} {row['texts']:6d} {100 * row['median']:12.1f}% {100 * row['p95']:6.1f}% "
            f"{row['ms_per_1k_tokens']:20.4f}"
        )
    return 0


def measure(root: Path) -> dict[str, dict[str, float]]:
    """Relative error over all texts and over the halves: the costs were fitted on half A only."""
    counts = Counts()
    groups: dict[str, list[tuple[float, float]]] = {}
    for sample in chain(corpus.outputs(root), corpus.results(root)):
        exact = counts(sample.text)
        if not exact:
            continue
        start = perf_counter()
        guess = estimate(sample.text)
        speed = (perf_counter() - start) * 1e6 / exact
        digest = sha256(sample.text.encode("utf-8", "surrogatepass")).digest()
        half = "half B" if digest[-1] % 2 else "half A (fitted)"
        source = "results" if sample.tool else "single outputs"
        for name in ("all", half, source):
            groups.setdefault(name, []).append((abs(guess / exact - 1), speed))
    counts.save()
    return {name: _summary(rows) for name, rows in sorted(groups.items())}


def _summary(rows: list[tuple[float, float]]) -> dict[str, float]:
    errors = [error for error, _ in rows]
    return {
        "texts": len(rows),
        "median": median(errors),
        "p95": quantiles(errors, n=20)[-1],
        "ms_per_1k_tokens": median(speed for _, speed in rows),
    }
