"""`python -m bench memory`: time and peak memory of shortening logs, each in a process of its own."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

SIZES_MB = (5, 10, 25, 50)
LIMIT_SECONDS = 10.0
LIMIT_MB = 700

WORKER = """
import json, resource, sys, time
from turngate.compress import shorten
size = int(sys.argv[1]) * 1_000_000
row = "2026-11-30T08:{:02d}:{:02d}.{:03d}Z INFO worker-{} request {:08x} took {} ms, cache {}\\n"
rows, total, n = [], 0, 0
while total < size:
    rows.append(row.format(n // 60 % 60, n % 60, n * 7 % 1000, n % 16, n * 2654435761 % 2**32, n * 31 % 977,
        "hit" if n % 3 else "miss") if n % 9973 else "2026-11-30 ERROR upstream %d refused\\n" % n)
    total += len(rows[-1]); n += 1
text = "".join(rows)
del rows
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
short = shorten(text)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"bytes": len(text), "lines": n, "seconds": seconds, "before_mb": before / 1024,
    "peak_mb": peak / 1024, "shown_bytes": len(short.text), "reason": short.reason}))
"""


def measure(size_mb: int) -> dict[str, float]:
    ran = subprocess.run(
        [sys.executable, "-c", WORKER, str(size_mb)], capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench memory", description=__doc__)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    rows = [measure(size) for size in SIZES_MB]
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        print(f"{'MB':>6s} {'lines':>9s} {'seconds':>8s} {'s/MB':>7s} {'peak MB':>8s} {'shown bytes':>12s}")
        for size, row in zip(SIZES_MB, rows, strict=True):
            print(
                f"{size:6d} {row['lines']:9,d} {row['seconds']:8.2f} {row['seconds'] / size:7.3f} "
                f"{row['peak_mb']:8.0f} {row['shown_bytes']:12,d} {row['reason']}"
            )
        growth = (rows[-1]["seconds"] / SIZES_MB[-1]) / (rows[0]["seconds"] / SIZES_MB[0])
        print(f"time per MB at {SIZES_MB[-1]} MB is {growth:.2f} times that at {SIZES_MB[0]} MB")
        print(f"limits at {SIZES_MB[-1]} MB: {LIMIT_SECONDS:.0f} s and {LIMIT_MB} MB")
    return 0 if rows[-1]["seconds"] <= LIMIT_SECONDS and rows[-1]["peak_mb"] <= LIMIT_MB else 1
