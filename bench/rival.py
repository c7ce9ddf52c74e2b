"""`python -m bench rival DIR`: headroom-ai, first-and-last and turngate on the same texts, and the ratios."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from bench import arms, corpus, even, trajectories
from bench.arms import Outcome
from bench.counts import Counts
from bench.fidelity import Row
from turngate.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.corpus import Sample
    from turngate.settings import Budget

    Arm = Callable[[Sample], Outcome]

#: With the extra that its proxy needs, which brings the detection of types that its users get.
RIVAL = "headroom-ai[proxy]==0.42.0"
FOLDER = Path(".bench")
#: It chooses by the name of some tools (Read, Grep, …); this one is none of them.
NEUTRAL_TOOL = "run_tool"


def home_of(package: str) -> Path:
    """The rival's own environment, built when it is missing (500 to 900 MB)."""
    home = FOLDER / re.sub(r"\W+", "-", package)
    ready = home / "ready"
    if not ready.exists():
        print(f"building {home} with {package} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", package]
        built = subprocess.run(pip, capture_output=True, text=True, check=False)
        if built.returncode:
            raise SystemExit(f"cannot install {package}:\n{built.stderr}")
        ready.touch()
    return home.absolute()


def environment(home: Path, scratch: str) -> dict[str, str]:
    """No network, no telemetry, no cache on disk, and a store that starts empty.

    Its o200k ranks come from the litellm wheel that it depends on; without them it counts by an estimate.
    """
    ranks = next(home.glob("lib/python*/site-packages/litellm/litellm_core_utils/tokenizers"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADROOM")}
    return kept | {
        "HOME": scratch,
        "XDG_CACHE_HOME": scratch,
        "HEADROOM_OFFLINE": "1",
        "HEADROOM_TELEMETRY": "off",
        "HEADROOM_TELEMETRY_DISABLED": "1",
        "HEADROOM_UPDATE_CHECK": "off",
        "HEADROOM_COMPRESSION_CACHE_DISK": "0",
        "HF_HUB_OFFLINE": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "TIKTOKEN_CACHE_DIR": str(ranks),
    }


class Headroom:
    """An arm that asks a worker in the rival's environment."""

    def __init__(self, package: str = RIVAL) -> None:
        self.faults = 0
        self._scratch = tempfile.TemporaryDirectory()
        home = home_of(package)
        self._worker = subprocess.Popen(
            [str(home / "bin" / "python"), str(Path(__file__).with_name("headroom_worker.py").absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(home, self._scratch.name),
            cwd=self._scratch.name,
            text=True,
        )

    def __call__(self, sample: Sample) -> Outcome:
        if not sample.text:
            return Outcome("", 0.0)
        asked = {"text": sample.text, "tool": sample.tool or NEUTRAL_TOOL, "args": sample.args or "{}"}
        self._worker.stdin.write(json.dumps(asked) + "\n")
        self._worker.stdin.flush()
        answer = json.loads(self._worker.stdout.readline())
        self.faults += "fault" in answer
        return Outcome(answer["shown"], answer["seconds"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.stdin.close()
        self._worker.wait()
        self._scratch.cleanup()


COLUMNS = {
    "saved": "saved_share",
    "mean of files": "mean_saved_share",
    "must in view": "must",
    "needed in view": "needed",
    "any in view": "any",
    "all in view": "all",
}


def cell(figures: dict[str, Any], key: str) -> str:
    if key.endswith("share"):
        return f"{100 * figures[key]:.1f} %"
    shown, total = figures[f"{key}_in_view"], figures[f"{key}_probes"]
    return f"{100 * shown / total:.1f} %" if total else "–"


@dataclass
class Beside:
    """All arms on the same samples."""

    rows: dict[str, Row]
    #: Of each sample that both looked at, how many times as long as turngate headroom took.
    ratios: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        figures = {name: row.figures() for name, row in self.rows.items()}
        return figures | {"headroom_time_ratio_median": median(self.ratios) if self.ratios else 0.0}


def run(samples: Iterable[Sample], ways: dict[str, Arm], counts: Counts) -> Beside:
    """Each sample by one arm after the other, so that what slows the machine for a while slows them all."""
    found = Beside({name: Row() for name in ways})
    for sample in samples:
        outcomes = {name: arm(sample) for name, arm in ways.items()}
        for name, outcome in outcomes.items():
            found.rows[name].count(sample, outcome, counts)
        ours, theirs = outcomes["turngate"].seconds, outcomes["headroom"].seconds
        if ours and theirs:
            found.ratios.append(theirs / ours)
    return found


def show(title: str, found: Beside) -> None:
    print(f"\n{title}\n{'':16s}" + "".join(f"{name:>16s}" for name in COLUMNS))
    figures = found.figures()
    for name in found.rows:
        print(f"{name:16s}" + "".join(f"{cell(figures[name], key):>16s}" for key in COLUMNS.values()))
    ours, theirs = figures["turngate"], figures["headroom"]
    print(
        f"headroom takes {figures['headroom_time_ratio_median']:.1f} times as long (median over files), "
        f"{_ratio(theirs, ours, 'ms_per_1k_tokens_overall'):.1f} over all tokens; turngate takes "
        f"{ours['ms_per_1k_tokens_median']:.2f} ms per 1,000 tokens (median of files), "
        f"{ours['ms_per_1k_tokens_overall']:.2f} over all, and saves "
        f"{_ratio(ours, theirs, 'saved_share'):.1f} times as many tokens"
    )


def drawn_evenly(samples: Iterable[Sample], ways: dict[str, Arm], *, quiet: bool) -> dict[str, Any]:
    """Of values drawn evenly over each file: how many are in view, by third of the file."""
    drawn = [(sample, list(even.values(sample.text))) for sample in samples]
    tallies = {name: even.measure(drawn, arm) for name, arm in ways.items()}
    if not quiet:
        head = f"{'drawn':>7s}{'shown %':>8s}" + "".join(f"{third:>8s}" for third in even.THIRDS)
        print(f"\nvalues drawn evenly over each file\n{'':28s}{head}")
        for name, found in tallies.items():
            for part in ("all JSON", "all other", "all"):
                print(f"{name:16s}{part:12s}{found[part]}")
    return {name: {k: t.figures() for k, t in found.items()} for name, found in tallies.items()}


def in_sessions(budget: Budget) -> dict[str, Arm]:
    """The arms for results of conversations: ours through sessions, with a store; and each by itself."""
    named = {"turngate": budget, "turngate, wide": "wide"}
    sessions = {name: trajectories.session_arm(Settings(budget=each))[0] for name, each in named.items()}
    return sessions | {"turngate, alone": arms.turngate(budget)}


def _ratio(over: dict[str, Any], under: dict[str, Any], key: str) -> float:
    return over[key] / under[key] if under[key] else float("inf")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench rival", description=__doc__)
    parser.add_argument("corpus", type=Path, metavar="DIR")
    parser.add_argument("--budget", choices=("default", "wide"), default="default")
    parser.add_argument("--only", choices=("outputs", "results"))
    parser.add_argument("--kinds", default="", help="only these kinds of single outputs, comma-separated")
    parser.add_argument("--package", default=RIVAL, help="what to install, such as 'headroom-ai==0.42.0'")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    counts, answer = Counts(), {}
    kinds = frozenset(filter(None, args.kinds.split(",")))
    sets = {"single outputs": lambda: corpus.outputs(args.corpus, kinds)}
    if args.only == "results":
        sets.clear()
    if args.only != "outputs" and not kinds:
        sets["results in trajectories"] = lambda: corpus.results(args.corpus)
    with Headroom(args.package) as headroom:
        ways = {
            "turngate": arms.turngate(args.budget),
            "turngate, wide": arms.turngate("wide"),
            "headroom": headroom,
            "first and last": arms.head_tail,
        }
        for title, samples in sets.items():
            here = ways if title == "single outputs" else ways | in_sessions(args.budget)
            found = run(samples(), here, counts)
            answer[title] = found.figures()
            if not args.json:
                show(title, found)
        if "single outputs" in sets:
            answer["drawn evenly"] = drawn_evenly(sets["single outputs"](), ways, quiet=args.json)
    counts.save()
    if args.json:
        print(json.dumps(answer | {"headroom_faults": headroom.faults}, indent=1))
    elif headroom.faults:
        print(f"headroom raised on {headroom.faults} texts, which count as unchanged")
    return 0
