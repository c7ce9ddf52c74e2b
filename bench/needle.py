"""What is left of a session's facts once its window was compacted: in view, or found by one search."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.corpus import Probe, _probes
from bench.recovery import SEARCH_CHARS
from turngate.gate import Gate
from turngate.settings import Settings, WindowSettings
from turngate.store import render_hits
from turngate.wire import violations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.window import Fitted

WINDOWS = (8_000, 16_000, 32_000)


@dataclass
class Needles:
    """Counts for one window."""

    window: int
    sessions: int = 0
    compacted: int = 0
    compactions: int = 0
    calls: int = 0
    over: int = 0
    invalid: int = 0
    probes: int = 0
    in_view: int = 0
    by_search: int = 0
    first_request: int = 0
    missed: list[Probe] = field(default_factory=list)

    @property
    def share(self) -> float:
        return (self.in_view + self.by_search) / max(1, self.probes)

    def row(self) -> str:
        return (
            f"{self.window:8,d}{self.sessions:10d}{self.compacted:11d}{self.compactions:13d}"
            f"{self.over:8d}/{self.calls}{self.invalid:9d}{self.probes:8d}{self.in_view:9d}"
            f"{self.by_search:11d}{self.share:9.1%}{self.first_request:9d}"
        )


HEAD = (
    "  window  sessions  compacted  compactions  over/calls  invalid  probes  in view  by search    share"
    "  1st req."
)


def texts(messages: Any) -> Iterator[str]:
    for message in messages:
        yield json.dumps(message, ensure_ascii=False)


def run(root: Path, window: int, *, gate: bool) -> Needles:
    """Every trajectory, fitted before every call; probes are asked after the last one."""
    found = Needles(window)
    probes = _probes(root)
    for path in sorted(root.glob("trajectories/*/*.json")):
        name = path.relative_to(root).as_posix()
        messages = json.loads(path.read_bytes())["messages"]
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(window=WindowSettings(context_window_tokens=window))
            with Gate.open(folder, settings) as opened:
                _session(opened, messages, [probe for probe, _ in probes.get(name, ())], found, gate=gate)
    return found


def _session(opened: Gate, messages: list[Any], probes: list[Probe], found: Needles, *, gate: bool) -> None:
    session = opened.session("s")
    fitter = session.window()
    found.sessions += 1
    came: list[Any] = []
    last: Fitted | None = None
    compactions = 0
    calls: dict[str, Any] = {}
    for message in messages:
        if message["role"] == "assistant" and came:
            last = fitter.fit(came)
            found.calls += 1
            found.over += last.over
            found.invalid += bool(violations(last.messages, "chat")) and not violations(came, "chat")
            compactions += bool(last.compaction and last.compaction.method != "none")
        calls |= {call["id"]: call["function"] for call in message.get("tool_calls") or ()}
        came.append(_arrived(session, message, calls) if gate and message["role"] == "tool" else message)
    found.compactions += compactions
    if not compactions or last is None:
        return
    found.compacted += 1
    first = next((m["content"] for m in messages if m["role"] == "user"), "")
    found.first_request += any(
        json.dumps(first, ensure_ascii=False)[1:-1] in text for text in texts(last.messages)
    )
    # A probe of what came after the last call was never before the window.
    shown = "\n".join(texts(last.messages)) + "\n".join(texts(came[len(messages) - 1 :]))
    for probe in probes:
        found.probes += 1
        if probe.in_view(shown):
            found.in_view += 1
        elif probe.in_view(render_hits(session.search(probe.question))[:SEARCH_CHARS]):
            found.by_search += 1
        else:
            found.missed.append(probe)


def _arrived(session: Any, message: dict[str, Any], calls: dict[str, Any]) -> dict[str, Any]:
    call = calls.get(message.get("tool_call_id"), {})
    if not isinstance(message["content"], str):
        return message
    shown = session.tool_result(
        name=call.get("name", ""), text=message["content"], args=call.get("arguments")
    )
    return {**message, "content": shown}
