from __future__ import annotations

import pytest
from store_clock import Clock

from turngate.settings import StoreSettings
from turngate.store import SqliteStore

#: Modules whose tests hold for any store.
BOTH = {
    "test_store_redact",
    "test_store_retrieve",
    "test_store_scope",
    "test_store_search",
    "test_store_state",
}


def pytest_generate_tests(metafunc):
    if "backend" in metafunc.fixturenames and metafunc.module.__name__ in BOTH:
        metafunc.parametrize("backend", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "store.db"


@pytest.fixture
def backend(request):
    return getattr(request, "param", "sqlite")


@pytest.fixture
def make_store(backend, path, clock, request):
    """A function that opens the store; all are closed in the end."""
    opened = []
    url = request.getfixturevalue("url") if backend == "postgres" else ""

    def make(settings=None, **options):
        known = settings or StoreSettings(busy_timeout_ms=2_000)
        if url:
            from turngate.store.postgres import PostgresStore  # noqa: PLC0415

            store = PostgresStore(url, known, clock=clock, **options)
        else:
            store = SqliteStore(path, known, clock=clock, **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store):
    return make_store()
