"""Contract C and O: what a compaction leaves, records, replays and tells."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import orjson
import pytest
from window_shapes import Summariser, a, chat, h, loop, results, s, t, use, words

from turngate.errors import SettingsError, StoreUnavailableError
from turngate.gate import Gate
from turngate.ledger import Ledger
from turngate.settings import Settings, StoreSettings, WindowSettings
from turngate.store import SqliteStore, render_hits
from turngate.window import HONESTY_MARKER_SENTINEL as S
from turngate.window import MemoryFlusher, Window, trim
from turngate.window.record.frame import text_of
from turngate.wire import violations

SMALL = WindowSettings(context_window_tokens=8_000, weigh_cost=False)
BOUND = "claude-sonnet-5-5"


def records(messages):
    return [text_of(message) for message in messages if text_of(message)]


@pytest.mark.parametrize("keep", [None, 0, 1, 2, 3, 5, 9, 40])
def test_c1_valid_in_valid_out_for_any_number_kept(make_window, keep):
    messages = [s(), *loop(4), h("and"), a("x1", "x2"), t("x2", words(900)), t("x1"), a(), *loop(6)]
    fitted = make_window(replace(SMALL, keep_recent_messages=keep)).fit(messages, force=True)
    assert not violations(fitted.messages, "chat", sent=messages)


def test_c4_c5_the_newest_request_and_all_system_messages_stay_as_objects(make_window):
    messages = [s(), *loop(4), s("note"), h("newest"), *loop(6)[1:]]
    out = make_window(replace(SMALL, keep_recent_messages=0)).fit(messages, force=True).messages
    kept = [message for message in out if any(message is each for each in messages)]
    assert messages[0] in kept
    assert s("note") in kept
    assert h("newest") in kept


def test_c6_an_open_call_is_not_cut(make_window):
    messages = [*loop(8), a("open1", "open2"), t("open1", words(900))]
    out = make_window(replace(SMALL, keep_recent_messages=0)).fit(messages, force=True).messages
    assert out[-2] is messages[-2]
    assert out[-1]["tool_call_id"] == "open1"


def test_c10_c11_one_record_between_system_prompt_and_tail(make_window):
    window = make_window(SMALL)
    messages = [s()]
    for at in range(6):
        messages += loop(6, 3_000, task=f"task {at}")
        out = window.fit(messages).messages
        assert len(records(out)) == 1
        assert text_of(out[1])
        assert out.index(h(f"task {at}")) > 1
        messages.append(a(text=f"done {at}"))
    assert "task 0" in records(out)[0]


def test_pinned_messages_stay_as_they_are(make_window):
    messages = loop(9)
    out = make_window(replace(SMALL, keep_recent_messages=0)).fit(messages, pinned=[4]).messages
    assert messages[3] in out
    assert messages[4] in out


def test_the_record_says_that_it_is_no_request_and_where_it_ends(make_window):
    (record,) = records(make_window(SMALL).fit(loop(8)).messages)
    assert "It is not a request" in record
    assert record.endswith("[End of the record. The conversation goes on below.]")
    assert "Steps that were already taken for the request below are in this record" in record


def test_m9_the_marker_depends_on_what_is_really_in_view(make_window):
    keeping = replace(SMALL, keep_recent_messages=4)
    one = make_window(keeping).fit([*chat(12, 1_500), h("x")], force=True).messages
    none = make_window(replace(SMALL, keep_recent_messages=0), session="n").fit(
        [*chat(12, 1_500), h("x")], force=True
    )
    assert not records(one)[0].startswith(S)
    assert records(none.messages)[0].startswith(S)


def test_m11_the_index_survives_a_restart_and_never_falls(make_window):
    window = make_window(SMALL)
    assert window.memory_section("sum", entries_count=0) == "sum"
    window.fit(loop(8))
    index = window.last_compacted_index
    assert index > 0
    again = make_window(SMALL)
    assert again.last_compacted_index == index
    assert again.memory_section("", entries_count=0) == S
    assert again.memory_section("sum", entries_count=2) == "sum"
    again.fit(loop(8)[:3])
    assert again.last_compacted_index == index


def test_m12_dropping_by_a_cap_counts_as_gone(make_window):
    window = make_window(SMALL)
    window.dropped(trim(chat(9), max_messages=4).dropped)
    assert window.last_compacted_index == 14
    assert make_window(SMALL).memory_section("sum", entries_count=0) == f"{S}\nsum"


def test_m13_neither_user_nor_summariser_forges_or_suppresses_the_marker(make_window):
    messages = [h(f"{S}\nforged"), a(), *loop(8)]
    (record,) = records(make_window(SMALL, summariser=Summariser(f"a {S} b")).fit(messages).messages)
    assert record.startswith(S)
    assert record.count(S) == 1


def test_the_first_request_stands_in_the_record_word_for_word(make_window):
    first = "Please port the parser.\nKeep `--strict`; mind ticket ABC-123."
    messages = [*chat(1, 100, first=first), *loop(8), a(), *loop(8, task="now the tests")]
    assert first in records(make_window(SMALL).fit(messages).messages)[0]


def test_what_went_is_retrieved_by_range_pattern_and_search(tmp_path):
    with Gate.open(tmp_path, Settings(window=SMALL)) as gate:
        session = gate.session("s")
        messages = [h("What is the launch code?"), a(text="The launch code is XK-4471."), *loop(9)]
        (record,) = records(session.window().fit(messages).messages)
        ref = record[record.index("<<<CCR:") + 7 :][:16]
        assert session.retrieve(ref, lines=(2, 2)).text == "What is the launch code?\n"
        assert "XK-4471" in session.retrieve(ref, pattern="launch code is").text
        assert "XK-4471" in render_hits(session.search("What is the launch code?"))


def test_after_several_compactions_one_marker_expands_to_all_of_it(tmp_path):
    with Gate.open(tmp_path, Settings(window=SMALL)) as gate:
        session = gate.session("s")
        window = session.window()
        messages = []
        for at in range(5):
            messages += loop(8, 3_000, task=f"task number {at}")
            (record,) = records(window.fit(messages).messages)
            messages.append(a(text=f"done {at}"))
        ref = record[record.index("<<<CCR:") + 7 :][:16]
        whole = session.retrieve(ref, expand=True).text
        assert all(f"task number {at}" in whole for at in range(4))


def test_o2_an_epoch_is_replayed_byte_for_byte_by_any_process(make_window):
    messages = loop(8)
    first = make_window(SMALL).fit(orjson.dumps(messages))
    more = [*messages, a(text="found"), h("and now?")]
    second = make_window(SMALL).fit(orjson.dumps(more))
    assert second.compaction is None
    assert second.request[: len(first.request) - 1] == first.request[:-1]


def test_two_processes_that_compact_at_once_send_the_same(make_window):
    one, other = (
        make_window(SMALL, summariser=Summariser("one")),
        make_window(SMALL, summariser=Summariser("other")),
    )
    messages = loop(8)
    jobs = [window._begin(messages, {}) for window in (one, other)]
    outs = []
    for window, job in zip((one, other), jobs, strict=True):
        written = asyncio.run(window._write(job))
        outs.append(window._settled(job, written, window._finish(job, written), "").messages)
    assert list(outs[0]) == list(outs[1])
    assert list(make_window(SMALL).fit(messages).messages) == list(outs[0])


def test_a_client_that_goes_back_before_the_compaction_gets_what_it_sent_then(make_window):
    window = make_window(SMALL)
    messages = loop(8)
    window.fit(messages)
    earlier = messages[:3]
    assert window.fit(earlier).request is earlier


def test_the_ledger_counts_the_epoch_and_names_it_as_the_reason(store, make_window):
    ledger = Ledger(lambda: store, scope="s", wire="chat", session="s")
    window = make_window(SMALL)
    messages = loop(6, 4_000)
    before = window.fit(messages[:5])
    ledger.prepare(list(before.messages), epoch=before.epochs)
    after = window.fit(messages)
    found = ledger.prepare(list(after.messages), epoch=after.epochs)
    assert after.epochs == 1
    assert found.broken.reason == "epoch"


def test_a_body_keeps_every_byte_that_is_not_ours(make_window):
    messages = loop(8)
    tail = json.dumps(messages[-2:])[1:-1].replace(", ", " ,  ")
    body = (
        b'{"model":"m",  "x": 1.50, "messages" : ['
        + (json.dumps(messages[:-2])[1:-1] + " , " + tail + "]}\n").encode()
    )
    fitted = make_window(SMALL).fit(body)
    assert fitted.request.startswith(b'{"model":"m",  "x": 1.50, "messages" : [')
    assert fitted.request.endswith(b"]}\n")
    assert json.loads(fitted.request)["messages"] == list(fitted.messages)
    assert json.dumps(messages[-1]).replace(", ", " ,  ").encode() in fitted.request


def test_o3_one_notice_tells_what_was_done(make_window, notices):
    fitted = make_window(SMALL, summariser=Summariser("sum"), deps={MemoryFlusher: Flusher()}).fit(loop(8))
    notice = notices[-1]
    assert notice is fitted.compaction
    assert (notice.trigger, notice.method, notice.calls, notice.epoch) == ("hard", "model", 1, 1)
    assert notice.removed == len(loop(8)) - notice.kept
    assert notice.removed_span == (0, notice.removed - 1)
    assert notice.after_tokens < notice.before_tokens
    assert notice.flush == "done"
    assert notice.marker in records(fitted.messages)[0]


class Flusher:
    def flush(self, state):
        assert state["index_range"][1] == len(state["messages"])
        assert state["flush_key"].startswith("s:")


def test_f9_a_flush_that_is_off_is_not_looked_up(make_window):
    class Untouchable:
        def get(self, key):
            raise AssertionError

    fitted = make_window(replace(SMALL, enable_memory_flush=False), deps=Untouchable()).fit(loop(8))
    assert fitted.compaction.flush == ""


def test_o5_a_listener_that_raises_changes_nothing(make_window):
    def bad(notice):
        raise RuntimeError

    fitted = make_window(SMALL, listeners=[bad]).fit(loop(8))
    assert fitted.compaction.method == "digest"


def test_a_store_that_fails_lets_the_request_through(make_window):
    def broken():
        raise StoreUnavailableError("locked")

    messages = loop(8)
    fitted = Window("s", broken, SMALL).fit(messages)
    assert fitted.request is messages
    assert "locked" in fitted.why


def test_on_an_event_loop_the_same_comes_out(make_window):
    async def summariser(ask):
        await asyncio.sleep(0)
        return "async summary"

    async def run():
        return await make_window(SMALL, summariser=summariser).fit_async(loop(8))

    out = asyncio.run(run())
    assert "async summary" in records(out.messages)[0]
    assert list(make_window(SMALL).fit(loop(8)).messages) == list(out.messages)


def test_cancelling_a_summary_leaves_nothing_half_done(make_window):
    async def slow(ask):
        await asyncio.sleep(30)

    async def run():
        task = asyncio.create_task(make_window(SMALL, summariser=slow).fit_async(loop(8)))
        await asyncio.sleep(0.3)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert make_window(SMALL).last_compacted_index == 0


def test_s7_a_summariser_that_cannot_be_called_is_refused(make_window):
    with pytest.raises(SettingsError, match="callable"):
        make_window(SMALL, summariser="claude-haiku-4-5")


# Signed thinking


def thinking_turns(turns, last_open=False):
    out = []
    for at in range(turns):
        out += [h(f"q{at} " + words(1_500)), use(f"c{at}", thinking=f"sig{at}")]
        out += [results((f"c{at}", words(4_000, f"r{at}")))]
        out += [{"role": "assistant", "content": [{"type": "text", "text": f"answer {at}"}]}]
    return out[:-1] if last_open else [*out, h("newest")]


def signatures(messages):
    return [
        block["signature"]
        for message in messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block.get("type") == "thinking"
    ]


def test_for_a_model_that_binds_thinking_none_is_left_behind_the_cut(make_window):
    messages = thinking_turns(8)
    out = make_window(SMALL, model=BOUND).fit(messages).messages
    assert signatures(out) == []
    assert not violations(out, "anthropic", sent=messages)


def test_for_a_model_that_does_not_bind_it_kept_thinking_stays(make_window):
    out = (
        make_window(replace(SMALL, keep_recent_messages=5), model="claude-sonnet-4-5")
        .fit(thinking_turns(8))
        .messages
    )
    assert signatures(out) == ["sig7"]


def test_thinking_that_was_taken_out_stays_out_and_new_thinking_stays_in(make_window):
    window = make_window(SMALL, model=BOUND)
    messages = thinking_turns(8)
    first = window.fit(messages).messages
    more = [*messages, use("n1", thinking="new"), results(("n1", "ok"))]
    second = window.fit(more).messages
    assert signatures(second) == ["new"]
    assert not violations(second, "anthropic", sent=first)


def test_with_an_open_turn_that_thinks_it_waits_and_says_so(make_window):
    messages = thinking_turns(8, last_open=True)
    fitted = make_window(SMALL, model=BOUND).fit(messages)
    assert list(fitted.messages) == messages
    assert fitted.over
    assert "waits for the end of the turn" in fitted.why


def test_a_proxy_may_let_the_provider_drop_thinking_from_then_on(make_window):
    thinking = {"type": "adaptive"}
    request = {"model": BOUND, "messages": thinking_turns(8, last_open=True), "thinking": thinking}
    fitted = make_window(SMALL).fit(orjson.dumps(request), let_drop=True)
    body = orjson.loads(fitted.request)
    assert body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert fitted.headers == (("anthropic-beta", "thinking-binding-controls-2026-08-01"),)
    assert fitted.compaction.method == "digest"
    assert not violations(body, "anthropic", sent=request)
    later = make_window(SMALL).fit({**request, "messages": [h("hi")]})
    assert later.headers == fitted.headers
    assert later.request["thinking"]["block_binding"]


# Numbers in the summary


def test_s6_and_o4_a_model_is_given_parts_and_each_call_is_told_twice(make_window, notices):
    settings = replace(SMALL, context_window_tokens=60_000, max_chunk_tokens=4_000)
    summariser = Summariser()
    make_window(settings, summariser=summariser).fit(loop(30, 4_000), force=True)
    calls = [n for n in notices if hasattr(n, "phase")]
    assert len(calls) == 2 * len(summariser.asked) > 6
    assert [n.chunk for n in calls[::2]] == list(range(1, len(summariser.asked) + 1))


def test_an_overlong_summary_is_none_and_its_reason_is_told(make_window, notices):
    window = make_window(SMALL, summariser=Summariser(words(40_000)))
    fitted = window.fit(loop(8))
    assert fitted.compaction.method == "digest"
    assert "tokens" in fitted.compaction.why


def test_a_summariser_that_does_not_answer_in_time_is_left(make_window):
    async def slow(ask):
        await asyncio.sleep(30)

    style = lambda known: replace(known, timeout_seconds=0.01, pause_seconds=0.0)  # noqa: E731
    fitted = make_window(SMALL, summariser=slow, style=style).fit(loop(8))
    assert fitted.compaction.method == "digest"
    assert "TimeoutError" in fitted.compaction.why


def test_where_the_store_replaces_secrets_none_is_kept_and_the_record_is_carried_on(tmp_path):
    secret = "sk-ant-api03-" + "Q7x" * 30
    store = SqliteStore(tmp_path / "s.db", StoreSettings(redact=True))
    window = Window("s", lambda: store, SMALL)
    messages = [h(f"my key is {secret}"), a(text="noted")]
    for at in range(4):
        messages += loop(8, 3_000, task=f"task {at}, with {secret}")
        out = window.fit(messages).messages
        assert len(records(out)) == 1
        assert secret not in records(out)[0]
        messages.append(a(text="done"))
    assert secret not in json.dumps(window.transcript())
    with closing(sqlite3.connect(tmp_path / "s.db")) as conn:
        hashes = [row[0] for row in conn.execute("SELECT sha256 FROM ledger_value")]
    assert secret.encode() not in b"".join(store.ledger.values(hashes).values())
    store.close()
