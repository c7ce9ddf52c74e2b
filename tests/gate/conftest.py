from __future__ import annotations

import pytest

from turngate.gate import Gate
from turngate.settings import Settings


def log_of(lines, tag="x"):
    """A log that is surely shortened, with one line unlike the others."""
    rows = [f"2025-03-04 10:{n // 60 % 60:02d}:{n % 60:02d} INFO worker {tag}-{n} done" for n in range(lines)]
    rows[lines // 2] = f"2025-03-04 10:31:07 ERROR ledger of {tag} does not add up: 1048.30 against 1048.03"
    return "\n".join(rows) + "\n"


@pytest.fixture
def make_log():
    return log_of


@pytest.fixture
def log():
    return log_of(900)


@pytest.fixture
def gate(tmp_path):
    with Gate.open(tmp_path / "data", Settings()) as opened:
        yield opened


@pytest.fixture
def session(gate):
    return gate.session("s")
