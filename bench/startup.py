"""`python -m bench startup`: start against a bare interpreter, and the size installed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

RUNS = 15
#: What pip itself puts into a fresh environment.
NOT_OURS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import turngate": ["-c", "import turngate"],
    "turngate --help": ["-m", "turngate", "--help"],
}
#: What a newcomer must not wait or pay for.
LIMITS_MS = {"import turngate": 100, "turngate --help": 300}
LIMIT_MB = 60


def start_ms(arguments: list[str], python: str = sys.executable) -> float:
    """Median milliseconds of a process that runs `arguments`; the first, which may compile, is left out."""
    times = []
    for _ in range(RUNS + 1):
        start = perf_counter()
        subprocess.run([python, *arguments], capture_output=True, check=True)
        times.append((perf_counter() - start) * 1000)
    return median(times[1:])


def installed_mb() -> dict[str, float]:
    """Megabytes by package of a fresh environment that holds only the core, largest first."""
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", str(root)], check=True, capture_output=True)
        site = next(Path(folder).glob("lib/python*/site-packages"))
        sizes = {path.name: _mb(path) for path in site.iterdir() if not path.name.startswith(NOT_OURS)}
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1]))


def _mb(path: Path) -> float:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files) / 1e6


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench startup", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-install", action="store_true", help="leave out the size of an installation")
    args = parser.parse_args(argv)
    times = {name: start_ms(command) for name, command in COMMANDS.items()}
    sizes = {} if args.no_install else installed_mb()
    if args.json:
        print(json.dumps({"ms": times, "mb": sizes, "total_mb": sum(sizes.values())}, indent=1))
    else:
        show(times, sizes)
    late = any(times[name] > limit for name, limit in LIMITS_MS.items())
    return 1 if late or sum(sizes.values()) > LIMIT_MB else 0


def show(times: dict[str, float], sizes: dict[str, float]) -> None:
    bare = times["python -c pass"]
    for name, ms in times.items():
        print(f"{name:18s} {ms:7.0f} ms  {ms - bare:+6.0f} ms over a bare start, {ms / bare:4.1f} times it")
    if sizes:
        largest = ", ".join(f"{name} {mb:.1f}" for name, mb in list(sizes.items())[:5])
        print(f"core installation  {sum(sizes.values()):7.1f} MB  (largest: {largest})")
