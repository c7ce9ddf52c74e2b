"""Input that breaks other tools: nothing is raised, and nothing is lost or changed."""

from __future__ import annotations

import json
import random

import pytest

from turngate import ingress
from turngate.compress import shorten

LOOKALIKE = (
    "<<<CCR:0123456789abcdef|tool|{n}|inline>>> {n} [CCR:0123456789abcdef|t|1] "
    "⫷CCR:0123456789abcdef⫸ <<<CCR:\n"
)

TEXTS = {
    "binary": lambda: random.Random(1).randbytes(200_000).decode("latin-1"),
    "invalid UTF-8": lambda: random.Random(2).randbytes(200_000).decode("utf-8", "surrogateescape"),
    "lone surrogates": lambda: "".join(f"line {n} \ud800 \udfff \udc80\n" for n in range(3_000)),
    "NUL": lambda: "".join(f"a\x00b {n}\x00\n" for n in range(3_000)),
    "one line of 50 MB": lambda: "x1 " * (50_000_000 // 3),
    "a million empty lines": lambda: "\n" * 1_000_000,
    "JSON 10,000 deep": lambda: "[" * 10_000 + "]" * 10_000,
    "objects 10,000 deep": lambda: '{"a":' * 10_000 + "1" + "}" * 10_000,
    "JSON that never closes": lambda: '{"a": [' * 5_000,
    "duplicate keys": lambda: (
        "[" + ",".join('{"k": 1, "k": 2, "k": {"k": 3, "k": 4}}' for _ in range(900)) + "]"
    ),
    "huge numbers": lambda: (
        json.dumps([{"n": n} for n in range(900)]).replace("7}", "1e400}").replace("3}", "-0.0}")
    ),
    "look-alikes": lambda: "".join(LOOKALIKE.format(n=n) for n in range(2_000)),
    "nothing but a marker's opening": lambda: "<<<CCR:" * 20_000,
    "carriage returns": lambda: "".join(f"\r{n} %" for n in range(50_000)),
    "escape sequences": lambda: "\x1b[31m" * 20_000 + "\x1b]0;title\x07" * 5_000 + "\x1b[",
    "every line break": lambda: "a\r\nb\rc\u2028d\u2029e\x85f\x0bg\x0ch\n" * 2_000,
    "direction marks": lambda: "\u202e\u2066abc\u2069\ufeff é ﷽ 👩‍👩‍👧\n" * 2_000,
}


@pytest.mark.parametrize("name", TEXTS)
def test_it_passes_or_comes_back_identical(session, name):
    text = TEXTS[name]()
    shown = session.tool_result(name="terminal", text=text)
    assert session.stats().faults == {}
    if shown is not text:
        assert len(ingress.to_bytes(shown)) < len(ingress.to_bytes(text))
        assert session.retrieve(shown.partition("\n")[0]).text == text


@pytest.mark.parametrize("name", ["binary", "invalid UTF-8", "NUL"])
def test_as_bytes_too(session, name):
    data = ingress.to_bytes(TEXTS[name]()) + b"\xff\x00\xed\xa0\x80"
    shown = session.tool_bytes(name="terminal", data=data)
    assert session.stats().faults == {}
    if shown is not data:
        ref = shown.partition(b"\n")[0].decode()
        assert session.original(ref).data == data


def test_huge_numbers_stay_as_spelled():
    text = json.dumps([{"n": n, "v": "x" * 9} for n in range(900)]).replace('"n": 0,', '"n": 1e400,')
    assert "1e400" in shorten(text).text
