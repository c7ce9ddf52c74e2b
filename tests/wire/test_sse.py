"""Frames are split where they end, keep their bytes, and read as the standard has it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.wire import sse
from turngate.wire.sse import Frame, Frames, encode, parse, with_data

ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])
LINES = st.sampled_from(
    [b"data: {}", b"data:x", b"event: e", b": note", b"id: 1", "data: é🙂".encode(), b"data"]
)


def cut(data, places):
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(marks)]


@given(
    st.binary(max_size=60) | st.text("\r\nda: x", max_size=60).map(str.encode), st.lists(st.integers(0, 99))
)
def test_every_byte_comes_out_once_and_in_order(data, places):
    frames = Frames()
    out = [frame for chunk in cut(data, places) for frame in frames.feed(chunk)]
    assert b"".join(out) + frames.rest() == data
    assert frames.rest() == b""


@given(
    st.lists(st.tuples(st.lists(LINES, min_size=1, max_size=3), ENDINGS), max_size=5),
    st.lists(st.integers(0, 999)),
)
def test_frames_are_the_same_wherever_chunks_end(made, places):
    wanted = [b"".join(line + ending for line in lines) + ending for lines, ending in made]
    frames = Frames()
    got = [frame for chunk in cut(b"".join(wanted), places) for frame in frames.feed(chunk)]
    rest = frames.rest()
    assert [*got, *([rest] if rest else [])] == wanted


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), min_size=1), ENDINGS)
def test_data_lines_are_joined(texts, ending):
    raw = b"event: e" + ending + b"".join(b"data: " + text.encode() + ending for text in texts) + ending
    assert parse(raw) == Frame("e", "\n".join(texts).encode())


@pytest.mark.parametrize(
    ("raw", "frame"),
    [
        (b"\xef\xbb\xbfdata: x\n\n", Frame("", b"x")),
        (b"data:  x\n\n", Frame("", b" x")),
        (b"data\n\n", Frame("", b"")),
        (b": data: x\n\n", Frame("", b"")),
        (b"event: a\nevent: b\ndata: x\nid: 1\n\n", Frame("b", b"x")),
    ],
)
def test_fields_are_read_as_the_standard_has_it(raw, frame):
    assert parse(raw) == frame


@given(st.lists(LINES, max_size=4), ENDINGS)
def test_other_data_leaves_the_rest_of_a_frame(lines, ending):
    raw = b"".join(line + ending for line in [*lines, b"data: {}"]) + ending
    new = with_data(raw, b"[1]")
    assert parse(new) == Frame(parse(raw).event, b"[1]")
    others = [line for line in lines if not line.startswith(b"data")]
    assert all(line + ending in new for line in others)
    assert new.endswith(ending * 2)


def test_a_frame_of_ours_reads_back():
    assert parse(encode("e", b"{}")) == Frame("e", b"{}")
    assert encode("", b"{}") == b"data: {}\n\n"


def test_a_frame_without_end_is_handed_on_in_pieces(monkeypatch):
    monkeypatch.setattr(sse, "MOST_FRAME_BYTES", 10)
    frames = Frames()
    assert frames.feed(b"data: 1234") == []
    assert frames.feed(b"5") == [b"data: 12345"]
    assert frames.feed(b"\n\n") == [b"\n\n"]


def test_work_grows_with_the_bytes_not_with_their_square():
    class Counted:
        looked = 0

        def __init__(self, inner):
            self.inner = inner

        def search(self, data, at):
            Counted.looked += len(data) - at
            return self.inner.search(data, at)

    counted = Counted(sse._END)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sse, "_END", counted)
        frames = Frames()
        for _ in range(5_000):
            frames.feed(b"x")
    assert Counted.looked <= 5_000 * 4
