"""`stats`, `gc`, `doctor`, and that looking never writes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest


class TestLooking:
    @pytest.mark.parametrize("argv", [("retrieve", "0123456789abcdef"), ("search", "x"), ("stats",), ("gc",)])
    def test_without_a_store_it_says_where_none_is_and_creates_none(self, run, data_dir, argv):
        done = run(*argv)
        assert (done.code, done.out) == (1, b"")
        assert f"there is no store at {data_dir}" in done.err
        assert not data_dir.exists()

    def test_doctor_creates_none_either(self, run, data_dir):
        assert run("doctor").code == 0
        assert not data_dir.exists()

    def test_the_folder_can_be_named(self, run, log, tmp_path):
        run("--data-dir", tmp_path / "other", "shorten", stdin=log)
        assert run("--data-dir", tmp_path / "other", "stats").code == 0
        assert run("stats").code == 1


class TestStats:
    def test_they_count_originals(self, run, stored, log):
        value = run("stats", "--json").json
        assert (value["contents"], value["content_bytes"]) == (1, len(log))
        assert run("stats", "--session", "other", "--json").json["contents"] == 0
        shown = run("stats").text
        assert "1 time" in shown
        assert "1 times" not in shown
        assert "results shortened 1" in " ".join(shown.split())

    def test_of_originals_without_sums_it_does_not_say_that_nothing_was_saved(self, run, stored, data_dir):
        with closing(sqlite3.connect(data_dir / "turngate.sqlite3")) as conn:
            conn.execute("delete from saving")
            conn.commit()
        shown = run("stats").text
        assert "not known" in shown
        assert "0 tokens" not in shown


class TestGc:
    def test_what_is_in_view_of_a_live_session_stays(self, run, stored):
        assert run("gc", "--json").json["removed"] == 0
        assert run("retrieve", stored).code == 0
        shown = run("gc").text
        assert "0 originals of 0 bytes" in shown
        assert "size limit   2.1 GB" in shown


class TestDoctor:
    def states(self, done):
        return {finding["state"] for finding in done.json}

    def test_all_is_well_with_a_good_store(self, run, stored):
        done = run("doctor", "--json")
        assert (done.code, self.states(done)) == (0, {"ok"})
        assert "1 original of 1 session," in run("doctor").text

    def test_an_unknown_environment_name_is_a_note_with_the_nearest(self, run, monkeypatch):
        monkeypatch.setenv("TURNGATE_BUGET", "wide")
        done = run("doctor")
        assert done.code == 0
        assert "did you mean TURNGATE_BUDGET?" in done.text

    def test_a_fault_in_the_settings_is_a_problem(self, run, tmp_path):
        path = tmp_path / "config.toml"
        path.write_text("bugdet = 'wide'\n")
        done = run("--config", path, "doctor")
        assert done.code == 1
        assert "did you mean 'budget'?" in done.text

    def test_switched_off_is_a_note(self, run, monkeypatch):
        monkeypatch.setenv("TURNGATE_ENABLED", "no")
        assert "switched off" in run("doctor").text

    def test_a_corrupt_database_is_a_problem_and_stays_as_it_is(self, run, data_dir):
        data_dir.mkdir()
        (data_dir / "turngate.sqlite3").write_bytes(b"no database " * 500)
        done = run("doctor", "--json")
        assert done.code == 1
        assert "problem" in self.states(done)
        assert (data_dir / "turngate.sqlite3").read_bytes() == b"no database " * 500

    def test_a_file_where_the_folder_should_be_is_a_problem(self, run, data_dir):
        data_dir.write_text("x")
        assert "is not a folder" in run("doctor").text

    @pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
    def test_a_database_that_others_can_read_is_a_note(self, run, stored, data_dir):
        (data_dir / "turngate.sqlite3").chmod(0o644)
        assert "chmod 600" in run("doctor").text

    def test_damaged_content_is_found(self, run, stored, data_dir):
        with closing(sqlite3.connect(data_dir / "turngate.sqlite3")) as conn:
            tables = [row[0] for row in conn.execute("select name from sqlite_master where type = 'table'")]
            blobs = [
                (table, column[1])
                for table in tables
                if "fts" not in table.lower()
                for column in conn.execute(f"pragma table_info({table})")
                if column[2].upper() == "BLOB"
            ]
            for table, column in blobs:
                conn.execute(f"update {table} set {column} = x'00' || substr({column}, 2)")
            conn.commit()
        assert blobs
        assert run("doctor").code == 1
        done = run("retrieve", stored)
        assert (done.code, done.out) == (1, b"")


class TestUsersErrors:
    """A line on stderr, never a traceback."""

    def test_settings(self, run, monkeypatch):
        monkeypatch.setenv("TURNGATE_BUDGET", "huge")
        done = run("shorten")
        assert done.code == 1
        assert "it must be one of default, wide" in done.err

    def test_a_corrupt_database(self, run, data_dir):
        data_dir.mkdir()
        (data_dir / "turngate.sqlite3").write_bytes(b"no database " * 500)
        for argv in (("stats",), ("search", "x"), ("retrieve", "0123456789abcdef"), ("gc",)):
            done = run(*argv)
            assert (done.code, done.out) == (1, b"")
            assert done.err.startswith("turngate: ")
            assert "Traceback" not in done.err

    def test_an_unknown_command_is_wrong_usage(self, run):
        assert run("shortne").code == 2
