"""Results as a session shows them one after the other, each with what stands in view before it.

A probe counts as in view when its answer stands in what is shown of its result; or, where that refers to
earlier results of the conversation, in those lines of theirs which it names, provided that these results were
themselves shown whole (or, for the very same result, in what was shown of that one). Nothing leaves view
within a trajectory: none is compacted. Every reference is followed back, and what it gives is compared with
the original.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter, thread_time
from typing import TYPE_CHECKING

from bench.arms import Outcome
from turngate import marker
from turngate.across import DELTA, SAME, restore
from turngate.gate import Gate
from turngate.settings import Settings

if TYPE_CHECKING:
    from bench.corpus import Sample
    from turngate.session import Session


class Talk:
    """One conversation on its way through a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: What came in, and what a reader of what was shown has in view, by call id.
        self._came: dict[str, str] = {}
        self._readable: dict[str, str] = {}

    def result(self, sample: Sample) -> tuple[Outcome, list[str]]:
        """What is shown of one result, and what is wrong with that."""
        call = f"call_{len(self._came) + 1:04d}"
        begun, cpu = perf_counter(), thread_time()
        shown = self._session.tool_result(
            name=sample.tool or "", args=sample.args, text=sample.text, call_id=call
        )
        took = perf_counter() - begun, thread_time() - cpu
        faults = self._check(call, sample.text, shown)
        found = marker.parse(shown) if shown is not sample.text else None
        mode = found.mode if found else ""
        body = None if found is None or mode in {SAME, DELTA} else shown.partition("\n")[2]
        kind = found.get("kind") or mode if found else ""
        return Outcome(shown, *took, kind, body, self._readable[call]), faults

    def _check(self, call: str, text: str, shown: str) -> list[str]:
        self._came[call], self._readable[call] = text, shown
        found = marker.parse(shown) if shown is not text else None
        if found is None or found.mode not in {SAME, DELTA}:
            return []
        of = [value for key, value in found.fields if key == "of"]
        if found.mode == SAME:
            self._readable[call] = f"{shown}\n{self._readable[of[0]]}"
            return [] if self._came[of[0]] == text else [f"{call} is not the result of {of[0]}"]
        whole = {other: self._came[other] for other in of if self._readable[other] == self._came[other]}
        if len(whole) < len(of):
            return [f"{call} refers to a result that isn't whole in view"]
        self._readable[call] = f"{shown}\n{restore(shown, whole)}"
        return [] if restore(shown, whole) == text else [f"{call} does not give its original back"]


def session_arm(settings: Settings) -> tuple[Callable[[Sample], Outcome], list[tuple[str, str]]]:
    """An arm that passes results through sessions, one for each conversation; and the faults it finds."""
    folder = tempfile.TemporaryDirectory()
    gate = Gate.open(folder.name, settings)
    talks: dict[str, Talk] = {}
    faults: list[tuple[str, str]] = []

    def arm(sample: Sample, _keep: tempfile.TemporaryDirectory[str] = folder) -> Outcome:
        if sample.session not in talks:
            talks[sample.session] = Talk(gate.session(sample.session))
        outcome, found = talks[sample.session].result(sample)
        faults.extend((sample.name, fault) for fault in found)
        return outcome

    return arm, faults


def alone(settings: Settings) -> Settings:
    """The same, with every result by itself."""
    return replace(settings, across_results=False)
