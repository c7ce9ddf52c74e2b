from __future__ import annotations

import hermes_environment as environment
import pytest
from hermes_agent import Agent
from stub import Stub


@pytest.fixture(scope="session")
def hermes_bin():
    """The real agent's programs; without them, its tests say why they are skipped."""
    try:
        return environment.ensure()
    except environment.EnvironmentImpossibleError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def stub(hermes_bin):
    server = Stub()
    yield server
    server.close()


@pytest.fixture
def agent(tmp_path, stub):
    return Agent(tmp_path, stub)
