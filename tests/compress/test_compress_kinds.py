"""Recognition: each kind by an ordinary example of it."""

import json

import pytest
from texts import log, records

from turngate.compress import shorten

ROWS = range(200)
EXAMPLES = {
    "json": json.dumps(records(100), indent=2),
    "log": "\n".join(log(200)),
    "diff": "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
    + "".join(f"@@ -{i},3 +{i},4 @@ def f\n context {i}\n-old {i}\n+new {i * 7}\n+more\n" for i in ROWS),
    "search": "\n".join(f"src/pkg/mod_{i % 9}.py:{i}:    value = compute({i * 31})" for i in ROWS),
    "listing": "\n".join(f"-rw-r--r-- 1 user user {i * 977 % 9999} Jan 31 08:00 file_{i}.txt" for i in ROWS),
    "table": "id,name,city,score\n" + "\n".join(f"{i},name{i},city{i % 5},{i * 7 % 101}" for i in ROWS),
    "trace": "".join(
        f'Traceback (most recent call last):\n  File "/a/b{i}.py", line {i}, in f\n    go()\nKeyError: {i}\n'
        for i in ROWS
    ),
    "report": "\n".join(f"tests/test_mod.py::test_case_{i} PASSED" for i in ROWS)
    + "\n== 200 passed in 3.1s ==",
    "html": "<!doctype html><html><body>"
    + "".join(f"<p>Paragraph {i * 31}</p>\n" for i in ROWS)
    + "</body></html>",
    "markdown": "# Title\n\n" + "\n".join(f"## Part {i}\n\n- point [a](b{i})\n\nText {i}.\n" for i in ROWS),
    "text": "\n".join(f"Sentence number {i} says nothing of note about {i * 7919}." for i in ROWS),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_an_ordinary_example_is_recognised_and_shortened(kind):
    result = shorten(EXAMPLES[kind])
    assert (result.kind, result.changed) == (kind, True)


def test_json_lines_stay_a_value_a_line():
    text = "\n".join(json.dumps(row) for row in records(300))
    shown = shorten(text).text.split("\n")
    assert len(shown) > 10
    assert all(isinstance(json.loads(line), dict | str) for line in shown)


def test_the_maximum_of_a_column_and_the_rare_category_are_in_view():
    rows = [f"{i},city{i % 3},{100 + i % 7}" for i in range(1_000)]
    rows[507] = "507,city1,99999"
    rows[700] = "700,atlantis,103"
    shown = shorten("id,city,score\n" + "\n".join(rows)).text
    assert "507,city1,99999" in shown
    assert "700,atlantis,103" in shown


def test_both_ends_of_a_long_change_are_in_view():
    added = [f"+line {i} of the new text about {i * 7919}" for i in range(500)]
    head = ["diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1,0 +1,500 @@"]
    shown = shorten("\n".join([*head, *added])).text
    assert "diff --git a/x b/x" in shown
    assert added[0] in shown
    assert added[-1] in shown


def test_small_texts_are_left_alone_and_the_limit_can_be_given():
    text = "\n".join(log(20))
    assert shorten(text).reason == "small"
    assert shorten(text, least_chars=100).changed


def test_a_text_with_nothing_to_win_is_left_alone():
    text = json.dumps({"key": "v" * 250, "other": list(range(20))})
    assert shorten(text, least_chars=0).text is text


@pytest.mark.parametrize("tail", ["\n[exit code: 1]", "\n\nexited C:\\dir\n", "  \n"])
def test_what_a_host_adds_after_a_value_is_shown_whole(tail):
    result = shorten(json.dumps(records(400), indent=1) + tail)
    assert result.kind == "json"
    assert result.text.endswith(tail if tail.strip() else "]")


def test_much_text_after_a_value_makes_it_a_text():
    assert shorten(json.dumps(records(100)) + "\nword" * 900).kind == "text"


def test_a_small_text_of_many_tokens_is_shortened_where_one_of_few_is_left_alone():
    dense = "\n".join(f"第{n}步：把日志文件复制到备份目录，并检查磁盘空间是否足够" for n in range(60))
    assert len(dense) < 2_000
    assert shorten(dense).changed
    assert shorten("\n".join(f"step {n} is done" for n in range(60))).reason == "small"


def test_what_a_terminal_leaves_is_shown_whole_where_it_is_short_enough():
    bars = ["\r".join(f"layer {n}{n * 7}: {k} %" for k in range(0, 101, 2)) for n in range(40)]
    result = shorten("\n".join(bars))
    assert result.text == "\n".join(f"layer {n}{n * 7}: 100 %" for n in range(40))
    assert result.hidden == ()


def test_styles_and_scripts_of_a_page_are_hidden_and_pages_inside_scripts_are_not():
    style = [f".class-{n} {{ margin: {n}px; color: #{n:06x} }}" for n in range(200)]
    script = [f"const value_{n} = load({n * 31});" for n in range(200)]
    inside = ["const page = `", "<h2>Fees that apply to accounts abroad</h2>", "`;"]
    body = [f"<p>Paragraph {n} tells of {n * 7919}.</p>" for n in range(60)]
    head = ["<!doctype html><html><head><style>", *style, "</style></head><body>"]
    page = "\n".join([*head, *body, "<script>", *script, *inside, *script, "</script></body></html>"])
    shown = shorten(page).text
    assert "margin" not in shown
    assert shown.count("const value_") < 10
    assert "<h2>Fees that apply to accounts abroad</h2>" in shown


def test_a_record_with_other_keys_than_all_the_rest_is_in_view():
    rows = [
        {"time": f"08:{n // 60:02}:{n % 60:02}", "test": f"t{n}", "out": f"ran {n * 37}"} for n in range(300)
    ]
    rows[222] = {"time": "08:03:42", "package": "store", "took": 3.25}
    shown = shorten("\n".join(map(json.dumps, rows))).text
    assert '"package":"store"' in shown
    assert '"took":3.25' in shown


def test_values_of_a_short_gap_are_shown_rather_than_counted():
    rows = [{"id": n, "ok": True, "size": n * 7919 % 10007} for n in range(500)]
    shown = shorten(json.dumps(rows)).text
    assert shown.count('"…":1') < shown.count("{") / 4
