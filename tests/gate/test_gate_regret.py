"""What was often asked for is shown at greater length, in sessions that begin later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turngate import marker
from turngate.gate import Gate
from turngate.regret import MOST_FACTOR, factor, factors_of, for_tool
from turngate.settings import Settings
from turngate.store import Asked


def varied(tag, lines=900):
    """A log of which no two lines say the same."""
    words = ["cache", "queue", "socket", "lease", "shard", "quota", "replica", "index", "token", "mount"]
    return "".join(
        f"10:{n // 60:02d}:{n % 60:02d} INFO {words[n % 10]}{n * 31 % 89} of {words[n // 10 % 10]} "
        f"{tag} {words[n // 100]}-{words[n * 7 % 9]} took {n * 7919 % 997} ms\n"
        for n in range(lines)
    )


def asks_back(gate, sessions, tool="bash"):
    for n in range(sessions):
        session = gate.session(f"old-{tool}-{n}")
        shown = session.tool_result(name=tool, text=varied(f"{tool}{n}"))
        session.retrieve(marker.parse(shown).hash, lines=(1, 5))


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_curve_rises_and_is_bounded(one, other):
    low, high = sorted((one, other))
    assert 1 <= factor(low) <= factor(high) <= MOST_FACTOR


def test_a_few_results_say_little_and_what_is_usual_nothing():
    assert factors_of([Asked("log", "bash", 100, 10)]) == {}
    assert factors_of([Asked("log", "bash", 1, 1)])["log"] < 1.2
    assert factors_of([Asked("log", "bash", 100, 60)])["log"] > 1.8


def test_a_tool_that_differs_from_its_kind_has_a_factor_of_its_own():
    found = factors_of([Asked("log", "bash", 200, 0), Asked("log", "ci", 50, 40)])
    assert for_tool(found, "ci")["log"] > for_tool(found, "other").get("log", 1.0)
    assert for_tool(found, "bash").get("log", 1.0) == 1.0


def test_the_store_counts_by_kind_and_tool(gate, make_log):
    asks_back(gate, 3)
    gate.session("x").tool_result(name="bash", text=make_log(900, "x"))
    gate.session("x").tool_result(name="read_file", text=make_log(900, "y"), call_id="c1")
    assert gate.store.asked() == [Asked("log", "bash", 4, 3)]


def test_a_searchs_best_answer_counts_and_the_others_do_not(gate, make_log):
    session = gate.session("s")
    for tag in ("alpha", "beta"):
        session.tool_result(name="bash", text=make_log(900, tag))
    assert len(session.search("ledger of alpha does not add up")) > 1
    assert gate.store.asked() == [Asked("log", "bash", 2, 1)]


def test_new_sessions_show_more_and_old_ones_what_they_always_did(tmp_path):
    text = varied("same")
    with Gate.open(tmp_path, Settings()) as gate:
        before = gate.session("old").tool_result(name="bash", text=text)
        asks_back(gate, 12)
        assert gate.session("old").tool_result(name="bash", text=text) == before
        new = gate.session("new").tool_result(name="bash", text=text)
        assert len(new) > 1.1 * len(before)
        assert gate.session("child", parent="old").tool_result(name="bash", text=text) == before
    with Gate.open(tmp_path, Settings()) as again:
        assert again.session("old").tool_result(name="bash", text=text) == before
        assert again.session("new").tool_result(name="bash", text=text) == new
    with Gate.open(tmp_path, Settings(regret=False)) as off:
        assert off.session("off").tool_result(name="bash", text=text) == before
