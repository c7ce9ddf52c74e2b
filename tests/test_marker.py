"""The marker grammar: what is written is read back, and no hostile text slows or breaks it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.errors import TurngateError
from turngate.marker import MAX_FIELD_CHARS, MAX_PREVIEW_CHARS, Marker, clean_preview, find_all, parse, render

ID = "0123456789abcdef"

hashes = st.text("0123456789abcdef", min_size=16, max_size=64)
words = st.from_regex(r"[a-z][a-z0-9_-]{0,31}", fullmatch=True)
values = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="|<>[]⫷⫸"), max_size=MAX_FIELD_CHARS
)
markers = st.builds(
    Marker,
    hash=hashes,
    type=st.sampled_from(["tool", "terminal", "context"]),
    size=st.integers(0, 10**15),
    mode=st.sampled_from(["token", "cache", "inline", "engine"]),
    preview=st.text(max_size=300).map(clean_preview),
    fields=st.lists(st.tuples(words, values), max_size=4).map(tuple),
)
anything = st.text(st.one_of(st.characters(), st.sampled_from(list("<>[]|=⫷⫸\n\rCR: \ud800"))), max_size=400)


@given(markers)
def test_a_rendered_marker_reads_back_equal(marker):
    assert parse(render(marker)) == marker


@given(markers, anything, anything)
def test_a_rendered_marker_is_one_printable_line_whatever_preview_and_fields_hold(marker, preview, value):
    dirty = Marker(marker.hash, marker.type, marker.size, marker.mode, preview, (("kind", value),))
    line = render(dirty)
    assert line.isprintable()
    assert len(line) < 200 + MAX_PREVIEW_CHARS + MAX_FIELD_CHARS
    assert find_all(line) == [parse(line)]
    assert render(parse(line)) == line


@given(st.lists(markers, max_size=5), anything.filter(lambda text: "CCR:" not in text and "]" not in text))
def test_markers_are_found_in_order_where_they_stand(expected, between):
    filler = f"\n{between}\n"
    text = filler.join(["", *(render(marker) for marker in expected), ""])
    found = find_all(text)
    assert found == expected
    for marker in found:
        start, end = marker.span
        assert text[start:].startswith("<<<CCR:" + marker.hash)
        assert text[:end].endswith(">>>")


@given(anything)
def test_any_text_is_read_without_an_error(text):
    for marker in find_all(text):
        start, _ = marker.span
        assert parse(text[start:]) == marker
    parse(text)


@given(anything)
def test_cleaning_a_preview_twice_changes_nothing(text):
    assert clean_preview(clean_preview(text)) == clean_preview(text)


def test_the_shape_is_that_of_the_design():
    marker = Marker(ID, "tool", 18432, "inline", "3 failed, 97 passed", (("kind", "test"),))
    assert render(marker) == f"<<<CCR:{ID}|tool|18432|inline|kind=test>>> 3 failed, 97 passed"
    assert render(Marker(ID, "tool", 0, "inline")) == f"<<<CCR:{ID}|tool|0|inline>>>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"[CCR:{ID}|tool|12|token] a build", Marker(ID, "tool", 12, "token", "a build")),
        (f"[CCR:{ID}|json|12|keys=a,b]", Marker(ID, "json", 12, "", "", (("keys", "a,b"),))),
        (f"⫷CCR:{ID}|tool|12⫸", Marker(ID, "tool", 12, "")),
        (f"⫷CCR:{ID}⫸ rest", Marker(ID, "", 0, "", "rest")),
        (f"<<<CCR:{'a' * 24}|tool|9>>>\npreview", Marker("a" * 24, "tool", 9, "")),
        (f"<<<CCR:{'b' * 40}|terminal|9|?>>>", Marker("b" * 40, "terminal", 9, "?")),
        (
            f"<<<CCR:{'c' * 64}|tool|9|cache|preview=x>>>",
            Marker("c" * 64, "tool", 9, "cache", "", (("preview", "x"),)),
        ),
    ],
)
def test_older_shapes_and_longer_ids_are_read(text, expected):
    assert parse(text) == expected
    assert find_all("x " + text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        f"<<<CCR:{ID.upper()}|tool|1|inline>>>",
        f"<<<CCR:{ID[:-1]}|tool|1|inline>>>",
        f"<<<CCR:{'a' * 65}|tool|1|inline>>>",
        f"<<<CCR:{ID}|tool|many|inline>>>",
        f"<<<CCR:{ID}|tool|1|inline|odd|k=v>>>",
        f"<<<CCR:{ID}|tool|k=v|1|inline>>>",
        f"<<<CCR:{ID}|tool|1|inline",
        f"<<<CCR:{ID}|tool|1|\ninline>>>",
        f"<<CCR:{ID}|tool|1|inline>>>",
        f"[CCR:{ID}]",
        "<<<CCR:>>>",
        "",
    ],
)
def test_what_is_not_of_the_grammar_is_no_marker(text):
    assert parse(text) is None
    assert find_all(text) == []


def test_a_marker_that_does_not_come_first_is_not_parsed_but_found():
    text = f"see <<<CCR:{ID}|tool|1|inline>>> and [CCR:{ID}|tool|2|token] there"
    assert parse(text) is None
    assert [(marker.size, marker.preview) for marker in find_all(text)] == [(1, "and"), (2, "there")]


@pytest.mark.parametrize(
    "bad",
    [
        Marker("xyz", "tool", 1, "inline"),
        Marker(ID, "Tool", 1, "inline"),
        Marker(ID, "tool", -1, "inline"),
        Marker(ID, "tool", 1, "in|line"),
        Marker(ID, "tool", 1, "inline", "", (("a=b", "c"),)),
    ],
)
def test_an_invalid_marker_is_refused_when_written(bad):
    with pytest.raises(TurngateError, match="not a valid marker"):
        render(bad)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "hostile",
    [
        "<<<CCR:",
        "[CCR:",
        "⫷CCR:",
        "CCR:",
        f"<<<CCR:{ID}",
        f"<<<CCR:{ID}|tool|1|inline",
        f"[CCR:{ID}|a",
        f"<<<CCR:{ID}|tool|1|inline>>>",
        f"⫷CCR:{ID}⫸",
        f"<<<[⫷CCR:{ID}|",
        f"[CCR:{ID}|<<<CCR:{ID}|⫷CCR:{ID}|",
        "<<<CCR:" + "a" * 60,
        "|",
    ],
)
def test_hostile_repetition_is_read_in_linear_time(hostile):
    # A quadratic reader would need hours for a megabyte of openers; the limit is the test's timeout.
    find_all(hostile * (1_000_000 // len(hostile)))
    find_all(f"<<<CCR:{ID}" + hostile * (1_000_000 // len(hostile)))
