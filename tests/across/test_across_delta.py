"""References to earlier texts: exact, clearly marked, and never taken for content."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from turngate import marker
from turngate.across import Base, delta_of, nearest, render_delta, render_same, restore
from turngate.across.delta import Own, Run, renumbered

ID = "0123456789abcdef"

line = st.one_of(
    st.sampled_from(
        [
            "",
            "def f(x):",
            "    return x + 1",
            "[= 1–3]",
            "[=A 1–3]",
            "[=#a1b2 1–2]",
            "\rover\r",
            "<<<CCR:0123456789abcdef|tool|9|delta|of=c1>>> 1 lines",
            "a line that is long enough to make a run of three of them worth naming",
            "another one, which is as long as that, so that runs have something to tell",
            "\ud800",
        ]
    ),
    st.text(max_size=60),
)
block = st.lists(line, min_size=1, max_size=14)


def numbered(lines, first=1, width=6, sep="\t"):
    return [f"{first + nth:>{width}}{sep}{each}" for nth, each in enumerate(lines)]


def code(lines):
    return [f"    value_{n} = compute(value_{n - 1}, {n * 37 % 101})" for n in range(1, lines + 1)]


@given(blocks=st.lists(block, min_size=1, max_size=5), data=st.data())
@settings(max_examples=200, deadline=None)
def test_whatever_is_referred_to_comes_back_to_the_letter(blocks, data):
    def text():
        chosen = data.draw(st.lists(st.sampled_from(blocks), min_size=1, max_size=6))
        lines = [each for some in chosen for each in some]
        return "\n".join(numbered(lines) if data.draw(st.booleans()) else lines)

    bases = [Base(f"call_{n}", "tool: x", text()) for n in range(data.draw(st.integers(1, 4)))]
    new = text()
    delta = delta_of(new, bases)
    if delta is None:
        return
    assert delta.whole() == new
    shown = render_delta(ID, "tool", 1, delta)
    assert restore(shown, {base.call: base.text for base in bases}) == new


def test_a_file_read_again_shows_what_changed_and_where_the_rest_stands():
    old = code(60)
    new = [*old[:20], "    # said anew", *old[21:]]
    delta = delta_of("\n".join(new), [Base("call_1", "read_file: a.py", "\n".join(old))])
    assert [part.lines for part in delta.parts if isinstance(part, Own)] == [(old[19], new[20], old[21])]
    shown = render_delta(ID, "tool", 1, delta)
    assert shown.split("\n")[1:] == ["[= 1–19]", old[19], new[20], old[21], "[= 23–60]"]
    assert "lines 1–19 of read_file: a.py above, exactly" in marker.parse(shown).preview


def test_lines_that_moved_keep_their_new_numbers():
    old = code(60)
    new = [*old[:20], "    # one more", *old[20:]]
    for sep, width in (("\t", 6), (":", 0), ("|", 4), ("→", 6)):
        before, after = ("\n".join(numbered(lines, 1, width, sep)) for lines in (old, new))
        delta = delta_of(after, [Base("c", "read: a", before)])
        assert [part.shift for part in delta.parts if isinstance(part, Run)] == [0, 1], sep
        assert delta.whole() == after


def test_a_number_moves_within_its_columns():
    assert renumbered("    99\tx", 1) == "   100\tx"
    assert renumbered("99:x", 1) == "100:x"
    assert renumbered("no number", 1) is None
    assert renumbered("3:x", -4) is None


def test_a_log_that_grew_is_its_new_lines():
    old = [f"10:00:{n:02d} INFO worker finished job {n * 7919 % 9973}" for n in range(50)]
    new = [*old, "10:01:00 ERROR out of jobs"]
    delta = delta_of("\n".join(new), [Base("c", "bash: tail app.log", "\n".join(old))])
    assert delta.parts == (Run(0, 0, 49, 0), Own((old[49], new[50])))


def test_lines_of_several_results_are_told_apart():
    one, two = code(30), [f"row {n} of the second text, which says other things" for n in range(30)]
    bases = [Base("call_a", "read: a", "\n".join(one)), Base("call_b", "read: b", "\n".join(two))]
    shown = render_delta(ID, "tool", 1, delta_of("\n".join([*two, "between", *one]), bases))
    assert shown.split("\n")[1:3] == ["A = read: a (call_a)", "B = read: b (call_b)"]
    assert "[=B 1–29]" in shown
    assert "[=A 2–30]" in shown


def test_a_text_with_nothing_in_common_has_no_delta():
    assert delta_of("\n".join(code(40)), [Base("c", "x", "\n".join("abc" * n for n in range(40)))]) is None


def test_the_texts_with_most_lines_in_common_are_compared():
    bases = [Base(f"c{n}", "x", "\n".join(code(10 + n))) for n in range(5)]
    assert [base.call for base in nearest("\n".join(code(99)), bases, 2)] == ["c3", "c4"]


def test_the_marker_of_the_same_content_is_one_line_that_names_the_call():
    shown = render_same(ID, "tool", 99, call="call_1", label="read_file: a.py")
    found = marker.parse(shown)
    assert "\n" not in shown
    assert (found.mode, found.get("of"), found.preview) == (
        "same", "call_1", "exactly the result above of read_file: a.py"
    )  # fmt: skip
