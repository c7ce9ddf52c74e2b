from __future__ import annotations

import random

import pytest

from turngate.errors import StoreFullError, UnknownContentError
from turngate.settings import StoreSettings
from turngate.store.connections import disk_bytes

MIB = 1024**2


def noise(seed, size=20_000):
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(size)


def fill(store, session, count, start=0):
    return [store.put(noise(number), session=session).id for number in range(start, start + count)]


def settings(**changes):
    return StoreSettings(**({"max_bytes": 2 * MIB, "live_days": 30, "busy_timeout_ms": 2_000} | changes))


def there(store, refs):
    found = []
    for ref in refs:
        try:
            found.append(store.get(ref).id)
        except UnknownContentError:
            continue
    return found


def test_a_full_store_makes_room_by_what_is_out_of_view_oldest_first(make_store, clock, path):
    store = make_store(settings())
    old = fill(store, "old", 40)
    clock.pass_days(31)
    middle = fill(store, "middle", 30, start=100)
    clock.pass_days(31)
    new = fill(store, "new", 60, start=200)
    assert there(store, new) == new
    left_old, left_middle = there(store, old), there(store, middle)
    assert left_old == [] or left_middle == middle
    assert len(left_old) + len(left_middle) < 70
    assert disk_bytes(path) <= 2 * MIB


def test_a_store_full_of_what_is_in_view_refuses_and_says_so(make_store, clock):
    store = make_store(settings())
    with pytest.raises(StoreFullError, match=r"raise store\.max_bytes or lower store\.live_days"):
        fill(store, "live", 200)
    kept = store.stats().contents
    assert kept > 50
    assert store.put(noise(0), session="other").new is False, "what is stored takes no room"
    report = store.gc()
    assert report.removed == 0
    assert store.stats().contents == kept


def test_check_tells_when_what_is_in_view_exceeds_the_limit(make_store, clock):
    make_store(settings(max_bytes=4 * MIB)).put(noise(1, 3 * MIB), session="live")
    [problem] = make_store(settings(max_bytes=MIB)).check()
    assert problem.severe
    assert "new results pass unshortened" in problem.what
    clock.pass_days(31)
    assert not any(problem.severe for problem in make_store(settings(max_bytes=MIB)).check())


def test_a_refused_put_is_taken_again_when_sessions_have_gone_cold(make_store, clock):
    store = make_store(settings())
    with pytest.raises(StoreFullError):
        fill(store, "live", 200)
    clock.pass_days(31)
    assert store.put(noise(999), session="next").new


def test_collecting_gives_space_back_to_the_disk(make_store, clock, path):
    store = make_store(settings(max_bytes=64 * MIB, max_age_days=100))
    fill(store, "old", 100)
    store.drain()
    before = disk_bytes(path)
    clock.pass_days(101)
    report = store.gc()
    assert report.removed == 100
    assert report.removed_bytes == 100 * 20_000
    assert report.freed_bytes == before - disk_bytes(path) > 1.9 * MIB
    assert report.disk_bytes == disk_bytes(path) < MIB / 4


def test_age_alone_never_removes_what_a_live_session_saw(make_store, clock):
    store = make_store(settings(max_age_days=10))
    ref = store.put(b"old but in view", session="live").id
    gone = store.put(b"old and out of view", session="dead").id
    clock.pass_days(200)
    store.touch("live")
    assert store.gc().removed == 1
    assert there(store, [ref, gone]) == [ref]


def test_a_live_child_keeps_what_its_parent_was_shown(make_store, clock):
    store = make_store(settings(max_age_days=10))
    ref = store.put(b"shown to the parent", session="parent").id
    store.open_session("child", parent="parent")
    clock.pass_days(200)
    store.touch("child")
    assert store.gc().removed == 0
    assert store.get(ref, session="child").data == b"shown to the parent"


def test_a_child_that_is_gone_takes_nothing_of_its_parent_along(make_store, clock):
    store = make_store(settings(max_age_days=10))
    shared = store.put(b"both saw it", session="parent").id
    store.open_session("child", parent="parent")
    store.put(b"both saw it", session="child")
    only_child = store.put(b"the child alone", session="child").id
    clock.pass_days(60)
    store.touch("parent")
    store.gc()
    assert there(store, [shared, only_child]) == [shared]
    assert store.get(shared, session="parent").data == b"both saw it"


def test_what_is_removed_is_no_longer_found(make_store, clock):
    store = make_store(settings(max_age_days=10))
    store.put(b"needle one", session="dead")
    store.drain()
    clock.pass_days(60)
    kept = store.put(b"needle two", session="live")
    store.gc()
    assert [hit.id for hit in store.search("needle", session=None)] == [kept.id]
    again = store.put(b"needle one", session="live")
    assert again.new
    assert {hit.id for hit in store.search("needle", session=None)} == {kept.id, again.id}


def test_another_redactor_does_not_spoil_the_index_when_contents_go(make_store, clock):
    store = make_store(settings(max_age_days=10))
    store.put(b"needle swordfish", session="dead")
    store.drain()
    clock.pass_days(60)
    kept = store.put(b"needle swordfish again", session="live")
    store.drain()
    other = make_store(settings(max_age_days=10), redactor=lambda text: text.replace("swordfish", "[gone]"))
    assert other.gc().removed == 1
    assert [hit.id for hit in other.search("needle", session="live")] == [kept.id]
    assert other.search("swordfish", session="live") == []
