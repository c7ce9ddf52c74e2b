"""A short run of the benchmarks `crash` and `concurrency`; their full length is run by hand."""

from __future__ import annotations

import pytest
from bench import concurrency, crash


@pytest.mark.parametrize("collide", [False, True])
def test_every_marker_handed_out_before_a_kill_resolves(path, monkeypatch, collide):
    monkeypatch.setattr(crash, "LONGEST_SECONDS", 0.3)
    handed, wrong = crash.run(path, 8, collide=collide)
    assert wrong == []
    assert handed >= 8


@pytest.mark.parametrize("collide", [False, True])
def test_processes_and_threads_on_one_store_lose_nothing(path, collide):
    handed, wrong = concurrency.run(path, 4, 4, 1.5, collide=collide)
    assert wrong == []
    assert handed >= 16
