from __future__ import annotations

from dataclasses import replace

import pytest

from turngate.settings import WindowSettings
from turngate.store import SqliteStore
from turngate.window import Window


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(tmp_path / "store.db")
    yield opened
    opened.close()


@pytest.fixture
def notices():
    return []


@pytest.fixture
def make_window(store, notices):
    """A function that makes a window of session `s`; each one is as after a restart."""

    def make(settings=None, session="s", **options):
        options.setdefault("listeners", [notices.append])
        options.setdefault("style", lambda style: replace(style, pause_seconds=0.0))
        return Window(session, lambda: store, settings or WindowSettings(), **options)

    return make
