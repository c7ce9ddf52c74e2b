"""How full the window is, and what a compaction makes of the host's list; without the host."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate import wire
from turngate.gate import Gate
from turngate.hermes.compacting import Request, compact, focused, go_on, prune, root_of, selected
from turngate.hermes.gauge import Gauge
from turngate.hermes.host import Host
from turngate.settings import Settings
from turngate.window import Sizes
from turngate.window.record import frame

LIMIT = 10_000


class TestGauge:
    def test_the_hosts_estimate_is_corrected_by_what_the_provider_reports(self):
        gauge = Gauge(limit_tokens=LIMIT)
        gauge.told(5_000)
        assert not gauge.is_full(5_000)
        gauge.reported(10_000)
        gauge.told(6_000)
        assert gauge.is_full(6_000)
        gauge.told(4_900)
        assert not gauge.is_full(4_900)

    def test_a_compaction_that_wins_nothing_waits_for_a_tenth_and_never_for_good(self):
        gauge = Gauge(limit_tokens=LIMIT)
        assert gauge.is_full(10_500)
        gauge.tried(forced=False)
        assert not gauge.is_full(10_500)
        assert not gauge.is_full(11_400)
        assert gauge.is_full(11_500)

    def test_after_one_that_wins_the_limit_counts_again(self):
        gauge = Gauge(limit_tokens=LIMIT)
        assert gauge.is_full(10_500)
        gauge.tried(forced=False)
        assert not gauge.is_full(4_000)
        assert not gauge.is_full(9_999)
        assert gauge.is_full(10_000)

    @given(
        st.lists(st.tuples(st.sampled_from(["told", "reported", "full", "tried"]), st.integers(-1, 100_000)))
    )
    def test_it_never_asks_twice_without_growth(self, steps):
        gauge, last = Gauge(limit_tokens=LIMIT), None
        for step, number in steps:
            if step == "told":
                gauge.told(number)
            elif step == "reported":
                gauge.reported(number)
            elif step == "tried":
                gauge.tried(forced=False)
                last = "tried"
            elif gauge.is_full(number):
                assert last != "tried"
                assert gauge.corrected(number) >= LIMIT
            elif number > 0:
                last = None

    @given(
        st.floats(0, 1e6), st.none() | st.integers(-1, 200_000), st.integers(0, 200_000), st.integers(0, 5)
    )
    def test_there_is_always_some_room(self, weight, current, rough, refusals):
        gauge = Gauge(limit_tokens=LIMIT, rough_tokens=rough, refusals=refusals)
        assert gauge.room(weight, current, weight / 2) >= 1

    def test_each_refusal_halves_what_is_believed(self):
        gauge = Gauge(limit_tokens=LIMIT)
        rooms = []
        for _ in range(3):
            gauge.tried(forced=False)
            rooms.append(gauge.room(6_000, None, 6_000))
        assert rooms == [4_500, 3_375, 2_531.25]
        gauge.reported(100)
        assert gauge.refusals == 0

    def test_it_can_be_copied(self):
        gauge = Gauge(limit_tokens=3)
        assert copy.deepcopy(gauge) == gauge


def user(text, **more):
    return {"role": "user", "content": text, "_db_persisted": True} | more


def exchange(number, size=300):
    made = {"id": f"c{number}", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    text = json.dumps({"output": f"result {number} " * (size // 10), "exit_code": 0})
    return [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [made],
            "finish_reason": "tool_calls",
            "_db_persisted": True,
        },
        {
            "role": "tool",
            "content": text,
            "tool_call_id": f"c{number}",
            "tool_name": "terminal",
            "_db_persisted": True,
        },
    ]


def history(exchanges, size=300):
    return [
        user("old question", api_content="old question\n\n[injected]"),
        *(message for number in range(exchanges) for message in exchange(number, size)),
        user("new question", api_content="new question\n\n[injected]"),
        *exchange(900),
    ]


@pytest.fixture
def here(tmp_path):
    with Gate.open(settings=Settings(data_dir=tmp_path)) as gate:
        yield Host(gate)


def squeeze(here, messages, session="s", **request):
    gauge = Gauge(limit_tokens=2_000)
    gauge.is_full(9_999)
    return compact(here, session, messages, gauge, Request(**request))


class TestCompact:
    def test_what_stays_keeps_what_the_host_attached(self, here):
        messages = history(20)
        out = squeeze(here, messages).messages
        newest = next(message for message in out if message["content"] == "new question")
        assert newest["api_content"] == "new question\n\n[injected]"
        assert out[-1]["tool_name"] == "terminal"
        assert not any("_db_persisted" in message for message in out)
        assert wire.violations(out, "chat") == []

    def test_the_record_is_a_block_of_its_own_so_that_the_host_adds_nothing_to_it(self, here):
        (made,) = [m for m in squeeze(here, history(20)).messages if frame.text_of(m)]
        assert [set(block) for block in made["content"]] == [{"type", "text"}]
        assert "api_content" not in made

    def test_the_list_that_came_is_not_touched(self, here):
        messages = history(20)
        before = copy.deepcopy(messages)
        squeeze(here, messages)
        assert messages == before

    def test_a_second_one_extends_the_record(self, here):
        first = squeeze(here, history(20)).messages
        more = [*first, *(message for number in range(100, 120) for message in exchange(number))]
        records = [frame.text_of(m) for m in squeeze(here, more).messages if frame.text_of(m)]
        assert len(records) == 1
        assert records[0].count("<<<CCR:") >= 2

    def test_nothing_to_win_is_none(self, here):
        assert squeeze(here, [user("hi"), *exchange(1, 20), user("bye")]) is None

    def test_what_a_user_names_stays(self, here):
        messages = history(20)
        messages[5] = messages[5] | {"content": "the banana is in the cellar"}
        kept = squeeze(here, messages, focus="Banana cellar").messages
        assert any(message["content"] == "the banana is in the cellar" for message in kept)
        lost = squeeze(here, messages, session="other").messages
        assert not any(message["content"] == "the banana is in the cellar" for message in lost)

    def test_a_focus_takes_no_more_than_its_share(self):
        messages = [user(f"banana {number} " * 50) for number in range(50)]
        sizes = Sizes()
        chosen = focused(messages, "banana", 2_000, sizes)
        assert chosen == sorted(chosen, reverse=True)
        assert sum(sizes.message(messages[at]) for at in chosen) <= 500
        assert focused(messages, "", 2_000, sizes) == []

    def test_by_hand_it_happens_before_the_window_is_full(self, here):
        gauge = Gauge(limit_tokens=1_000_000)
        assert compact(here, "s", history(20), gauge, Request(forced=True)) is not None
        assert gauge.refusals == 0

    def test_what_memory_says_is_told_in_the_next_turn(self, here):
        squeeze(here, history(20), memory="the user likes short answers")
        assert "the user likes short answers" in here.gate.session("s").flow.state().nudges[0].text

    @settings(max_examples=25, deadline=None)
    @given(st.integers(4, 30), st.integers(20, 2_000), st.integers(200, 6_000))
    def test_whatever_comes_the_list_stays_valid_and_gets_lighter(self, exchanges, size, limit):
        with Gate.open(settings=Settings(data_dir=self.folder)) as gate:
            gauge = Gauge(limit_tokens=limit)
            gauge.is_full(limit)
            messages = history(exchanges, size)
            found = compact(Host(gate), f"{exchanges}-{size}-{limit}", messages, gauge, Request())
        if found is not None:
            sizes = Sizes()
            assert wire.violations(found.messages, "chat") == []
            assert sizes.messages(found.messages) < sizes.messages(messages)
            assert "new question" in [message["content"] for message in found.messages]

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path_factory, request):
        type(self).folder = tmp_path_factory.mktemp("compact")


class TestOtherDoors:
    def test_a_conversation_under_a_new_id_goes_on_with_its_window(self, here):
        go_on(here, "one", "two")
        go_on(here, "two", "three")
        assert root_of(here, "three") == root_of(here, "two") == "one"
        assert here.gate.session("three").parent == "two"

    def test_pruning_puts_markers_in_the_place_of_old_results_only(self, here):
        messages = history(20, 3_000)
        pruned = prune(here, "s", messages)
        assert wire.violations(pruned, "chat") == []
        old = [m["content"] for m in messages if m["role"] == "tool"]
        new = [m["content"] for m in pruned if m["role"] == "tool"]
        assert new[-6:] == old[-6:]
        assert all(text.startswith("<<<CCR:") and "\n" not in text for text in new[:-6])
        first = new[0].split("CCR:")[1].split("|")[0]
        assert here.gate.session("s").retrieve(first).text == old[0]
        few = history(3)
        assert prune(here, "s", few) is few

    def test_a_request_that_fits_is_the_very_one(self, here):
        messages = history(3)
        assert selected(here, "s", messages, 100_000) is messages

    def test_a_request_that_does_not_fit_is_the_same_short_one_every_time(self, here):
        messages = history(40)
        first = selected(here, "s", messages, 2_000)
        assert len(first) < len(messages)
        assert selected(here, "s", messages, 2_000) == first
