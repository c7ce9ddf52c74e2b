from __future__ import annotations

import pytest
from store_clock import Clock

from turngate.settings import StoreSettings
from turngate.store import SqliteStore


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "store.db"


@pytest.fixture
def make_store(path, clock):
    """A function that opens the store; all are closed in the end."""
    opened = []

    def make(settings=None, **options):
        store = SqliteStore(path, settings or StoreSettings(busy_timeout_ms=2_000), clock=clock, **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store):
    return make_store()
