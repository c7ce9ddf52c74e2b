from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate import marker
from turngate.errors import RetrieveError
from turngate.store import expand, grep, json_path, line_count, line_range, page, select, split_lines, whole
from turngate.store.retrieve import MAX_DEPTH

texts = st.text(st.sampled_from("ab \r\n")) | st.text(max_size=200)
TEXT = "one\ntwo\r\nthree\nfour\nfive"


@given(text=texts)
def test_whole_is_the_very_object(text):
    assert select(text).text is text
    assert whole(text).total_lines == line_count(text)


@given(text=texts.filter(bool), data=st.data())
def test_ranges_of_lines_put_together_are_the_text(text, data):
    total = line_count(text)
    cut = data.draw(st.integers(1, total))
    head = line_range(text, 1, cut)
    tail = line_range(text, cut + 1, total).text if cut < total else ""
    assert head.text + tail == text
    assert (head.first_line, head.last_line, head.total_lines) == (1, cut, total)


@given(text=texts, size=st.integers(1, 50))
def test_pages_put_together_are_the_text_and_number_their_lines(text, size):
    first = page(text, 1, size=size)
    pages = [page(text, number, size=size) for number in range(1, first.pages + 1)]
    assert "".join(each.text for each in pages) == text
    assert [each.more for each in pages] == [True] * (len(pages) - 1) + [False]
    assert all(len(each.text) <= size for each in pages)
    lines = split_lines(text)
    for each in pages:
        for number, line in enumerate(split_lines(each.text), each.first_line):
            assert line in lines[number - 1]


@pytest.mark.parametrize(("first", "last"), [(0, 1), (6, 7), (3, 2), (-1, 2)])
def test_a_range_outside_of_the_text_is_named(first, last):
    with pytest.raises(RetrieveError, match="lines run from 1 to 5"):
        select(TEXT, lines=(first, last))


def test_a_range_that_goes_on_after_the_end_says_where_the_text_ends():
    found = select(TEXT, lines=(4, 99))
    assert (found.text, found.last_line, found.note) == ("four\nfive", 5, "the text ends at line 5")


def test_ways_to_ask_cannot_be_combined():
    with pytest.raises(RetrieveError, match="lines and pattern cannot be combined"):
        select(TEXT, lines=(1, 2), pattern="x")


@pytest.mark.parametrize("number", [0, 3, -1])
def test_a_page_that_is_not_there_is_named(number):
    with pytest.raises(RetrieveError, match=f"no page {number}"):
        page("a\nb", number, size=2)


def test_matches_stand_under_the_numbers_of_their_lines():
    found = grep("\n".join(f"line {n}" for n in range(1, 31)), r"line (5|6|20)$", context=1)
    assert (
        found.text == "[lines 4-7]\nline 4\nline 5\nline 6\nline 7\n[lines 19-21]\nline 19\nline 20\nline 21"
    )
    assert found.note == "3 of 30 lines match"
    assert not found.more


@given(text=texts, pattern=st.sampled_from(["a", "b+", "^$", "a.b", r"\s"]), context=st.integers(0, 3))
def test_grep_shows_every_matching_line_and_only_lines_near_one(text, pattern, context):
    import re  # noqa: PLC0415

    lines = split_lines(text)
    matching = [number for number, line in enumerate(lines) if re.search(pattern, line)]
    near = [n for n in range(len(lines)) if any(abs(n - m) <= context for m in matching)]
    shown = [
        line
        for line in grep(text, pattern, context=context).text.split("\n")
        if line[:6] not in {"[line ", "[lines"}
    ]
    assert shown == ([lines[n] for n in near] or [""])


@pytest.mark.parametrize("pattern", ["[", "(", "*a", "a{2,1}", "x" * 3_000, "(?P<n>a)(?P<n>b)"])
def test_a_malformed_pattern_is_an_error_that_says_so(pattern):
    with pytest.raises(RetrieveError):
        grep(TEXT, pattern)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|aa)+$", r"(a*)*b", r"(\w+\d*)+!", r"((a+)b?)+$", r"(.*,)*x", r"(?:a+|b)*c"]
)
def test_a_pattern_that_could_take_forever_is_refused_before_it_runs(pattern):
    with pytest.raises(RetrieveError, match="nested repeats"):
        grep("a" * 60 + "\n", pattern)


@pytest.mark.parametrize(
    "pattern",
    [r"(\w+\.)+\w+", r"error|fail", r"(error|fail).*\d+", r"(\d+:){2}", r"([a-z]+\s)+", r"(ab)+", r"\d{1,3}"],
)
def test_ordinary_patterns_are_not_refused(pattern):
    grep(TEXT, pattern)


def test_a_match_far_inside_a_long_line_is_found():
    assert grep("x" * 100_000 + "needle" + "x" * 100_000, "needle").note == "1 of 1 line matches"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def places(value, path="$"):
    if isinstance(value, dict):
        for key, inner in value.items():
            if "'" not in key and key:
                yield f"{path}['{key}']", inner
                yield from places(inner, f"{path}['{key}']")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield f"{path}[{number}]", inner
            yield from places(inner, f"{path}[{number}]")


@given(value=st.lists(json_values, max_size=4), indent=st.sampled_from([None, 2]), plain=st.booleans())
def test_every_value_is_found_at_its_path_as_it_is_spelled(value, indent, plain):
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    for path, inner in places(value):
        if "\n" in path or "\r" in path:
            continue
        found = json_path(text, path).text
        assert json.loads(found) == inner
        assert found in text


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.a", "1e400"),
        ("$.b[-1].c", '"x\\u0041"'),
        ("$.b[*].c", '1.50\n"x\\u0041"'),
        ("$..c", '1.50\n"x\\u0041"'),
        ("$.b.*", '{"c": 1.50}\n{"c": "x\\u0041"}'),
        ("$.dup", "1\n2"),
        ("$", '{"a": 1e400, "b": [{"c": 1.50}, {"c": "x\\u0041"}], "dup": 1, "dup": 2}'),
    ],
)
def test_paths_lead_to_values_with_their_spelling(path, found):
    text = '{"a": 1e400, "b": [{"c": 1.50}, {"c": "x\\u0041"}], "dup": 1, "dup": 2}'
    assert json_path(text, path).text == found


def test_json_after_a_heading_and_lines_of_json_are_read_too():
    assert json_path('HTTP/1.1 200\n\n{"a": [7]}', "$.a[0]").text == "7"
    assert json_path('{"n": 1}\n{"n": 2}\n{"n": 3}\n', "$[1].n").text == "2"


def test_depth_costs_nothing():
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000
    assert json_path(deep, "$.a.a").text == deep[10:-2]


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("{}", "a.b", "starts with"),
        ("{}", "$.a[?(@.x)]", "cannot follow"),
        ("{}", "$.a", "no value at"),
        ("no json", "$.a", "no JSON"),
        ('{"a": [1, 2', "$.b", "ends before"),
        ("]", "$.a", "no JSON"),
        ("{]}", "$.a", "no value"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(text, path, says):
    with pytest.raises(RetrieveError, match=says):
        json_path(text, path)


@given(
    text=st.text(st.sampled_from('{}[]",:a1\\ \n')),
    path=st.sampled_from(["$.a", "$..a", "$[0]", "$[*].a", "$.a[-1]"]),
)
def test_no_text_makes_a_path_fail_in_another_way(text, path):
    with contextlib.suppress(RetrieveError):
        assert json_path(text, path).text is not None


def big(at=2_000, total=4_000):
    lines = [f"INFO request {n} took {n % 97} ms at host-{n % 7}" for n in range(total)]
    lines[at] = "ERROR upstream refused: quota of tenant blue exceeded"
    return "\n".join(lines)


def test_a_question_brings_the_answering_passage_on_the_first_page():
    found = select(big(), query="which tenant's quota was exceeded?")
    assert "ERROR upstream refused: quota of tenant blue exceeded" in found.text[:2_000]
    assert len(found.text) < 40_000
    assert found.more
    assert found.page == 1


def test_pages_of_a_question_go_on_without_repeating():
    text = big()
    pages = [select(text, query="quota", page=number).text for number in (1, 2, 3)]
    lines = [line for each in pages for line in each.split("\n") if not line.startswith("[line")]
    assert len(lines) - len(set(lines)) <= 4, "a line cut by a page's end may come in two parts"
    with pytest.raises(RetrieveError, match="no page 99"):
        select(text, query="quota", page=99)


def test_a_text_of_one_page_answers_a_question_whole():
    found = select(TEXT, query="what?")
    assert (found.text, found.note) == (TEXT, "all of it, which fits on a page; it has no word of the query")


@pytest.mark.parametrize(
    ("ask", "found"),
    [
        ({"pattern": "tenant blue"}, True),
        ({"pattern": "zebra"}, False),
        ({"query": "tenant blue"}, True),
        ({"query": "zebra"}, False),
        ({"query": "the last line"}, True),
        ({}, True),
    ],
)
@pytest.mark.parametrize("total", [40, 4_000])
def test_it_says_whether_anything_was_found(ask, found, total):
    assert select(big(at=20, total=total), **ask).found is found


HASHES = [f"{number:016x}" for number in range(1, 12)]


def shown(ref):
    return marker.render(marker.Marker(hash=ref, type="tool", size=9, mode="inline"))


def test_nested_markers_are_replaced_by_their_content():
    contents = {HASHES[0]: f"a {shown(HASHES[1])} b", HASHES[1]: "inner"}
    assert expand(f"start {shown(HASHES[0])} end", contents.get) == "start a inner b end"


def test_a_marker_within_its_own_content_stays_text():
    contents = {HASHES[0]: f"a {shown(HASHES[1])}", HASHES[1]: f"b {shown(HASHES[0])}"}
    assert expand(shown(HASHES[0]), contents.get) == f"a b {shown(HASHES[0])}"


def test_expanding_ends_at_its_depth_and_leaves_the_rest():
    contents = {ref: f"{number}{shown(HASHES[number + 1])}" for number, ref in enumerate(HASHES[:-1])}
    assert expand(shown(HASHES[0]), contents.get) == "01234" + shown(HASHES[MAX_DEPTH])


def test_unknown_markers_and_text_without_any_come_back_as_they_are():
    text = f"x {shown(HASHES[0])} y"
    assert expand(text, {}.get) is text


def test_expanding_cannot_multiply_without_bound(monkeypatch):
    monkeypatch.setattr("turngate.store.retrieve.MAX_EXPANDED_CHARS", 10_000)
    contents = {ref: shown(HASHES[number + 1]) * 10 for number, ref in enumerate(HASHES[:-1])}
    assert len(expand(shown(HASHES[0]), contents.get)) < 20_000
