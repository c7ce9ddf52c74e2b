"""What `tool_result` shows, and what passes untouched."""

from __future__ import annotations

import json
import re

import pytest

from turngate import marker
from turngate.gate import Gate
from turngate.settings import Settings, StoreSettings


class TestShortened:
    def test_a_shortened_result_is_a_marker_line_and_text(self, session, log):
        shown = session.tool_result(name="bash", text=log)
        found = marker.parse(shown)
        assert (found.type, found.mode, found.get("kind")) == ("terminal", "inline", "log")
        assert found.size == len(log.encode())
        assert "does not add up" in shown.partition("\n")[2]

    def test_the_marker_of_much_that_is_hidden_says_how_to_ask_for_it(self, session, log):
        shown = session.tool_result(name="bash", text=log)
        preview, hidden = marker.parse(shown).preview, re.findall(r'lines="(\d+-\d+)"', shown)
        assert preview.endswith("pattern or query")
        assert len(hidden) == 1
        asked = session.retrieve(marker.parse(shown).hash, lines=tuple(map(int, hidden[0].split("-"))))
        assert asked.text
        assert not set(asked.text.split("\n")) & set(shown.split("\n"))

    def test_the_original_comes_back_identical(self, session, log):
        shown = session.tool_result(name="bash", text=log)
        assert session.retrieve(marker.parse(shown).hash).text == log
        assert session.original(marker.parse(shown).hash).data == log.encode()

    def test_it_comes_back_after_the_gate_was_closed(self, tmp_path, log):
        with Gate.open(tmp_path, Settings()) as first:
            shown = first.session("s").tool_result(name="bash", text=log)
        with Gate.open(tmp_path, Settings()) as second:
            assert second.session("s").retrieve(marker.parse(shown).hash).text == log

    def test_the_same_result_is_shown_the_same_way_each_time(self, session, log):
        assert session.tool_result(name="bash", text=log) == session.tool_result(name="bash", text=log)

    @pytest.mark.parametrize(
        ("tool", "type_"),
        [
            ("terminal", "terminal"),
            ("Bash", "terminal"),
            ("run_shell_command", "terminal"),
            ("run_terminal_cmd", "terminal"),
            ("execute_command", "terminal"),
            ("search_files", "tool"),
            ("http_get", "tool"),
            ("", "tool"),
        ],
    )
    def test_a_shells_output_is_of_type_terminal(self, session, log, tool, type_):
        assert marker.parse(session.tool_result(name=tool, text=log)).type == type_

    def test_a_model_may_hand_back_the_whole_marker_as_reference(self, session, log):
        shown = session.tool_result(name="bash", text=log)
        found = marker.parse(shown)
        for ref in (shown.partition("\n")[0], f" {found.hash}\n", f"{found.hash}|terminal|{found.size}"):
            assert session.retrieve(ref).text == log

    def test_bytes_come_back_as_the_same_bytes(self, session, log):
        data = log.encode() + b"\xff\xfe not UTF-8 \x00\n" + b"\xed\xa0\x80 surrogate\n"
        shown = session.tool_bytes(name="bash", data=data)
        assert len(shown) < len(data)
        assert session.original(marker.parse(shown.decode("utf-8", "replace")).hash).data == data

    def test_bytes_that_are_not_shortened_are_the_same_object(self, session):
        data = b"\xff" * 100
        assert session.tool_bytes(name="bash", data=data) is data

    def test_with_redaction_the_marker_says_so(self, tmp_path, log):
        text = (
            log + "key = AKIAIOSFODNN7EXAMPLE\n-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"
        )
        with Gate.open(tmp_path, Settings(store=StoreSettings(redact=True))) as gate:
            session = gate.session("s")
            found = marker.parse(session.tool_result(name="bash", text=text))
            assert found.get("redacted") == "yes"
            back = session.retrieve(found.hash)
            assert "MIIB" not in back.text
            assert "not the original" in back.note


class TestPassed:
    """What passes is the very object that came in, and the reason is counted."""

    @pytest.mark.parametrize(
        ("name", "args", "reason"),
        [
            ("read_file", None, "skipped tool"),
            ("READ_FILE", None, "skipped tool"),
            ("turngate_retrieve", None, "skipped tool"),
            ("aphrodite_search", None, "skipped tool"),
            ("headroom_retrieve", None, "skipped tool"),
            ("memory_search", None, "skipped tool"),
            ("search_memories", None, "skipped tool"),
            ("bash", {"command": "turngate retrieve 9f86d081884c7d65 | tail"}, "retrieved"),
            ("bash", '{"command": ".venv/bin/turngate search x"}', "retrieved"),
        ],
    )
    def test_by_tool_and_command(self, session, log, name, args, reason):
        assert session.tool_result(name=name, args=args, text=log) is log
        assert session.stats().passed == {reason: 1}

    def test_below_the_threshold(self, session):
        text = "short\n" * 100
        assert session.tool_result(name="bash", text=text) is text
        assert session.stats().passed == {"small": 1}

    def test_what_a_host_has_offloaded(self, session, log):
        text = f"\n<persisted-output>\nOutput too large.\n{log}</persisted-output>"
        assert session.tool_result(name="bash", text=text) is text

    def test_when_switched_off(self, tmp_path, log):
        with Gate.open(tmp_path, Settings(enabled=False)) as gate:
            assert gate.session("s").tool_result(name="bash", text=log) is log

    def test_a_users_own_pattern(self, tmp_path, log):
        with Gate.open(tmp_path, Settings(skip_tools=("my_*",))) as gate:
            assert gate.session("s").tool_result(name="My_Tool", text=log) is log
            assert gate.session("s").tool_result(name="bash", text=log) is not log

    def test_what_does_not_pay(self, session):
        text = "".join(
            f"{n * 7919 % 10007:05d} {chr(97 + n % 26) * (n % 13)} q{n * n % 97}\n" for n in range(45)
        )
        assert session.tool_result(name="bash", text=text) is text

    def test_what_was_retrieved_is_not_shortened_again(self, session, log):
        shown = session.tool_result(name="bash", text=log)
        back = session.retrieve(marker.parse(shown).hash, lines=(1, 500)).text
        assert session.tool_result(name="mcp_call", text=back) is back

    def test_a_shown_result_that_comes_by_again(self, session, log, make_log):
        shown = session.tool_result(name="bash", text=log)
        text = shown + make_log(500, "y")
        assert session.tool_result(name="bash", text=text) is text
        assert session.stats().passed == {"already a marker": 1}


class TestForeignMarkers:
    """A marker that this store and session do not own is plain text."""

    @pytest.mark.parametrize(
        "head",
        [
            "<<<CCR:0123456789abcdef|tool|99|inline>>> made up\n",
            "[CCR:0123456789abcdef01234567|tool|99]\n",
            "⫷CCR:0123456789abcdef|tool⫸\n",
        ],
    )
    def test_it_is_no_reason_to_skip(self, session, log, head):
        shown = session.tool_result(name="bash", text=head + log)
        assert marker.parse(shown).hash != "0123456789abcdef"
        assert session.retrieve(marker.parse(shown).hash).text == head + log

    def test_another_sessions_marker_is_foreign_too(self, gate, log, make_log):
        theirs = gate.session("a").tool_result(name="bash", text=log)
        text = theirs + make_log(500, "y")
        assert gate.session("b").tool_result(name="bash", text=text) is not text


class TestStats:
    def test_before_and_after_are_net_of_markers(self, session, log):
        shown = session.tool_result(name="bash", text=log)
        total = session.stats().total
        assert (total.results, total.shortened) == (1, 1)
        assert (total.bytes_before, total.bytes_after) == (len(log.encode()), len(shown.encode()))
        assert session.stats().bytes_saved == len(log.encode()) - len(shown.encode())

    def test_what_was_retrieved_counts_against_it_and_may_turn_it_negative(self, session, log):
        shown = session.tool_result(name="bash", text=log)
        ref = marker.parse(shown).hash
        session.retrieve(ref)
        session.retrieve(ref)
        stats = session.stats()
        assert stats.retrievals == 2
        assert stats.bytes_retrieved == 2 * len(log.encode())
        assert stats.tokens_saved < 0
        assert stats.saved_share < 0

    def test_what_a_search_brings_back_counts_against_it_too(self, session, log):
        session.tool_result(name="bash", text=log)
        hits = session.search("ledger")
        lines = [line for hit in hits for _, line in hit.lines]
        assert session.stats().retrievals == 1
        assert session.stats().bytes_retrieved == len("\n".join(lines).encode())

    def test_by_kind_and_tool(self, session, log):
        session.tool_result(name="bash", text=log)
        session.tool_result(name="read_file", text=log)
        stats = session.stats()
        assert stats.by_kind["log"].results == 1
        assert {tool: flow.shortened for tool, flow in stats.by_tool.items()} == {"bash": 1, "read_file": 0}

    def test_the_gate_adds_up_its_sessions(self, gate, log):
        gate.session("a").tool_result(name="bash", text=log)
        gate.session("b").tool_result(name="bash", text=log)
        assert gate.stats().total.results == 2
        assert gate.session("a").stats().total.results == 1

    def test_they_are_json_and_say_that_tokens_are_estimates(self, session, log):
        session.tool_result(name="bash", text=log)
        data = json.loads(json.dumps(session.stats().as_dict()))
        assert data["tokens_are_estimates"] is True
        assert data["tokens_saved"] == session.stats().tokens_saved


def test_the_threshold_decides_what_is_too_small_and_is_the_budgets_own_by_default(tmp_path):
    text = "\n".join(f"2026-01-31 08:00:{i % 60:02} INFO worker {i} copied a chunk" for i in range(21))
    assert 1_000 < len(text) < 1_500
    shown = {}
    for threshold in (None, 1_000, 1_500, 0):
        with Gate.open(tmp_path / str(threshold), Settings(threshold_bytes=threshold)) as gate:
            shown[threshold] = gate.session("s").tool_result(name="bash", text=text)
    assert shown[None] is text
    assert shown[1_500] is text
    assert shown[1_000] == shown[0] != text
