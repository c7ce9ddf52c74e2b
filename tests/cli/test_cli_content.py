"""`shorten`, `retrieve`, `search`."""

from __future__ import annotations

import random
from importlib import import_module

import pytest

from turngate import ingress
from turngate.cli.content import PASSED


class TestShorten:
    def test_from_stdin_and_from_a_file_are_the_same(self, run, log, tmp_path):
        (tmp_path / "x.log").write_bytes(log)
        piped, named = run("shorten", "-", stdin=log), run("shorten", tmp_path / "x.log")
        assert piped.out == named.out
        assert len(piped.out) < len(log)
        assert piped.err == ""

    def test_what_does_not_pay_comes_out_as_it_went_in(self, run, data_dir):
        done = run("shorten", stdin=b"small \xff\x00\r\n")
        assert (done.code, done.out) == (0, b"small \xff\x00\r\n")
        assert done.err.startswith("turngate: passed whole: it is too short")
        assert not data_dir.exists()

    def test_without_storing_there_is_no_marker_and_no_database(self, run, log, data_dir):
        done = run("shorten", "--no-store", stdin=log)
        assert b"CCR:" not in done.out
        assert len(done.out) < len(log)
        assert not data_dir.exists()
        assert done.out == run("shorten", stdin=log).out.partition(b"\n")[2]

    @pytest.mark.parametrize(
        ("env", "argv", "reason"),
        [
            ({"ENABLED": "no"}, (), "disabled"),
            ({"THRESHOLD_BYTES": "200000"}, (), "small"),
            ({"SKIP_TOOLS": "probe"}, ("--tool", "probe"), "skipped tool"),
            ({}, ("--args", "turngate retrieve x"), "retrieved"),
        ],
    )
    @pytest.mark.parametrize("keep", ["--store", "--no-store"])
    def test_what_the_settings_let_pass_passes_and_it_says_why(
        self, run, log, monkeypatch, env, argv, reason, keep
    ):
        for name, value in env.items():
            monkeypatch.setenv(f"TURNGATE_{name}", value)
        done = run("shorten", keep, *argv, stdin=log)
        assert (done.code, done.out, done.err) == (0, log, f"turngate: passed whole: {PASSED[reason]}\n")
        value = run("shorten", keep, *argv, "--json", stdin=log).json
        assert (value["passed"], value["shortened"]) == (reason, False)

    def test_a_threshold_below_the_usual_least_counts_without_storing_too(self, run, log, monkeypatch):
        short = log[:1_900]
        monkeypatch.setenv("TURNGATE_THRESHOLD_BYTES", "100")
        assert len(run("shorten", "--no-store", stdin=short).out) < len(short)

    def test_every_reason_of_the_gate_is_told_in_words(self):
        reasons = {reason for reason, _ in ingress._PASSES} | {"view", "no gain", "already a marker"}
        assert reasons | {"store unavailable"} == set(PASSED)

    def test_a_fault_without_storing_is_told_and_the_original_comes_out(self, run, log, monkeypatch):
        monkeypatch.setattr(import_module("turngate.compress.shorten"), "_shorten", lambda *_: 1 / 0)
        done = run("shorten", "--no-store", stdin=log)
        assert (done.code, done.out) == (1, log)
        assert done.err.startswith("turngate: not shortened, ZeroDivisionError: ")

    def test_a_wide_budget_shows_more(self, run):
        rng = random.Random(5)
        words = [f"{rng.choice('bdfgk')}{rng.choice('aeiou')}{rng.choice('lmnrst')}{n}" for n in range(400)]
        data = "".join(" ".join(rng.choices(words, k=9)) + "\n" for _ in range(900)).encode()
        tight, wide = (run("shorten", "--budget", name, stdin=data) for name in ("default", "wide"))
        assert len(tight.out) < len(wide.out) < len(data)

    def test_a_tool_of_the_skip_list_passes(self, run, log):
        assert run("shorten", "--tool", "read_file", stdin=log).out == log

    def test_json_has_the_text_and_estimated_savings(self, run, log):
        value = run("shorten", "--json", stdin=log).json
        assert (value["shortened"], value["passed"]) == (True, "")
        assert value["bytes_before"] == len(log)
        assert value["tokens_after"] < value["tokens_before"]
        assert value["tokens_are_estimates"] is True

    @pytest.mark.parametrize("args", ['{"command": "make"}', "make test", "[1]"])
    def test_arguments_may_be_json_or_the_command(self, run, log, args):
        assert run("shorten", "--args", args, "--failed", "--question", "which ledger?", stdin=log).code == 0

    def test_a_missing_file_is_named(self, run):
        done = run("shorten", "no-such-file")
        assert done.code == 1
        assert "no-such-file" in done.err

    def test_where_it_cannot_be_stored_the_original_comes_out_and_it_says_why(self, run, log, data_dir):
        data_dir.write_text("a file, not a folder")
        done = run("shorten", stdin=log)
        assert (done.code, done.out) == (1, log)
        assert "not shortened, StoreUnavailableError" in done.err
        assert str(data_dir) in done.err


class TestRetrieve:
    def test_whole_to_stdout_byte_for_byte(self, run, log, stored):
        done = run("retrieve", stored)
        assert (done.code, done.out, done.err) == (0, log, "")

    @pytest.mark.parametrize("seed", range(3))
    def test_bytes_that_are_no_text_too(self, run, seed):
        rows = [random.Random(seed).randbytes(40) for _ in range(8)]
        data = b"\n".join(rows[n % 8] for n in range(2_000)) + b"\xed\xa0\x80\xff"
        shown = run("shorten", stdin=data).out
        assert shown.startswith(b"<<<CCR:")
        assert run("retrieve", shown[7:23].decode()).out == data

    def test_into_a_file(self, run, log, stored, tmp_path):
        done = run("retrieve", stored, "--output", tmp_path / "out")
        assert (done.code, done.out) == (0, b"")
        assert (tmp_path / "out").read_bytes() == log

    def test_by_a_whole_marker(self, run, log, stored):
        assert run("retrieve", f"<<<CCR:{stored}|terminal|1|inline>>> x").out == log

    @pytest.mark.parametrize(
        ("lines", "first", "last"),
        [("3:5", 2, 5), ("898:", 897, 900), (":2", 0, 2), ("7", 6, 7), ("890:9999", 889, 900)],
    )
    def test_a_range_of_lines(self, run, log, stored, lines, first, last):
        assert run("retrieve", stored, "--lines", lines).out == b"".join(log.splitlines(True)[first:last])

    def test_what_matches_with_context(self, run, stored):
        done = run("retrieve", stored, "--grep", "ERROR", "--context", 1)
        assert "job 499 " in done.text
        assert "does not add up" in done.text
        assert "job 503 " not in done.text

    def test_a_page_and_a_query(self, run, stored):
        assert len(run("retrieve", stored, "--page", 1).text) <= 40_000
        assert "does not add up" in run("retrieve", stored, "--query", "which ledger does not add up").text

    def test_where_the_text_goes_on_is_told_beside_it(self, run, log):
        ref = run("shorten", stdin=log * 3).text[7:23]
        first, last = (run("retrieve", ref, "--page", number) for number in (1, 4))
        assert first.err == "turngate: page 1 of 4; go on with --page 2\n"
        assert last.err == "turngate: page 4 of 4, the last\n"
        assert run("retrieve", ref, "--lines", "2699:9999").err == "turngate: the text ends at line 2700\n"
        pages = [run("retrieve", ref, "--query", "ledger", "--page", number) for number in (1, 2)]
        assert "go on with --page 2\n" in pages[0].err
        assert pages[0].out != pages[1].out
        assert run("retrieve", ref).err == ""

    def test_how_many_lines_match_is_told_beside_them(self, run, stored):
        done = run("retrieve", stored, "--grep", "ERROR")
        assert (done.code, done.err) == (0, "turngate: 1 of 900 lines matches\n")
        assert done.out.endswith(b"INFO worker job 502 done\n")

    @pytest.mark.parametrize(
        ("way", "says"), [("--grep", "0 of 900 lines match"), ("--query", "it has no word of the query")]
    )
    @pytest.mark.parametrize("as_json", [(), ("--json",)])
    def test_that_nothing_matches_is_a_failure_that_is_told(self, run, stored, way, says, as_json):
        done = run("retrieve", stored, way, "zebra", *as_json)
        assert done.code == 1
        assert says in (done.json["note"] if as_json else done.err)

    def test_a_json_path(self, run):
        data = ('{"rows": [' + ", ".join(f'{{"id": {n}, "v": "{n}{n}"}}' for n in range(900)) + "]}").encode()
        ref = run("shorten", "--tool", "http_get", stdin=data).text[7:23]
        assert run("retrieve", ref, "--json-path", "$.rows[5].id").text.strip() == "5"

    def test_expanded(self, run, log, stored):
        assert run("retrieve", stored, "--expand").out == log

    def test_json_says_what_it_is(self, run, log, stored):
        value = run("retrieve", stored, "--lines", "3:5", "--json").json
        assert (value["id"], value["size_bytes"], value["kind"]) == (stored, len(log), "log")
        assert (value["first_line"], value["last_line"], value["total_lines"]) == (3, 5, 900)
        assert run("retrieve", stored, "--json").json["text"] == log.decode()

    def test_an_unknown_id_says_what_to_do(self, run, stored):
        done = run("retrieve", "0123456789abcdef")
        assert (done.code, done.out) == (1, b"")
        assert "copy the whole id from a marker" in done.err

    def test_a_session_sees_only_its_own(self, run, stored):
        assert run("retrieve", stored, "--session", "mine").code == 0
        assert run("retrieve", stored, "--session", "other").code == 1

    @pytest.mark.parametrize(
        "option", [("--lines", "x"), ("--lines", ":"), ("--page", "0"), ("--context", "-1")]
    )
    def test_a_malformed_option_is_wrong_usage(self, run, stored, option):
        done = run("retrieve", stored, *option)
        assert done.code == 2
        assert "Usage" in done.err

    def test_two_parts_at_once_are_wrong_usage(self, run, stored):
        assert run("retrieve", stored, "--lines", "1:2", "--grep", "x").code == 2

    @pytest.mark.parametrize("option", [("--grep", "("), ("--json-path", "$.a")])
    def test_a_part_that_cannot_be_followed_fails(self, run, stored, option):
        done = run("retrieve", stored, *option)
        assert done.code == 1
        assert done.err.startswith("turngate: ")

    def test_of_redacted_content_it_says_so(self, run, log, monkeypatch):
        monkeypatch.setenv("TURNGATE_STORE_REDACT", "true")
        secret = b"-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"
        ref = run("shorten", stdin=log + secret).text[7:23]
        done = run("retrieve", ref)
        assert b"MIIB" not in done.out
        assert "not the original" in done.err


class TestSearch:
    def test_a_hit_names_id_and_lines(self, run, stored):
        done = run("search", "ledger add up")
        assert done.code == 0
        assert stored in done.text
        assert "1048.30 against 1048.03" in done.text
        marked = [line for line in done.text.splitlines() if line.startswith(">")]
        assert len(marked) == 1
        assert marked[0].split()[1] == "501"

    def test_the_answer_stands_among_the_few_lines_that_are_shown(self, run):
        rows = [f"INFO finished job {n}" for n in range(1, 1_200)]
        rows[613] = "ERROR job 9613 failed"
        run("shorten", stdin="\n".join(rows).encode())
        lines = run("search", "job 9613").text.splitlines()[1:]
        assert lines[2] == ">     614  ERROR job 9613 failed"
        assert [int(line[1:].split()[0]) for line in lines] == [612, 613, 614, 615, 616, 617]

    def test_nothing_found_is_a_failure_that_says_what_to_try(self, run, stored):
        done = run("search", "zebra")
        assert (done.code, done.out) == (1, b"")
        assert "nothing found" in done.err
        assert "--all" not in done.err
        assert "--all" in run("search", "zebra", "--session", "mine").err

    def test_by_session(self, run, stored):
        assert run("search", "ledger", "--session", "mine").code == 0
        assert run("search", "ledger", "--session", "other").code == 1
        assert run("search", "ledger", "--all").code == 0
        assert run("search", "ledger", "--all", "--session", "mine").code == 2

    def test_json(self, run, stored):
        (hit,) = run("search", "ledger", "--json").json
        assert hit["id"] == stored
        assert hit["matches"] == [[501, 1.0]]

    def test_stored_control_sequences_do_not_reach_the_terminal(self, run, log):
        run("shorten", stdin=log + b"\x1b]0;owned\x07 zebra\n")
        assert "\x1b" not in run("search", "zebra").text
