"""Telemetry and its consumers, on the recorded session and on calls made up for the case."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flow_histories import LIBRARY

from turngate import flow
from turngate.cli.demo import load_recording, recorded_results
from turngate.events import tool_event
from turngate.flow import FlowState, Item
from turngate.settings import FlowSettings

OFF = FlowSettings(error_loop=False, repeated_call=False, stale_read=False, checkpoint=False)


@pytest.fixture(scope="module")
def recorded():
    return list(recorded_results(load_recording()))


def call(state, tool, text="x" * 600, item=None, **args):
    return flow.observe(state, tool_event(tool, args, text), item)


def turns(state, *events):
    """One event a turn; the block of each turn, and the state at the end."""
    texts = []
    for event in events:
        state = flow.observe(state, event)
        state = flow.begin_turn(state, state.turn_counter + 1, LIBRARY)
        block = flow.build_turn_context(state)
        state = flow.commit(state, block)
        texts.append(block.text)
    return texts, state


def events_of(results):
    return [tool_event(result.tool, result.args, result.text) for result in results]


class TestRing:
    def test_two_hundred_events_are_kept_and_numbers_go_on(self):
        state = FlowState()
        for number in range(250):
            state = call(state, "terminal", command=f"echo {number}")
        assert (len(state.events), state.seq) == (200, 250)
        assert [event.seq for event in state.events] == list(range(51, 251))

    def test_the_window_sums_the_recorded_session(self, recorded):
        _, state = turns(FlowState(session_inject=""), *events_of(recorded))
        whole = flow.turn_window(state, 10_000)
        assert (whole.total_calls, whole.errors, whole.reads) == (53, 16, 2)
        assert whole.distinct_error_sigs == 15
        assert flow.turn_window(state, 4).total_calls == 3


class TestErrorLoop:
    def test_an_error_that_came_three_times_is_named_in_the_next_turn(self, recorded):
        """The recorded report fails on month 13; an agent tries months until it is told."""
        failing = next(result for result in recorded if "month 13" in result.text)
        tries = [
            tool_event(
                failing.tool, {"command": f"python -m shop.report {n}"}, failing.text.replace("13", str(n))
            )
            for n in range(13, 18)
        ]
        texts, _ = turns(FlowState(session_inject=""), *tries)
        assert texts[:2] == ["", ""]
        assert texts[2].startswith("[nudge: the same error came 3 times lately; ")
        assert "ReportError: no figures for month 15" in texts[2]
        assert texts[3:] == ["", ""]

    def test_different_errors_are_no_loop(self, recorded):
        texts, _ = turns(FlowState(session_inject=""), *events_of(recorded))
        assert sum("the same error" in text for text in texts) == 0

    def test_it_can_be_switched_off(self):
        bad = tool_event("terminal", {"command": "x"}, "no", failed=True)
        on, off = FlowState(session_inject=""), FlowState(session_inject="", switches=OFF)
        assert any(turns(on, *[bad] * 4)[0])
        assert not any(turns(off, *[bad] * 4)[0])


class TestRepeatedCall:
    def test_the_same_call_with_the_same_result_is_named(self, recorded):
        result = next(result for result in recorded if "python -m pip list --format" in result.args)
        event = tool_event(result.tool, result.args, result.text)
        texts, _ = turns(FlowState(session_inject=""), event, event, event)
        assert texts[0] == ""
        said = "terminal: python -m pip list --format=json gave the same result as before; use the one above"
        assert texts[1] == f"[nudge: {said}]"
        assert texts[2] == ""

    def test_the_recorded_session_repeats_none(self, recorded):
        texts, _ = turns(FlowState(session_inject=""), *events_of(recorded))
        assert texts == [""] * len(recorded)

    @pytest.mark.parametrize(
        "between",
        [
            lambda state: call(state, "write_file", path="a"),
            flow.open_epoch,
            lambda state: replace(state, switches=OFF),
        ],
        ids=["a write in between", "the first is out of view", "switched off"],
    )
    def test_it_is_no_repetition_after(self, between):
        state = call(between(call(FlowState(), "terminal", command="ls")), "terminal", command="ls")
        assert state.nudges == ()

    @pytest.mark.parametrize("other", [{"command": "ls -l"}, {"command": "ls", "text": "y" * 600}])
    def test_another_call_or_result_is_none(self, other):
        state = call(call(FlowState(), "terminal", command="ls"), "terminal", **other)
        assert state.nudges == ()

    def test_a_short_result_is_cheaper_than_the_nudge(self):
        state = call(call(FlowState(), "process", "still running", id=1), "process", "still running", id=1)
        assert state.nudges == ()


class TestStaleRead:
    def test_a_file_written_since_it_was_read_is_named_once(self, recorded):
        """The recorded session reads shop/pricing.py in turn 4; here it is written in turn 20."""
        events = events_of(recorded)
        events.insert(20, tool_event("patch", {"path": "./shop/pricing.py"}, "ok"))
        texts, _ = turns(FlowState(session_inject=""), *events)
        assert [text for text in texts if text] == [
            "[recall]\nSTALE, written since you read it: shop/pricing.py"
        ]
        assert texts[20]

    def test_reading_it_again_ends_it_and_writing_again_begins_it(self):
        state = FlowState(session_inject="")
        read, wrote = tool_event("read_file", {"path": "a"}, "x"), tool_event("patch", {"path": "a"}, "x")
        other = tool_event("terminal", {"command": "x"}, "x")
        texts, _ = turns(state, read, wrote, wrote, *[other] * 9, wrote, read, wrote)
        assert [at for at, text in enumerate(texts) if text] == [1, 14]

    def test_what_becomes_stale_soon_after_is_named_together_later(self):
        calls = [(tool, name) for name in "abcd" for tool in ("read_file", "patch")]
        events = [tool_event(tool, {"path": name}, "x") for tool, name in calls]
        texts, _ = turns(FlowState(session_inject=""), *events, *[tool_event("x", {}, "x")] * 9)
        assert {at: text.partition(": ")[2] for at, text in enumerate(texts) if text} == {
            1: "a",
            11: "d, c, b",
        }

    def test_written_and_never_read_is_not_stale(self):
        assert turns(FlowState(session_inject=""), tool_event("patch", {"path": "a"}, "x"))[0] == [""]

    def test_the_line_of_what_can_be_had_back_says_it_too(self):
        state = call(FlowState(), "read_file", item=Item("1" * 16, "read_file: a"), path="a")
        assert flow.catalogue(state) == "- 1111111111111111 read_file: a"
        state = call(state, "write_file", path="a")
        assert flow.catalogue(state) == "- 1111111111111111 read_file: a STALE"
        assert "STALE" not in flow.catalogue(replace(state, switches=OFF))

    def test_it_can_be_switched_off(self):
        events = [tool_event(tool, {"path": "a"}, "x") for tool in ("read_file", "patch")]
        assert not any(turns(FlowState(session_inject="", switches=OFF), *events)[0])


class TestPhase:
    def test_the_recorded_session_explores_and_then_checks(self, recorded):
        state, phases = FlowState(), []
        for event in events_of(recorded):
            state = flow.begin_turn(flow.observe(state, event), state.turn_counter + 1)
            phases.append(flow.phase_of(state))
        assert set(phases[1:9]) == {"exploring"}
        assert set(phases[17:21]) == {"verifying"}

    @pytest.mark.parametrize(
        ("tools", "phase"),
        [
            (["read_file", "search_files"], "exploring"),
            (["read_file", "patch"], "editing"),
            (["patch", "pytest"], "verifying"),
            (["pytest", "patch"], "editing"),
            (["pytest"], "verifying"),
            (["http_get"], ""),
            ([], ""),
        ],
    )
    def test_what_was_done_last_tells_it(self, tools, phase):
        state = FlowState()
        for tool in tools:
            state = call(state, "terminal" if tool == "pytest" else tool, path="a", command=tool)
        assert flow.phase_of(state) == phase

    def phases(self, state, tools):
        said = []
        for tool in tools:
            state = call(state, tool, path=f"{len(said)}")
            state = flow.begin_turn(state, state.turn_counter + 1, LIBRARY)
            said.append([each.name for each in state.directives])
        return said

    def test_a_phase_that_lasts_swaps_its_directive_in_beside_the_others(self):
        state = FlowState(directives=LIBRARY.pick(["mine"]), switches=FlowSettings(phase=True))
        said = self.phases(state, ["read_file"] * 3 + ["patch"] * 3)
        assert said == [
            ["mine"],
            ["mine", "explore"],
            ["mine", "explore"],
            ["mine", "explore"],
            *[["mine", "edit"]] * 2,
        ]

    def test_not_after_directives_were_set_by_hand_nor_when_switched_off(self):
        by_hand = flow.swap_directives(FlowState(switches=FlowSettings(phase=True)), LIBRARY, "mine")
        assert self.phases(by_hand, ["read_file"] * 3)[-1] == ["mine"]
        assert self.phases(FlowState(), ["read_file"] * 3)[-1] == []


class TestRecall:
    def shortened(self, state, *numbers):
        for number in numbers:
            state = call(
                state, "terminal", item=Item(f"{number:016x}", f"call {number}"), command=f"{number}"
            )
        return state

    def test_a_marker_in_view_needs_no_mention(self):
        assert flow.build_turn_context(self.shortened(FlowState(session_inject=""), 1, 2)).text == ""

    def test_after_an_epoch_what_left_view_is_told_newest_first_and_then_no_more(self):
        state = flow.open_epoch(self.shortened(FlowState(session_inject=""), *range(12)))
        block = flow.build_turn_context(state)
        head, what, *lines = block.text.split("\n")
        assert (head, what) == ("[recall]", "can be had back:")
        assert lines[:-1] == [f"- {number:016x} call {number}" for number in range(11, 3, -1)]
        assert lines[-1] == "and 4 more; turngate_search finds them by their words"
        state = flow.commit(state, block)
        assert flow.build_turn_context(self.shortened(state, 20)).text == ""

    def test_with_those_in_view_it_is_a_delta_by_number_however_many_there_are(self):
        state = FlowState(session_inject="", switches=FlowSettings(recall_in_view=True))
        state = self.shortened(state, *range(300))
        state = flow.commit(state, flow.build_turn_context(state))
        assert flow.build_turn_context(state).text == ""
        state = self.shortened(state, 300)
        assert flow.build_turn_context(state).text == f"[recall]\ncan be had back:\n- {300:016x} call 300"

    def test_a_delta_that_was_dropped_comes_later(self):
        state = flow.push_nudge(flow.open_epoch(self.shortened(FlowState(session_inject=""), 1)), "n" * 50)
        small = flow.begin_turn(replace(state, flow_budget_chars=80), 1)
        block = flow.build_turn_context(small)
        assert [row.outcome for row in block.report.sections] == ["kept", "dropped"]
        later = replace(flow.commit(small, block), flow_budget_chars=4_000)
        assert "call 1" in flow.build_turn_context(later).text

    def test_the_same_content_again_is_one_line_of_the_catalogue(self):
        state = self.shortened(FlowState(), 1, 2, 1)
        assert flow.catalogue(state) == f"- {1:016x} call 1\n- {2:016x} call 2"


class TestCheckpoint:
    def test_what_was_written_before_the_history_was_cut_is_told_after_it(self):
        state = FlowState(session_inject="")
        for path in ("a", "b", "a"):
            state = call(state, "write_file", path=path)
        state = flow.open_epoch(state)
        block = flow.build_turn_context(state)
        assert block.text == "[recall]\nwritten before earlier turns left view: a, b"
        state = flow.commit(state, block)
        assert flow.build_turn_context(state).text == ""
        assert flow.build_turn_context(flow.open_epoch(state)).text == ""

    def test_each_tells_only_what_came_since_the_last(self):
        state, paths = flow.take_checkpoint(call(FlowState(), "patch", path="a"))
        assert paths == ("a",)
        state, paths = flow.take_checkpoint(call(state, "patch", path="b"))
        assert paths == ("b",)
        assert flow.take_checkpoint(state)[1] == ()

    def test_it_can_be_switched_off(self):
        state = flow.open_epoch(call(FlowState(session_inject="", switches=OFF), "patch", path="a"))
        assert flow.build_turn_context(state).text == ""
