"""Exact forms: the original comes back from each, they are used where they suffice, and only there."""

import json

import pytest
from bench import faithful
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import json_lines, json_texts, log, records, wrapped

from turngate.compress import shorten
from turngate.compress.exact import forms, openings, padding, repeats
from turngate.compress.exact.records import minified
from turngate.compress.notes import Notes, tag_for
from turngate.tokens import estimate

LINE = st.sampled_from(
    ["", " ", "a", "b" * 70, "src/a/b.py:1:x", "src/a/b.py:22:y", "src/a/c", "  in", "[…3]"]
)
BLOCK = st.tuples(st.lists(LINE, min_size=1, max_size=9), st.integers(1, 30)).map(lambda t: t[0] * t[1])
LINES = st.lists(BLOCK, min_size=1, max_size=6).map(
    lambda blocks: [line for block in blocks for line in block]
)
ALIKE = st.tuples(
    st.sampled_from(["", "src/a/", "src/a/b.py:", "        ", "\t\t", "[…each line begins: "]),
    LINES,
    st.integers(0, 100),
).map(lambda t: [(t[0] + line).ljust(t[2]) for line in t[1]])
ANY_LINES = st.one_of(LINES, ALIKE)


def encoded(lines):
    return [line.encode("utf-8", "surrogatepass") for line in lines]


def words(n):
    """A word of its own for each number."""
    return "".join("ghijklmnop"[int(digit)] for digit in str(n * 104_729))


def shown_whole(text, **hints):
    """The exact form of `text`, checked; fails where another was chosen."""
    result = shorten(text, **hints)
    assert result.changed, result.reason
    assert (result.exact, result.kept, result.hidden) == (True, result.total, ())
    assert result.preview == f"all {result.total:,} {result.unit}, exact"
    assert faithful.check(text, result.text, kind=result.kind) == []
    return result.text


# --- each form and its inverse ---


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_lines_come_back_from_their_repetitions(lines):
    notes = Notes(tag_for("\n".join(lines)))
    found = repeats.find(encoded(lines))
    assert repeats.unfold(repeats.fold(lines, found, notes), notes) == lines


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_what_is_said_to_repeat_equals_lines_that_are_shown_above_it(lines):
    hidden: set[int] = set()
    for repeat in repeats.find(encoded(lines)):
        here = range(repeat.start, repeat.end)
        assert all(lines[at] == lines[at - repeat.period] for at in here)
        assert hidden.isdisjoint(range(repeat.start - repeat.period, repeat.end))
        hidden.update(here)


@settings(max_examples=200, deadline=None)
@given(ANY_LINES, st.sampled_from([padding.fold, openings.fold_common, openings.fold_heads]))
def test_lines_come_back_from_every_other_form_or_the_check_rejects_it(lines, fold):
    notes = Notes(tag_for("\n".join(lines)))
    folded = fold(lines, notes)
    if folded and "" not in folded:
        assert forms.unfold(folded, notes) == lines


@settings(max_examples=150, deadline=None)
@given(ANY_LINES, st.sampled_from(["default", "wide"]))
def test_whatever_is_chosen_for_lines_alike_is_true(lines, budget):
    text = "\n".join(lines)
    result = shorten(text, budget=budget, least_chars=0)
    assert not result.reason.startswith("fault")
    if result.changed:
        assert faithful.check(text, result.text, kind=result.kind) == []


@settings(max_examples=150, deadline=None)
@given(st.one_of(json_texts, json_lines))
def test_minified_json_says_the_same_and_is_no_longer(text):
    for row in [text] if _parses(text) else text.split("\n"):
        short = minified(row)
        assert json.loads(short, object_pairs_hook=list) == json.loads(row, object_pairs_hook=list)
        assert len(short) <= len(row)
        assert minified(short) == short


def _parses(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


# --- repetitions ---


def test_one_line_again_and_again_is_shown_once_with_its_count():
    lines = ["starting", *["waiting for the server at port 8080"] * 300, *[f"step {n * n}" for n in range(9)]]
    assert shown_whole("\n".join(lines)).split("\n") == [
        *lines[:2],
        "[…299 more lines repeat the one above]",
        *lines[301:],
    ]


@pytest.mark.parametrize("period", range(2, repeats.MOST_PERIOD + 1))
def test_a_block_that_repeats_is_shown_once_even_where_its_last_turn_is_cut_short(period):
    block = [f"{'abcdefgh'[n]} took another turn of the loop" for n in range(period)]
    shown = shown_whole("\n".join([*(block * 100), block[0], "done"]))
    count = 99 * period + 1
    assert shown.split("\n") == [*block, f"[…{count} more lines repeat the {period} above]", "done"]


def test_a_run_of_blank_lines_is_counted():
    lines = [*["waiting for the server at port 8080"] * 300, *[""] * 4_000, "end"]
    assert "[…3999 blank lines]" in shown_whole("\n".join(lines))


def test_where_not_all_fits_a_repetition_is_told_exactly_and_the_rest_by_range():
    block = ["retry: connection to the database was refused", "retry: waiting two seconds before the next"]
    lines = [*log(600), *(block * 200), *[f"other {n * 7919} {'xyz'[n % 3] * 9}" for n in range(600)]]
    result = shorten("\n".join(lines))
    assert faithful.check("\n".join(lines), result.text, kind=result.kind) == []
    shown = result.text.split("\n")
    assert "[…398 more lines repeat the 2 above]" in shown
    assert any(line.startswith("[… ") for line in shown)
    assert result.kept < result.total


def test_repetitions_leave_their_budget_to_other_lines():
    block = [f"FAILED step {name}: see {name}.log" for name in ("alpha", "beta", "gamma", "delta", "eps")]
    lines = [f"{words(n)} {words(n * 7)} {words(n * 31)}" for n in range(900)]
    once, often = (shorten("\n".join([*block * times, *lines])) for times in (1, 60))
    assert often.kept > 0.9 * once.kept


def test_a_line_shown_in_part_is_repeated_by_nothing():
    long = " ".join(f"value{n}={n * n}" for n in range(1_000))
    text = "\n".join([*log(300), *[long] * 20, *log(300)])
    result = shorten(text)
    assert faithful.check(text, result.text, kind=result.kind) == []


def test_inside_json_a_command_output_repeats_alike():
    output = "\n".join([*["waiting for the server at port 8080"] * 300, "it is up"])
    shown = json.loads(shorten(wrapped(output)).text)
    assert "[…299 more lines repeat the one above]" in shown["output"].split("\n")
    shown = json.dumps(shown, ensure_ascii=False)
    assert faithful.check(wrapped(output), shown, kind="json") == []


# --- what all lines share ---


def test_paths_below_one_directory_are_shown_without_it():
    paths = [f"/usr/local/share/some/very/long/directory/of/packages/{n:x}.so" for n in range(120)]
    shown = shown_whole("\n".join(paths)).split("\n")
    assert shown[0] == "[…each line begins: /usr/local/share/some/very/long/directory/of/packages/]"
    assert shown[1:] == [path.rpartition("/")[2] for path in paths]


def test_hits_are_grouped_by_file_where_they_fit_then():
    hits = [
        f"src/components/{name}/controllers/registration_controller_spec.js:{n}:x{n * n % 97}"
        for name in ("orders", "people", "stock")
        for n in range(1, 40)
    ]
    shown = shown_whole("\n".join(hits)).split("\n")
    assert [line for line in shown if line.startswith("[…")] == [
        f"[…each line begins: src/components/{name}/controllers/registration_controller_spec.js:]"
        for name in ("orders", "people", "stock")
    ]
    assert [line for line in shown if not line.startswith("[…")] == [hit.partition(":")[2] for hit in hits]


def test_what_all_lines_are_indented_or_filled_up_with_is_said_once():
    rows = [f"{'':120}{n * 7919 % 1000} {'abc'[n % 3]}" for n in range(100)]
    filled = [row.ljust(200) for row in rows]
    assert shown_whole("\n".join(rows)).startswith("[…each line is indented by 120 blanks more]\n")
    assert shown_whole("\n".join(filled)).startswith(
        "[…each line is filled with blanks to 200 columns]\n[…each line is indented by 120 blanks more]\n"
    )


def test_places_stay_on_their_lines_where_that_does_not_make_all_fit():
    hits = [f"src/app/module_{n % 7}.py:{n}: {' '.join(log(1))} {n * 7919}" for n in range(900)]
    shown = shorten("\n".join(hits)).text.split("\n")
    assert all(line.startswith(("src/app/module_", "[…")) for line in shown)
    assert not any("each line begins" in line for line in shown)


@pytest.mark.parametrize("opening", ["INFO finished job ", "INFO: ", "2026/01/31 ", "[a/b] "])
def test_words_and_dates_are_no_opening_to_tell(opening):
    result = shorten("\n".join(f"{opening * 3}{n}" for n in range(400)))
    assert result.kept < 40


# --- JSON ---


def spaced(rows, indent=8):
    return json.dumps(rows, indent=indent)


def test_records_become_a_table_where_all_of_them_fit_then():
    rows = [{"identifier": n, "description": "ab"[n % 2], "is_enabled": n % 3 == 0} for n in range(60)]
    shown = json.loads(shown_whole(spaced({"items": rows})))
    assert shown["items"] == {
        "…columns": ["identifier", "description", "is_enabled"],
        "…rows": [list(row.values()) for row in rows],
    }


def test_nested_values_stand_in_the_cells_of_a_table_and_may_be_tables():
    rows = [
        {
            "identifier": n,
            "children": [{"position": m, "weight": m * n} for m in range(9)],
            "labels": {"a": n},
        }
        for n in range(9)
    ]
    shown = json.loads(shown_whole(spaced(rows)))
    assert shown["…rows"][3] == [
        3,
        {"…columns": ["position", "weight"], "…rows": [[m, m * 3] for m in range(9)]},
        {"a": 3},
    ]


def test_values_in_a_table_stay_as_they_were_spelled():
    row = (
        '{"some_quantity" : 1e400,\n\n\n   "other_quantity" : -0, \n\n\n  "some_quantity": "\\u00e9\\/\\\\"}'
    )
    shown = shown_whole(f"[{', '.join([row] * 40)}]")
    assert shown.startswith(
        '{"…columns":["some_quantity","other_quantity","some_quantity"],"…rows":[[1e400,-0,'
    )
    assert shown.count('"\\u00e9\\/\\\\"') == 40


def test_json_without_its_blanks_is_shown_whole_where_that_is_enough():
    value = {f"key{n}": [{"deep": [n, {"er": [n * n]}]}] for n in range(60)}
    assert shown_whole(spaced(value, 24)) == json.dumps(value, separators=(",", ":"))


def test_json_lines_stay_lines_under_a_line_with_their_columns():
    rows = [{"identification_number": n, "a_rather_long_description": n % 2, "flag": True} for n in range(80)]
    shown = shown_whole("\n".join(map(json.dumps, rows)), budget="wide").split("\n")
    assert json.loads(shown[0]) == {"…columns": list(rows[0])}
    assert [json.loads(line) for line in shown[1:]] == [list(row.values()) for row in rows]


def test_records_that_differ_in_a_key_are_no_table():
    rows = records(40)
    rows[7]["extra"] = 1
    assert "…columns" not in shorten(spaced(rows), budget="wide").text


def test_a_table_carries_a_tag_where_the_original_has_its_key():
    rows = [{"…columns": n, "description": "ab"[n % 2], "is_enabled": None} for n in range(60)]
    text = json.dumps(rows, indent=8, ensure_ascii=False)
    shown = json.loads(shown_whole(text))
    assert all(key.startswith("…#") for key in shown)


def test_what_follows_a_value_is_kept_below_its_table():
    rows = [{"identifier": n, "description": "ab"[n % 2], "is_enabled": n % 3 == 0} for n in range(60)]
    shown = shown_whole(f"{spaced(rows)}\n[exit code: 1]\n")
    assert shown.endswith("]]}\n[exit code: 1]\n")


# --- when ---


def test_what_looks_like_a_note_without_its_control_sequences_is_not_taken_for_one():
    said = [
        "each line is filled with blanks to 9999999999 columns",
        "9999999999 more lines repeat the one above",
    ]
    for note in said:
        lines = [f"[\x1b[m…{note}]", *["waiting for the server at port 8080"] * 300]
        result = shorten("\n".join(lines))
        assert faithful.check("\n".join(lines), result.text, kind=result.kind) == []
        assert f"[…{note}]" in result.text
        assert "[…#" in result.text


def test_what_a_terminal_takes_away_is_not_called_exact():
    lines = ["waiting for the server at port 8080"] * 300
    ended, overwritten = "\r\n".join(lines), "\n".join([*lines, "10 %\r20 %"])
    assert shorten(ended).exact
    result = shorten(overwritten)
    assert (result.exact, result.hidden, result.preview) == (False, (), "301 of 301 lines")


def test_an_exact_form_that_takes_more_than_the_budget_is_not_used():
    lines = [f"{n * 104729 % 99991} {n * 31}" for n in range(3_000)]
    result = shorten("\n".join([*lines, *["the very same line"] * 50]))
    assert result.kept < result.total


def test_an_exact_form_saves_two_fifths_at_least():
    rows = [f"{n * 104729 % 99991} {n * 31 % 1009}" for n in range(150)]
    text = "\n".join([*rows, *["same as ever"] * 60])
    result = shorten(text, budget="wide")
    assert not (result.changed and result.hidden == ()) or estimate(result.text) <= 0.6 * estimate(text)
