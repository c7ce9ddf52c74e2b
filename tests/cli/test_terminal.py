"""What is different where the streams are a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX's")


def on_a_terminal(*argv, typed=b""):
    """What a program prints whose three streams are a terminal, as it sends it."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "turngate", *argv], stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        os.write(ours, typed)
        parts = []
        try:
            while part := os.read(ours, 65_536):
                parts.append(part)
        except OSError:
            pass  # so Linux says that the last writer has gone
    os.close(ours)
    return b"".join(parts).decode()


class TestOnATerminal:
    def test_it_says_that_it_waits_for_input(self):
        shown = on_a_terminal("shorten", typed=b"word\n\x04")
        assert "reading standard input; end it with Ctrl-D" in shown

    def test_a_part_ends_its_line_and_the_original_stays_as_it_is(self, run):
        data = b"\n".join(b"INFO finished job %d" % number for number in range(300)) + b" end"
        ref = run("shorten", stdin=data).text[7:23]
        assert on_a_terminal("retrieve", ref).endswith("job 299 end")
        for way in (("--grep", "end$", "--context", "0"), ("--query", "end"), ("--lines", "300")):
            printed = on_a_terminal("retrieve", ref, *way).partition("turngate: ")[0]
            assert printed.endswith("job 299 end\r\n"), way

    def test_what_is_shortened_ends_its_line(self, log, tmp_path):
        (tmp_path / "x.log").write_bytes(log.removesuffix(b"\n"))
        assert on_a_terminal("shorten", str(tmp_path / "x.log")).endswith("job 899 done\r\n")
