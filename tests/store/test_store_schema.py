from __future__ import annotations

import sqlite3

import pytest

from turngate.errors import StoreUnavailableError
from turngate.store import schema
from turngate.store.schema import MIGRATIONS, Migration

BROKEN = Migration("0002_broken", ("CREATE TABLE halfway (x)", "CREATE TABLE halfway (x)"))
MENDED = Migration("0002_broken", ("CREATE TABLE halfway (x)", "INSERT INTO halfway VALUES (1)"))


@pytest.fixture
def conn(tmp_path):
    opened = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    yield opened
    opened.close()


def tables(conn):
    return {name for (name,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_steps_run_once_and_in_order(conn):
    names = tuple(step.name for step in MIGRATIONS)
    assert schema.migrate(conn) == names
    assert schema.migrate(conn) == ()
    assert schema.applied(conn) == names


def test_a_step_that_fails_leaves_nothing_and_can_run_again(conn):
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(conn, (*MIGRATIONS, BROKEN))
    assert "halfway" not in tables(conn)
    assert not conn.in_transaction
    assert schema.applied(conn) == tuple(step.name for step in MIGRATIONS)
    assert schema.migrate(conn, (*MIGRATIONS, MENDED)) == ("0002_broken",)
    assert conn.execute("SELECT x FROM halfway").fetchall() == [(1,)]


def test_looking_for_steps_writes_nothing(conn):
    assert schema.applied(conn) == ()
    assert schema.pending(conn) == MIGRATIONS
    assert tables(conn) == set()


def test_two_steps_of_one_name_are_refused(conn):
    with pytest.raises(ValueError, match="two migrations"):
        schema.migrate(conn, (BROKEN, MENDED))


def test_a_newer_schema_is_refused_with_the_way_out(make_store, path):
    make_store().put(b"x", session="s")
    with sqlite3.connect(path) as conn:
        conn.execute("INSERT INTO migration VALUES ('0999_future', 0)")
    conn.close()
    with pytest.raises(StoreUnavailableError, match=r"0999_future.*upgrade turngate"):
        make_store().put(b"y", session="s")


def test_the_database_of_another_program_is_left_alone(make_store, path):
    path.parent.mkdir()
    with sqlite3.connect(path) as conn:
        conn.execute("CREATE TABLE theirs (x)")
    conn.close()
    with pytest.raises(StoreUnavailableError, match="another program"):
        make_store().put(b"y", session="s")
    with sqlite3.connect(path) as conn:
        assert tables(conn) == {"theirs"}
    conn.close()
