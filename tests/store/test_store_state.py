from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.errors import StoreConflictError
from turngate.store import SqliteStore


def test_before_it_is_saved_there_is_none_of_version_0(store):
    assert store.load_state("s", "flow") == (None, 0)


def test_it_comes_back_after_a_restart_with_its_version(make_store):
    first = make_store()
    assert first.save_state("s", "flow", b"one", 0) == 1
    assert first.save_state("s", "flow", b"\x00two", 1) == 2
    first.close()
    assert make_store().load_state("s", "flow") == (b"\x00two", 2)


@pytest.mark.parametrize("expected", [0, 1, 3])
def test_who_expects_another_version_changes_nothing(store, expected):
    store.save_state("s", "flow", b"one", 0)
    store.save_state("s", "flow", b"two", 1)
    with pytest.raises(StoreConflictError, match="load it again"):
        store.save_state("s", "flow", b"mine", expected)
    assert store.load_state("s", "flow") == (b"two", 2)


def test_rooms_and_sessions_do_not_share_it(store):
    store.save_state("s", "flow", b"a", 0)
    store.save_state("s", "turn", b"b", 0)
    store.save_state("t\ud800", "flow", b"c", 0)
    assert [store.load_state(*key)[0] for key in (("s", "flow"), ("s", "turn"), ("t\ud800", "flow"))] == [
        b"a",
        b"b",
        b"c",
    ]


def test_of_writers_that_retry_none_is_lost(path, store):
    def count_up():
        for _ in range(20):
            while True:
                body, version = store.load_state("s", "n")
                try:
                    store.save_state("s", "n", str(int(body or b"0") + 1).encode(), version)
                except StoreConflictError:
                    continue
                break

    threads = [threading.Thread(target=count_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.load_state("s", "n") == (b"80", 80)


def test_it_goes_with_its_session_and_only_then(make_store, clock):
    store = make_store()
    store.save_state("old", "flow", b"x", 0)
    clock.pass_days(store.settings.max_age_days + 1)
    store.save_state("new", "flow", b"y", 0)
    store.gc()
    assert store.load_state("old", "flow") == (None, 0)
    assert store.load_state("new", "flow") == (b"y", 1)


@given(body=st.binary(max_size=200), session=st.text(max_size=6), room=st.text(max_size=6))
@settings(max_examples=40, deadline=None)
def test_any_bytes_under_any_names_come_back(tmp_path_factory, body, session, room):
    store = SqliteStore(tmp_path_factory.mktemp("state") / "x.db")
    version = store.save_state(session, room, body, 0)
    assert store.load_state(session, room) == (body, version)
    store.close()
