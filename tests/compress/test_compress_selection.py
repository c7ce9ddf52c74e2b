"""What is kept in view."""

import json

import pytest
from bench import faithful
from texts import ODD_LINES, log, records, wrapped

from turngate.compress import shorten
from turngate.tokens import estimate

STAMPS = {
    "level": "2026-01-31 08:{m:02}:{s:02} INFO ",
    "time only": "2026-01-31T08:{m:02}:{s:02} ",
    "neither": "step: ",
}


@pytest.mark.parametrize("stamp", STAMPS.values(), ids=STAMPS)
@pytest.mark.parametrize("place", [3, 300, 590])
def test_one_odd_line_among_600_is_in_view_whatever_its_language(stamp, place):
    for odd in ODD_LINES:
        lines = log(600, stamp)
        lines[place] = stamp.format(m=1, s=1) + odd
        result = shorten("\n".join(lines))
        assert odd in result.text
        assert result.kept < 60


def test_first_and_last_line_are_in_view():
    lines = ["BEGIN " + "a" * 200, *log(400), "the end of it all, " + "z" * 300]
    shown = shorten("\n".join(lines)).text.split("\n")
    assert shown[0] == lines[0]
    assert shown[-1] == lines[-1]


def test_rules_and_blanks_at_the_end_do_not_hide_the_last_line_that_says_something():
    lines = [*log(400), "BUILD SUCCESS in 6.5 s", "-" * 70, "", "=" * 70]
    assert "BUILD SUCCESS in 6.5 s" in shorten("\n".join(lines)).text


def test_every_distinct_error_message_is_in_view():
    lines = log(2_000)
    for i in range(12):
        word = "abcdefghijkl"[i] * 5
        lines[150 * i + 40 : 150 * i + 40] = [f"ERROR cannot open {word}: permission denied"] * 5
    text = shorten("\n".join(lines)).text
    assert all("abcdefghijkl"[i] * 5 in text for i in range(12))


def test_of_a_failed_run_more_of_the_end_is_shown():
    lines = [f"{word} {word[::-1]} {i * 7919}" for i, word in enumerate(map(_word, range(3_000)))]
    ok, failed = (shorten("\n".join(lines), failed=flag).text for flag in (False, True))
    assert _shown_tail(failed, lines) > _shown_tail(ok, lines)


def _word(n: int) -> str:
    return "".join("ghijklmnop"[int(digit)] for digit in str(n * 104_729))


def _shown_tail(text: str, lines: list[str]) -> int:
    shown = text.split("\n")
    return next(i for i in range(1, len(lines)) if shown[-i] != lines[-i])


def test_what_the_question_names_is_preferred():
    lines = [f"module {_word(i)} {_word(i + 7)} loaded from {_word(i * 3)} in {i} ms" for i in range(2_000)]
    wanted = _word(1_234)
    assert wanted not in shorten("\n".join(lines)).text
    assert wanted in shorten("\n".join(lines), question=f"Where was {wanted} loaded from?").text


def test_the_budget_grows_slowly_and_the_wide_one_shows_more():
    def shown(count: int, budget: str) -> int:
        lines = [f"{_word(i)} {_word(i * 3)} {_word(i * 5)}" for i in range(count)]
        return estimate(shorten("\n".join(lines), budget=budget).text)

    small, large = shown(2_000, "default"), shown(32_000, "default")
    assert 3 * small < large < 5 * small, "sixteen times the text, four times the budget"
    assert shown(2_000, "wide") > 1.5 * small


def test_the_command_output_in_json_keeps_its_exit_code_and_its_error():
    output = "\n".join([*log(500), "E   AssertionError: left 3, right 4", *log(300), "1 failed, 799 passed"])
    shown = json.loads(shorten(wrapped(output, 2)).text)
    assert shown["exit_code"] == 2
    assert "E   AssertionError: left 3, right 4" in shown["output"]
    assert shown["output"].endswith("1 failed, 799 passed")


def test_the_odd_record_of_an_array_is_in_view():
    rows = records(400)
    rows[273]["state"] = "unhealthy"
    shown = shorten(json.dumps(rows)).text
    assert '"state":"unhealthy"' in shown
    assert shown.count('"state"') < 200


def test_values_stay_as_they_were_spelled():
    rows = ",".join(f'{{"a":1e400,"a":-0,"b":1.10,"c":"\\u00e9\\/{i}","d":{i}}}' for i in range(500))
    shown = shorten(f"[{rows}]").text
    assert '"a":1e400,"a":-0,"b":1.10,"c":"\\u00e9\\/0"' in shown


def test_a_long_string_loses_its_middle_and_never_part_of_an_escape():
    text = json.dumps({"a": "\U0001f600é\\" * 2_000, "b": 1})
    shown = json.loads(shorten(text).text)
    assert shown["b"] == 1
    head, tail = shown["a"].split("[…")
    assert ("\U0001f600é\\" * 2_000).startswith(head)
    assert ("\U0001f600é\\" * 2_000).endswith(tail.split("]", 1)[1])


def test_a_numbered_view_of_a_file_passes():
    view = "\n".join(f"{i:6}\tdef function_{_word(i)}(): return {i}" for i in range(1, 400))
    result = shorten(view, tool="open")
    assert result.text is view
    assert result.reason == "view"


def test_a_row_of_numbers_is_no_view_of_a_file():
    assert shorten("\n".join(map(str, range(1, 4_000)))).changed


def test_the_echo_of_an_edit_shows_what_was_written_and_its_surroundings():
    view = [f"{i}:    value_{_word(i)} = {i}" for i in range(1, 400)]
    view[200] = "201:    value_changed = compute(12)"
    text = "\n".join(["[File: /repo/a.py (399 lines total)]", *view, "File updated.\n"])
    shown = shorten(text, tool="edit", args={"text": "    value_changed = compute(12)"}).text
    assert faithful.check(text, shown, kind="edit") == []
    assert "[File: /repo/a.py (399 lines total)]" in shown
    assert shown.endswith("File updated.")
    assert "\n".join(view[194:207]) in shown
    assert len(shown) < 1_000


def test_an_edit_whose_text_is_not_found_passes():
    view = "\n".join(f"{i}:    value_{_word(i)} = {i}" for i in range(1, 400))
    assert shorten(view, tool="edit", args='{"text":"something else entirely"}').text is view


def test_notes_carry_a_hash_where_the_text_itself_looks_like_one():
    plain, alike = log(600), ["[… 3–9] was written by someone", *log(600)]
    assert "[… " in shorten("\n".join(plain)).text
    shown = shorten("\n".join(alike)).text
    assert shown.count("[… 3–9]") == 1
    assert shown.count("[…") == 1 + shown.count("[…#")


def test_notes_in_json_carry_a_hash_where_a_value_is_only_spelled_otherwise():
    text = "[" + ",".join(f'"\\u20265{i}"' for i in range(1_000)) + "]"
    shown = json.loads(shorten(text).text)
    assert all(value.startswith(("…5", "…#")) for value in shown)
    assert sum(value.startswith("…#") for value in shown) >= 1


def test_the_widest_gap_says_what_it_is_like():
    note = '[… lines 3–598 hidden: 596 like "… … INFO worker … copied chunk … in … ms"]'
    assert note in shorten("\n".join(log(600))).text.split("\n")


def test_control_sequences_and_overwritten_progress_are_resolved():
    lines = [f"\x1b[31mstep {_word(i)}\x1b[0m" for i in range(300)]
    text = "\n".join([*lines, "\r".join(f"{i} %" for i in range(101))])
    shown = shorten(text).text
    assert "\x1b" not in shown
    assert shown.endswith("\n100 %")
