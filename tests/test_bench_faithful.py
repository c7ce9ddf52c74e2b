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
