"""`python -m bench kinds DIR`: what outputs are taken for, by folder, and how long it takes to tell."""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import thread_time_ns

from bench import corpus
from turngate.compress import shorten
from turngate.compress.call import Call, sample_of
from turngate.compress.kinds import json as json_kind
from turngate.compress.kinds import recognise, view
from turngate.compress.terminal import resolve

ROUNDS = 15
#: The target is for outputs of 10 kB; an output is looked at up to this size.
MOST_BYTES = 10_000
_LINT = "mypy ruff pylint eslint lint sarif junit xml"
_TESTS = "pytest unittest go-test go-test-json cargo-test jest tap ctest actions junit"
_BUILD = "gcc clang rustc tsc javac maven msbuild cmake make cargo lint xml"
_TRACES = "python-trace java-trace js-trace dotnet-trace go-trace rust-trace ruby-trace numbered-trace"
_LOGS = "syslog journald kernel web klog logcat strace logfmt compose app json-log"
#: By folder the kinds, and behind a slash the formats, that its name admits; a folder that isn't here admits
#: any. Tools' reports may come as JSON or as XML.
RIGHT = {
    "api_json": "json",
    "app_log": f"log json trace / {_LOGS}",
    "build_compiler": f"report html / {_BUILD}",
    "cargo_rustc": "report json / rustc cargo cargo-test cargo-json",
    "ci_log": f"log report / {_LOGS} {_TESTS} {_BUILD}",
    "csv": "table / csv tsv",
    "dir_listing": "listing table / ls find tree du wc system",
    "docs_text": "markdown text / markdown",
    "git_output": "diff listing / git-diff git-show git-log git-status git-blame",
    "go_test": "report json / go-test go-test-json actions",
    "grep_results": "search / grep",
    "html": "html / html",
    "json_records": "json",
    "k8s_infra": "json yaml text table / kubernetes-json kubectl kubectl-describe yaml",
    "linter": f"report json html / {_LINT}",
    "lockfile_config": "json html yaml text / xml toml yaml",
    "multilang": "markdown text json / markdown",
    "notebook": "json notebook / notebook",
    "npm_node": "report json / npm",
    "package_manager": "report json / pip npm apt cargo",
    "sql_table": "table sql / psql mysql box bars columns",
    "stack_trace": f"trace / {_TRACES}",
    "system_log": f"log / {_LOGS}",
    "test_runner": f"report / {_TESTS}",
    "tool_schemas": "json / tool-schemas",
}


@dataclass(slots=True)
class Confusion:
    """What the outputs of each folder were taken for."""

    kinds: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    #: By format; "-" where it wasn't sure.
    formats: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, folder: str, text: str) -> None:
        short = shorten(text, least_chars=0)
        self.kinds[folder][short.kind] += 1
        self.formats[folder][short.format or "-"] += 1

    def right_kinds(self) -> tuple[int, int]:
        """Of how many of the outputs whose folder says it the kind is right."""
        return _right(
            self.kinds, {folder: set(row.partition("/")[0].split()) for folder, row in RIGHT.items()}
        )

    def right_formats(self) -> tuple[int, int]:
        """Of how many of the outputs that have a format, and whose folder says it, it is right."""
        admitted = {folder: set(row.partition("/")[2].split()) for folder, row in RIGHT.items() if "/" in row}
        named = {
            folder: Counter({k: n for k, n in row.items() if k != "-"})
            for folder, row in self.formats.items()
        }
        return _right(named, admitted)


def _right(table: dict[str, Counter[str]], admitted: dict[str, set[str]]) -> tuple[int, int]:
    rows = [(row, admitted[folder]) for folder, row in table.items() if folder in admitted]
    right = sum(count for row, names in rows for name, count in row.items() if name in names)
    return right, sum(row.total() for row, _ in rows)


def microseconds(text: str) -> float:
    """The least time of several that it took to tell the kind of the first 10 kB of `text`.

    Control sequences are resolved before: the whole text needs that, whatever its kind.
    """
    data = resolve(text.encode("utf-8", "surrogatepass")[:MOST_BYTES])
    return min(_once(data) for _ in range(ROUNDS))


def _once(data: bytes) -> float:
    start = thread_time_ns()
    sample = sample_of(data, Call())
    if not json_kind.recognise(sample) and not view.is_view(data):
        recognise(sample)
    return (thread_time_ns() - start) / 1_000


def _table(confusion: Confusion) -> str:
    names = sorted({name for row in confusion.kinds.values() for name in row})
    lines = [f"{'':17s}" + "".join(f"{name:>9s}" for name in names) + "  formats"]
    for folder, row in sorted(confusion.kinds.items()):
        formats = ", ".join(f"{name} {count}" for name, count in confusion.formats[folder].most_common())
        lines.append(f"{folder:17s}" + "".join(f"{row[name] or '':>9}" for name in names) + f"  {formats}")
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench kinds", description=__doc__)
    parser.add_argument("corpus", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    confusion = Confusion()
    times: list[float] = []
    for sample in corpus.outputs(args.corpus):
        confusion.add(sample.kind, sample.text)
        times.append(microseconds(sample.text))
    times.sort()
    kinds, formats = confusion.right_kinds(), confusion.right_formats()
    figures = {"median_us": median(times), "p95_us": times[int(0.95 * len(times))]}
    if args.json:
        found = {"kinds": confusion.kinds, "formats": confusion.formats}
        print(json.dumps({**found, "right_kinds": kinds, "right_formats": formats, **figures}, indent=1))
        return 0
    print(_table(confusion))
    print(f"\nas folders tell, right: {kinds[0]} of {kinds[1]} kinds, {formats[0]} of {formats[1]} formats")
    print(f"recognition: {figures['median_us']:.0f} µs median, {figures['p95_us']:.0f} µs P95, up to 10 kB")
    return 0
