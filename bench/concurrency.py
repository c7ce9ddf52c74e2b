"""Processes and threads on one store: no error, nothing lost, every id its own content.

python -m bench concurrency [--processes 8] [--threads 4] [--seconds 30] [--collide]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.writers import content, open_store

ROOT = Path(__file__).resolve().parent.parent


def run(path: Path, processes: int, threads: int, seconds: float, *, collide: bool) -> tuple[int, list[str]]:
    """How many puts were answered, and what went wrong."""
    mode = "collide" if collide else "plain"
    commands = [
        [
            sys.executable,
            "-m",
            "bench.writers",
            "load",
            str(path),
            str(seed),
            mode,
            str(seconds),
            str(threads),
        ]
        for seed in range(1, processes + 1)
    ]
    writers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for command in commands]
    lines = [line for writer in writers for line in writer.communicate()[0].splitlines()]
    wrong = [line for line in lines if line.startswith("error")]
    wrong += [f"a process ended with {writer.returncode}" for writer in writers if writer.returncode]
    handed = [line.split() for line in lines if not line.startswith("error")]
    store = open_store(str(path), mode)
    owner: dict[str, bytes] = {}
    for own, number, ref in handed:
        data = content(int(own), int(number))
        if store.get(ref, session=f"s{own}").data != data or owner.setdefault(ref, data) != data:
            wrong.append(f"{ref} is not content {number} of {own}")
    wrong += [problem.what for problem in store.check()]
    store.close()
    return len(handed), wrong


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench concurrency", description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--collide", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        count, wrong = run(path, options.processes, options.threads, options.seconds, collide=options.collide)
    print(
        f"concurrency: {options.processes} processes x {options.threads} threads, {options.seconds:.0f} s: "
        f"{count:,} puts ({count / options.seconds:,.0f}/s), {len(wrong)} errors"
    )
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
