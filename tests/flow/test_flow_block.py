"""The block: order, hard limit, purity, once and not every turn."""

from __future__ import annotations

import pytest
from flow_histories import LIBRARY, states
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from turngate import flow
from turngate.events import tool_event
from turngate.flow import Directive, FlowState, Item
from turngate.flow.text import cut, size

ORDER = ["orientation", "directives", "nudges", "background tasks", "recall"]
HEADS = ("[turngate: first-turn orientation]", "[directives: ", "[nudge: ", "[background tasks] ", "[recall]")


def full_state(**fields):
    """A state whose five sections all have something to say."""
    state = FlowState(directives=(Directive("mine", "  be brief"),), turn_counter=-1, **fields)
    state = flow.observe(
        state, tool_event("terminal", {"command": "make"}, "x"), Item("0" * 16, "terminal: make")
    )
    state = flow.open_epoch(flow.push_nudge(state, "mind the gap"))
    return flow.begin_turn(flow.set_task(state, "build", "running", "step 1"), 0)


def outcomes(block):
    return {part.section: part.outcome for part in block.report.sections}


@given(state=states(), every_turn=st.booleans())
@settings(max_examples=300, deadline=None)
@example(state=full_state(flow_budget_chars=0), every_turn=True)
def test_the_limit_holds_for_every_input(state, every_turn):
    block = flow.build_turn_context(state, every_turn=every_turn)
    data = block.text.encode()
    assert len(data) <= state.flow_budget_chars
    assert block.report.bytes == len(data)
    for outcome in set(outcomes(block).values()):
        event(outcome)


@given(state=states(), every_turn=st.booleans())
@settings(max_examples=100, deadline=None)
def test_rendering_changes_nothing_and_gives_the_same_bytes_again(state, every_turn):
    before = repr(state)
    first = flow.build_turn_context(state, every_turn=every_turn)
    assert flow.build_turn_context(state, every_turn=every_turn) == first
    assert repr(state) == before


@given(state=states(), every_turn=st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_report_accounts_for_every_byte_and_every_loss(state, every_turn):
    block = flow.build_turn_context(state, every_turn=every_turn)
    rows = block.report.sections
    shown = [row for row in rows if row.shown_bytes]
    assert block.report.bytes == sum(row.shown_bytes for row in shown) + max(0, len(shown) - 1)
    assert [row.section for row in rows] == [name for name in ORDER if name in {row.section for row in rows}]
    for row in rows:
        assert (row.outcome in {"kept", "cut"}) == (row.shown_bytes > 0)
        assert (row.outcome == "kept") == (row.shown_bytes == row.full_bytes)
        assert bool(row.reason) == (row.outcome != "kept")


@given(state=states())
@settings(max_examples=100, deadline=None)
def test_what_stands_in_view_is_not_said_again(state):
    for _ in range(10):
        block = flow.build_turn_context(state, every_turn=False)
        state = flow.commit(state, block)
    assert block.text == ""


class TestOrder:
    def test_all_five_sections_stand_in_their_order_one_line_break_apart(self):
        text = flow.build_turn_context(full_state()).text
        places = [text.index(head) for head in HEADS]
        assert places == sorted(places)
        assert places[0] == 0
        assert "\n\n" not in text

    def test_nothing_in_nothing_out(self):
        assert flow.build_turn_context(FlowState(session_inject="")).text == ""
        assert flow.build_turn_context(FlowState(session_inject="")).report.sections == ()

    def test_the_lowest_section_goes_first_and_the_next_after_it(self):
        state = full_state()
        sizes = {row.section: row.full_bytes for row in flow.build_turn_context(state).report.sections}
        total = sum(sizes.values()) + 4
        lost = []
        for name in reversed(ORDER[3:]):
            block = flow.build_turn_context(full_state(flow_budget_chars=total - 1))
            lost.append(name)
            assert [section for section, outcome in outcomes(block).items() if outcome == "dropped"] == lost[
                ::-1
            ]
            total -= sizes[name] + 1
        assert f"the limit is {total + sizes['background tasks']:,}" in block.report.sections[-1].reason

    def test_what_must_stay_is_cut_at_a_line_with_a_note_of_what_is_missing(self):
        body = "\n".join(f"  rule {n}" for n in range(300))
        state = FlowState(
            directives=(Directive("long", body),), flow_budget_chars=1_000, session_inject="hello"
        )
        state = flow.begin_turn(flow.push_nudge(state, "mind the gap", None), 1)
        block = flow.build_turn_context(state)
        assert outcomes(block) == {"directives": "cut", "nudges": "kept"}
        *kept, note = block.text.split("\n[nudge: ")[0].split("\n")
        whole = flow.build_directive_context(state)
        assert whole.startswith("\n".join(kept) + "\n")
        assert note == f"[… {len(whole) - len(chr(10).join(kept)):,} bytes of directives left out]"

    @given(st.text(max_size=300), st.integers(-5, 320))
    def test_a_cut_keeps_whole_first_lines_or_nothing(self, text, limit):
        found = cut(text, limit, "x")
        if size(text) <= limit:
            assert found is text
        elif found:
            *kept, note = found.split("\n")
            head = "\n".join(kept)
            assert text.startswith(head + "\n")
            assert note == f"[… {size(text) - size(head):,} bytes of x left out]"
            assert size(found) <= limit


class TestOnce:
    def test_directives_are_said_at_first_when_they_change_and_after_an_epoch(self):
        state = flow.swap_directives(FlowState(session_inject=""), LIBRARY, "explore")
        said = []
        for turn in range(8):
            state = flow.begin_turn(state, turn)
            if turn == 3:
                state = flow.swap_directives(state, LIBRARY, "edit")
            if turn == 5:
                state = flow.open_epoch(state)
            if turn == 7:
                state = flow.swap_directives(state, LIBRARY)
            block = flow.build_turn_context(state)
            state = flow.commit(state, block)
            said.append(block.text.split("\n")[0])
        assert said == [
            "[directives: explore]",
            "",
            "",
            "[directives: edit] They take the place of the earlier ones.",
            "",
            "[directives: edit]",
            "",
            "[directives: none] The earlier ones hold no longer.",
        ]

    def test_a_host_that_keeps_nothing_is_given_all_that_holds_each_turn(self):
        state = full_state()
        for turn in range(3):
            state = flow.begin_turn(state, turn)
            block = flow.build_turn_context(state, every_turn=True)
            state = flow.commit(state, block)
            assert ("[directives: mine]" in block.text, "[background tasks]" in block.text) == (True, True)
            assert ("[turngate: first-turn" in block.text) == (turn == 0)
            assert "- 0000000000000000 terminal: make" in block.text

    def test_a_section_that_was_cut_for_want_of_room_is_said_in_whole_once(self):
        body = "\n".join(f"  rule {n}" for n in range(60))
        state = FlowState(directives=(Directive("d", body),), flow_budget_chars=1_000)
        shown = []
        for turn in range(3):
            state = flow.begin_turn(state, turn)
            block = flow.build_turn_context(state)
            state = flow.commit(state, block)
            shown.append(outcomes(block)["directives"])
        assert shown == ["cut", "kept", "in view"]

    def test_a_section_that_can_never_be_whole_is_said_once(self):
        state = FlowState(directives=(Directive("d", "\n".join(["  rule"] * 900)),), session_inject="")
        shown = []
        for turn in range(3):
            state = flow.begin_turn(state, turn)
            block = flow.build_turn_context(state)
            state = flow.commit(state, block)
            shown.append(outcomes(block)["directives"])
        assert shown[1:] == ["in view", "in view"]

    def test_forty_turns_with_events_stay_under_twice_the_first(self):
        library = flow.discover()
        state = FlowState(directives=library.pick(["focus", "evidence"]))
        sizes = []
        for turn in range(40):
            state = flow.begin_turn(state, turn, library)
            block = flow.build_turn_context(state)
            state = flow.commit(state, block)
            sizes.append(block.report.bytes)
            for call in range(3):
                done = tool_event("terminal", {"command": f"make {turn} {call}"}, f"{turn} {call}" * 400)
                state = flow.observe(state, done, Item(f"{turn:08}{call:08}", done.label, "3 of 40 lines"))
        assert 0 < sum(sizes) < 2 * sizes[0]


class TestOrientation:
    def test_only_the_first_turn_has_it(self):
        assert flow.SHIPPED_SESSION_INJECT in flow.build_first_turn_injection(FlowState())
        assert flow.build_first_turn_injection(FlowState(turn_counter=1)) == ""

    @pytest.mark.parametrize("template", ["", "  \n"])
    def test_an_empty_one_disables_it(self, template):
        assert flow.build_first_turn_injection(FlowState(session_inject=template)) == ""

    def test_the_shipped_one_is_short_and_orders_no_retrieval(self):
        assert size(flow.SHIPPED_SESSION_INJECT) < 700
        for word in ("always", "every", "all", "must"):
            assert f" {word} " not in flow.SHIPPED_SESSION_INJECT.lower()


class TestTasks:
    def test_each_change_is_told_once_and_a_finished_task_is_forgotten(self):
        state = FlowState(session_inject="")
        told = []
        for turn, status in enumerate(["running", "running", "done", "done"]):
            state = flow.begin_turn(state, turn)
            if turn < 3:
                state = flow.set_task(state, "build", status)
            block = flow.build_turn_context(state)
            state = flow.commit(state, block)
            told.append(block.text)
        assert told == [
            "[background tasks] 1 active\n- build: running",
            "",
            "[background tasks] 0 active\n- build: done",
            "",
        ]
        assert flow.begin_turn(state, 4).tasks == ()

    def test_of_more_than_eight_the_oldest_finished_goes_first(self):
        state = FlowState()
        for number in range(9):
            state = flow.set_task(state, str(number), "done" if number == 4 else "running")
        assert [task.id for task in state.tasks] == ["0", "1", "2", "3", "5", "6", "7", "8"]

    def test_one_that_nobody_speaks_of_is_forgotten(self):
        state = flow.set_task(FlowState(), "a", "running")
        assert flow.begin_turn(state, 16).tasks
        assert flow.begin_turn(state, 17).tasks == ()
