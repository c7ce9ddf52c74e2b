from __future__ import annotations

import pytest

from turngate import Gate, Settings
from turngate.proxy.chain.deciding import Terms
from turngate.proxy.chain.engine import Engine


@pytest.fixture
def gate(tmp_path):
    with Gate.open(tmp_path / "data", Settings()) as gate:
        yield gate


@pytest.fixture
def new_engine(gate):
    def make(**changes):
        terms = {"version": "1", "retrieve": True, "adopt": False, "settings": gate.settings} | changes
        return Engine(gate, Terms(**terms))

    return make


@pytest.fixture
def engine(new_engine):
    return new_engine()
