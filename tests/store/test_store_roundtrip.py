from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.errors import UnknownContentError
from turngate.store import SqliteStore, codec, decode, line_count, split_lines, to_bytes, to_text
from turngate.store.lines import line_starts

any_text = st.text(st.characters(codec=None, categories=None) | st.sampled_from("\n\r\ud800\udfff\x00"))


@pytest.fixture(scope="module")
def shared():
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.db")
        yield store
        store.close()


@given(data=st.binary(max_size=5_000))
@settings(max_examples=60, deadline=None)
def test_any_bytes_come_back_by_id_and_by_hash(shared, data):
    stored = shared.put(data, session="s")
    for ref in (stored.id, stored.sha256):
        assert shared.get(ref, session="s").data == data
    assert stored.size == len(data)
    assert not stored.redacted


@given(text=any_text)
@settings(max_examples=60, deadline=None)
def test_any_text_comes_back_lone_surrogates_included(shared, text):
    stored = shared.put(to_bytes(text), session="s")
    assert shared.get(stored.id).text == text


@given(data=st.binary() | any_text.map(to_bytes))
def test_text_of_any_bytes_turns_into_the_same_bytes(data):
    text, errors = decode(data)
    assert text == to_text(data)
    assert text.encode("utf-8", errors) == data


@given(session=any_text, tool=any_text)
@settings(max_examples=30, deadline=None)
def test_any_string_is_a_session_of_its_own(shared, session, tool):
    ref = shared.put(to_bytes(f"of {session} by {tool}"), session=session, tool=tool).id
    original = shared.get(ref, session=session)
    assert original.tool == tool
    with pytest.raises(UnknownContentError):
        shared.get(ref, session=session + "x")
    assert {hit.session for hit in shared.search("of", session=session)} == {session}


def test_the_same_content_is_stored_once_and_keeps_its_id(store):
    first = store.put(b"same", session="a")
    again = store.put(b"same", session="b", turn=3)
    assert (first.new, again.new) == (True, False)
    assert first.id == again.id
    assert store.stats().contents == 1


@pytest.mark.parametrize("data", [b"", b"x", b"\n" * 1_000_000, bytes(range(256)) * 400])
def test_packing_never_grows_content_and_unpacks_to_it(data):
    used, packed = codec.pack(data)
    assert len(packed) <= len(data)
    assert codec.unpack(used, packed, size=len(data), sha256=codec.digest(data)) == data


@given(text=st.text(st.sampled_from("ab\r\n")))
def test_lines_have_one_definition(text):
    starts = line_starts(text)
    assert split_lines(text) == [text[a:b].removesuffix("\n") for a, b in pairwise(starts)]
    assert line_count(text) == len(split_lines(text))
    assert "\n".join(split_lines(text)) == text.removesuffix("\n")
