from __future__ import annotations

import pytest

from turngate.errors import UnknownContentError
from turngate.store import codec


def same_always(data: bytes, length: int) -> str:
    return "a" * length


def test_a_child_sees_what_its_ancestors_stored_and_no_more(store):
    store.open_session("child", parent="root")
    store.open_session("grandchild", parent="child")
    ref = store.put(b"of root", session="root").id
    mine = store.put(b"of grandchild", session="grandchild").id
    assert store.known([ref, mine, "0" * 16], session="grandchild").keys() == {ref, mine}
    assert store.known([ref, mine], session="root").keys() == {ref}
    assert store.known([ref], session="stranger") == {}


def test_a_circle_of_parents_ends_the_search(store):
    store.open_session("a", parent="b")
    store.open_session("b", parent="a")
    ref = store.put(b"x", session="a").id
    assert store.get(ref, session="b").data == b"x"


def test_a_session_keeps_the_first_parent_it_was_given(store):
    store.put(b"x", session="child")
    store.open_session("child", parent="first")
    store.open_session("child", parent="second")
    ref = store.put(b"secret of second", session="second").id
    with pytest.raises(UnknownContentError, match="session 'child' may see"):
        store.get(ref, session="child")


def test_only_the_exact_id_or_the_full_hash_resolves(store):
    stored = store.put(b"content", session="s")
    assert store.get(stored.sha256).id == stored.id
    for ref in (stored.id[:-1], stored.sha256[:20], stored.id.upper(), "", "ä\ud800", stored.id + " "):
        if ref != stored.id:
            with pytest.raises(UnknownContentError):
                store.get(ref)


def test_colliding_ids_grow_and_each_keeps_its_content(make_store):
    store = make_store(short_hash=same_always)
    contents = [f"content {number}".encode() for number in range(14)]
    ids = [store.put(data, session="s").id for data in contents]
    assert len(set(ids)) == len(ids)
    assert len(ids[0]) == 16
    assert [len(ref) for ref in ids] == sorted(len(ref) for ref in ids)
    assert ids[-1] == codec.digest(contents[-1])
    assert [store.get(ref, session="s").data for ref in ids] == contents
    assert [store.put(data, session="s").id for data in contents] == ids


def test_a_noted_content_is_in_scope_from_then_on(store):
    stored = store.put(b"seen by another", session="a")
    store.note("b", stored.sha256, turn=2, how="retrieved")
    assert store.get(stored.id, session="b").data == b"seen by another"
    with pytest.raises(UnknownContentError):
        store.note("b", "0" * 64, turn=2, how="retrieved")


def test_turns_count_up_for_each_session(store):
    assert store.turn("a") == 0
    assert [store.next_turn("a"), store.next_turn("a"), store.next_turn("b")] == [1, 2, 1]
    store.close()
    assert (store.turn("a"), store.turn("b")) == (2, 1)


def test_statistics_of_a_session_count_what_it_may_see(store):
    store.put(b"x" * 100, session="a")
    store.put(b"y", session="b")
    store.open_session("child", parent="a")
    assert store.stats(session="child").contents == 1
    assert store.stats(session="child").content_bytes == 100
    assert (store.stats().contents, store.stats().sightings) == (2, 2)


def test_known_takes_more_references_than_one_statement_can(store):
    refs = [store.put(str(number).encode(), session="s").id for number in range(30)]
    many = refs + [f"{number:016x}" for number in range(2_000)]
    assert store.known(many, session="s").keys() == set(refs)


def test_names_of_any_length_are_told_apart(store):
    long, other = "𝒏" * 5_000 + "a", "𝒏" * 5_000 + "b"
    stored = store.put(b"content", session=long, call_id=other, tool=long)
    store.put(b"content of another", session=other)
    assert store.get(stored.id, session=long).data == b"content"
    with pytest.raises(UnknownContentError):
        store.get(stored.id, session=other)
