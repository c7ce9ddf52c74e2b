"""The smoke test: does the plugin do here what it promises? Run by ``turngate doctor --mode`` and a tool.

Each check runs the plugin's own hooks and tools on a store of its own in a temporary folder. It succeeds when
it returns None; whatever else it returns says what is wrong, and an exception does, too.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from turngate.gate import Gate
from turngate.hermes import checks
from turngate.hermes.checks import Bench
from turngate.hermes.host import Host, using
from turngate.hermes.install import beside_the_host
from turngate.settings import DirectiveSettings, FlowSettings, PromptSettings, Settings, StoreSettings

Mode = Literal["quick", "full", "matrix", "pipeline"]
MODES: tuple[str, ...] = get_args(Mode)

Check = Callable[[Bench], object]

RESULTS_FILE = ".test-results.json"

#: What the sweep tries, each with each.
SWEEP: dict[str, tuple[Any, ...]] = {
    "budget": ("default", "wide"),
    "threshold_bytes": (None, 0, 8_192),
    "flow_budget_chars": (0, 600, 4_000),
    "store": (StoreSettings(), StoreSettings(redact=True)),
}
#: A feature -> the settings in which it is off, and the check that then must hold.
TOGGLES: dict[str, tuple[Settings, Check]] = {
    "shortening off": (Settings(enabled=False), checks.passes_everything),
    "terminal skipped": (Settings(skip_tools=("terminal",)), checks.passes_everything),
    "orientation off": (Settings(prompts=PromptSettings(session_inject="")), checks.has_no_orientation),
    "directives off": (Settings(directives=DirectiveSettings(active=())), checks.has_no_directives),
    "block off": (Settings(flow_budget_chars=0), checks.injects_nothing),
    "signals off": (
        Settings(flow=FlowSettings(error_loop=False, repeated_call=False)),
        checks.nudges_nothing,
    ),
    "redaction on": (Settings(store=StoreSettings(redact=True)), checks.stores_no_secret),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one check."""

    name: str
    """The check, with the settings it ran in where they are not the usual ones."""
    ok: bool
    """Whether it succeeded."""
    why: str = ""
    """What is wrong."""


@dataclass(frozen=True, slots=True)
class Report:
    """A run."""

    mode: str
    """What was asked for."""
    outcomes: tuple[Outcome, ...]
    """In the order they ran."""
    regressed: tuple[str, ...] = field(default=())
    """Checks that fail now and succeeded the last time."""

    @property
    def ok(self) -> bool:
        """Whether every check succeeded."""
        return all(outcome.ok for outcome in self.outcomes)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        failed = {outcome.name: outcome.why for outcome in self.outcomes if not outcome.ok}
        return {
            "mode": self.mode,
            "ok": self.ok,
            "checks": len(self.outcomes),
            "passed": len(self.outcomes) - len(failed),
            "failed": failed,
            "regressed": list(self.regressed),
        }


def run(mode: str, results: Path | None = None) -> Report:
    """Run the checks of a mode; an unknown mode is taken for ``quick``.

    ``results``: the file of the last run, which ``pipeline`` compares with and writes anew.
    """
    known = mode if mode in MODES else "quick"
    report = Report(known, tuple(_RUNS[known]()))
    if known != "pipeline" or results is None:
        return report
    report = replace(report, regressed=_regressed(report, results))
    _write(report, results)
    return report


def attempt(name: str, check: Check, settings: Settings | None = None) -> Outcome:
    """One check, on a store of its own. Only None is success."""
    return attempts({name: check}, settings)[0]


def attempts(named: Mapping[str, Check], settings: Settings | None = None) -> list[Outcome]:
    """Several checks one after the other, on one store of their own."""
    with tempfile.TemporaryDirectory(prefix="turngate-smoke-") as folder:
        known = replace(settings or Settings(), data_dir=Path(folder) / "data")
        with Gate.open(settings=known) as gate, using(Host(gate)) as here:
            return [_outcome(name, check, Bench(here, Path(folder))) for name, check in named.items()]


def _outcome(name: str, check: Check, bench: Bench) -> Outcome:
    try:
        said = check(bench)
    except Exception as error:  # noqa: BLE001 - that it raises is what the check found
        return Outcome(name, ok=False, why=f"{type(error).__name__}: {error}")
    if said is None and bench.host.faults:
        said = f"hooks or tools failed inside: {dict(bench.host.faults)}"
    return Outcome(name, ok=said is None, why="" if said is None else str(said) or repr(said))


def _quick() -> Iterable[Outcome]:
    return [attempt(check.__name__, check) for check in checks.QUICK]


def _full() -> Iterable[Outcome]:
    more = (*checks.FULL, *(checks.WITH_HOST if beside_the_host() else ()))
    return [*_quick(), *(attempt(check.__name__, check) for check in more)]


def _matrix() -> Iterable[Outcome]:
    """Every combination of the sweep, with the checks that hold under all of them."""
    for values in product(*SWEEP.values()):
        settings = Settings(**dict(zip(SWEEP, values, strict=True)))
        names = ", ".join(_spelled(name, value) for name, value in zip(SWEEP, values, strict=True))
        yield from attempts({f"{check.__name__} [{names}]": check for check in checks.ALWAYS}, settings)


def _spelled(name: str, value: object) -> str:
    return f"redact={value.redact}" if isinstance(value, StoreSettings) else f"{name}={value}"


def _pipeline() -> Iterable[Outcome]:
    """Everything, then each feature off."""
    yield from _full()
    for name, (settings, check) in TOGGLES.items():
        yield attempt(name, check, settings)


_RUNS: dict[str, Callable[[], Iterable[Outcome]]] = {
    "quick": _quick,
    "full": _full,
    "matrix": _matrix,
    "pipeline": _pipeline,
}


def _regressed(report: Report, file: Path) -> tuple[str, ...]:
    try:
        before = json.loads(file.read_text(encoding="utf-8"))["outcomes"]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    good = set(before) if isinstance(before, list) else {name for name, ok in before.items() if ok is True}
    return tuple(outcome.name for outcome in report.outcomes if not outcome.ok and outcome.name in good)


def _write(report: Report, file: Path) -> None:
    outcomes = {outcome.name: outcome.ok for outcome in report.outcomes}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mode": report.mode, "outcomes": outcomes}, indent=1), encoding="utf-8")
