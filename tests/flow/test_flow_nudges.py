"""The life of a nudge, against a plain model of it."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from turngate import flow
from turngate.flow import FlowState


def lines(state):
    return flow.render_nudges(state).splitlines()


class TestLife:
    @pytest.mark.parametrize("ttl", [1, 2, 5])
    def test_pushed_in_a_turn_it_renders_in_the_next_ones_and_is_gone(self, ttl):
        state = flow.push_nudge(flow.begin_turn(FlowState(), 3), "mind", ttl)
        assert lines(state) == []
        for turn in range(4, 4 + ttl):
            state = flow.begin_turn(state, turn)
            assert lines(state) == ["[nudge: mind]"]
        state = flow.begin_turn(state, 4 + ttl)
        assert (lines(state), state.nudges) == ([], ())

    def test_with_a_time_of_one_turn_it_is_injected_exactly_once(self):
        state = flow.push_nudge(FlowState(session_inject=""), "mind")
        texts = []
        for turn in range(4):
            state = flow.begin_turn(state, turn)
            block = flow.build_turn_context(state)
            state = flow.commit(state, block)
            texts.append(block.text)
        assert texts == ["", "[nudge: mind]", "", ""]

    def test_one_that_lasts_is_injected_once_and_again_after_an_epoch(self):
        state = flow.push_nudge(FlowState(session_inject=""), "mind", None)
        texts = []
        for turn in range(1, 6):
            state = flow.begin_turn(state, turn)
            state = flow.open_epoch(state) if turn == 4 else state
            block = flow.build_turn_context(state)
            state = flow.commit(state, block)
            texts.append(block.text)
        assert texts == ["[nudge: mind]", "", "", "[nudge: mind]", ""]

    def test_one_pushed_before_the_first_turn_renders_in_the_first(self):
        state = flow.push_nudge(FlowState(turn_counter=-1), "welcome")
        assert lines(flow.begin_turn(state, 0)) == ["[nudge: welcome]"]
        assert lines(flow.begin_turn(state, 1)) == []

    def test_a_fifth_drops_the_oldest_and_the_two_newest_render(self):
        state = FlowState()
        for text in "abcde":
            state = flow.push_nudge(state, text)
        assert [nudge.text for nudge in state.nudges] == list("bcde")
        assert lines(flow.begin_turn(state, 1)) == ["[nudge: d]", "[nudge: e]"]

    def test_one_of_the_same_key_takes_the_earlier_ones_place(self):
        state = flow.push_nudge(flow.push_nudge(FlowState(), "old", key="k"), "new", key="k")
        assert lines(flow.begin_turn(state, 1)) == ["[nudge: new]"]

    def test_a_renewed_one_is_not_injected_again(self):
        state = flow.begin_turn(flow.push_nudge(FlowState(session_inject=""), "x", 3, key="k"), 1)
        state = flow.commit(state, flow.build_turn_context(state))
        state = flow.begin_turn(flow.push_nudge(state, "x", 3, key="k"), 2)
        assert flow.build_turn_context(state).text == ""

    def test_an_endless_time_has_an_end(self):
        (nudge,) = flow.push_nudge(FlowState(), "x", 2**80).nudges
        assert nudge.expires == 1_000_000

    @pytest.mark.parametrize("ttl", [0, -1])
    def test_one_without_time_is_none(self, ttl):
        assert flow.push_nudge(FlowState(), "x", ttl).nudges == ()

    def test_it_is_one_line_of_limited_length(self):
        state = flow.push_nudge(FlowState(), "a\nb\x1b[31m" + "c" * 1000)
        (line,) = lines(flow.begin_turn(state, 1))
        assert line.startswith("[nudge: a b [31mccc")
        assert line.endswith("…]")
        assert len(line) == 300 + len("[nudge: ]")


class Nudges(RuleBasedStateMachine):
    """Pushes, turns, purges and epochs in any order; the model keeps a plain list of dictionaries."""

    def __init__(self):
        super().__init__()
        self.state = FlowState(session_inject="")
        self.turn = 0
        self.model = []
        self.seen = {}
        self.epoch = 0

    @rule(
        text=st.sampled_from("abcdefg"),
        ttl=st.none() | st.integers(1, 3),
        key=st.sampled_from(["", "k", "l"]),
    )
    def push(self, text, ttl, key):
        self.state = flow.push_nudge(self.state, text, ttl, key=key)
        new = {
            "key": key or text,
            "text": text,
            "pushed": self.turn,
            "last": None if ttl is None else self.turn + ttl,
        }
        same = [old for old in self.model if old["key"] == new["key"]]
        new["told"] = same[0]["told"] if same and same[0]["text"] == text else None
        self.model = [old for old in self.model if old["key"] != new["key"]] + [new]
        self.model = self.model[-4:]

    @rule(turns=st.integers(1, 2))
    def move_on(self, turns):
        self.turn += turns
        self.state = flow.begin_turn(self.state, self.turn)
        self.model = [old for old in self.model if old["last"] is None or old["last"] >= self.turn]

    @rule()
    def cut_history(self):
        self.state = flow.open_epoch(self.state)
        self.epoch += 1

    @rule()
    def inject(self):
        due = [old for old in self.active() if old["told"] != self.epoch][-2:]
        block = flow.build_turn_context(self.state)
        assert block.text.splitlines() == [f"[nudge: {old['text']}]" for old in due]
        self.state = flow.commit(self.state, block)
        # Two keys may have one text; both stand in view when one does.
        texts = {old["text"] for old in due}
        for old in self.model:
            if old["text"] in texts:
                old["told"] = self.epoch

    def active(self):
        return [
            old
            for old in self.model
            if old["pushed"] < self.turn and (old["last"] is None or old["last"] >= self.turn)
        ]

    @invariant()
    def what_renders_is_what_the_model_says(self):
        assert lines(self.state) == [f"[nudge: {old['text']}]" for old in self.active()[-2:]]
        assert flow.purge_expired_nudges(self.state) == self.state


TestNudges = Nudges.TestCase
TestNudges.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
