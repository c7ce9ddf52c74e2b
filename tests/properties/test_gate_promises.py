"""The promises that the gate keeps, for any text: reversible, bounded, fail open, the same every time."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from turngate import marker, tokens
from turngate.errors import StoreUnavailableError
from turngate.gate import Gate
from turngate.settings import Settings
from turngate.store import SqliteStore, to_bytes

#: Lines such as tools print, so that many of the texts are long enough and regular enough to be shortened.
line = st.one_of(
    st.text(max_size=40),
    st.builds("2025-03-04 10:00:{:02d} INFO worker job {} done".format, st.integers(0, 59), st.integers()),
    st.builds(
        "src/file{}.py:{}: error: {}".format, st.integers(0, 9), st.integers(0, 999), st.text(max_size=9)
    ),
    st.builds(
        "<<<CCR:{:016x}|tool|{}|inline>>> {}".format, st.integers(0, 2**64 - 1), st.integers(0), st.text()
    ),
    st.sampled_from(
        ["", "\x1b[31mred\x1b[0m", "\r50 %\r100 %", "E   assert 1 == 2", "+added", "-removed", "\ud800"]
    ),
)
block = st.builds(
    lambda lines, times: lines * times, st.lists(line, min_size=1, max_size=12), st.integers(1, 60)
)
record = st.dictionaries(
    st.sampled_from("abcde"), st.none() | st.integers() | st.text(max_size=12), max_size=5
)
text = st.one_of(
    st.text(),
    st.builds(lambda blocks: "\n".join(row for rows in blocks for row in rows), st.lists(block, max_size=4)),
    st.builds(
        lambda rows, times: str(rows * times).replace("'", '"'),
        st.lists(record, max_size=6),
        st.integers(1, 80),
    ),
)
tool = st.sampled_from(["terminal", "bash", "http_get", "search_files", "read_file", ""])
args = (
    st.none() | st.text(max_size=20) | st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=2)
)


@pytest.fixture(scope="module")
def gate():
    with tempfile.TemporaryDirectory() as folder, Gate.open(folder, Settings(threshold_bytes=0)) as opened:
        yield opened


@given(
    text=text,
    name=tool,
    args=args,
    failed=st.none() | st.booleans(),
    question=st.none() | st.text(max_size=30),
)
@settings(max_examples=150, deadline=None)
def test_a_result_passes_or_is_smaller_and_comes_back_identical(gate, text, name, args, failed, question):
    call = {"name": name, "text": text, "args": args, "failed": failed, "question": question}
    session = gate.session("s")
    shown = session.tool_result(**call)
    assert session.tool_result(**call) == shown
    assert session.stats().faults == {}
    event("passed" if shown is text else "shortened")
    if shown is text:
        return
    assert len(to_bytes(shown)) < len(to_bytes(text))
    assert tokens.estimate(shown) < tokens.estimate(text)
    found = marker.parse(shown)
    assert found.size == len(to_bytes(text))
    assert session.original(found.hash).data == to_bytes(text)


@given(lines=st.lists(st.binary(max_size=30), max_size=20), times=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_bytes_pass_or_come_back_identical(gate, lines, times):
    data = b"\n".join(lines * times)
    session = gate.session("bytes")
    shown = session.tool_bytes(name="terminal", data=data)
    assert session.stats().faults == {}
    if shown is not data:
        found = marker.parse(shown.decode("utf-8", "replace"))
        assert session.original(found.hash).data == data


class Failing:
    """A store whose n-th call, and every later one, fails."""

    def __init__(self, store, calls_that_work):
        self._store, self._left = store, calls_that_work

    def __getattr__(self, name):
        method = getattr(self._store, name)

        def call(*given, **named):
            self._left -= 1
            if self._left < 0:
                raise StoreUnavailableError("gone; try again")
            return method(*given, **named)

        return call


@contextmanager
def failing_after(calls):
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "x.sqlite3")
        yield Failing(store, calls), store
        store.close()


@given(calls=st.integers(0, 12))
@settings(max_examples=13, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_wherever_the_store_fails_nothing_is_lost(calls):
    texts = ["".join(f"INFO job {n} of {tag} done\n" for n in range(500)) for tag in ("a", "b", "c")]
    with failing_after(calls) as (failing, whole):
        session = Gate(failing, Settings()).session("s", parent="p")
        for original in texts:
            shown = session.tool_result(name="bash", text=original)
            if shown is not original:
                assert whole.get(marker.parse(shown).hash, session="s").data == original.encode()
