from __future__ import annotations

import pytest

from turngate.ledger import Ledger, Memory
from turngate.settings import StoreSettings
from turngate.store import SqliteStore


class Clock:
    def __init__(self):
        self.now = 1_700_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make_store(tmp_path, clock):
    """A function that opens the store anew, as another process would."""
    opened = []

    def make(settings=None):
        store = SqliteStore(tmp_path / "t.db", settings or StoreSettings(), clock=clock)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store):
    return make_store()


@pytest.fixture
def make_ledger(store):
    def make(wire="chat", session="s", scope="x", policy=None, memory=None, of=None):
        return Ledger(
            lambda: of or store,
            scope=scope,
            wire=wire,
            session=session,
            policy=policy,
            memory=memory or Memory(),
        )

    return make
