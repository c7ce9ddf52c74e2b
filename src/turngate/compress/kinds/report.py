"""Reports of tests, builds, linters and package managers: failures, the places they name, and the summary."""

from __future__ import annotations

import re

from turngate.compress.call import Doc, Sample
from turngate.compress.lines import Shown, shorten_lines

_OPENS = re.compile(
    r"""(?:
      =+\ .*\ =+\s*\Z                                          # pytest's rulers
    | (?:---\ |===\ )?(?:PASS|FAIL|RUN|SKIP|ok|not\ ok)\b      # go test, TAP
    | test\ \S+\ \.\.\.\                                       # cargo test
    | \s*(?:Compiling|Checking|Download(?:ing|ed)|Collecting|Installing|Building|Linking|Running)\ \S
    | \[\s*\d+(?:%|/\d+)\]                                     # cmake, ninja
    | (?:g?make|gcc|g\+\+|cc|clang|ar|ld)\b
    | (?:npm|yarn|pnpm)\ (?:ERR!|WARN|error|warn|http|info|verb|sill)
    | [\w./\\+-]+[:(]\d+(?:[:,]\d+)?\)?:?\ \[?\w*\s?(?:error|warning|note|[A-Z]\d{3,4})\b
    | (?:error|warning)(?:\[\w+\])?:\s
    )""",
    re.VERBOSE,
)
_VERDICTS = ("PASSED", "FAILED", "SKIPPED", " ... ok")
LEAST_SHARE = 0.25


def recognise(sample: Sample) -> float:
    """A good share of lines that such a tool prints."""
    verdicts = [word for word in _VERDICTS if word in sample.head]
    told = sum(1 for line in sample.lines if _OPENS.match(line) or any(map(line.__contains__, verdicts)))
    share = told / max(1, len(sample.lines))
    return min(0.85, 0.45 + share) if share >= LEAST_SHARE else 0.0


def shorten(doc: Doc) -> Shown:
    """The lines of a report: words of failure, places in files, rarity and the tail carry it."""
    return shorten_lines(doc)
