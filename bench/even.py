"""`python -m bench even DIR`: of values drawn evenly over each file, how many are in view.

Probes favour the head of a file; these don't. A file is cut into equal slices, and of each slice one value is
taken: a leaf of a JSON text, a word of any other.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import arms, corpus
from bench.corpus import Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.arms import Outcome
    from bench.corpus import Sample

SLICES = 30
THIRDS = ("first", "middle", "last")
#: Tries in a slice before it is left out.
TRIES = 12
SHORTEST_VALUE_CHARS, LONGEST_VALUE_CHARS = 4, 200
_WORD = re.compile(r"[^\s\"'<>(){}\[\],;|=]{4,200}")


def values(text: str, seed: int = 5) -> Iterator[tuple[int, str]]:
    """Pairs of a third (0 to 2) and a value in it."""
    rng = random.Random(seed)
    leaves = list(_leaves(text))
    if leaves:
        yield from _drawn(rng, len(leaves), lambda at: _value(leaves[at]))
    else:
        yield from _drawn(rng, len(text), lambda at: _word(text, at))


def _drawn(rng: random.Random, size: int, value_at: Callable[[int], str]) -> Iterator[tuple[int, str]]:
    for number in range(min(SLICES, size)):
        low, high = number * size // SLICES, max(number * size // SLICES + 1, (number + 1) * size // SLICES)
        found = next(filter(None, (value_at(rng.randrange(low, high)) for _ in range(TRIES))), "")
        if found:
            yield 3 * number // min(SLICES, size), found


def _word(text: str, at: int) -> str:
    found = _WORD.search(text, at)
    return _value(found[0]) if found else ""


def _value(text: str) -> str:
    return text if SHORTEST_VALUE_CHARS <= len(text) <= LONGEST_VALUE_CHARS else ""


def _leaves(text: str) -> Iterator[str]:
    """The strings and numbers of a JSON text or of JSON lines, as spelled where they can be."""
    if text.lstrip()[:1] not in {"{", "["}:
        return
    try:
        stack: list[Any] = [json.loads(text, parse_float=str, parse_int=str)]
    except ValueError:
        try:
            rows = [
                json.loads(row, parse_float=str, parse_int=str) for row in text.split("\n") if row.strip()
            ]
        except ValueError:
            return
        stack = rows[::-1]
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            stack.extend(reversed(list(item.values()) if isinstance(item, dict) else item))
        elif isinstance(item, str):
            yield json.dumps(item, ensure_ascii=False)[1:-1]


class Tally:
    """In view and drawn, by third."""

    def __init__(self) -> None:
        self.shown, self.drawn = [0, 0, 0], [0, 0, 0]

    def add(self, third: int, *, shown: bool) -> None:
        self.drawn[third] += 1
        self.shown[third] += shown

    def figures(self) -> dict[str, float]:
        thirds = {name: s / d for name, s, d in zip(THIRDS, self.shown, self.drawn, strict=True) if d}
        return {"drawn": sum(self.drawn), "in_view": sum(self.shown) / max(1, sum(self.drawn)), **thirds}

    def __str__(self) -> str:
        figures = self.figures()
        thirds = "".join(
            f"{100 * figures[name]:8.1f}" if name in figures else f"{'–':>8s}" for name in THIRDS
        )
        return f"{figures['drawn']:7.0f}{100 * figures['in_view']:8.1f}{thirds}"


def measure(
    samples: list[tuple[Sample, list[tuple[int, str]]]], arm: Callable[[Sample], Outcome]
) -> dict[str, Tally]:
    """Of one arm: a tally for each folder, for all JSON, for all else, and for all."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    for sample, drawn in samples:
        shown = arm(sample).shown
        # A log may open with a bracket, too.
        is_json = any(True for _ in _leaves(sample.text))
        for third, value in drawn:
            seen = Probe("", "", "", "", value).in_view(shown)
            for name in (sample.kind, "all JSON" if is_json else "all other", "all"):
                tallies[name].add(third, shown=seen)
    return tallies


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench even", description=__doc__)
    parser.add_argument("corpus", type=Path, metavar="DIR")
    parser.add_argument("--budget", choices=("default", "wide"), default="default")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    samples = [(sample, list(values(sample.text))) for sample in corpus.outputs(args.corpus)]
    ways = {"turngate": arms.turngate(args.budget), "first and last": arms.head_tail}
    found = {name: measure(samples, arm) for name, arm in ways.items()}
    if args.json:
        print(json.dumps({n: {k: t.figures() for k, t in ts.items()} for n, ts in found.items()}, indent=1))
        return 0
    head = f"{'drawn':>7s}{'shown %':>8s}" + "".join(f"{name:>8s}" for name in THIRDS)
    print(f"{'':20s}{head}   first and last:{head}")
    ours, ends = found.values()
    for name in (*sorted(set(ours) - {"all", "all JSON", "all other"}), "all JSON", "all other", "all"):
        print(f"{name:20s}{ours[name]}{'':18s}{ends[name]}")
    return 0
