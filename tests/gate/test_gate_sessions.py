"""Whose content is whose, and what survives."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest

from turngate import marker
from turngate.errors import RetrieveError, UnknownContentError
from turngate.gate import Gate
from turngate.settings import Settings


def hash_of(shown):
    return marker.parse(shown).hash


class TestIdentity:
    def test_the_same_id_is_the_same_session(self, gate):
        assert gate.session("a") is gate.session("a")
        assert gate.session("a") is not gate.session("b")

    def test_a_session_in_use_stays_the_same_when_many_others_come(self, gate):
        gate.kept_sessions = 3
        held = gate.session("held")
        for number in range(10):
            gate.session(str(number))
        assert gate.session("held") is held

    def test_sessions_nobody_uses_are_let_go(self, gate):
        gate.kept_sessions = 3
        for number in range(10):
            gate.session(str(number))
        gc.collect()
        assert len(gate._sessions) == 3

    def test_the_first_parent_stays(self, gate):
        child = gate.session("child")
        assert gate.session("child", parent="one").parent == "one"
        assert gate.session("child", parent="two") is child
        assert child.parent == "one"

    def test_nobody_is_its_own_parent(self, gate):
        assert gate.session("a", parent="a").parent is None
        assert gate.session("a", parent="a").parent is None


class TestScope:
    def test_a_child_sees_what_its_ancestors_stored(self, gate, log):
        ref = hash_of(gate.session("top").tool_result(name="bash", text=log))
        gate.session("middle", parent="top")
        gate.session("middle").tool_result(name="bash", text="x")
        assert gate.session("child", parent="top").retrieve(ref).text == log

    def test_a_parent_does_not_see_its_childs(self, gate, log):
        ref = hash_of(gate.session("child", parent="top").tool_result(name="bash", text=log))
        with pytest.raises(UnknownContentError):
            gate.session("top").retrieve(ref)

    def test_siblings_do_not_see_each_others(self, gate, log):
        ref = hash_of(gate.session("a", parent="top").tool_result(name="bash", text=log))
        with pytest.raises(UnknownContentError):
            gate.session("b", parent="top").retrieve(ref)

    def test_a_child_leaves_its_parents_state_alone(self, gate, log):
        top = gate.session("top")
        top.next_turn()
        top.tool_result(name="bash", text=log)
        before = top.stats()
        child = gate.session("child", parent="top")
        child.next_turn()
        child.next_turn()
        child.tool_result(name="bash", text=log)
        assert top.stats() == before

    def test_search_stays_in_scope(self, gate, log, make_log):
        gate.session("a").tool_result(name="bash", text=make_log(900, "alpha"))
        assert gate.session("a").search("ledger alpha")
        assert gate.session("b").search("ledger alpha") == []


class TestTurns:
    def test_they_count_from_one_and_survive_a_restart(self, tmp_path):
        with Gate.open(tmp_path, Settings()) as first:
            session = first.session("s")
            assert session.turn == 0
            assert [session.next_turn(), session.next_turn()] == [1, 2]
        with Gate.open(tmp_path, Settings()) as second:
            assert second.session("s").turn == 2

    def test_a_hit_names_the_turn_in_which_it_was_seen(self, session, log):
        session.next_turn()
        session.next_turn()
        session.tool_result(name="bash", text=log)
        assert [hit.turn for hit in session.search("ledger")] == [2]


class TestRetrieve:
    def test_in_parts(self, session, log):
        ref = hash_of(session.tool_result(name="bash", text=log))
        rows = log.splitlines(keepends=True)
        assert session.retrieve(ref, lines=(3, 4)).text == "".join(rows[2:4])
        assert "does not add up" in session.retrieve(ref, pattern="ERROR", context=0).text
        assert "does not add up" in session.retrieve(ref, query="which ledger does not add up?").text
        assert session.retrieve(ref, page=1).total_lines == 900

    def test_a_json_path(self, session):
        text = '{"rows": [' + ", ".join(f'{{"id": {n}, "v": "{n}{n}"}}' for n in range(900)) + "]}"
        ref = hash_of(session.tool_result(name="http_get", text=text))
        assert session.retrieve(ref, path="$.rows[7].id").text.strip() == "7"

    def test_nested_markers_are_expanded_on_request_only(self, session, log, make_log):
        inner = session.tool_result(name="bash", text=log)
        outer = make_log(600, "outer") + inner
        ref = hash_of(session.tool_result(name="bash", text=outer))
        assert session.retrieve(ref).text == outer
        assert log.splitlines()[400] in session.retrieve(ref, expand=True).text
        assert session.retrieve(ref).text == outer

    def test_an_unknown_id_says_what_to_do(self, session):
        with pytest.raises(UnknownContentError, match=r"session 's'.*copy the id.*search"):
            session.retrieve("0123456789abcdef")

    def test_a_part_that_cannot_be_followed_is_an_error(self, session, log):
        ref = hash_of(session.tool_result(name="bash", text=log))
        with pytest.raises(RetrieveError):
            session.retrieve(ref, pattern="(")

    def test_what_was_shortened_is_found_by_search(self, session, log):
        ref = hash_of(session.tool_result(name="bash", text=log))
        (hit,) = session.search("ledger add up")
        assert hit.id == ref
        assert any("does not add up" in line for _, line in hit.lines)


class TestLazily:
    def test_a_gate_alone_creates_nothing(self, tmp_path):
        with Gate.open(tmp_path / "data", Settings()) as gate:
            session = gate.session("s")
            session.tool_result(name="bash", text="small")
            assert session.turn == 0
            assert session.search("x") == []
        assert not (tmp_path / "data").exists()

    @pytest.mark.parametrize("name", ["x.sqlite3", "x.db"])
    def test_a_path_may_name_the_database(self, tmp_path, name, log):
        with Gate.open(tmp_path / name, Settings()) as gate:
            gate.session("s").tool_result(name="bash", text=log)
        assert (tmp_path / name).is_file()

    def test_any_other_path_is_its_folder(self, tmp_path, log):
        with Gate.open(str(tmp_path / "deep" / "er"), Settings()) as gate:
            gate.session("s").tool_result(name="bash", text=log)
        assert (tmp_path / "deep" / "er" / "turngate.sqlite3").is_file()

    def test_without_a_path_the_settings_say_where(self, tmp_path, log, monkeypatch):
        monkeypatch.setenv("TURNGATE_DATA_DIR", str(tmp_path / "env"))
        monkeypatch.setenv("TURNGATE_CONFIG", "")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        with Gate.open() as gate:
            gate.session("s").tool_result(name="bash", text=log)
        assert (tmp_path / "env" / "turngate.sqlite3").is_file()


def test_many_threads_share_sessions_without_a_fault(gate, make_log):
    texts = [make_log(400, f"t{number}") for number in range(24)]

    def work(number):
        session = gate.session(f"s{number % 3}")
        shown = session.tool_result(name="bash", text=texts[number])
        return session.retrieve(hash_of(shown)).text == texts[number]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(24)))
    assert gate.stats().total.results == 24
    assert gate.stats().faults == {}


def test_what_was_saved_is_known_to_later_processes_net_of_what_was_had_back(tmp_path, log):
    with Gate.open(tmp_path) as gate:
        session = gate.session("s")
        shown = session.tool_result(name="bash", text=log)
        session.retrieve(shown, lines=(1, 20))
        own = session.stats()
    with Gate.open(tmp_path) as gate:
        saving = gate.store.stats(session="s").saving
        other = gate.store.stats(session="t").saving
    assert (saving.results, saving.came_in) == (1, own.total.tokens_before)
    assert abs(saving.shown - own.total.tokens_after) < 10
    assert saving.had_back == own.tokens_retrieved > 0
    assert other.results == 0


def test_a_search_that_finds_nothing_says_what_was_searched_and_how_to_ask(session, make_log):
    session.tool_result(name="bash", text=make_log(900))
    assert session.search("zebra crossing") == []
    said = session.miss("zebra crossing")
    assert "1 stored results" in said
    assert "(of bash)" in said
    assert "retrieve one by the id" in said


def test_stats_are_told_whatever_the_store_does(session, monkeypatch):
    def gone(_):
        raise OSError("the disk is gone")

    monkeypatch.setattr(type(session), "turn", property(gone))
    assert session.stats().turn == 0


def test_results_outrank_a_transcript_that_names_their_call(gate, make_log):
    session = gate.session("s")
    shown = session.tool_result(name="bash", args={"command": "make ledger-check"}, text=make_log(900))
    gate.store.put(
        b'assistant: bash({"command": "make ledger-check"})\ntool: the ledger does not add up\n' * 3,
        session="s", kind="transcript", call="earlier messages 1-9",
    )  # fmt: skip
    hits = session.search("make ledger-check: what does not add up")
    assert hits[0].kind == "log"
    assert hits[0].id in shown
