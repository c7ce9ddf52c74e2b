"""A session's blocks: rendered once a turn, kept in the store, never in the host's way."""

from __future__ import annotations

import threading

import pytest
from flow_histories import LIBRARY, states
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate import flow, marker
from turngate.errors import DirectiveError, StoreCorruptError, StoreUnavailableError
from turngate.flow import FlowKeeper, FlowState, codec
from turngate.gate import Gate
from turngate.settings import DirectiveSettings, PromptSettings, Settings
from turngate.store import SqliteStore

LOG = "".join(f"2025-03-04 10:00:{n % 60:02d} INFO worker job {n} done\n" for n in range(900))


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "directives"
    place.mkdir()
    (place / "one.md").write_text("be brief")
    (place / "two.md").write_text("be exact")
    return place


@pytest.fixture
def configured(folder):
    return Settings(directives=DirectiveSettings(active=("one",), dir=folder))


@pytest.fixture
def open_gate(tmp_path, configured):
    gates = []

    def make(settings=configured):
        gates.append(Gate.open(tmp_path / "data", settings))
        return gates[-1]

    yield make
    for gate in gates:
        gate.close()


class TestTurns:
    def test_the_first_turns_block_has_orientation_and_directives_and_the_next_is_empty(self, open_gate):
        session = open_gate().session("s")
        session.next_turn()
        first = session.turn_block()
        assert first.startswith("[turngate: first-turn orientation]\n")
        assert first.endswith("[directives: one]\none:\n  be brief")
        session.next_turn()
        assert session.turn_block() == ""

    def test_asked_again_the_same_turn_has_the_same_bytes_whatever_happened_since(self, open_gate):
        session = open_gate().session("s")
        session.next_turn()
        first = session.turn_block()
        session.push_nudge("x")
        session.flow.swap_directives("two")
        assert session.turn_block() == first
        assert open_gate().session("s").turn_block() == first
        session.next_turn()
        second = session.turn_block()
        assert second == (
            "[directives: two] They take the place of the earlier ones.\ntwo:\n  be exact\n[nudge: x]"
        )
        assert (session.turn_block(1), session.turn_block(2)) == (first, second)

    def test_a_turn_that_is_over_and_was_given_no_block_gets_none(self, open_gate):
        session = open_gate().session("s")
        for _ in range(3):
            session.next_turn()
        assert session.turn_block()
        assert session.turn_block(2) == ""

    def test_the_settings_text_is_told_in_place_of_the_shipped_one(self, open_gate):
        session = open_gate(Settings(prompts=PromptSettings("This is {VERSION}."))).session("s")
        session.next_turn()
        assert "This is 0." in session.turn_block()
        session = open_gate(Settings(prompts=PromptSettings(""))).session("t")
        session.next_turn()
        assert "first-turn" not in session.turn_block()

    def test_the_limit_of_the_settings_holds(self, open_gate):
        session = open_gate(Settings(flow_budget_chars=200)).session("s")
        session.next_turn()
        assert 0 < len(session.turn_block().encode()) <= 200


class TestEvents:
    def test_results_are_recorded_and_what_was_shortened_is_in_the_catalogue(self, open_gate):
        session = open_gate().session("s")
        session.next_turn()
        shown = session.tool_result(name="bash", args={"command": "make"}, text=LOG)
        session.tool_result(name="bash", args={"command": "ls"}, text="short", failed=True)
        id_ = marker.parse(shown).hash
        assert session.flow.catalogue().startswith(f"- {id_} bash: make (")
        stats = session.flow.window(1)
        assert (stats.total_calls, stats.errors) == (2, 1)

    def test_a_call_that_did_not_pass_through_the_gate_can_be_reported(self, open_gate):
        session = open_gate().session("s")
        session.event(name="patch", args={"path": "a"})
        assert session.flow.checkpoint() == ("a",)
        assert session.flow.checkpoint() == ()

    def test_recording_writes_nothing_until_the_block_or_the_end(self, open_gate):
        gate = open_gate()
        session = gate.session("s")
        session.next_turn()
        session.turn_block()
        version = gate.store.load_state("s", "flow")[1]
        for _ in range(5):
            session.event(name="patch", args={"path": "a"})
        assert gate.store.load_state("s", "flow")[1] == version
        gate.close()
        assert len(open_gate().session("s").flow.state().events) == 5

    def test_secrets_in_a_call_do_not_reach_the_disk(self, open_gate):
        gate = open_gate()
        session = gate.session("s")
        secret = "ghp_" + "a1B2" * 9
        session.tool_result(
            name="bash", args={"command": f"curl -H 'Authorization: Bearer {secret}' x"}, text="no"
        )
        session.event(name="bash", text=f"Error: bad token {secret}", failed=True)
        session.push_nudge("x")
        assert secret.encode() not in gate.store.load_state("s", "flow")[0]

    def test_an_epoch_brings_back_what_left_view(self, open_gate):
        session = open_gate().session("s")
        session.next_turn()
        session.turn_block()
        session.tool_result(name="bash", args={"command": "make"}, text=LOG)
        session.flow.open_epoch()
        session.next_turn()
        block = session.turn_block()
        assert block.startswith("[directives: one]\n")
        assert "can be had back:" in block

    def test_a_child_has_a_state_of_its_own(self, open_gate):
        gate = open_gate()
        parent = gate.session("p")
        parent.push_nudge("for the parent", ttl_turns=None)
        child = gate.session("c", parent="p")
        child.next_turn()
        assert "parent" not in child.turn_block()
        parent.next_turn()
        assert "[nudge: for the parent]" in parent.turn_block()


class TestDirectives:
    def test_all_six_actions_reach_the_next_block(self, open_gate, folder):
        keeper = open_gate().session("s").flow
        assert keeper.list_directives().available == ("one", "two")
        keeper.swap_directives("two")
        keeper.add_directive("one")
        (folder / "three.md").write_text("new")
        keeper.load_directive("three")
        keeper.remove_directive("two")
        assert keeper.list_directives().active == ("one", "three")
        keeper.reset_directives()
        assert keeper.list_directives().active == ("one",)
        with pytest.raises(DirectiveError, match="did you mean 'two'"):
            keeper.load_directive("tow")

    def test_a_refused_change_loses_nothing_that_waits(self, open_gate):
        session = open_gate().session("s")
        session.event(name="patch", args={"path": "a"})
        with pytest.raises(DirectiveError):
            session.flow.swap_directives("nothing")
        assert session.flow.state().seq == 1

    def test_the_set_outlives_the_process_with_the_files_present_text(self, open_gate, folder):
        open_gate().session("s").flow.swap_directives("two")
        (folder / "two.md").write_text("be most exact")
        session = open_gate().session("s")
        session.next_turn()
        assert session.turn_block().endswith("  be most exact")


class Failing:
    """A store whose state cannot be read or written while `down`."""

    def __init__(self, store, *methods, error=None):
        self.store, self.methods = store, methods
        self.error = error or StoreUnavailableError("locked; try again")
        self.down = True

    def __getattr__(self, name):
        if self.down and name in self.methods:
            return self.fail
        return getattr(self.store, name)

    def fail(self, *args, **kwargs):
        raise self.error


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(tmp_path / "x.sqlite3")
    yield opened
    opened.close()


class TestFaults:
    @pytest.mark.parametrize("methods", [("save_state",), ("load_state", "save_state"), ("load_state",)])
    def test_without_the_store_the_block_is_still_made_and_the_fault_is_counted(
        self, store, configured, methods
    ):
        session = Gate(Failing(store, *methods), configured).session("s")
        session.next_turn()
        first = session.turn_block()
        assert "[directives: one]" in first
        assert session.turn_block() == first
        assert session.stats().faults.keys() == {"StoreUnavailableError"}

    def test_what_could_not_be_saved_is_saved_when_it_can_be(self, store, configured):
        failing = Failing(store, "save_state")
        gate = Gate(failing, configured)
        now = [0.0]
        gate._access._clock = lambda: now[0]
        session = gate.session("s")
        session.push_nudge("kept", ttl_turns=None)
        session.next_turn()
        first = session.turn_block()
        failing.down = False
        now[0] += 60
        session.next_turn()
        session.turn_block()
        assert "[nudge: kept]" in first
        assert Gate(store, configured).session("s").turn_block(1) == first

    def test_during_the_stores_pause_nothing_is_written(self, store, configured):
        failing = Failing(store, "save_state")
        session = Gate(failing, configured).session("s")
        for _ in range(3):
            session.next_turn()
            session.turn_block()
        assert session.stats().faults == {"StoreUnavailableError": 1}

    @pytest.mark.parametrize("error", [StoreCorruptError("bad"), ValueError("secret"), MemoryError()])
    def test_nothing_is_raised_into_the_hosts_path(self, store, configured, error):
        gate = Gate(Failing(store, "load_state", "save_state", "turn", error=error), configured)
        session, text = gate.session("s"), "x"
        assert session.turn_block() == ""
        assert session.tool_result(name="t", text=text) is text
        for act in (lambda: session.push_nudge("x"), lambda: session.task("a", "b"), session.flush):
            act()
        session.event(name="x", args={1: object()}, text=None)
        assert gate.stats().faults[type(error).__name__] >= 1

    def test_a_fault_in_recording_costs_no_result(self, open_gate, monkeypatch):
        def fail(*args):
            raise KeyError("x")

        monkeypatch.setattr(FlowKeeper, "result", fail)
        session = open_gate().session("s")
        assert marker.parse(session.tool_result(name="bash", text=LOG)) is not None
        assert session.stats().faults == {"KeyError": 1}

    @pytest.mark.parametrize("body", [b"", b"{}", b'{"version": 99}', b"\xff", b'{"version": 1}', b"[]"])
    @pytest.mark.parametrize("packed", [True, False])
    def test_a_state_of_another_version_begins_anew(self, store, configured, body, packed):
        store.save_state("s", "flow", codec.zstd.compress(body) if packed else body, 0)
        with pytest.raises(StoreCorruptError, match="begins anew"):
            flow.past_blocks(store, "s")
        session = Gate(store, configured).session("s")
        session.next_turn()
        assert "[directives: one]" in session.turn_block()

    def test_switched_off_there_is_no_block(self, store):
        session = Gate(store, Settings(enabled=False)).session("s")
        session.next_turn()
        session.push_nudge("x")
        assert session.turn_block() == ""
        assert store.load_state("s", "flow") == (None, 0)


class TestSharing:
    def test_two_processes_changes_are_both_kept(self, open_gate):
        one, other = (open_gate().session("s") for _ in range(2))
        one.push_nudge("from one", ttl_turns=None)
        other.push_nudge("from other", ttl_turns=None)
        one.event(name="patch", args={"path": "a"})
        other.event(name="patch", args={"path": "b"})
        one.task("t", "running")
        other.next_turn()
        block = other.turn_block()
        assert "[nudge: from one]\n[nudge: from other]" in block
        assert "- t: running" in block
        assert one.turn_block() == block
        assert [event.wrote for event in one.flow.state().events] == ["a", "b"]

    def test_a_turns_block_is_one_however_many_ask_for_it_at_once(self, open_gate):
        sessions = [open_gate().session("s") for _ in range(4)]
        sessions[0].next_turn()
        blocks = []

        def ask(session, number):
            session.push_nudge(f"n{number}", ttl_turns=None)
            blocks.append(session.turn_block())

        threads = [threading.Thread(target=ask, args=(each, n)) for n, each in enumerate(sessions)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(blocks)) == 1
        assert len(sessions[0].flow.state().nudges) == 4
        assert sum(sum(each.stats().faults.values()) for each in sessions) == 0


class TestCodec:
    @given(state=states())
    @settings(max_examples=100, deadline=None)
    def test_a_state_comes_back_as_it_was(self, state):
        names = {each.name for each in state.directives} - set(LIBRARY.found)
        state = FlowState(directives=(), nudges=state.nudges) if names else state
        base = FlowState(state.flow_budget_chars, state.session_inject, state.switches, state.configured)
        assert codec.decode(codec.encode(state), base, LIBRARY) == state

    @given(st.integers(1, 30))
    @settings(max_examples=10, deadline=None)
    def test_its_size_has_a_limit(self, seed):
        state = FlowState()
        for number in range(400):
            args = {"path": f"{seed}/{number}" * 60, "command": "c" * 900}
            event = flow.keeper.tool_event("read_file", args, "error " * 100, failed=True)
            state = flow.observe(state, event, flow.Item(f"{number:064x}", "l" * 80, "s" * 80))
            if number % 4 == 0:
                state = flow.push_nudge(state, f"{number}" * 200)
                state = flow.begin_turn(state, state.turn_counter + 1)
                state = flow.commit(state, flow.build_turn_context(state))
        assert len(codec.encode(state)) < 400_000
