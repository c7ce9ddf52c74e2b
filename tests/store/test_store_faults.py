"""Bad disks and bad files. Modes of files say nothing to root, so other means are used."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys

import pytest

from turngate.errors import StoreCorruptError, StoreError, StoreUnavailableError
from turngate.settings import StoreSettings
from turngate.store import SqliteStore

HURRIED = StoreSettings(busy_timeout_ms=50)
TEXT = b"line of text\n" * 500


def change(path, statement, *values):
    conn = sqlite3.connect(path)
    with conn:
        conn.execute(statement, values)
    conn.close()


def every_call(store):
    yield lambda: store.put(b"x", session="s")
    yield lambda: store.get("0" * 16)
    yield lambda: store.known(["0" * 16], session="s")
    yield lambda: store.search("x", session="s")
    yield lambda: store.note("s", "0" * 64, turn=1, how="searched")
    yield lambda: store.open_session("s")
    yield lambda: store.next_turn("s")
    yield lambda: store.turn("s")
    yield lambda: store.touch("s")
    yield store.drain
    yield store.gc
    yield store.stats


def refuses_everything(store, error, match):
    for call in every_call(store):
        with pytest.raises(error, match=match):
            call()
    [problem] = store.check()
    assert problem.severe


def test_looking_into_a_store_that_is_not_there_makes_nothing(store, path):
    assert store.search("x", session="s") == []
    assert store.known(["0" * 16], session="s") == {}
    assert store.stats().contents == 0
    assert store.check() == []
    assert not path.exists()
    assert not path.parent.exists()


def test_file_log_and_folder_are_their_owners_alone(store, path):
    store.put(b"x", session="s")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    files = list(path.parent.iterdir())
    assert {file.name for file in files} == {"store.db", "store.db-wal", "store.db-shm"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_file_that_others_can_read_is_reported_and_closed_to_them(make_store, path):
    make_store().put(b"x", session="s")
    path.chmod(0o644)
    [problem] = make_store().check()
    assert "chmod 600" in problem.remedy
    make_store().put(b"y", session="s")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_folder_in_place_of_the_file_is_unavailable(store, path):
    path.mkdir(parents=True)
    refuses_everything(store, StoreUnavailableError, "check that it is a file")


def test_a_file_in_place_of_the_folder_is_unavailable(store, path):
    path.parent.write_text("not a folder")
    with pytest.raises(StoreUnavailableError, match="data_dir"):
        store.put(b"x", session="s")


def test_a_file_that_is_no_database_is_corrupt_and_is_not_touched(store, path):
    path.parent.mkdir()
    path.write_bytes(b"garbage " * 2_000)
    refuses_everything(store, StoreCorruptError, "move the file away")
    assert path.read_bytes() == b"garbage " * 2_000


def test_a_truncated_database_is_never_answered_with_wrong_bytes(make_store, path):
    store = make_store()
    contents = {store.put(os.urandom(30_000), session="s").id: n for n in range(20)}
    good = {ref: store.get(ref).data for ref in contents}
    store.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)
    broken, damaged = make_store(), 0
    for ref, data in good.items():
        try:
            assert broken.get(ref).data == data
        except StoreError:
            damaged += 1
    assert damaged > 0
    assert any(problem.severe for problem in broken.check())


def test_flipped_bytes_are_an_error_that_names_the_hash_and_storing_again_mends_it(make_store, path):
    store = make_store()
    stored = store.put(TEXT, session="s")
    other = store.put(b"other", session="s")
    store.close()
    change(
        path, "UPDATE content SET data = ? WHERE sha256 = ?", b"\x28\xb5\x2f\xfd" + bytes(40), stored.sha256
    )
    with pytest.raises(StoreCorruptError, match=stored.sha256):
        store.get(stored.id)
    assert any(stored.sha256 in problem.what for problem in store.check())
    assert [hit.id for hit in store.search("other line of text", session="s")] == [other.id]
    again = store.put(TEXT, session="s")
    assert (again.id, again.new) == (stored.id, False)
    assert store.get(stored.id).data == TEXT
    assert store.check() == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("data", None),
        ("data", "text"),
        ("data", b""),
        ("codec", "lzma"),
        ("codec", "raw"),
        ("size", 5),
        ("size", 0),
    ],
)
def test_any_change_to_a_row_is_noticed(make_store, path, column, value):
    store = make_store()
    stored = store.put(TEXT, session="s")
    store.close()
    if value is None:
        change(path, "UPDATE content SET data = substr(data, 1, length(data) - 3)")
    else:
        change(path, f"UPDATE content SET {column} = ?", value)
    with pytest.raises(StoreCorruptError, match=stored.sha256):
        store.get(stored.id)


def test_damage_cannot_ask_for_any_amount_of_memory(make_store, path):
    store = make_store()
    bomb = store.put(bytes(50_000_000), session="s")
    store.close()
    change(path, "UPDATE content SET size = 1000")
    with pytest.raises(StoreCorruptError):
        store.get(bomb.id)


def test_a_full_disk_is_unavailable_and_loses_nothing(store):
    kept = store.put(b"before", session="s")
    store._connections.maintain(lambda conn: conn.execute("PRAGMA max_page_count = 1").fetchall())
    with pytest.raises(StoreUnavailableError, match="disk is full"):
        store.put(os.urandom(500_000), session="s")
    assert store.get(kept.id).data == b"before"
    assert store.put(b"after", session="s").new, "the next write starts on a fresh connection"


def test_a_lock_held_by_another_process_is_unavailable_until_it_is_let_go(make_store, path):
    store = make_store(HURRIED)
    ref = store.put(b"before", session="s").id
    program = (
        "import sqlite3, sys; conn = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "conn.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreUnavailableError, match=r"locked.*busy_timeout_ms"):
            store.put(b"meanwhile", session="s")
        assert store.get(ref).data == b"before", "reading goes on"
        assert len(store.search("before", session="s")) == 1, "so does searching, without the index"
        holder.stdin.close()
    assert store.put(b"meanwhile", session="s").new


def test_a_read_only_store_gives_back_and_searches_and_refuses_writes(make_store, monkeypatch):
    store = make_store()
    ref = store.put(TEXT, session="s").id
    store.close()
    monkeypatch.setattr("turngate.store.connections._writable", lambda path: False)
    assert store.get(ref, session="s").data == TEXT
    with store._connections.reader() as conn, pytest.raises(sqlite3.OperationalError, match="readonly"):
        conn.execute("DELETE FROM content")


def test_a_read_only_file_refuses_writes_with_what_to_do(make_store, monkeypatch):
    store = make_store()
    store.put(b"x", session="s")
    store._connections.maintain(lambda conn: conn.execute("PRAGMA query_only = 1"))
    with pytest.raises(StoreUnavailableError, match="read-only; make the file and its folder writable"):
        store.put(b"y", session="s")
    assert store.put(b"y", session="s").new


def test_a_file_that_was_moved_away_is_not_written_to_any_longer(make_store, path):
    store = make_store()
    old = store.put(b"old", session="s").id
    path.rename(path.with_name("moved.db"))
    assert store.known([old], session="s") == {}
    new = store.put(b"new", session="s").id
    assert make_store().get(new).data == b"new"


def test_a_fault_in_one_of_several_waiting_writes_is_its_own(store):
    import threading  # noqa: PLC0415

    connections, outcomes = store._connections, {}
    store.put(b"x", session="s")

    def good(number):
        return lambda conn: (
            conn.execute("INSERT INTO session (id, used_at) VALUES (?, 0)", (f"n{number}",)) and number
        )

    def bad(conn):
        conn.execute("INSERT INTO session (id, used_at) VALUES ('half', 0)")
        raise KeyError("mine")

    def run(name, job):
        try:
            outcomes[name] = connections.write(job)
        except KeyError as error:
            outcomes[name] = error

    jobs = {"bad": bad} | {number: good(number) for number in range(6)}
    threads = [threading.Thread(target=run, args=item) for item in jobs.items()]
    with connections._write_lock:
        for thread in threads:
            thread.start()
        while len(connections._queue) < len(threads):
            pass
    for thread in threads:
        thread.join()
    assert isinstance(outcomes.pop("bad"), KeyError)
    assert outcomes == {number: number for number in range(6)}
    assert store.stats().sessions == 7, "the failed one left nothing"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_parent_and_child_go_on_after_a_fork(make_store, path):
    store = make_store()
    before = store.put(b"before", session="s").id
    store.get(before)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b""
        try:
            assert store.get(before).data == b"before"
            answer = store.put(b"of the child", session="s").id.encode()
        finally:
            os.write(write_end, answer)
            os._exit(0)
    mine = store.put(b"of the parent", session="s").id
    os.waitpid(child, 0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        theirs = pipe.read().decode()
    assert store.get(theirs).data == b"of the child"
    assert store.get(mine).data == b"of the parent"
    assert SqliteStore(path).check() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_does_not_do_the_writes_that_waited_in_its_parent(make_store):
    import threading  # noqa: PLC0415

    store = make_store()
    store.put(b"x", session="s")
    connections = store._connections
    waiting = threading.Thread(target=store.put, args=(b"of the parent",), kwargs={"session": "s"})
    with connections._write_lock:
        waiting.start()
        while not connections._queue:
            pass
        child = os.fork()
        if child == 0:
            os._exit(len(connections._queue))
    _, status = os.waitpid(child, 0)
    waiting.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert store.stats().contents == 2
