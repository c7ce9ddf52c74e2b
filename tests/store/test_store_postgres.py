"""What is PostgreSQL's own: writers beside whoever removes, texts it cannot hold, a server that is away."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from turngate.errors import StoreUnavailableError
from turngate.settings import StoreSettings
from turngate.store import open_store
from turngate.store.postgres import PostgresStore


@pytest.fixture
def pg(url):
    store = PostgresStore(url, StoreSettings(live_days=0, max_age_days=1))
    yield store
    store.close()


def test_what_is_stored_while_old_content_is_removed_stays(pg, url):
    """A put of a content that is just being removed stores it anew."""
    same = [os.urandom(200) for _ in range(8)]
    stop = time.monotonic() + 2
    lost = []

    def write(worker):
        number = 0
        while time.monotonic() < stop:
            number += 1
            data = same[(number + worker) % len(same)]
            stored = pg.put(data, session=f"s{worker}")
            with pg._connections.reader() as conn:
                seen = "SELECT 1 FROM sighting LEFT JOIN content ON content = key WHERE key IS NULL LIMIT 1"
                lost.extend(conn.execute(seen).fetchall())
            assert stored.size == 200

    def remove():
        while time.monotonic() < stop:
            pg.gc(now=time.time() + 400 * 86_400)

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(write, worker) for worker in range(3)] + [pool.submit(remove)]
        for each in done:
            each.result()
    assert not lost


@pytest.mark.parametrize("text", ["nul \0 inside", "lone \ud800 half", "\uf8ff private"])
def test_texts_that_it_cannot_hold_come_back(pg, text):
    stored = pg.put(text.encode("utf-8", "surrogatepass"), session=text, tool=text, call_id=text, call=text)
    assert pg.get(stored.id, session=text).tool == text
    assert pg.sessions_of(stored.sha256) == [text]
    assert pg.turn(text) == 0
    assert pg.next_turn(text) == 1


def test_nothing_is_found_under_no_keys(pg):
    assert not pg.ledger.load([]).nodes


def test_a_block_of_writes_is_all_or_nothing(pg):
    def stopped():
        with pg.together():
            pg.put(b"inside", session="s")
            assert pg.next_turn("s") == 1
            raise KeyError

    with pytest.raises(KeyError):
        stopped()
    assert pg.turn("s") == 0
    assert pg.stats().contents == 0
    with pg.together():
        stored = pg.put(b"inside", session="s")
        assert pg.get(stored.id, session="s").data == b"inside"
    assert pg.stats().contents == 1


def test_state_that_two_change_at_once_is_changed_once(pg, url):
    other = PostgresStore(url)
    start = threading.Barrier(2)

    def save(store, body):
        start.wait()
        try:
            return store.save_state("s", "room", body, 0)
        except Exception as fault:  # noqa: BLE001 - what it is, is the point
            return type(fault).__name__

    with ThreadPoolExecutor(2) as pool:
        found = sorted(map(str, pool.map(save, (pg, other), (b"a", b"b"))))
    other.close()
    assert found == ["1", "StoreConflictError"]


def test_a_server_that_is_away_is_said_to_be(tmp_path):
    store = PostgresStore("postgresql://me:secret@127.0.0.1:1/none")
    with pytest.raises(StoreUnavailableError) as found:
        store.turn("s")
    store.close()
    assert "secret" not in str(found.value)
    with pytest.raises(StoreUnavailableError, match="postgresql://"):
        open_store(StoreSettings(url="mysql://x"), tmp_path / "x")
