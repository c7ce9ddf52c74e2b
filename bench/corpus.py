"""Read a corpus: single tool outputs, trajectories, and probes; docs/benchmarks.md has the format."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Probes of what failed and how it ended.
MUST = frozenset(
    {
        "error_line",
        "tool_error",
        "error_location",
        "exception_message",
        "failing_test",
        "test_summary",
        "test_error",
        "last_line",
        "compiler_diag",
        "crash",
        "panic",
        "total",
        "summary",
        "outlier_record",
        "lint_diag",
        "pkg_result",
        "id_or_status",
    }
)
CLASSES = ("must", "needed", "any")


@dataclass(frozen=True, slots=True)
class Probe:
    """A question whose answer is an exact substring of one output."""

    id: str
    file: str
    qtype: str
    question: str
    answer: str

    @property
    def cls(self) -> str:
        """`must`, `needed` or `any`."""
        return "must" if self.qtype in MUST else "needed" if self.qtype == "needed_fact" else "any"

    def in_view(self, shown: str) -> bool:
        """Whether the answer stands in `shown`, plainly or as JSON spells it."""
        escaped = json.dumps(self.answer, ensure_ascii=False)[1:-1], json.dumps(self.answer)[1:-1]
        return self.answer in shown or any(spelling in shown for spelling in escaped)


@dataclass(frozen=True, slots=True)
class Sample:
    """One tool output."""

    name: str
    """Path of the file; for a trajectory's result with `#` and its message's index."""
    kind: str
    """Folder of a single output; the source of a trajectory."""
    session: str
    """Outputs of one session came in one conversation."""
    text: str
    tool: str | None
    args: str | None
    probes: tuple[Probe, ...]


def decode(data: bytes) -> str:
    """Bytes as the store reads them."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def outputs(root: Path, kinds: frozenset[str] = frozenset()) -> Iterator[Sample]:
    """The single outputs, of `kinds` only where some are named."""
    probes = _probes(root)
    for path in sorted(root.glob("tool_outputs/*/*")):
        kind, name = path.parent.name, path.relative_to(root).as_posix()
        if not kinds or kind in kinds:
            found = tuple(probe for probe, _ in probes.get(name, ()))
            yield Sample(name, kind, name, decode(path.read_bytes()), None, None, found)


def results(root: Path) -> Iterator[Sample]:
    """The tool results of the trajectories, in order."""
    probes = _probes(root)
    for path in sorted(root.glob("trajectories/*/*.json")):
        name = path.relative_to(root).as_posix()
        messages = json.loads(path.read_bytes())["messages"]
        calls = _calls(messages)
        for index, message in enumerate(messages):
            if message["role"] == "tool":
                tool, args = calls.get(message.get("tool_call_id"), (None, None))
                found = tuple(probe for probe, at in probes.get(name, ()) if at == index)
                yield Sample(
                    f"{name}#{index}", path.parent.name, name, _text(message["content"]), tool, args, found
                )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())


def _calls(messages: list[dict]) -> dict[str, tuple[str, str]]:
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    return {call["id"]: (call["function"]["name"], call["function"]["arguments"]) for call in calls}


def _probes(root: Path) -> dict[str, list[tuple[Probe, int | None]]]:
    found = defaultdict(list)
    with (root / "questions" / "probes.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            probe = Probe(row["id"], row["file"], row["qtype"], row["question"], row["answers"][0])
            found[row["file"]].append((probe, row.get("first_message_index")))
    return found
