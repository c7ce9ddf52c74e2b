"""Results that come again in a session: by reference while the earlier one stands in view, and only then."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate import marker
from turngate.across import restore
from turngate.gate import Gate
from turngate.settings import Settings, StoreSettings, WindowSettings


def code(lines, tag="x"):
    return "".join(f"    {tag}_{n} = compute({tag}_{n - 1}, {n * 37 % 101})\n" for n in range(1, lines + 1))


def mode(shown):
    found = marker.parse(shown)
    return found.mode if found else "whole"


@pytest.fixture
def gate(tmp_path):
    with Gate.open(tmp_path / "data", Settings()) as opened:
        yield opened


@pytest.fixture
def session(gate):
    return gate.session("s")


def read(session, text, call, **more):
    return session.tool_result(name="read_file", args={"path": "a.py"}, text=text, call_id=call, **more)


class TestSame:
    def test_the_same_content_again_is_one_line_that_names_the_earlier_call(self, session):
        assert read(session, code(80), "c1") == code(80)
        shown = read(session, code(80), "c2")
        assert marker.parse(shown).get("of") == "c1"
        assert session.retrieve(marker.parse(shown).hash).text == code(80)

    def test_of_a_shortened_result_too(self, session):
        log = "".join(f"10:00:00 INFO job {n} done\n" for n in range(900))
        first = session.tool_result(name="bash", text=log, call_id="c1")
        again = session.tool_result(name="bash", text=log, call_id="c2")
        assert (mode(first), mode(again)) == ("inline", "same")
        assert marker.parse(first).hash == marker.parse(again).hash

    def test_a_third_time_names_the_one_that_shows_it(self, session):
        shown = [read(session, code(80), f"c{n}") for n in range(3)]
        assert [marker.parse(each).get("of") for each in shown[1:]] == ["c0", "c0"]

    def test_what_is_short_stays(self, session):
        assert [read(session, "ok\n" * 20, f"c{n}") for n in range(2)] == ["ok\n" * 20] * 2

    def test_a_result_without_a_call_id_is_never_a_reference_nor_referred_to(self, session):
        assert read(session, code(80), "") == read(session, code(80), "") == code(80)
        assert read(session, code(80), "c1") == code(80)

    def test_memory_skills_and_our_own_tools_are_left_alone(self, session):
        for tool in ("memory_search", "skill_view", "turngate_retrieve"):
            for call in ("1", "2"):
                shown = session.tool_result(name=tool, text=code(80), call_id=f"{tool}{call}")
                assert shown == code(80)

    def test_it_can_be_switched_off(self, tmp_path):
        with Gate.open(tmp_path / "off", Settings(across_results=False)) as gate:
            assert [read(gate.session("s"), code(80), f"c{n}") for n in range(2)] == [code(80)] * 2

    def test_another_session_and_a_child_have_not_seen_it(self, gate):
        read(gate.session("s"), code(80), "c1")
        assert read(gate.session("child", parent="s"), code(80), "c2") == code(80)
        assert read(gate.session("other"), code(80), "c3") == code(80)


class TestDelta:
    def test_a_changed_file_is_the_difference_and_comes_back_whole(self, session):
        old, new = code(80), code(80).replace("x_40 =", "y_40 =")
        read(session, old, "c1")
        shown = read(session, new, "c2")
        assert mode(shown) == "delta"
        assert "y_40" in shown
        assert len(shown) < len(new) / 2
        assert restore(shown, {"c1": old}) == new
        assert session.retrieve(marker.parse(shown).hash).text == new

    def test_it_refers_only_to_what_stands_whole(self, session):
        texts = [code(80), code(80).replace("x_40 =", "y_40 ="), code(80).replace("x_50 =", "z_50 =")]
        shown = [read(session, text, f"c{n}") for n, text in enumerate(texts)]
        assert [marker.parse(each).get("of") for each in shown[1:]] == ["c0", "c0"]

    def test_what_differs_too_much_is_shown_whole(self, session):
        read(session, code(80), "c1")
        new = code(20) + code(80, "other")
        assert read(session, new, "c2") == new

    def test_with_secrets_replaced_in_the_store_nothing_is_compared_with_it(self, tmp_path):
        text = code(80) + "password = 'AKIAIOSFODNN7EXAMPLE'\n"
        with Gate.open(tmp_path / "r", Settings(store=StoreSettings(redact=True))) as gate:
            read(gate.session("s"), text, "c1")
            assert read(gate.session("s"), text.replace("x_40 =", "y_40 ="), "c2").startswith("    x_1")


class TestInView:
    def test_what_has_left_the_window_is_shown_anew_and_then_referred_to(self, session):
        read(session, code(80), "c1")
        session.left_view(["c1"])
        assert read(session, code(80), "c2") == code(80)
        assert marker.parse(read(session, code(80), "c3")).get("of") == "c2"

    def test_everything_can_have_left(self, session):
        read(session, code(80), "c1")
        session.left_view()
        assert read(session, code(80).replace("x_40 =", "y_40 ="), "c2").startswith("    x_1")

    def test_a_reference_goes_with_what_it_refers_to(self, session):
        old, new = code(80), code(80).replace("x_40 =", "y_40 =")
        read(session, old, "c1")
        assert mode(read(session, new, "c2")) == "delta"
        session.left_view(["c1"])
        assert read(session, new, "c3") == new

    def test_a_caller_who_knows_the_history_decides(self, session):
        read(session, code(80), "c1")
        assert read(session, code(80), "c2", in_view=()) == code(80)
        assert mode(read(session, code(80), "c3", in_view=["c1"])) == "same"

    def test_where_it_says_what_stands_there_only_that_is_referred_to(self, session):
        read(session, code(80), "c1")
        assert read(session, code(80), "c2", in_view={"c1": "[cleared]"}) == code(80)
        assert mode(read(session, code(80), "c3", in_view={"c1": code(80)})) == "same"

    def test_a_call_id_that_was_used_twice_is_not_referred_to(self, session):
        read(session, code(80), "c1")
        read(session, code(80, "other"), "c1")
        assert read(session, code(80), "c2") == code(80)

    def test_a_compaction_tells_the_session(self, tmp_path):
        small = Settings(window=WindowSettings(context_window_tokens=8_000))
        session, text = Gate.open(tmp_path, small).session("s"), code(80)
        read(session, text, "c1")
        window = session.window(model="gpt-4.1", wire="chat")
        call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": text},
            *[
                {"role": role, "content": f"{role} says {n}, at some length: " + "words " * 300}
                for n in range(30)
                for role in ("assistant", "user")
            ],
        ]
        fitted = window.fit(messages, force=True)
        assert all(message.get("tool_call_id") != "c1" for message in fitted.messages)
        assert read(session, text, "c2") == text


TEXTS = [code(80), code(80).replace("x_40 =", "y_40 ="), code(60, "b"), code(80) + code(5, "t"), "ok\n"]
steps = st.lists(
    st.tuples(st.sampled_from(range(len(TEXTS))), st.sampled_from(["read_file", "bash"]), st.booleans()),
    min_size=1,
    max_size=9,
)


def run(gate, name, history, *, reopen=None):
    shown = []
    for nth, (which, tool, left) in enumerate(history):
        session = gate.session(name)
        if left:
            session.left_view([f"c{nth - 1}"])
        shown.append(session.tool_result(name=tool, text=TEXTS[which], call_id=f"c{nth}"))
        assert session.stats().faults == {}
        if reopen is not None:
            gate.close()
            gate = reopen()
    return shown


@given(history=steps)
@settings(max_examples=25, deadline=None)
def test_what_a_result_becomes_depends_on_what_came_before_it_only(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("across")
    with Gate.open(folder / "one", Settings()) as gate:
        whole = run(gate, "s", history)
        for size in range(len(history)):
            assert run(gate, f"s{size}", history[:size]) == whole[:size]
        again = run(gate, "s", [(which, tool, False) for which, tool, _ in history])
        assert again == whole
    many = run(
        Gate.open(folder / "two", Settings()),
        "s",
        history,
        reopen=lambda: Gate.open(folder / "two", Settings()),
    )
    assert many == whole


@given(history=steps)
@settings(max_examples=25, deadline=None)
def test_every_reference_names_earlier_results_and_gives_the_original_back(tmp_path_factory, history):
    with Gate.open(tmp_path_factory.mktemp("across"), Settings()) as gate:
        shown = run(gate, "s", [(which, tool, False) for which, tool, _ in history])
        for nth, text in enumerate(shown):
            found = marker.parse(text)
            if found is None or found.mode == "inline":
                continue
            of = [int(value[1:]) for key, value in found.fields if key == "of"]
            assert all(other < nth for other in of)
            original = TEXTS[history[nth][0]]
            if found.mode == "same":
                assert TEXTS[history[of[0]][0]] == original
            else:
                assert all(shown[other] == TEXTS[history[other][0]] for other in of)
                assert restore(text, {f"c{other}": shown[other] for other in of}) == original
            assert gate.session("s").original(found.hash).text == original


def test_savings_count_references(session):
    read(session, code(80), "c1")
    read(session, code(80), "c2")
    total, by_kind = session.stats().total, session.stats().by_kind
    assert (total.results, total.shortened, by_kind["same"].results) == (2, 1, 1)
    assert session.stats().tokens_saved > 0
