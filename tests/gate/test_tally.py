from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from turngate.tally import MAX_NAMES, OTHER, Flow, Tally

number = st.integers(0, 10**6)
flow = st.builds(Flow, number, number, number, number, number, number)


@given(st.lists(st.tuples(flow, st.sampled_from("abc")), max_size=8))
def test_tools_add_up_to_the_total(seen):
    tally = Tally()
    for one, tool in seen:
        tally.saw(one, tool=tool)
    stats = tally.stats()
    assert sum(stats.by_tool.values(), Flow()) == stats.total == sum((one for one, _ in seen), Flow())


def test_past_so_many_names_further_ones_are_counted_together():
    tally = Tally()
    for one in range(MAX_NAMES + 50):
        tally.saw(Flow(results=1), tool=f"tool-{one}")
    table = tally.stats().by_tool
    assert len(table) == MAX_NAMES + 1
    assert table[OTHER].results == 50


def test_only_the_first_fault_of_a_class_is_new():
    tally = Tally()
    assert [tally.fault("A"), tally.fault("A"), tally.fault("B")] == [True, False, True]


def test_what_was_handed_out_is_not_changed_by_what_comes_later():
    tally = Tally()
    tally.saw(Flow(results=1), tool="a", passed="small")
    before = tally.stats()
    tally.saw(Flow(results=1), tool="a", passed="small")
    assert before.by_tool["a"].results == before.passed["small"] == 1


def test_threads_lose_no_count():
    tally = Tally()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: tally.saw(Flow(results=1), tool="a", kind="log"), range(2_000)))
    assert tally.stats().total.results == 2_000
    assert tally.stats().by_kind["log"].results == 2_000
