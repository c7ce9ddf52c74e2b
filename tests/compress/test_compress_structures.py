"""Structures within texts: what a rule of its own keeps in view, and what it hides."""

import base64
import json
import random

import pytest
from bench import faithful
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import json_lines, json_texts, log, long_texts, records, wrapped

from turngate.compress import shorten


def blob(size: int, seed: int = 3) -> str:
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


def wrapped_at(width: int, text: str) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def shortened(text: str, **hints):
    result = shorten(text, **hints)
    assert result.changed, result.reason
    assert faithful.check(text, result.text, kind=result.kind) == []
    return result


BLOBS = {
    "in one line": lambda: [blob(30_000)],
    "at 64 columns": lambda: wrapped_at(64, blob(30_000)),
    "at 76 columns": lambda: wrapped_at(76, blob(30_000)),
    "inside a tag": lambda: [f'<img src="data:image/png;base64,{blob(30_000)}" alt="chart of sales">'],
}


@pytest.mark.parametrize("lines", BLOBS.values(), ids=BLOBS)
def test_of_a_blob_only_its_ends_are_shown_and_the_text_around_it_is(lines):
    rows = lines()
    before = [f"saved {word} to the disk" for word in ("amber", "basil", "cedar")]
    after = [f"sent {word} by mail" for word in ("delta", "ember", "fable")]
    shown = shortened("\n".join([*before, *rows, *after])).text
    assert len(shown) < 2_000
    assert all(line in shown for line in (*before, *after))
    assert rows[0][:60] in shown
    assert rows[-1][-20:] in shown


def test_a_list_of_long_paths_is_no_blob():
    rng = random.Random(5)
    names = ["".join(rng.choices("ghijklmnopqrstuvwxyz", k=9)) for _ in range(300)]
    paths = [f"/srv/packages/{name}/share/documents/{name[::-1]}/licences/texts" for name in names]
    assert shortened("\n".join(paths)).kept > 60


def test_a_blob_in_a_json_string_leaves_room_for_other_values():
    rows = [{"id": n, "image": blob(900, n), "note": f"number {n * 7919}"} for n in range(60)]
    shown = shortened(json.dumps(rows)).text
    assert sum(f"number {n * 7919}" in shown for n in range(60)) >= 30
    assert blob(900, 0)[:64] in shown
    assert blob(900, 0)[:70] not in shown


def tool(n: int) -> dict[str, object]:
    rng = random.Random(n)
    word = lambda: "".join(rng.choices("aeioubdgklmnprst", k=7))  # noqa: E731 - three letters of code
    fields = {word(): {"type": "string", "description": f"The {word()} of the {word()}."} for _ in range(6)}
    return {
        "name": f"{word()}_{word()}",
        "description": f"Finds the {word()} of a {word()}.",
        "inputSchema": {"type": "object", "properties": fields, "required": list(fields)[:2]},
    }


LISTINGS = {
    "of a server": lambda tools: json.dumps({"tools": tools}, indent=2),
    "a tool a line": lambda tools: "\n".join(map(json.dumps, tools)),
    "of functions": lambda tools: json.dumps(
        [
            {"type": "function", "function": {"parameters": schema, "name": name, "description": description}}
            for name, description, schema in map(dict.values, tools)
        ]
    ),
}


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
def test_of_a_listing_of_tools_every_name_and_description_is_in_view(listing):
    tools = [tool(n) for n in range(60)]
    shown = shortened(listing(tools)).text
    assert [t["name"] for t in tools if f'"{t["name"]}"' not in shown] == []
    assert [t["name"] for t in tools if t["description"] not in shown] == []


HEADS = {
    "a package manager's": "npm warn config production Use `--omit=dev` instead.\n\n> demo@1.0.0 list\n",
    "a response's": "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\netag: [3]\r\n\r\n",
    "a log line": "[notice] 08:00:00 {asked} in 3 ms\n",
}
VALUES = {
    "minified": json.dumps,
    "indented": lambda rows: json.dumps(rows, indent=1),
    "lines": lambda rows: "\n".join(map(json.dumps, rows)),
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("write", VALUES.values(), ids=VALUES)
def test_what_a_tool_prints_before_a_value_is_shown_whole(head, write):
    result = shortened(head + write(records(300)))
    assert result.kind == "json"
    assert result.text.startswith(head)
    assert all(map(json.loads, filter(None, result.text[len(head) :].split("\n"))))


def test_a_value_after_much_text_is_a_part_of_the_text():
    head = "\n".join(log(40))
    assert shortened(f"{head}\n{json.dumps(records(300))}").kind != "json"


def table(rows: int) -> list[str]:
    return ["id,name,city,score", *(f"{n},name{n * 31},city{n % 5},{n * 7 % 101}" for n in range(rows))]


def diff_of(lines: int) -> list[str]:
    head = ["diff --git a/x.py b/x.py", "--- a/x.py", "+++ b/x.py", f"@@ -1,0 +1,{lines} @@"]
    return [*head, *(f"+line {n} of the new text about {n * 7919}" for n in range(lines))]


JOINS = {
    "commands": "$ cat {}",
    "files": "==> {} <==",
    "steps": "=== step {} ===",
}


@pytest.mark.parametrize("header", JOINS.values(), ids=JOINS)
def test_each_part_of_a_mixed_output_is_chosen_from_as_what_it_is(header):
    rows = table(400)
    rows[207] = "206,name6386,city1,99999"
    added = diff_of(300)
    noise = log(900)
    noise[411] = noise[411].replace("copied", "ERROR lost")
    names = [header.format(name) for name in ("noise.log", "scores.csv", "change.diff")]
    result = shortened("\n".join([names[0], *noise, names[1], *rows, names[2], *added]))
    assert result.kind == "mixed"
    shown = result.text.split("\n")
    assert [line for line in names if line not in shown] == []
    assert {rows[0], rows[207], added[0], added[4], added[-1], noise[411]} <= set(shown)
    hidden = sum(last - first + 1 for first, last in result.hidden)
    assert hidden + result.kept == result.total == len(noise) + len(rows) + len(added) + 3


def test_a_diff_amid_a_log_is_a_part_without_a_header():
    added = diff_of(300)
    result = shortened("\n".join([*log(300), *added, "Applied.", *log(300)]))
    assert result.kind == "mixed"
    assert {added[0], added[3], added[4], added[-1], "Applied."} <= set(result.text.split("\n"))


_headers = st.sampled_from(
    ["$ make", "==> a.txt <==", "=== b ===", "--- c ---", "### d ###", "commit 0a1b", "", "[x] y"]
)
_bodies = st.one_of(
    long_texts,
    json_texts,
    json_lines,
    st.integers(1, 90).map(lambda n: "\n".join(diff_of(n))),
    st.integers(1, 90).map(lambda n: "\n".join(table(n))),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(_headers, _bodies), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n", "\n\n"])
)
def test_whatever_stands_together_in_a_text_what_is_shown_of_it_is_true(parts, end):
    text = end.join(f"{header}{end}{body}" for header, body in parts)
    result = shorten(text, least_chars=0)
    assert not result.reason.startswith("fault"), result.reason
    if result.changed:
        assert faithful.check(text, result.text, kind=result.kind) == []


ONE_PIECE = {
    "a commit with its patch": "\n".join(
        ["commit 0a1b2c3d", "Author: A <a@b>", "", "    Say more.", "", *diff_of(300)]
    ),
    "a report with rules": "\n".join(
        line for n in range(9) for line in (f"=== step {n} ===", *log(60, "step {m} {s} "))
    ),
    "a page with a rule": "\n".join(
        ["# Title", *(f"## Part {n}\n\n- a [b](c{n})\n" for n in range(90)), "=== a ==="]
    ),
}


@pytest.mark.parametrize("text", ONE_PIECE.values(), ids=ONE_PIECE)
def test_a_text_of_one_piece_is_not_taken_apart(text):
    assert shortened(text).kind != "mixed"


def test_a_wrapped_output_of_several_commands_is_taken_apart_too():
    output = "\n".join(["$ git diff", *diff_of(300), "$ cat scores.csv", *table(300)])
    shown = json.loads(shortened(wrapped(output, 0)).text)["output"].split("\n")
    assert {"$ git diff", "$ cat scores.csv", table(1)[0], diff_of(300)[-1]} <= set(shown)


JUNIT = '<testcase classname="tests.{0}" name="test_{0}_{1}" time="0.0{1}" />'


@pytest.mark.parametrize("join", ["", "\n  "], ids=["one line", "a line each"])
def test_the_failures_of_a_report_in_xml_are_in_view(join):
    cases = [JUNIT.format("gklmnoprst"[n % 10] * 4, n) for n in range(500)]
    cases[307] = (
        '<testcase classname="tests.ledger" name="test_sums" time="0.07"><failure '
        'message="AssertionError: 3 is not 4">tests/ledger.py:41</failure></testcase>'
    )
    suite = '<testsuite name="all" errors="0" failures="1" skipped="0" tests="500">'
    shown = shortened(join.join(['<?xml version="1.0"?>', suite, *cases, "</testsuite>"])).text
    assert 'failures="1"' in shown
    assert 'name="test_sums"' in shown
    assert 'message="AssertionError: 3 is not 4"' in shown


def test_a_sign_of_ours_behind_a_value_is_told_from_its_notes():
    text = "\n".join(["$ make", json.dumps(["abc def ghi jkl " * 14] * 37), "$ make", '[{"\\u2026":1e400}]'])
    result = shortened(text)
    assert faithful.check(text, result.text, kind=result.kind) == []
