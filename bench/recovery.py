"""Can what was hidden be had back? Stores the originals, asks for each hidden answer, compares bytes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from turngate.ingress import Arrival, call_line
from turngate.store import SqliteStore, render_hits, select, to_bytes

if TYPE_CHECKING:
    from bench.arms import Outcome
    from bench.corpus import Probe, Sample

#: Of what a search answers, a reader is taken to see so much.
SEARCH_CHARS = 8_000


@dataclass
class Recovery:
    """What became of the hidden answers."""

    hidden: int = 0
    by_search: int = 0
    by_retrieve: int = 0
    by_either: int = 0
    #: Originals stored, and those that did not come back byte for byte.
    stored: int = 0
    lost: list[str] = field(default_factory=list)
    unfound: list[Probe] = field(default_factory=list)
    put_seconds: float = 0.0
    search_seconds: float = 0.0

    def figures(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in ("hidden", "by_search", "by_retrieve", "by_either")}
        return shown | {"stored": self.stored, "lost": self.lost, "unfound": [p.id for p in self.unfound]}


def recover(changed: list[tuple[Sample, Outcome]], *, together: bool = False) -> Recovery:
    """Every sample of a session is stored before the first question is asked.

    Single outputs are each a session of their own, or with `together` all of one.
    """
    found = Recovery()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db")
        refs = [_put(store, sample, outcome, found, together=together) for sample, outcome in changed]
        for (sample, outcome), ref in zip(changed, refs, strict=True):
            session = "all" if together else sample.session
            original = store.get(ref, session=session)
            if original.data != to_bytes(sample.text):
                found.lost.append(sample.name)
            for probe in sample.probes:
                if not probe.in_view(outcome.view):
                    _ask(store, session, original.text, probe, found)
        store.close()
    return found


def _put(store: SqliteStore, sample: Sample, outcome: Outcome, found: Recovery, *, together: bool) -> str:
    data = to_bytes(sample.text)
    session = "all" if together else sample.session
    start = perf_counter()
    tool = sample.tool or ""
    call = call_line(Arrival(tool, "", sample.args)) if tool else ""
    stored = store.put(data, session=session, kind=outcome.kind, tool=tool, call=call)
    found.put_seconds += perf_counter() - start
    found.stored += 1
    return stored.id


def _ask(store: SqliteStore, session: str, text: str, probe: Probe, found: Recovery) -> None:
    start = perf_counter()
    hits = store.search(probe.question, session=session)
    found.search_seconds += perf_counter() - start
    searched = probe.in_view(render_hits(hits)[:SEARCH_CHARS])
    retrieved = probe.in_view(select(text, query=probe.question, page=1).text)
    found.hidden += 1
    found.by_search += searched
    found.by_retrieve += retrieved
    found.by_either += searched or retrieved
    if not (searched or retrieved):
        found.unfound.append(probe)


def show(found: Recovery, tokens: int) -> None:
    hidden = max(1, found.hidden)
    print(
        f"of {found.hidden} answers not in view: "
        f"{100 * found.by_search / hidden:.1f} % found by search, "
        f"{100 * found.by_retrieve / hidden:.1f} % by retrieve, "
        f"{100 * found.by_either / hidden:.1f} % by either; "
        f"{found.stored} originals stored, {len(found.lost)} lost or changed; "
        f"storing took {found.put_seconds * 1e6 / max(1, tokens):.3f} ms per 1,000 tokens"
    )
    for probe in found.unfound[:10]:
        print(f"  not found: {probe.id} in {probe.file}: {probe.question[:90]}")
