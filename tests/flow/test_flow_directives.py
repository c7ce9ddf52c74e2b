"""Directives: which folder, which limits, which are active."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate import flow
from turngate.errors import DirectiveError
from turngate.flow import FlowState
from turngate.flow.directives import directive
from turngate.settings import DEFAULT_DIRECTIVES, user_directives_dir


@pytest.fixture
def folder(tmp_path):
    def make(name, **texts):
        place = tmp_path / name
        place.mkdir(parents=True)
        for stem, text in texts.items():
            (place / f"{stem}.md").write_text(text)
        return place

    return make


class TestDiscovery:
    def test_the_first_folder_that_exists_is_the_library_and_none_is_merged(self, folder, tmp_path):
        named, here, user = folder("named", a="1"), tmp_path / "here", folder("user", c="3")
        (folder("here/directives", b="2"), here)
        nowhere = tmp_path / "none"
        assert set(flow.discover(named, here=here, user=user).found) == {"a"}
        assert set(flow.discover(nowhere, here=here, user=user).found) == {"b"}
        assert set(flow.discover(None, here=nowhere, user=user).found) == {"c"}
        assert flow.discover(None, here=nowhere, user=nowhere).folder == "the shipped set"

    def test_without_arguments_working_directory_and_user_are_looked_at(self, folder, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        place = user_directives_dir()
        place.mkdir(parents=True)
        (place / "mine.md").write_text("x")
        assert set(flow.discover().found) == {"mine"}
        folder("directives", here="y")
        assert set(flow.discover().found) == {"here"}

    def test_an_empty_folder_means_none(self, folder):
        assert flow.discover(folder("empty")).found == {}

    def test_only_markdown_files_count_and_an_unreadable_one_is_passed_over(self, folder):
        place = folder("x", a="1")
        (place / "b.txt").write_text("no")
        (place / "c.md").mkdir()
        (place / "d.md").write_bytes(b"\xff\xfe bytes")
        assert set(flow.discover(place).found) == {"a", "d"}

    def test_the_shipped_ones_are_short_and_order_no_retrieval(self, tmp_path):
        library = flow.discover(None, here=tmp_path, user=tmp_path / "none")
        assert {*DEFAULT_DIRECTIVES, "explore", "edit", "verify"} <= set(library.found)
        for each in library.found.values():
            assert 40 < len(each.body) < 400
            assert not {"retrieve", "always", "every"} & set(each.body.lower().split())
            assert "left out]" not in each.body


class TestLimits:
    def test_headings_lose_their_marks_and_blank_lines_go(self):
        assert directive("x", "# Title\n\n## Deeper\ntext\n").body == "  Title\n  Deeper\n  text"

    @given(st.text(max_size=300).map(lambda text: text * 20), st.text(max_size=60))
    def test_a_file_counts_up_to_two_thousand_characters(self, text, name):
        found = directive(name, text)
        assert len(found.body) <= 2_000 + 50
        assert len(found.name) <= 40
        found.body.encode()

    @given(st.lists(st.text(max_size=300).map(lambda text: text * 12), max_size=6))
    def test_all_together_count_up_to_four_thousand(self, texts):
        active = tuple(directive(f"d{n}", text) for n, text in enumerate(texts))
        whole = flow.build_directive_context(FlowState(directives=active))
        assert len(whole) <= 4_000 + 200

    def test_what_is_left_out_is_said(self):
        body = directive("x", "\n".join(["twenty characters..."] * 200)).body
        *kept, note = body.split("\n")
        assert set(kept) == {"  twenty characters..."}
        assert note == f"  [… {23 * (200 - len(kept)) - 1:,} characters left out]"


@pytest.fixture
def library(folder):
    return flow.discover(folder("lib", one="1", two="2", three="3"))


def names(state):
    return [each.name for each in state.directives]


class TestActions:
    def test_swap_replaces_the_set_and_refuses_an_unknown_one_whole(self, library):
        state = flow.swap_directives(FlowState(), library, "two", "one", "two")
        assert names(state) == ["two", "one"]
        with pytest.raises(DirectiveError, match="did you mean 'three'"):
            flow.swap_directives(state, library, "one", "thre")

    def test_add_is_silent_about_unknown_ones_and_adds_none_twice(self, library):
        state = FlowState()
        for name in ("one", "one", "nothing", "two"):
            state = flow.add_directive(state, library, name)
        assert names(state) == ["one", "two"]

    def test_load_refuses_unknown_ones_and_reads_a_changed_file_anew(self, library, tmp_path):
        state = flow.load_directive(FlowState(), library, "one")
        assert names(state) == ["one"]
        (tmp_path / "lib" / "one.md").write_text("changed")
        state = flow.load_directive(state, flow.discover(tmp_path / "lib"), "one")
        assert [each.body for each in state.directives] == ["  changed"]
        with pytest.raises(DirectiveError, match="there are: one, three, two"):
            flow.load_directive(state, library, "zzzz")

    def test_remove_takes_one_away(self, library):
        state = flow.remove_directive(flow.swap_directives(FlowState(), library, "one", "two"), "one")
        assert names(flow.remove_directive(state, "nothing")) == ["two"]

    def test_reset_leads_back_to_the_configured_set_without_nudges_and_latch(self, library):
        state = FlowState(configured=library.pick(["three"]))
        state = flow.reset_directives(flow.push_nudge(flow.add_directive(state, library, "one"), "x"))
        assert (names(state), state.nudges, state.latched) == (["three"], (), False)

    def test_list_tells_all_of_it(self, library):
        state = flow.push_nudge(flow.add_directive(FlowState(), library, "one"), "x", 2)
        found = flow.list_directives(state, library)
        assert (found.available, found.active, found.latched) == (("one", "three", "two"), ("one",), True)
        assert found.nudges == (("x", 2),)

    @pytest.mark.parametrize(
        "change",
        [
            flow.swap_directives,
            lambda state, library: flow.add_directive(state, library, "nothing"),
            lambda state, library: flow.load_directive(state, library, "one"),
            lambda state, _: flow.remove_directive(state, "nothing"),
        ],
    )
    def test_each_change_by_hand_latches(self, library, change):
        assert change(FlowState(), library).latched
