"""Fail open: whatever breaks, the original passes, and what broke is counted."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from contextlib import closing

import pytest

from turngate import marker
from turngate import session as session_module
from turngate.errors import StoreCorruptError, StoreFullError, StoreUnavailableError
from turngate.gate import Gate
from turngate.settings import Settings, StoreSettings
from turngate.store import SqliteStore


class Broken:
    """A store that raises from the methods named, and is whole otherwise."""

    def __init__(self, store, error, *methods):
        self.store, self.error, self.methods = store, error, methods
        self.calls = 0

    def __getattr__(self, name):
        if name in self.methods:
            return self.fail
        return getattr(self.store, name)

    def fail(self, *args, **kwargs):
        self.calls += 1
        raise self.error


@pytest.fixture
def broken(tmp_path):
    stores = []

    def make(error, *methods):
        store = SqliteStore(tmp_path / "x.sqlite3")
        stores.append(store)
        return Broken(store, error, *methods)

    yield make
    for store in stores:
        store.close()


ERRORS = (
    StoreUnavailableError("locked; try again"),
    StoreFullError("full; raise store.max_bytes"),
    StoreCorruptError("corrupt: abc"),
    OSError(28, "No space left on device"),
    sqlite3.DatabaseError("disk image is malformed"),
    RecursionError("too deep"),
    MemoryError(),
    ValueError("secret content of the result"),
)


class TestStandIns:
    @pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
    @pytest.mark.parametrize("method", ["put", "open_session", "turn"])
    def test_the_very_original_passes_and_the_class_is_counted(self, broken, log, error, method):
        gate = Gate(broken(error, method), Settings())
        gate.session("parent")
        session = gate.session("s", parent="parent")
        assert session.tool_result(name="bash", text=log) is log
        assert gate.stats().faults == {type(error).__name__: 1}
        assert gate.stats().passed == {"fault": 1}

    def test_a_store_that_cannot_be_asked_about_a_marker_costs_nothing(self, broken, log):
        text = "<<<CCR:0123456789abcdef|tool|99|inline>>> x\n" + log
        session = Gate(broken(ERRORS[0], "known"), Settings()).session("s")
        assert session.tool_result(name="bash", text=text) is text

    def test_each_class_is_logged_once_and_without_content(self, broken, log, caplog):
        gate = Gate(broken(ERRORS[-1], "put"), Settings())
        with caplog.at_level(logging.DEBUG, "turngate"):
            for name in ("a", "b", "c"):
                gate.session(name).tool_result(name="bash", text=log)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "ValueError" in caplog.text
        assert "secret" not in caplog.text
        assert gate.stats().faults == {"ValueError": 3}

    def test_a_fault_in_shortening_itself_passes_the_original(self, session, log, monkeypatch):
        def fail(*args, **kwargs):
            raise KeyError("x")

        monkeypatch.setattr(session_module, "shorten", fail)
        assert session.tool_result(name="bash", text=log) is log
        assert session.stats().faults == {"KeyError": 1}

    def test_a_fault_that_shortening_itself_caught_is_counted(self, session, log, monkeypatch):
        def fail(*args, **kwargs):
            raise KeyError("x")

        monkeypatch.setattr(sys.modules["turngate.compress.shorten"], "_shorten", fail)
        assert session.tool_result(name="bash", text=log) is log
        assert session.stats().faults == {"KeyError": 1}
        assert session.stats().passed == {"fault": 1}

    def test_a_fault_in_counting_costs_no_result(self, session, log, monkeypatch):
        def fail(*args, **kwargs):
            raise KeyError("x")

        monkeypatch.setattr(session_module.Tally, "saw", fail)
        assert marker.parse(session.tool_result(name="bash", text=log)) is not None
        assert session.stats().faults == {"KeyError": 1}

    @pytest.mark.parametrize("value", [None, 7, b"bytes", ["a"]])
    def test_what_is_no_text_comes_back_as_it_is(self, session, value):
        assert session.tool_result(name="bash", text=value) is value
        assert session.tool_bytes(name="bash", data=value) is value

    @pytest.mark.parametrize("args", [7, ["x"], {"a": object()}, {1: 2}, "{", "\ud800"])
    def test_odd_arguments_lose_nothing(self, session, log, args):
        shown = session.tool_result(name="bash", args=args, text=log)
        assert shown is log or session.retrieve(shown.partition("\n")[0]).text == log

    def test_an_answer_does_not_fail_because_it_cannot_be_noted(self, broken, log):
        store = broken(ERRORS[0])
        session = Gate(store, Settings()).session("s")
        shown = session.tool_result(name="bash", text=log)
        store.methods = ("note",)
        assert session.retrieve(shown.partition("\n")[0]).text == log
        assert session.search("ledger")
        assert session.stats().faults == {"StoreUnavailableError": 2}


class TestPause:
    """After the store was unavailable, results do not wait for it one by one."""

    def test_it_is_not_tried_again_until_the_pause_is_over(self, broken, log):
        store = broken(ERRORS[0], "put")
        gate = Gate(store, Settings())
        now = [1000.0]
        gate._access._clock = lambda: now[0]
        session = gate.session("s")
        for _ in range(3):
            assert session.tool_result(name="bash", text=log) is log
        assert store.calls == 1
        assert session.stats().passed == {"fault": 1, "store unavailable": 2}
        now[0] += session_module.REST_SECONDS
        store.methods = ()
        assert session.tool_result(name="bash", text=log) is not log

    def test_another_fault_does_not_begin_one(self, broken, log):
        store = broken(StoreFullError("full; raise store.max_bytes"), "put")
        session = Gate(store, Settings()).session("s")
        session.tool_result(name="bash", text=log)
        session.tool_result(name="bash", text=log)
        assert store.calls == 2


class TestRealDisks:
    def passes(self, path, log, settings=None):
        with Gate.open(path, settings or Settings()) as gate:
            session = gate.session("s")
            assert session.tool_result(name="bash", text=log) is log
            assert session.stats().passed == {"fault": 1}
            assert session.last_fault
            return session.stats().faults

    def test_a_file_where_the_folder_should_be(self, tmp_path, log):
        (tmp_path / "file").write_text("x")
        assert "StoreUnavailableError" in self.passes(tmp_path / "file" / "deeper", log)

    @pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
    def test_a_read_only_folder(self, tmp_path, log):
        (tmp_path / "ro").mkdir(mode=0o500)
        assert self.passes(tmp_path / "ro", log) == {"StoreUnavailableError": 1}

    @pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
    def test_a_file_system_that_takes_no_files(self, log):
        assert "StoreUnavailableError" in self.passes("/proc/turngate", log)

    def test_a_corrupt_database(self, tmp_path, log):
        (tmp_path / "turngate.sqlite3").write_bytes(b"this is no database, " * 1000)
        assert self.passes(tmp_path, log)

    def test_a_locked_database(self, tmp_path, log, make_log):
        settings = Settings(store=StoreSettings(busy_timeout_ms=1))
        with Gate.open(tmp_path, settings) as gate:
            gate.session("s").tool_result(name="bash", text=make_log(500, "first"))
        with closing(sqlite3.connect(tmp_path / "turngate.sqlite3")) as other:
            other.execute("begin exclusive")
            assert self.passes(tmp_path, log, settings) == {"StoreUnavailableError": 1}

    def test_a_full_store(self, tmp_path):
        settings = Settings(store=StoreSettings(max_bytes=1024**2))
        with Gate.open(tmp_path, settings) as gate:
            session = gate.session("s")
            for number in range(12):
                text = "".join(f"{os.urandom(120).hex()} {number}\n" for _ in range(1_000))
                shown = session.tool_result(name="bash", text=text)
                assert shown is text or session.retrieve(shown.partition("\n")[0]).text == text
            assert session.stats().faults["StoreFullError"]
