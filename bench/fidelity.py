"""`python -m bench fidelity DIR`: what is saved, in view, found again, and whether it is true."""

from __future__ import annotations

import argparse
import json
import resource
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from bench import arms, corpus, faithful, recovery, trajectories
from bench.counts import Counts
from turngate.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.arms import Outcome
    from bench.corpus import Probe, Sample

    Arm = Callable[[Sample], Outcome]


@dataclass
class Row:
    """Sums over the samples of one kind."""

    before_tokens: int = 0
    after_tokens: int = 0
    shares: list[float] = field(default_factory=list)
    #: Milliseconds per 1,000 tokens, of each sample that was looked at.
    speeds: list[float] = field(default_factory=list)
    cpu_speeds: list[float] = field(default_factory=list)
    seconds: float = 0.0
    #: By class: probes, and those in view.
    probes: dict[str, list[int]] = field(default_factory=lambda: {c: [0, 0] for c in corpus.CLASSES})
    changed: int = 0

    def count(self, sample: Sample, outcome: Outcome, counts: Counts) -> None:
        before = counts(sample.text)
        after = before if outcome.shown == sample.text else counts(outcome.shown)
        self.before_tokens += before
        self.after_tokens += after
        if before:
            self.shares.append(1 - after / before)
        if outcome.seconds and before:
            self.speeds.append(outcome.seconds * 1e6 / before)
            self.cpu_speeds.append(outcome.cpu_seconds * 1e6 / before)
        self.seconds += outcome.seconds
        self.changed += outcome.shown != sample.text
        for probe in sample.probes:
            counts = self.probes[probe.cls]
            counts[0] += 1
            counts[1] += probe.in_view(outcome.view)

    def figures(self) -> dict[str, Any]:
        every = [sum(column) for column in zip(*self.probes.values(), strict=True)]
        return {
            "samples": len(self.shares),
            "changed": self.changed,
            "tokens": self.before_tokens,
            "saved_share": 1 - self.after_tokens / max(1, self.before_tokens),
            "mean_saved_share": mean(self.shares) if self.shares else 0.0,
            "ms_per_1k_tokens_median": median(self.speeds) if self.speeds else 0.0,
            "cpu_ms_per_1k_tokens_median": median(self.cpu_speeds) if self.cpu_speeds else 0.0,
            "ms_per_1k_tokens_overall": self.seconds * 1e6 / max(1, self.before_tokens),
            **{f"{name}_in_view": counts[1] for name, counts in self.probes.items()},
            **{f"{name}_probes": counts[0] for name, counts in self.probes.items()},
            "all_in_view": every[1],
            "all_probes": every[0],
        }


@dataclass
class Run:
    """All of one arm over one list of samples."""

    rows: dict[str, Row]
    total: Row
    missed: list[tuple[Sample, Probe]]
    #: Samples whose shortened form is not true to the original, and how.
    untrue: list[tuple[str, str]]
    changed: list[tuple[Sample, Outcome]]


def run(samples: Iterable[Sample], arm: Arm, counts: Counts, *, check: bool = True) -> Run:
    found = Run(defaultdict(Row), Row(), [], [], [])
    for sample in samples:
        outcome = arm(sample)
        for row in (found.rows[sample.kind], found.total):
            row.count(sample, outcome, counts)
        found.missed += [(sample, probe) for probe in sample.probes if not probe.in_view(outcome.view)]
        if outcome.shown != sample.text:
            found.changed.append((sample, outcome))
        if check and outcome.body is not None:
            faults = faithful.check(sample.text, outcome.body, kind=outcome.kind)
            found.untrue += [(sample.name, fault) for fault in faults]
    return found


HEAD = "{:20s} {:>5s} {:>9s} {:>6s} {:>6s} {:>9s} {:>9s} {:>9s} {:>7s} {:>6s}".format(
    "", "files", "tokens", "saved", "mean", "must", "needed", "any", "all", "ms/1k"
)


def line(name: str, row: Row) -> str:
    f = row.figures()
    cells = [_share(f"{c}", f) for c in corpus.CLASSES]
    return (
        f"{name:20s} {f['samples']:5d} {f['tokens']:9,d} {100 * f['saved_share']:5.1f}% "
        f"{100 * f['mean_saved_share']:5.1f}% {cells[0]:>9s} {cells[1]:>9s} {cells[2]:>9s} "
        f"{_percent(f['all_in_view'], f['all_probes']):>7s} {f['ms_per_1k_tokens_median']:6.3f}"
    )


def _share(name: str, figures: dict[str, Any]) -> str:
    shown, total = figures[f"{name}_in_view"], figures[f"{name}_probes"]
    return f"{_percent(shown, total)}/{total}" if total else "–"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def show(title: str, found: Run) -> None:
    print(f"\n{title}\n{HEAD}")
    for name in sorted(found.rows):
        print(line(name, found.rows[name]))
    print(line("all", found.total))
    figures = found.total.figures()
    print(
        f"{figures['changed']} of {figures['samples']} shortened; "
        f"{figures['ms_per_1k_tokens_overall']:.3f} ms per 1,000 tokens over all, "
        f"{figures['ms_per_1k_tokens_median']:.3f} median of files "
        f"({figures['cpu_ms_per_1k_tokens_median']:.3f} processor time); "
        f"faithfulness violations: {len(found.untrue)} in {len({name for name, _ in found.untrue})} results"
    )
    for name, fault in found.untrue[:10]:
        print(f"  {name}: {fault}")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(found: Run) -> dict[str, Any]:
    return {
        "kinds": {name: row.figures() for name, row in sorted(found.rows.items())},
        "all": found.total.figures(),
        "faithfulness_violations": found.untrue,
    }


def write_missed(path: Path, runs: Iterable[Run]) -> None:
    rows = [
        {"file": sample.name, "class": probe.cls, "qtype": probe.qtype, "question": probe.question}
        | {"answer": probe.answer, "id": probe.id}
        for found in runs
        for sample, probe in found.missed
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench fidelity", description=__doc__)
    parser.add_argument("corpus", type=Path, metavar="DIR")
    parser.add_argument("--budget", choices=("default", "wide"), default="default")
    parser.add_argument("--kinds", default="", help="only these kinds of single outputs, comma-separated")
    parser.add_argument("--only", choices=("outputs", "results"), help="single outputs or trajectory results")
    parser.add_argument("--misses", type=Path, help="write the probes that are not in view to this file")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-check", action="store_true", help="leave out the faithfulness check")
    parser.add_argument("--no-store", action="store_true", help="leave out storing, search and retrieve")
    parser.add_argument(
        "--together", action="store_true", help="store single outputs in one session, not each in its own"
    )
    return parser.parse_args(argv)


def runs_of(args: argparse.Namespace, arm: Arm, counts: Counts) -> dict[str, Run]:
    kinds = frozenset(filter(None, args.kinds.split(",")))
    samples: dict[str, Iterable[Sample]] = {}
    if args.only != "results":
        samples["outputs"] = corpus.outputs(args.corpus, kinds)
    if args.only != "outputs" and not kinds:
        samples["results"] = corpus.results(args.corpus)
    if "results" in samples:
        samples["alone"] = corpus.results(args.corpus)
    sessions, faults = trajectories.session_arm(Settings(budget=args.budget))
    ways = {"results": sessions}
    runs = {
        name: run(some, ways.get(name, arm), counts, check=not args.no_check)
        for name, some in samples.items()
    }
    if "results" in runs:
        runs["results"].untrue += faults
    counts.save()
    return runs


TITLES = {
    "outputs": "single outputs",
    "results": "results in trajectories, as a session shows them one after the other (time with the store's)",
    "alone": "results in trajectories, each by itself",
}


def main(argv: list[str]) -> int:
    args = arguments(argv)
    runs = runs_of(args, arms.turngate(args.budget), Counts())
    peak = peak_mb()
    kept = {} if args.no_store else {name: found for name, found in runs.items() if name != "alone"}
    back = {name: _recover(name, found, args) for name, found in kept.items()}
    if args.misses:
        write_missed(args.misses, runs.values())
    if args.json:
        answer = {name: report(found) for name, found in runs.items()}
        for name, found in back.items():
            answer[name]["recovery"] = found.figures()
        print(json.dumps(answer | {"peak_mb": peak}, indent=1, ensure_ascii=False))
    else:
        for name, found in runs.items():
            show(TITLES[name], found)
            if name in back:
                recovery.show(back[name], found.total.before_tokens)
        print(f"\npeak memory {peak:,.0f} MB before storing")
    untrue = any(found.untrue for found in runs.values())
    return 1 if untrue or any(found.lost for found in back.values()) else 0


def _recover(name: str, found: Run, args: argparse.Namespace) -> recovery.Recovery:
    return recovery.recover(found.changed, together=args.together and name == "outputs")
