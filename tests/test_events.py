from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate import events
from turngate.cli.demo import load_recording, recorded_results
from turngate.events import (
    ToolEvent,
    WindowStats,
    error_sig,
    fnv1a,
    normalize_args_sig,
    tool_event,
    turn_window,
)

TRACEBACK = """Traceback (most recent call last):
  File "{path}", line {line}, in <module>
    main()
  File "/usr/lib/python3.11/runpy.py", line 88, in run
    raise {error}
{error}
"""

json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(max_size=6), json_value, max_size=4)


class TestCompat:
    """Bit for bit the signatures of the module whose names these are."""

    @pytest.mark.parametrize(
        ("data", "value"),
        # The published test vectors of FNV-1a, 64 bits.
        [
            (b"", 0xCBF29CE484222325),
            (b"a", 0xAF63DC4C8601EC8C),
            (b"foobar", 0x85944171F73967E8),
            (b"chongo was here!\n", 0x46810940EFF5F915),
        ],
    )
    def test_fnv1a_has_the_published_values(self, data, value):
        assert fnv1a(data) == value

    @pytest.mark.parametrize(
        ("kind", "message", "hashed"),
        [
            ("ValueError", "  bad value \nsecond line", b"ValueError\x01bad value"),
            ("E", "one\r\ntwo", b"E\x01one"),
            (None, None, b"\x01"),
            ("E", "", b"E\x01"),
            ("E", "\n second", b"E\x01"),
            ("E", "\u3000été\u2028", "E\x01été".encode()),
            ("E", "\x1fkept\x1f", b"E\x01\x1fkept\x1f"),
        ],
    )
    def test_an_error_is_its_type_and_first_line(self, kind, message, hashed):
        assert error_sig(kind, message, compat=True) == fnv1a(hashed)

    @pytest.mark.parametrize(
        ("args", "hashed"),
        [
            ({"command": "ls -l  \n", "cwd": "/x"}, b"ls -l"),
            ({"command": "ls\x1f"}, b"ls\x1f"),
            ({"command": 3, "timeout": 9}, b"command=3\x1f"),
            (
                {"b": [1, None, True], "a": {"z": 1, "y": "é"}},
                'a={"z":1,"y":"é"}\x1fb=[1,null,true]\x1f'.encode(),
            ),
            ({"timeout": 1, "timestamp": 2, "session_id": 3, "tool_call_id": 4}, b""),
            ({"deep": {"timeout": 1}}, b'deep={"timeout":1}\x1f'),
            ({"s": 'a"\\\n\x01\x7f'}, b's="a\\"\\\\\\n\\u0001\x7f"\x1f'),
            (None, b"null"),
            ([1, "x"], b'[1,"x"]'),
            ("no json", b'"no json"'),
            ('{"path": "a"}', b'path="a"\x1f'),
        ],
    )
    def test_a_call_is_its_tool_and_sorted_arguments(self, args, hashed):
        assert normalize_args_sig("t", args, compat=True) == fnv1a(b"t\x01" + hashed)

    @pytest.mark.parametrize(
        ("number", "spelled"),
        # serde_json writes floats with ryu: fixed from 1e-5 up to 1e16, then an exponent without padding.
        [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e16"),
            (1.5e300, "1.5e300"),
            (1.234e-5, "0.00001234"),
            (-1e-5, "-0.00001"),
            (1e-6, "1e-6"),
            (float("nan"), "null"),
        ],
    )
    def test_floats_are_spelled_as_serde_json_does(self, number, spelled):
        assert normalize_args_sig("t", [number], compat=True) == fnv1a(f"t\x01[{spelled}]".encode())


SAME_ERRORS = [
    (
        "line numbers",
        "src/a.py:10: error: name 'x' is not defined",
        "src/a.py:99: error: name 'x' is not defined",
    ),
    ("folders", "cp: cannot stat '/tmp/run1/data.csv'", "cp: cannot stat '/var/x/y/data.csv'"),
    ("windows folders", r"cannot open C:\a\b\data.csv", r"cannot open D:\c\data.csv"),
    ("times", "2025-03-04T10:00:01Z ERROR no route", "2025-03-05 11:30:00.123 ERROR no route"),
    ("times of day", "10:00:01 ERROR no route", "23:59:59,999 ERROR no route"),
    (
        "uuids",
        "job 3f2a9c1d-0b7e-4f5a-8c6d-112233445566 failed",
        "job aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeee1 failed",
    ),
    ("hex ids", "commit 3f2a9c1 not found", "commit 9d8e7f6a5b not found"),
    ("addresses", "<Foo object at 0x7f00aa> failed", "<Foo object at 0x10> failed"),
    ("colours", "\x1b[31mERROR\x1b[0m: no route", "ERROR: no route"),
    ("durations", "timed out after 30.0 s", "timed out after 31.25 s"),
    ("blanks", "ERROR:  no   route ", "ERROR: no route"),
    ("numbers in temporary names", "no file /tmp/pytest-12/x.txt", "no file /tmp/pytest-999/x.txt"),
    (
        "tracebacks that end alike",
        TRACEBACK.format(path="/a/x.py", line=3, error="KeyError: 'name'"),
        TRACEBACK.format(path="/b/z.py", line=77, error="KeyError: 'name'"),
    ),
    ("a traceback and its end", TRACEBACK.format(path="/a", line=3, error="KeyError: 'n'"), "KeyError: 'n'"),
]
OTHER_ERRORS = [
    ("names", "NameError: name 'foo' is not defined", "NameError: name 'bar' is not defined"),
    ("files", "cannot stat '/tmp/a.csv'", "cannot stat '/tmp/b.csv'"),
    ("identifiers with digits", "undefined: step1", "undefined: step2"),
    ("compiler codes", "error[E0308]: mismatched", "error[E0382]: mismatched"),
    ("http statuses", "HTTP 404 from upstream", "HTTP 500 from upstream"),
    ("statuses", "status code: 404", "status code: 503"),
    ("exit codes", "make: exit status 1", "make: exit status 2"),
    ("errno", "[Errno 2] x", "[Errno 13] x"),
    ("words", "permission denied", "connection refused"),
    (
        "tracebacks that end differently",
        TRACEBACK.format(path="/a", line=3, error="KeyError: 'name'"),
        TRACEBACK.format(path="/a", line=3, error="ValueError: 'name'"),
    ),
]
SAME_CALLS = [
    ("key order", {"a": 1, "b": {"x": 1, "y": 2}}, {"b": {"y": 2, "x": 1}, "a": 1}),
    ("json text", {"command": "ls"}, '{ "command" : "ls" }'),
    ("volatile keys", {"command": "ls", "timeout": 3}, {"command": "ls", "timeout": 9}),
    ("deep volatile keys", {"a": [{"call_id": 1, "x": 1}]}, {"a": [{"call_id": 2, "x": 1}]}),
    ("blanks in a command", {"command": " ls   -l\t/x "}, {"command": "ls -l /x"}),
    ("empty lines in a command", {"command": "a\n\n b"}, {"command": "a\nb\n"}),
]
OTHER_CALLS = [
    ("cwd", {"command": "ls", "cwd": "/a"}, {"command": "ls", "cwd": "/b"}),
    ("env", {"command": "ls", "env": {"A": "1"}}, {"command": "ls", "env": {"A": "2"}}),
    ("quoted blanks", {"command": "echo 'a  b'"}, {"command": "echo 'a b'"}),
    ("double-quoted blanks", {"command": 'echo "a  b"'}, {"command": 'echo "a b"'}),
    ("escaped blanks", {"command": "cat a\\  b"}, {"command": "cat a\\ b"}),
    ("line breaks", {"command": "a\nb"}, {"command": "a b"}),
    ("number and text", {"a": 1}, {"a": "1"}),
    ("true and one", {"a": True}, {"a": 1}),
    ("order in a list", {"a": [1, 2]}, {"a": [2, 1]}),
    ("nothing and empty", None, {}),
    ("great numbers", {"a": 2**70}, {"a": 2**70 + 1}),
    ("lone surrogates", {"a": "\ud800"}, {"a": "\ud801"}),
]


def first(case):
    return case[0]


class TestSignatures:
    @pytest.mark.parametrize("case", SAME_ERRORS, ids=first)
    def test_these_errors_are_the_same(self, case):
        assert error_sig("", case[1]) == error_sig("", case[2])

    @pytest.mark.parametrize("case", OTHER_ERRORS, ids=first)
    def test_these_errors_are_not(self, case):
        assert error_sig("", case[1]) != error_sig("", case[2])

    def test_the_type_counts(self):
        assert error_sig("KeyError", "x") != error_sig("ValueError", "x")
        assert error_sig(None, None) == error_sig("", "")

    @pytest.mark.parametrize("case", SAME_CALLS, ids=first)
    def test_these_calls_are_the_same(self, case):
        assert normalize_args_sig("t", case[1]) == normalize_args_sig("t", case[2])

    @pytest.mark.parametrize("case", OTHER_CALLS, ids=first)
    def test_these_calls_are_not(self, case):
        assert normalize_args_sig("t", case[1]) != normalize_args_sig("t", case[2])

    def test_the_tool_counts(self):
        assert normalize_args_sig("a", {}) != normalize_args_sig("b", {})

    @given(arguments)
    def test_json_text_and_values_are_one_call(self, args):
        assert normalize_args_sig("t", json.dumps(args)) == normalize_args_sig("t", args)

    @given(arguments, arguments)
    def test_order_never_counts_and_values_do(self, one, other):
        turned = dict(reversed(one.items()))
        for compat in (True, False):
            assert normalize_args_sig("t", one, compat=compat) == normalize_args_sig(
                "t", turned, compat=compat
            )
        strip = events._stable
        if json.dumps(strip(one, 0), sort_keys=True) != json.dumps(strip(other, 0), sort_keys=True):
            assert normalize_args_sig("t", one) != normalize_args_sig("t", other)

    @given(st.text(), st.one_of(arguments, st.text(), st.binary(), st.floats(), st.none()))
    def test_anything_has_signatures_of_64_bits(self, text, args):
        for compat in (True, False):
            assert 0 <= error_sig(text, text, compat=compat) < 2**64
            if not isinstance(args, bytes):
                assert 0 <= normalize_args_sig(text, args, compat=compat) < 2**64

    def test_hostile_lines_cost_no_more_than_linear_time(self):
        for text in (
            "a" * 300_000,
            "/" * 300_000,
            "0" * 300_000,
            "\x1b]" * 100_000,
            "\\" * 300_000,
            "f1" * 99_999,
        ):
            tool_event("bash", {"command": text}, text, failed=True)


class TestEvent:
    @pytest.mark.parametrize(
        ("text", "ok"),
        [
            ('{"output": "x", "exit_code": 0, "error": null}', True),
            ('{"output": "x", "exit_code": 1, "error": null}', False),
            ("lots\n[exit code: 2]", False),
            ("lots\n[exit code: 0]", True),
            ('{"error": "no such tool"}', False),
            ('{"error": null, "data": 3}', True),
            ("it says error, but it was read from a file", True),
            ("", True),
        ],
    )
    def test_a_result_may_say_itself_that_it_failed(self, text, ok):
        assert tool_event("bash", {}, text).ok is ok

    def test_what_ran_and_ended_in_a_traceback_failed(self):
        text = "out\n" + TRACEBACK.format(path="/a", line=3, error="KeyError: 'name'")
        event = tool_event("jupyter", {"code": "x"}, text + "\n")
        assert (event.ok, event.error) == (False, "KeyError: 'name'")
        assert tool_event("jupyter", {"code": "x"}, text + "went on\n").ok
        assert tool_event("bash", {"command": "tail x.log"}, text).ok

    def test_what_the_host_says_counts_more(self):
        assert tool_event("bash", {}, "[exit code: 1]", failed=False).ok
        assert not tool_event("bash", {}, "fine", failed=True).ok

    @pytest.mark.parametrize(
        ("tool", "args", "verb", "read", "wrote"),
        [
            ("read_file", {"path": "./a//b.py"}, "read", "a/b.py", ""),
            ("Edit", {"file_path": "/x/a.py"}, "write", "", "/x/a.py"),
            ("patch", {"path": "a.py"}, "write", "", "a.py"),
            ("search_files", {"pattern": "x", "path": "src"}, "search", "", ""),
            ("bash", {"command": "cd x && python -m pytest -q"}, "check", "", ""),
            ("bash", {"command": ".venv/bin/ruff check ."}, "check", "", ""),
            ("bash", {"command": "npm run test"}, "check", "", ""),
            ("bash", {"command": "git diff"}, "search", "", ""),
            ("bash", {"command": "cat a.py"}, "read", "", ""),
            ("bash", {"command": "echo pytest"}, "run", "", ""),
            ("http_get", {"url": "x"}, "run", "", ""),
            ("read_file", "no json", "read", "", ""),
        ],
    )
    def test_what_kind_of_call_it_was(self, tool, args, verb, read, wrote):
        event = tool_event(tool, args, "x")
        assert (event.verb, event.read, event.wrote) == (verb, read, wrote)

    def test_a_write_that_failed_wrote_nothing(self):
        assert tool_event("write_file", {"path": "a"}, "no", failed=True).wrote == ""

    def test_the_same_answer_has_the_same_signature_and_another_another(self):
        sigs = [tool_event("t", {}, text).result_sig for text in ("a", "a", "b")]
        assert sigs[0] == sigs[1] != sigs[2]

    @given(st.text(max_size=30), st.one_of(arguments, st.text()), st.text(max_size=400))
    def test_its_texts_are_short_lines_that_utf_8_can_carry(self, tool, args, text):
        event = tool_event(tool, args, text, failed=True)
        for value, limit in ((event.label, 80), (event.error, 160), (event.tool, 80), (event.wrote, 300)):
            assert len(value) <= limit
            assert value.isprintable()
            value.encode()

    def test_the_recorded_sessions_failures_name_their_reason(self):
        failed = {}
        for result in recorded_results(load_recording()):
            event = tool_event(result.tool, result.args, result.text)
            if not event.ok:
                failed[event.label] = event.error
        assert len(failed) == 16
        assert failed["bash: python -m shop.report 13"] == "ReportError: no figures for month 13"
        assert failed["terminal: python -m compileall -f shop scripts"] == "SyntaxError: '(' was never closed"


def event(turn, **fields):
    return ToolEvent("t", turn=turn, **fields)


class TestWindow:
    def test_it_adds_up_what_happened(self):
        happened = [
            event(0, verb="read", read="a"),
            event(1, verb="write", wrote="a"),
            event(1, verb="write", wrote="b"),
            event(2, verb="write", wrote="b"),
            event(2, verb="search"),
            event(2, verb="check", ok=False, error_sig=7),
            event(2, verb="run", ok=False, error_sig=7),
            event(2, verb="run", ok=False, error_sig=8),
        ]
        assert turn_window(happened, 2, 2) == WindowStats(
            reads=0, writes=3, searches=1, errors=3, distinct_error_sigs=2, new_files=1, total_calls=7
        )

    @pytest.mark.parametrize(
        ("counter", "n", "calls"), [(0, 1, 1), (5, 6, 6), (5, 99, 6), (5, 1, 1), (5, 0, 0)]
    )
    def test_a_window_past_the_beginning_takes_in_turn_0(self, counter, n, calls):
        assert turn_window([event(turn) for turn in range(counter + 1)], counter, n).total_calls == calls

    def test_a_file_known_before_is_not_new(self):
        before = [event(0, read="a", verb="read")]
        assert turn_window([*before, event(1, wrote="a", verb="write")], 1, 1).new_files == 0

    @given(st.lists(st.integers(0, 9)), st.integers(0, 9), st.integers(0, 12))
    def test_it_counts_exactly_the_events_after_counter_minus_n(self, turns, counter, n):
        stats = turn_window([event(turn) for turn in turns], counter, n)
        assert stats.total_calls == sum(turn > counter - n for turn in turns)
