"""A changed result on the page: what it is called, what of it is a note, and that its text is whole."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate import shorten
from turngate.replay.arms import HEAD_TAIL_CHARS, Change, _head_tail
from turngate.replay.pair import pair

LINES = [f"10:00:{n % 60:02} INFO worker job {n} done in {n * 7 % 91} ms" for n in range(700)]
LOG = "\n".join(LINES)
ROWS = [{"id": n, "name": f"item {n}", "text": "x" * (n % 90), "price": n * 31 % 977} for n in range(300)]
MARKER = "<<<CCR:0123456789abcdef|terminal|27812|inline|kind=log>>> 8 of 700 lines"
TAGGED = "\n".join(f"[… {n}–{n + 1}] is what line {n} says" for n in range(300))
REPEATED = "\n".join(["step 1 of the recursion", "step 2 of the recursion"] * 400)
WRAPPED = json.dumps({"output": LOG, "exit_code": 0})


def panes(page: str) -> list[str]:
    return re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)


def text_of(html: str) -> str:
    return unescape(re.sub(r"</?mark[^>]*>", "", html))


def marks(page: str) -> list[str]:
    return [unescape(found) for found in re.findall(r"<mark[^>]*>(.*?)</mark>", page, re.DOTALL)]


def test_a_result_is_named_by_its_call_and_measured():
    page = pair(7, Change("bash: git log --stat <x>", LOG + "\n", "short"))
    summary = unescape(re.sub(r"<.*?>", "", re.search("<summary>(.*)</summary>", page)[1]))
    assert re.fullmatch(r"bash: git log --stat <x> message 7: [\d,]+ → 1 tokens \(-100%\)", summary)
    assert f"before: 700 lines, {len(LOG) + 1:,} characters" in page
    assert "after: 1 line, 5 characters" in page


@pytest.mark.parametrize(
    "text", [LOG, json.dumps(ROWS), TAGGED, WRAPPED, REPEATED], ids=["log", "json", "tag", "wrap", "again"]
)
def test_what_shortening_wrote_is_marked_and_nothing_else(text):
    short = shorten(text)
    assert short.changed
    after = f"{MARKER}\n{short.text}"
    found = marks(pair(1, Change("x", text, after)))
    assert found[0] == MARKER
    assert len(found) > 1
    assert not any(note in text for note in found)
    rest = text_of(panes(pair(1, Change("x", text, after)))[1])
    for note in found:
        rest = rest.replace(note, "", 1)
    assert not re.search(r"hidden: \d", rest)
    assert rest.count("…") == sum(line.count("…") for line in short.text.splitlines() if line in text)


def test_the_note_of_head_tail_is_marked():
    text = "a" * 3 * HEAD_TAIL_CHARS
    assert marks(pair(1, Change("x", text, _head_tail(None, text)))) == ["[… 5,000 characters left out …]"]


PIECES = st.sampled_from([
    "[… 4–297]", "[…3]", '"…":3', '"…12"', "[…#a1b2 41–980]", "<mark>", "</pre>", "&amp;", "\n", "<<<CCR:",
    '[… lines 4–9 hidden: 6 like "', '"]', "[… 1,234 characters left out …]", "…", "a", "\udc80", "\0",
])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS, TEXTS)
def test_both_texts_are_whole_whatever_is_marked(before, after):
    shown = [text_of(pane) for pane in panes(pair(1, Change(before, before, after)))]
    assert shown == [re.sub("[\udc80\0]", lambda m: "?" if m[0] != "\0" else "�", t) for t in (before, after)]


@given(TEXTS)
def test_what_stands_in_the_original_is_no_note(text):
    assert all(note.startswith("<<<CCR:") for note in marks(pair(1, Change("x", text, text))))
