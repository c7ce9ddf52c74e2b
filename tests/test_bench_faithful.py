"""The benchmark's judge of faithfulness accepts true shortened forms and catches each way of being untrue."""

import json

import pytest
from bench import faithful

LINES = [f"line {number} says {number * number}" for number in range(1, 41)]
TEXT = "\n".join(LINES) + "\n"
SHOWN = [*LINES[:3], "[… 4–29]", *LINES[29:31], "[…8]", LINES[39]]
RECORDS = [{"id": n, "name": f"n{n}", "tags": ["x", n], "note": None} for n in range(5)]
JSON = json.dumps(RECORDS)
JSON_SHOWN = '[{"id":0,"name":"n0","tags":["x",0],"…":1},"…3",{"id":4,"…":4}]'


def _text(lines):
    return faithful.check(TEXT, "\n".join(lines), kind="text")


def _json(body, original=JSON):
    return faithful.check(original, body, kind="json")


def test_true_forms_are_accepted():
    assert _text(SHOWN) == []
    assert _text(LINES) == []
    assert _json(JSON_SHOWN) == []
    assert _json(JSON) == []


@pytest.mark.parametrize(
    "untrue",
    [
        SHOWN[1:],
        SHOWN[:-1],
        [*SHOWN[:4], SHOWN[5], SHOWN[4], *SHOWN[6:]],
        [*SHOWN[:3], "[… 4–28]", *SHOWN[4:]],
        [*SHOWN[:3], *SHOWN[4:]],
        [*SHOWN[:6], "[…7]", SHOWN[7]],
        [*SHOWN[:2], "line 3 says 10", *SHOWN[3:]],
        [*SHOWN[:2], "line 3 says", *SHOWN[3:]],
        [*SHOWN[:2], SHOWN[2], SHOWN[2], *SHOWN[3:]],
    ],
)
def test_a_line_lost_moved_altered_doubled_or_miscounted_is_caught(untrue):
    assert _text(untrue)


@pytest.mark.parametrize(
    ("true", "untrue"),
    [
        ('"…":1', '"…":2'),
        ('"…3"', '"…2"'),
        ('"n0"', '"n1"'),
        ('"id":4', '"id":4.0'),
        ('"id":0,"name":"n0"', '"name":"n0","id":0'),
        ('"tags":["x",0]', '"tags":{"x":0}'),
        ('"name"', '"nome"'),
        ("]", ""),
    ],
)
def test_a_value_altered_moved_or_miscounted_is_caught(true, untrue):
    assert true in JSON_SHOWN
    assert _json(JSON_SHOWN.replace(true, untrue))


def test_parts_of_a_long_line_and_of_a_string_are_judged_with_their_counts():
    line = "".join(f"{number:03}" for number in range(400))
    assert faithful.check(line, line[:30] + "[…1140]" + line[-30:], kind="text") == []
    assert faithful.check(line, line[:30] + "[…1139]" + line[-30:], kind="text")
    original = json.dumps({"s": line})
    assert _json(f'{{"s":"{line[:30]}[…1140]{line[-30:]}"}}', original) == []
    assert _json(f'{{"s":"{line[:30]}[…1141]{line[-30:]}"}}', original)
    assert _json(f'{{"s":"{line[:30]}[…1140]{line[-31:]}"}}', original)


def test_terminal_output_is_judged_by_what_a_terminal_leaves():
    text = "\x1b[31mred\x1b[0m\n10 %\r50 %\r100 %\nend\r\n"
    assert faithful.check(text, "red\n100 %\nend", kind="text") == []
    assert faithful.check(text, "red\n50 %\nend", kind="text")


def test_where_the_original_holds_a_note_only_tagged_notes_count_as_notes():
    text = "a\n[…2]\nb\nc\nd\n"
    assert faithful.check(text, "a\n[…2]\n[…#0a1b 2]\nd", kind="text") == []
    assert faithful.check(text, "a\n[…2]\nd", kind="text")


def test_wrapped_output_is_judged_as_text():
    original = json.dumps({"out": TEXT, "code": 1})
    inner = json.dumps("\n".join(SHOWN), ensure_ascii=False)
    assert _json(f'{{"out":{inner},"code":1}}', original) == []
    assert _json(f'{{"out":{inner.replace("4–29", "4–28")},"code":1}}', original)


TURNS = [*LINES[:2], *(["wait", "retry"] * 4), "", "", "", *LINES[2:4]]
TURNS_SHOWN = [
    *LINES[:2],
    "wait",
    "retry",
    "[…6 more lines repeat the 2 above]",
    "[…3 blank lines]",
    *LINES[2:4],
]


@pytest.mark.parametrize(
    ("true", "untrue"),
    [
        ("6 more lines repeat the 2", "5 more lines repeat the 2"),
        ("6 more lines repeat the 2", "7 more lines repeat the 2"),
        ("6 more lines repeat the 2", "6 more lines repeat the one"),
        ("6 more lines repeat the 2", "6 more lines repeat the 4"),
        ("3 blank lines", "2 blank lines"),
        ("3 blank lines", "4 blank lines"),
        ("wait\n", ""),
    ],
)
def test_lines_told_by_a_count_are_judged_by_what_they_are(true, untrue):
    original, body = "\n".join(TURNS), "\n".join(TURNS_SHOWN)
    assert faithful.check(original, body, kind="text") == []
    assert faithful.check(original, body.replace(true, untrue), kind="text")


def test_a_repetition_of_lines_that_are_not_shown_is_caught():
    original = "\n".join(TURNS)
    body = "\n".join([*LINES[:2], "[…2]", *TURNS_SHOWN[4:]])
    assert faithful.check(original, body, kind="text")


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("[…each line begins: a/b.py:]\n1:x\n\n2:y", ["a/b.py:1:x", "", "a/b.py:2:y"]),
        ("[…each line begins: a/]\nx\n[…each line begins: b/]\nx", ["a/x", "b/x"]),
        ("[…each line is indented by 3 blanks more]\nx\n y", ["   x", "    y"]),
        ("[…each line is indented by 2 tabs more]\nx", ["\t\tx"]),
        ("[…each line is filled with blanks to 5 columns]\nx\n\nyyyyy", ["x    ", "", "yyyyy"]),
    ],
)
def test_what_all_lines_share_is_put_back_before_they_are_judged(body, lines):
    assert faithful.check("\n".join(lines), body, kind="text") == []
    for other in ([*lines[:-1], lines[-1] + " "], ["b" + lines[0], *lines[1:]], lines[:-1]):
        assert faithful.check("\n".join(other), body, kind="text")


TABLE = '{"…columns":["id","name"],"…rows":[[0,"n0"],[1,"n1"]]}'
PAIRS = '[{"id":0,"name":"n0"},{"id":1,"name":"n1"}]'


@pytest.mark.parametrize(
    ("true", "untrue"),
    [
        ('"n1"', '"n2"'),
        ('"id"', '"ID"'),
        ("[0,", "[0,0,"),
        (',[1,"n1"]', ""),
        ("0", "0.0"),
        ("rows", "lines"),
    ],
)
def test_a_table_is_judged_by_the_records_that_it_stands_for(true, untrue):
    assert _json(TABLE, PAIRS) == []
    assert _json(f'{{"a":{TABLE}}}', f'{{"a":{PAIRS}}}') == []
    assert _json(TABLE.replace(true, untrue), PAIRS)


def test_json_lines_may_follow_a_line_with_their_columns():
    original = PAIRS[1:-1].replace("},{", "}\n{")
    assert _json('{"…columns":["id","name"]}\n[0,"n0"]\n[1,"n1"]', original) == []
    assert _json('{"…columns":["id","name"]}\n[0,"n0"]\n[1,"n2"]', original)
    assert _json('{"…columns":["id","name"]}\n[0,"n0"]', original)
