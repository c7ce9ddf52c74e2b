"""Kill a writer at random points: every marker it handed out must resolve, byte for byte.

    python -m bench crash [--kills 200] [--collide]

A fault of the machine itself cannot be had here; what `kill -9` leaves behind is what the page cache has.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.writers import content, open_store

ROOT = Path(__file__).resolve().parent.parent
#: A kill falls between the start of Python and some hundred writes.
LONGEST_SECONDS = 0.8


def run(path: Path, kills: int, *, collide: bool) -> tuple[int, list[str]]:
    """How many markers were handed out, and what is wrong with them."""
    mode, chance = "collide" if collide else "plain", random.Random(7)
    handed: list[tuple[int, int, str]] = []
    for seed in range(1, kills + 1):
        command = [sys.executable, "-m", "bench.writers", "crash", str(path), str(seed), mode]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(chance.uniform(0, LONGEST_SECONDS))
            writer.kill()
            lines = (first + writer.stdout.read()).decode().splitlines(keepends=True)
        whole = [line.split() for line in lines if line.endswith("\n")]
        handed += [(seed, int(number), ref) for number, ref in whole]
    return len(handed), _wrong(path, handed, mode)


def _wrong(path: Path, handed: list[tuple[int, int, str]], mode: str) -> list[str]:
    store = open_store(str(path), mode)
    wrong = []
    for seed, number, ref in handed:
        try:
            same = store.get(ref, session=f"s{seed}").data == content(seed, number)
        except Exception as error:  # noqa: BLE001 - any of them is what is looked for
            wrong.append(f"{ref}: {error}")
        else:
            wrong += [] if same else [f"{ref}: other bytes"]
    wrong += [problem.what for problem in store.check()]
    store.drain()
    wrong += [] if store.stats().pending == 0 else ["the index did not catch up"]
    store.close()
    return wrong


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--collide", action="store_true")
    options = parser.parse_args(argv)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        count, wrong = run(Path(folder) / "store.db", options.kills, collide=options.collide)
    print(
        f"crash: {options.kills} kills, {count:,} markers handed out, {len(wrong)} wrong "
        f"({time.perf_counter() - start:.0f} s)"
    )
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
