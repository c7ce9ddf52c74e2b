"""What is remembered of a session's results."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.across import MAX_ENTRIES, Entry, Memory
from turngate.across.memory import decode


def entry(n, **more):
    return Entry(f"c{n}", f"{n:064d}", "whole", "read: a", 200, 10, **more)


def test_the_oldest_go_and_the_newest_are_found():
    memory = Memory(entry(n) for n in range(MAX_ENTRIES + 150))
    assert MAX_ENTRIES <= len(memory.entries) <= MAX_ENTRIES + 100
    standing = memory.standing("new", "x", None)
    assert standing.same(f"{0:064d}") is None
    assert standing.same(f"{MAX_ENTRIES + 149:064d}").call == f"c{MAX_ENTRIES + 149}"
    assert [each.call for each in standing.whole(2)] == [f"c{MAX_ENTRIES + 148}", f"c{MAX_ENTRIES + 149}"]


CHANGES = st.lists(st.tuples(st.sampled_from(["add", "leave"]), st.integers(0, 9)), max_size=30)


@given(CHANGES, st.sampled_from([0, MAX_ENTRIES + 95]))
@settings(max_examples=30)
def test_it_comes_back_from_its_bytes_whatever_became_of_it(changes, before):
    memory = Memory(entry(1000 + n) for n in range(before))
    for change, n in changes:
        if change == "add":
            memory.add(entry(n, shown="ab", of=("c1",)))
        else:
            memory.leave([f"c{n}", f"c{1000 + n}"] if n else None)
        assert decode(memory.encode()).entries == memory.entries


@pytest.mark.parametrize("data", [b"", b"damage", Memory().encode()[:-3]])
def test_damage_is_a_value_error(data):
    with pytest.raises(ValueError, match="memory of results"):
        decode(data)


def test_what_is_known_is_not_noted_twice():
    memory = Memory([entry(1)])
    assert not memory.add(entry(1))
    assert memory.leave(["c1"])
    assert not memory.leave(None)
