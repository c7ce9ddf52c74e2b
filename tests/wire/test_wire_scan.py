"""Spans and splices: what is asked for changes, and nothing else does."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.errors import WireError
from turngate.wire.scan import Node, find, scan, scan_value, show, spell, splice, text_of, value_of

SPACES = st.text(alphabet=" \t\n\r", max_size=3)


def escapes(text: str) -> st.SearchStrategy[str]:
    """The same string, spelled in a random mixture of plain characters and escapes."""

    def one(pair: tuple[str, int]) -> str:
        char, how = pair
        short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\n": "\\n", "\t": "\\t", "\b": "\\b"}
        units = char.encode("utf-16-be", "surrogatepass")
        long = "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
        must = char < " " or char in '"\\' or "\ud800" <= char <= "\udfff"
        if how == 0 or must:
            return short.get(char, long) if how < 2 else long.upper().replace("\\U", "\\u")
        return char

    return st.lists(st.integers(0, 2), min_size=len(text), max_size=len(text)).map(
        lambda hows: '"' + "".join(map(one, zip(text, hows, strict=True))) + '"'
    )


CHARS = st.characters(exclude_categories=["Cs"]) | st.sampled_from('\ud800\udfff"\\/\n\x00\x1e\u2028😀')


def no_split_pair(text: str) -> bool:
    return not any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))


TEXTS = st.text(CHARS, max_size=12).filter(no_split_pair)
STRINGS = TEXTS.flatmap(escapes)
NUMBERS = st.sampled_from(
    ["0", "-0", "-0.0", "1e400", "1E+2", "12345678901234567890123456789", "0.10", "9" * 5000]
)
SCALARS = NUMBERS | st.sampled_from(["true", "false", "null"]) | STRINGS
KEYS = st.sampled_from(['"a"', '"\\u0061"', '"b"', '""', '"content"'])


@st.composite
def arrays(draw, inner):
    parts = draw(st.lists(inner, max_size=3))
    return (
        "["
        + ",".join(draw(SPACES) + p + draw(SPACES) for p in parts)
        + (draw(SPACES) if not parts else "")
        + "]"
    )


@st.composite
def objects(draw, inner):
    parts = draw(st.lists(st.tuples(KEYS, inner), max_size=4))  # keys repeat, and on purpose
    body = ",".join(f"{draw(SPACES)}{k}{draw(SPACES)}:{draw(SPACES)}{v}{draw(SPACES)}" for k, v in parts)
    return "{" + (body or draw(SPACES)) + "}"


DOCUMENTS = st.recursive(SCALARS, lambda inner: arrays(inner) | objects(inner), max_leaves=12)
BODIES = st.tuples(SPACES, DOCUMENTS, SPACES).map(lambda t: "".join(t).encode())


def loads(body: bytes):
    def whole(digits: str) -> int | float:
        return int(digits) if len(digits) < 4000 else float(digits)

    return json.loads(body, parse_int=whole)


def string_paths(node: Node, path=()):
    if node.kind == "string":
        yield path
    for i, item in enumerate(node.items):
        yield from string_paths(item, (*path, i))
    for key in {m.key for m in node.members}:
        yield from string_paths(node.get(key), (*path, key))


@given(BODIES)
def test_a_scanned_body_reads_as_the_standard_parser_reads_it(body):
    assert value_of(body, scan(body)) == loads(body)


@given(BODIES)
def test_every_span_is_the_json_of_its_value(body):
    todo = [scan(body)]
    while todo:
        node = todo.pop()
        assert loads(body[node.start : node.end]) == value_of(body, node)
        todo += [*node.items, *(m.value for m in node.members)]


@given(BODIES, TEXTS, st.randoms(use_true_random=False))
def test_a_splice_changes_the_value_at_its_path_and_no_other_byte(body, text, random):
    root = scan(body)
    paths = sorted(string_paths(root), key=str)
    chosen = random.sample(paths, min(len(paths), 2))
    spliced = splice(body, dict.fromkeys(chosen, text))
    at = shift = 0
    for node in sorted((find(root, p) for p in chosen), key=lambda n: n.start):
        new = spell(text) if text_of(body, node) != text else body[node.start : node.end]
        assert spliced[at + shift : node.start + shift] == body[at : node.start]
        assert spliced[node.start + shift : node.start + shift + len(new)] == new
        at, shift = node.end, shift + len(new) - (node.end - node.start)
    assert spliced[at + shift :] == body[at:]
    again = scan(spliced)
    for path in paths:
        expected = text if path in chosen else text_of(body, find(root, path))
        assert text_of(spliced, find(again, path)) == expected


@given(BODIES)
def test_a_splice_without_change_returns_the_very_object(body):
    root = scan(body)
    same = {path: text_of(body, find(root, path)) for path in string_paths(root)}
    assert splice(body, same) is body
    assert splice(body, {}) is body


@given(st.binary(max_size=60) | BODIES.flatmap(lambda b: st.integers(0, len(b)).map(lambda n: b[:n])))
def test_whatever_is_not_json_raises_one_named_error_and_all_else_parses(body):
    try:
        expected = loads(body)
        body.decode()
    except ValueError:
        with pytest.raises(WireError, match="not JSON"):
            value_of(body, scan(body))
        return
    except RecursionError:
        return
    if b"NaN" not in body and b"Infinity" not in body:
        assert value_of(body, scan(body)) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"NaN",
        b"[1,]",
        b'{"a":1,}',
        b"[1 2]",
        b'{"a" 1}',
        b"{1:2}",
        b"01",
        b"1.",
        b"-",
        b"[1]]",
        b"[1}",
        b'"\t"',
        b'"\\x"',
        b'"\\u12"',
        b'"a',
        b'{"a":[1}',
        b'"\xff"',
        b"\xef\xbb\xbf[]",
        b"tru",
        b"[1] 2",
    ],
)
def test_what_a_strict_parser_refuses_is_refused(body):
    with pytest.raises(WireError):
        value_of(body, scan(body))


def test_nesting_deeper_than_any_recursion_limit_is_read():
    body = b"[" * 50_000 + b'"x"' + b"]" * 50_000
    assert splice(body, {(0,) * 49_999 + (0,): "y"}) == body.replace(b"x", b"y")


def test_a_number_beyond_all_limits_is_read_by_its_size():
    assert value_of(b"9" * 5000, scan(b"9" * 5000)) == math.inf


def test_a_path_that_leads_nowhere_or_to_no_string_is_named():
    body = b'{"messages":[{"content":null}]}'
    with pytest.raises(WireError, match=r"messages\[1\]"):
        splice(body, {("messages", 1, "content"): "x"})
    with pytest.raises(WireError, match=r"messages\[0\]\.content is not a string but a literal"):
        splice(body, {("messages", 0, "content"): "x"})
    with pytest.raises(WireError, match="not a string"):
        text_of(body, scan(body))
    assert show(()) == "the root"


@given(DOCUMENTS, SPACES, st.sampled_from(["", ",1", "]", "}", " x", '"']))
def test_a_value_is_scanned_where_it_stands_and_the_offset_behind_it_told(document, space, behind):
    raw = document.encode()
    body = b"[1," + space.encode() + raw + behind.encode()
    node, end = scan_value(body, 3)
    assert end == node.end == len(body) - len(behind)
    assert value_of(body, node) == loads(raw)


def test_a_value_that_is_cut_off_is_none():
    for body in (b"[1,", b"", b"  ", b'{"a"', b'"x', b'{"a":[1,2}'):
        with pytest.raises(WireError, match="not JSON"):
            scan_value(body, 0)


def wrapped(levels: int, inside: bytes, base: int = 0) -> bytes:
    return b" " * base + b'{"k":[' * levels + inside + b"]}" * levels


@pytest.mark.parametrize("levels", [1, 15, 16, 17, 31, 33, 40, 200])
@pytest.mark.parametrize("base", [0, 7])
def test_depth_makes_no_difference_to_what_is_found(levels, base):
    inside = b'"a\\"b]}",{"x": [ ] , "y":{ }},-1.5e3'
    body = wrapped(levels, inside, base)
    assert value_of(body, scan(body)) == loads(body)
    node, end = scan_value(body + b",[", base)
    assert (node.start, end) == (base, len(body))
    deepest = find(node, ("k", 0) * (levels - 1) + ("k",))
    spans = [body[item.start : item.end] for item in deepest.items]
    assert spans == [b'"a\\"b]}"', b'{"x": [ ] , "y":{ }}', b"-1.5e3"]


def test_a_value_is_the_same_whether_its_parts_were_looked_at_before_or_not():
    body = b'{"a":[1,{"b":"\\u00e9"}],"a":{"n":123456789012345678901234567890,"m":18446744073709551616}}'
    opened = scan(body)
    assert opened.get("a").get("n").kind == "number"
    assert value_of(body, opened) == value_of(body, scan(body)) == loads(body)
    assert isinstance(value_of(body, scan(body))["a"]["m"], int)


def test_a_large_body_that_is_no_json_is_refused_by_the_same_name_and_one_that_only_looks_so_is_read():
    large = b'["' + b"x" * (1 << 18) + b'",'
    with pytest.raises(WireError, match=r"not JSON.*byte"):
        scan(large)
    for strange in (b'"\\ud800"', b"1e400", b"[" * 2000 + b"]" * 2000):
        assert len(scan(large + strange + b"]").items) == 2


def test_nesting_without_end_is_refused_before_it_takes_all_memory():
    with pytest.raises(WireError, match="nested deeper"):
        scan(b"[" * 200_000)
