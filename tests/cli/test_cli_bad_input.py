"""Input and disks that break other tools, through the command line."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

DATA = {
    "binary": random.Random(1).randbytes(150_000),
    "binary of few values": bytes(random.Random(2).choices(b"\x00\x01\xff\n", k=150_000)),
    "invalid UTF-8": b"caf\xe9 au lait, na\xefve\n" * 3_000,
    "encoded surrogates": b"a \xed\xa0\x80 b \xed\xb2\x80\n" * 3_000,
    "a byte order mark": b"\xef\xbb\xbf" + b"row \xef\xbb\xbf of text\r\n" * 3_000,
    "NUL": b"a\x00b\x00\n" * 5_000,
    "one long line": b"x1 " * 500_000,
    "empty lines": b"\n" * 200_000,
    "no final line break": b"same line here\n" * 3_000 + b"end",
    "deep JSON": b"[" * 10_000 + b"]" * 10_000,
    "duplicate keys": b"[" + b",".join([b'{"k": 1, "k": {"k": 2}}'] * 900) + b"]",
    "huge numbers": b"[" + b",".join([b'{"n": 1e400, "m": -0.0}'] * 900) + b"]",
    "look-alikes": b"<<<CCR:0123456789abcdef|tool|9|inline>>> x [CCR:0123456789abcdef|t|1]\n" * 2_000,
}


@pytest.mark.parametrize("name", DATA)
def test_it_comes_out_as_it_went_in_or_comes_back_identical(run, name):
    data = DATA[name]
    done = run("shorten", stdin=data)
    assert done.code == 0
    assert done.err.startswith("turngate: passed whole: ") if done.out == data else done.err == ""
    if done.out != data:
        assert len(done.out) < len(data)
        back = run("retrieve", done.out[7 : done.out.index(b"|")].decode())
        assert (back.code, back.out) == (0, data)


@pytest.mark.parametrize("name", DATA)
def test_without_storing_it_is_never_larger(run, name):
    done = run("shorten", "--no-store", stdin=DATA[name])
    assert done.code == 0
    assert len(done.out) <= len(DATA[name])


@pytest.mark.parametrize("name", DATA)
def test_as_json_it_is_json(run, name):
    assert isinstance(run("shorten", "--json", stdin=DATA[name]).json["text"], str)


def test_a_locked_database_is_named_and_the_original_comes_out(run, log, stored, data_dir, monkeypatch):
    monkeypatch.setenv("TURNGATE_STORE_BUSY_TIMEOUT_MS", "1")
    with closing(sqlite3.connect(data_dir / "turngate.sqlite3")) as other:
        other.execute("begin exclusive")
        done = run("shorten", stdin=log + b"another\n")
    assert (done.code, done.out) == (1, log + b"another\n")
    assert "StoreUnavailableError" in done.err


@pytest.mark.parametrize("argv", [("shorten", "none/in"), ("--data-dir", "/dev/null/x", "shorten", "in")])
def test_an_error_of_the_system_is_told_in_words(run, tmp_path, monkeypatch, log, argv):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_bytes(log)
    done = run(*argv)
    assert done.code == 1
    assert "Errno" not in done.err
    assert "No such file or directory" in done.err or "Not a directory" in done.err


def test_a_file_that_cannot_be_written_is_named(run, stored, tmp_path):
    done = run("retrieve", stored, "--output", tmp_path / "none" / "out")
    assert done.code == 1
    assert "none" in done.err
    assert "Traceback" not in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_full_disk_behind_stdout_is_an_error_and_no_traceback(stored):
    command = f"{sys.executable} -m turngate retrieve {stored} > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
