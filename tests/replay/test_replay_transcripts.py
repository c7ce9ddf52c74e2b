"""Sessions are read whatever their form; what is wrong is told with file and line, and the rest goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.errors import TranscriptError
from turngate.replay.claude_code import Sessions, is_line, session_files
from turngate.replay.transcripts import read, read_all


def chat(turns: int = 2) -> list[dict]:
    out = [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}]
    for i in range(turns):
        call = {"id": f"c{i}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        out += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": f"out {i}"},
        ]
    return [*out, {"role": "assistant", "content": "done"}]


def claude(turns: int = 2) -> list[dict]:
    out = [{"role": "user", "content": "Hi"}]
    for i in range(turns):
        use = {"type": "tool_use", "id": f"t{i}", "name": "ls", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{i}", "content": f"out {i}"}
        out += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return [*out, {"role": "assistant", "content": "done"}]


def lines(values) -> str:
    return "\n".join(json.dumps(v) for v in values) + "\n"


@pytest.fixture
def load(tmp_path):
    def load(text: str | bytes, name: str = "s.json"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        faults: list[str] = []
        found = list(read(path, lambda error: faults.append(str(error).removeprefix(f"{tmp_path}/"))))
        return found, faults

    return load


def roles(transcript) -> list[list[str]]:
    return [[e.message["role"] for e in epoch.entries] for epoch in transcript.epochs]


FORMS = {
    "a list": json.dumps,
    "a pretty list": lambda m: json.dumps(m, indent=2),
    "an object": lambda m: json.dumps({"messages": m, "model": "some-model"}),
    "a pretty object": lambda m: json.dumps({"meta": {"id": 1}, "messages": m}, indent=2),
    "lines of messages": lines,
    "lines of messages, blank ones between": lambda m: lines(m).replace("\n", "\n\n"),
    "lines of messages, carriage returns": lambda m: lines(m).replace("\n", "\r\n"),
    "one line of an object": lambda m: lines([{"messages": m}]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("wire", "messages"), [("chat", chat()), ("anthropic", claude())])
def test_every_form_reads_as_the_same_session(load, form, wire, messages):
    (one,), faults = load(FORMS[form](messages))
    assert faults == []
    assert (one.wire, one.format, one.requests) == (wire, wire, 3)
    assert [e.message for e in one.epochs[0].entries] == messages
    assert [json.loads(e.raw) for e in one.epochs[0].entries] == messages


@pytest.mark.parametrize("form", ["list", "lines"])
def test_a_file_may_hold_several_sessions(load, form):
    values = [{"messages": chat(1), "model": "m1"}, {"messages": claude(2), "system": "S"}]
    found, faults = load(json.dumps(values) if form == "list" else lines(values))
    assert faults == []
    assert [(t.name.rpartition("/")[2], t.wire, t.requests, t.model) for t in found] == [
        ("s.json#1", "chat", 2, "m1"),
        ("s.json#2", "anthropic", 3, ""),
    ]
    assert [e.kind for e in found[1].head] == ["system"]


def test_a_one_message_document_over_three_lines_is_a_document(load):
    _, faults = load('[\n{"role": "user", "content": "Hi"}\n]')
    assert len(faults) == 1
    assert faults[0].startswith("s.json:2: no answer of a model")


def test_tools_and_system_are_the_head_and_cache_marks_are_no_content(load):
    marked = {"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}
    (one,), _ = load(json.dumps({"messages": claude(), "system": [marked], "tools": [{"name": "ls"}]}))
    assert [e.raw for e in one.head] == [b'{"name": "ls"}', b'"S"']


def test_lines_of_messages_know_their_line(load):
    (one,), _ = load("\n" + lines(chat()))
    assert [e.line for e in one.epochs[0].entries] == [2, 3, 4, 5, 6, 7, 8]
    (two,), _ = load(json.dumps(chat(), indent=1))
    text = json.dumps(chat(), indent=1).split("\n")
    assert all(text[e.line - 1] == " {" for e in two.epochs[0].entries)


def test_a_request_is_what_stood_before_an_answer(load):
    (one,), _ = load(json.dumps([*chat(1), {"role": "user", "content": "and?"}]))
    assert list(one.epochs[0].answers) == [2, 4]


# Bad input.


def test_a_truncated_document_names_the_line_where_it_ends(load):
    text = json.dumps(chat(), indent=1)
    found, faults = load(text[: len(text) // 2])
    assert found == []
    assert len(faults) == 1
    assert faults[0].startswith(f"s.json:{text[: len(text) // 2].count(chr(10)) + 1}: not JSON")


def test_truncated_lines_lose_only_the_last(load):
    text = lines(chat(3))
    (one,), faults = load(text[:-10])
    assert one.requests == 3
    assert faults[0].startswith("s.json:9: not JSON")


def test_invalid_json_on_line_900_is_left_out_and_the_rest_read(load):
    values = lines([{"role": r, "content": "x"} for r in ("user", "assistant") * 600]).splitlines()
    values[899] = values[899][:-1]
    (one,), faults = load("\n".join(values))
    assert len(one.epochs[0].entries) == 1199
    assert len(faults) == 1
    assert faults[0].startswith("s.json:900: not JSON")


def test_a_damaged_first_line_does_not_hide_the_rest(load):
    (one,), faults = load('{"role": "user"\n' + lines(chat()))
    assert one.requests == 3
    assert faults[0].startswith("s.json:1: not JSON")


def test_results_without_calls_are_told_with_their_line_and_replayed(load):
    values = [*chat(1)[:3], {"role": "tool", "tool_call_id": "zz", "content": "?"}, *chat(1)[3:]]
    (one,), faults = load(lines(values))
    assert one.requests == 2
    assert faults == [
        "s.json:4: [3].tool_call_id: no call has the id zz (result-orphan); replayed as recorded"
    ]


def test_a_rule_broken_in_every_turn_is_not_told_in_every_turn(load):
    values = [v | {"tool_call_id": "zz"} if v["role"] == "tool" else v for v in chat(50)]
    _, faults = load(lines(values))
    assert len([f for f in faults if "result-orphan" in f]) == 3


def test_a_last_call_that_was_never_answered_is_no_fault(load):
    (one,), faults = load(lines(chat(2)[:5]))
    assert (one.requests, faults) == (2, [])


@pytest.mark.parametrize(
    "text", ["[]", '{"messages": []}', lines(chat()[:2]), lines([{"messages": []}]), '[{"messages":[]}]']
)
def test_an_empty_session_says_so(load, text):
    found, faults = load(text)
    assert found == []
    assert len(faults) == 1
    assert "nothing to replay" in faults[0] or "not a session" in faults[0]


@pytest.mark.parametrize(
    "text", ["", " \n", "hello", "3", '"x"', '{"a": 1}', '[{"a": 1}]', '{"a": 1}\n{"b": 2}', "\x00\xff"]
)
def test_what_is_no_session_says_so_with_a_line(load, text):
    found, faults = load(text)
    assert found == []
    assert faults
    assert all(f.startswith("s.json:") for f in faults)


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "01", '"\t"'])
def test_what_only_a_lenient_parser_takes_is_one_lines_fault(load, value):
    (one,), faults = load(lines(chat()) + f'{{"role": "user", "content": {value}}}\n')
    assert one.requests == 3
    assert faults[0].startswith("s.json:8: not JSON")


@pytest.mark.parametrize("value", ['"\\ud800"', "123456789012345678901234567890", "1e999"])
def test_what_only_the_fast_parser_refuses_is_read(load, value):
    (one,), faults = load(lines(chat()) + f'{{"role": "user", "content": "x", "more": {value}}}\n')
    assert faults == []
    assert one.epochs[0].entries[-1].raw.endswith(f"{value}}}".encode())


def test_bytes_that_are_no_utf8_are_one_lines_fault(load):
    (one,), faults = load(lines(chat()).encode() + b'{"role": "user", "content": "\xff"}\n')
    assert one.requests == 3
    assert faults[0].startswith("s.json:8: not JSON")


def test_a_folder_of_mixed_formats_is_read_file_by_file(tmp_path):
    (tmp_path / "sub").mkdir()
    files = {
        "a.json": json.dumps(chat()),
        "b.jsonl": lines(claude()),
        "c.json": "{",
        "notes.md": "x",
        "sub/d.json": "[]",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    faults: list[TranscriptError] = []
    found = list(read_all([tmp_path, tmp_path / "missing.json"], faults.append))
    assert [(Path(t.name).name, t.wire) for t in found] == [("a.json", "chat"), ("b.jsonl", "anthropic")]
    assert [str(f).split(":")[0].rpartition("/")[2] for f in faults] == ["c.json", "d.json", "missing.json"]


def test_a_complaint_may_stop_the_reading(tmp_path):
    (tmp_path / "a.json").write_text("{")

    def stop(error: TranscriptError) -> None:
        raise error

    with pytest.raises(TranscriptError, match=r"a\.json:1: not JSON"):
        list(read_all([tmp_path], stop))


# Claude Code.


class Session:
    """Writes a session file as the client does, a block a line."""

    def __init__(self) -> None:
        self.lines: list[dict] = []

    def add(self, kind: str, parent: str | None = "last", **more) -> str:
        if parent == "last":
            parent = self.lines[-1]["uuid"] if self.lines else None
        uuid = f"u{len(self.lines)}"
        stamp = f"2026-11-30T12:{len(self.lines) // 60:02}:{len(self.lines) % 60:02}.000Z"
        line = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": stamp}
        self.lines.append(line | more)
        return uuid

    def user(self, content, **more) -> str:
        return self.add("user", message={"role": "user", "content": content}, **more)

    def answer(self, answer_id: str, block: dict, **more) -> str:
        usage = {"input_tokens": 10, "output_tokens": 5}
        message = {
            "id": answer_id,
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5",
            "usage": usage,
        }
        return self.add("assistant", message=message | {"content": [block]}, **more)

    def call(self, answer_id: str, call_id: str, **more) -> str:
        return self.answer(answer_id, {"type": "tool_use", "id": call_id, "name": "ls", "input": {}}, **more)

    def result(self, call_id: str, **more) -> str:
        return self.user([{"type": "tool_result", "tool_use_id": call_id, "content": "out"}], **more)

    def say(self, answer_id: str, text: str = "ok", **more) -> str:
        return self.answer(answer_id, {"type": "text", "text": text}, **more)

    def text(self) -> str:
        return lines(self.lines)


def types(entry) -> list[str]:
    content = entry.message["content"]
    return ["str"] if isinstance(content, str) else [block["type"] for block in content]


def test_one_answer_over_several_lines_is_one_message(load):
    s = Session()
    s.user("Hi")
    s.answer("m1", {"type": "thinking", "thinking": "hm", "signature": "x"})
    s.say("m1")
    s.call("m1", "t1")
    s.result("t1")
    s.say("m2")
    (one,), faults = load(s.text(), "s.jsonl")
    assert faults == []
    assert (one.format, one.wire, one.model, one.requests) == (
        "claude-code",
        "anthropic",
        "claude-sonnet-5",
        2,
    )
    assert [types(e) for e in one.epochs[0].entries] == [
        ["str"],
        ["thinking", "text", "tool_use"],
        ["tool_result"],
        ["text"],
    ]
    assert one.epochs[0].entries[1].usage == {"input_tokens": 10, "output_tokens": 5}
    assert one.epochs[0].entries[3].at_seconds - one.epochs[0].entries[0].at_seconds == 5
    assert [e.line for e in one.epochs[0].entries] == [1, 2, 5, 6]


def test_parallel_calls_whose_results_stand_between_them_come_together(load):
    s = Session()
    s.user("Hi")
    first = s.call("m1", "t1")
    s.result("t1", parent=first)
    second = s.call("m1", "t2", parent=first)
    s.result("t2", parent=second)
    s.say("m2")
    s.user("more")
    s.say("m3")
    (one,), faults = load(s.text(), "s.jsonl")
    assert faults == []
    assert [types(e) for e in one.epochs[0].entries][1:3] == [
        ["tool_use", "tool_use"],
        ["tool_result", "tool_result"],
    ]
    assert len(one.epochs) == 1
    assert one.requests == 3


def test_results_go_before_the_text_that_was_typed_meanwhile(load):
    s = Session()
    s.user("Hi")
    s.call("m1", "t1")
    s.user("wait")
    s.result("t1")
    s.say("m2")
    (one,), faults = load(s.text(), "s.jsonl")
    assert faults == []
    assert types(one.epochs[0].entries[2]) == ["tool_result", "text"]


def test_a_compaction_begins_a_new_epoch_with_its_summary(load):
    s = Session()
    s.user("Hi")
    s.say("m1")
    s.add(
        "system", parent=None, subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9}
    )
    s.user("Summary of it", isCompactSummary=True)
    s.user("go on")
    s.say("m2")
    (one,), faults = load(s.text(), "s.jsonl")
    assert faults == []
    assert [e.begin for e in one.epochs] == ["start", "compacted"]
    assert roles(one) == [["user", "assistant"], ["user", "assistant"]]
    assert one.requests == 2
    assert one.epochs[1].entries[0].message["content"] == [
        {"type": "text", "text": "Summary of it"},
        {"type": "text", "text": "go on"},
    ]


def test_a_summary_without_boundary_is_a_compaction_too(load):
    s = Session()
    s.user("Hi")
    s.say("m1")
    s.user("Summary", isCompactSummary=True)
    s.say("m2")
    (one,), _ = load(s.text(), "s.jsonl")
    assert roles(one) == [["user", "assistant"], ["user", "assistant"]]


@pytest.mark.parametrize("form", ["preservedMessages", "preservedSegment"])
def test_messages_that_a_compaction_keeps_stand_behind_the_summary_and_are_not_charged_again(load, form):
    s = Session()
    s.user("one")
    s.say("m1")
    head = s.user("two")
    tail = s.say("m2", "kept")
    kept = {"uuids": [head, tail]} if form == "preservedMessages" else {"headUuid": head, "tailUuid": tail}
    s.add("system", parent=None, subtype="compact_boundary", compactMetadata={form: kept})
    s.user("Summary", isCompactSummary=True)
    s.user("three", parent=tail)
    s.say("m3")
    (one,), _ = load(s.text(), "s.jsonl")
    second = one.epochs[1]
    assert [types(e) for e in second.entries] == [["str"], ["str"], ["text"], ["str"], ["text"]]
    assert list(second.answers) == [4]
    assert one.requests == 3


def test_going_back_to_an_earlier_turn_begins_an_epoch_that_shares_its_beginning(load):
    s = Session()
    s.user("one")
    back = s.say("m1")
    s.user("two")
    s.say("m2")
    s.user("two, better", parent=back)
    s.say("m3")
    (one,), _ = load(s.text(), "s.jsonl")
    assert [e.begin for e in one.epochs] == ["start", "rewound"]
    assert one.epochs[1].entries[:2] == one.epochs[0].entries[:2]
    assert [list(e.answers) for e in one.epochs] == [[1, 3], [3]]


def test_going_back_to_a_turn_with_tools_keeps_their_results(load):
    s = Session()
    s.user("one")
    back = s.call("m1", "t1")
    s.result("t1")
    s.say("m2")
    s.user("other", parent=back)
    s.say("m3")
    (one,), faults = load(s.text(), "s.jsonl")
    assert faults == []
    assert types(one.epochs[1].entries[2]) == ["tool_result", "text"]


def test_sidechains_are_conversations_of_their_own(load):
    s = Session()
    s.user("main")
    s.call("m1", "t1")
    one_root = s.user("task one", parent=None, isSidechain=True)
    two_root = s.user("task two", parent=None, isSidechain=True)
    s.say("m2", parent=one_root, isSidechain=True)
    s.say("m3", parent=two_root, isSidechain=True)
    s.result("t1")
    s.say("m4")
    found, faults = load(s.text(), "s.jsonl")
    assert faults == []
    assert [t.name.rpartition("/")[2] for t in found] == [
        "s.jsonl",
        "s.jsonl#sidechain-1",
        "s.jsonl#sidechain-2",
    ]
    assert [t.requests for t in found] == [2, 1, 1]
    assert [t.epochs[0].entries[0].message["content"] for t in found] == ["main", "task one", "task two"]


def test_a_file_of_one_subagent_is_one_conversation(load):
    s = Session()
    s.add("summary", parent=None, summary="title", leafUuid="x")
    s.user("task", parent=None, isSidechain=True, agentId="a1")
    s.say("m1", isSidechain=True, agentId="a1")
    (one,), faults = load(s.text(), "agent-a1.jsonl")
    assert faults == []
    assert one.name.endswith("agent-a1.jsonl")


def test_what_was_never_sent_is_no_message_and_a_repeated_line_counts_once(load):
    s = Session()
    s.add("file-history-snapshot", messageId="x")
    s.user("Hi")
    s.add(
        "assistant",
        isApiErrorMessage=True,
        message={"role": "assistant", "content": [{"type": "text", "text": "500"}]},
    )
    s.user("only shown", isVisibleInTranscriptOnly=True)
    s.call("m1", "t1")
    s.add("progress", data={})
    s.result("t1")
    s.say("m2")
    (one,), faults = load(s.text() + s.text(), "s.jsonl")
    assert faults == []
    assert roles(one) == [["user", "assistant", "user", "assistant"]]


def test_a_session_line_without_message_is_told_and_left_out(load):
    s = Session()
    s.user("Hi")
    s.say("m1")
    s.add("assistant", message="?")
    (one,), faults = load(s.text(), "s.jsonl")
    assert one.requests == 1
    assert faults == ["s.jsonl:3: a line of type assistant without a message; it is left out"]


def test_a_session_without_any_answer_says_so(load):
    s = Session()
    s.user("Hi")
    found, faults = load(s.text(), "s.jsonl")
    assert found == []
    assert "nothing to replay" in faults[0]


def test_the_users_sessions_are_found_in_their_usual_place(tmp_path):
    folder = tmp_path / ".claude" / "projects" / "-home-me"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("")
    (folder / "a.txt").write_text("")
    (folder / "b.jsonl").write_text("")
    os.utime(folder / "a.jsonl", (2e9, 2e9))
    assert session_files(tmp_path / ".claude") == [folder / "b.jsonl", folder / "a.jsonl"]
    assert session_files(tmp_path / "none") == []


WORDS = st.sampled_from(
    ["user", "assistant", "system", "compact_boundary", "u1", "u2", "tool_use", "tool_result", "m1"]
)
KEYS = st.sampled_from(["type", "id", "uuids", "content", "role", "usage", "preservedMessages"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
FIELDS = [
    "subtype",
    "uuid",
    "parentUuid",
    "message",
    "isSidechain",
    "agentId",
    "isCompactSummary",
    "compactMetadata",
    "timestamp",
]
LINES = st.builds(
    lambda kind, more: {"type": kind, "sessionId": "s", **more},
    st.sampled_from(["user", "assistant", "system", "summary"]),
    st.dictionaries(st.sampled_from(FIELDS), JSON | WORDS, max_size=6),
)


@given(st.lists(LINES, max_size=8))
def test_no_line_of_a_session_file_makes_the_reader_raise(values):
    sessions = Sessions("s")
    for number, value in enumerate(values, 1):
        assert is_line(value)
        assert all(isinstance(text, str) for text in sessions.add(value, number))
    for transcript in sessions.transcripts():
        assert transcript.requests >= 0


@given(st.text(st.sampled_from('{}[]",:\n 1a'), max_size=40) | st.lists(JSON, max_size=3).map(lines))
def test_no_file_makes_the_reader_raise(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(text)
    faults: list[TranscriptError] = []
    found = list(read(path, faults.append))
    assert found or faults
