"""What symfonic-core 9.12.0 does wrong, row by row (SY1 and SY20 are among the tests of the memory)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from window_shapes import SEED, TINY, Summariser, a, chat, h, loop, s, t, words

from turngate.errors import TurngateError, WireError
from turngate.settings import WindowSettings
from turngate.store import json_path
from turngate.window import HONESTY_MARKER_SENTINEL as S
from turngate.window import MemoryFlusher, Sizes, clear_tool_results, trim
from turngate.window.record.digest import Room, render
from turngate.window.record.facts import Facts, gather
from turngate.window.record.frame import text_of
from turngate.wire import violations

SMALL = WindowSettings(context_window_tokens=8_000, weigh_cost=False)


def record_of(fitted):
    """The one record of a list."""
    (found,) = [text for message in fitted.messages if (text := text_of(message))]
    return found


def summarised(make_window, *answers, messages=None, **wishes):
    summariser = Summariser(*answers)
    fitted = make_window(SMALL, summariser=summariser).fit(messages or loop(8), force=True, **wishes)
    return record_of(fitted), summariser


def test_sy2_a_summary_that_quotes_the_marker_leaves_it_at_the_head(make_window):
    record, _ = summarised(make_window, f"text {S} more")
    assert record.startswith(S + "\n")
    assert record.count(S) == 1


def test_sy3_a_summary_that_starts_with_the_marker_leaves_it_at_the_head(make_window):
    record, _ = summarised(make_window, f"{S}\nthe summary")
    assert record.startswith(S + "\n")
    assert record.count(S) == 1


def test_sy4_no_marker_stands_where_memory_lines_are_rendered(make_window):
    assert S not in summarised(make_window, recalled=4)[0]


def test_sy5_hits_that_are_not_rendered_do_not_suppress_the_marker(make_window):
    assert summarised(make_window, recalled=0)[0].startswith(S)


def test_sy6_the_first_user_message_is_found_after_any_number_of_compactions(make_window):
    window = make_window(replace(SMALL, keep_recent_messages=4))
    messages, compactions = [], 0
    for at in range(12):
        messages.append(h(f"q{at} " + words(4_000, f"u{at}")))
        fitted = window.fit(messages)
        compactions += fitted.compaction is not None
        messages.append(a(text=f"answer {at}"))
    assert compactions > 2
    assert window.transcript(fitted.messages, index=0, speaker="user") == [messages[0]]
    rows = window.transcript(fitted.messages)
    assert [m for m in rows if m["role"] == "user"] == [m for m in messages if m["role"] == "user"]
    assert not any(str(m["content"]).startswith("[memory]") for m in rows)


def test_sy7_a_history_that_the_caller_keeps_is_summarised_once(make_window):
    summariser = Summariser()
    messages = chat(8)
    for at in range(4):
        messages += [h(f"more {at}")]
        make_window(replace(SMALL, keep_recent_messages=4), summariser=summariser).fit(
            messages, force=at == 0
        )
        messages += [a(text="ok")]
    assert len(summariser.asked) == 1


def test_sy8_with_nothing_kept_the_question_still_stands(make_window):
    question = h("what is 2+2?")
    fitted = make_window(replace(SMALL, keep_recent_messages=0)).fit([*chat(6), question], force=True)
    assert fitted.messages[-1] is question
    assert fitted.compaction.removed > 0


def test_sy9_a_request_and_its_open_exchange_are_not_summarised_away(make_window):
    messages = [h(), a("t1", "t2"), t("t1"), t("t2")]
    fitted = make_window(TINY).fit(messages)
    assert messages[0] in fitted.messages
    assert not violations(fitted.messages, "chat")


def test_sy10_a_user_message_between_results_orphans_none(make_window):
    messages = [h(words(900)), a("t1", "t2"), t("t1"), h("wait"), t("t2"), a()]
    fitted = make_window(replace(TINY, context_window_tokens=300, keep_recent_messages=3)).fit(messages)
    calls = {c["id"] for m in fitted.messages for c in m.get("tool_calls", ())}
    answered = {m["tool_call_id"] for m in fitted.messages if m["role"] == "tool"}
    assert answered <= calls


@pytest.mark.parametrize(
    ("messages", "cap"),
    [
        ([h(), a("t1", "t2"), t("t1"), h(), t("t2"), a()], 3),
        ([h(), a("t1", "t2"), a()], 4),
        ([h(), a("t1"), t("t1")], 1),
    ],
)
def test_sy11_a_slice_by_number_splits_nothing_and_is_not_empty(messages, cap):
    out = trim(messages, max_messages=cap).messages
    before, after = violations(messages, "chat"), violations(out, "chat")
    assert len(after) <= len(before)
    assert out[0]["role"] == "user"


def test_sy12_few_huge_messages_are_put_away(make_window):
    messages = [h(words(300_000, f"m{at}")) if at % 2 == 0 else a(text=words(300_000)) for at in range(10)]
    messages.append(h("go on"))
    fitted = make_window(SEED).fit(messages)
    assert fitted.compaction.method != "none"
    assert not fitted.over
    assert fitted.messages[-1] == h("go on")


def test_sy13_two_huge_messages_need_no_provider(make_window):
    fitted = make_window(replace(SEED, keep_recent_messages=2)).fit([a(text=words(500_000)), h("go on")])
    assert fitted.compaction.method == "offload"
    assert not fitted.over


def test_sy14_arguments_are_counted_and_summarised(make_window):
    args = json.dumps({"path": "x.py", "content": words(10_000)})
    assert Sizes().message(a("c", args=args)) > 2_000
    messages = [h(), a("c1", args=json.dumps({"path": "needle.py"})), t("c1"), *loop(8)]
    _, summariser = summarised(make_window, messages=messages)
    assert "needle.py" in summariser.asked[0].prompt


def test_sy15_images_have_a_fixed_cost_and_stay_out_of_the_prompt(make_window):
    data = "iVBORw0KGgo" * 2_000
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    assert Sizes().message({"role": "user", "content": [image]}) < 2_000
    messages = [{"role": "user", "content": [image]}, a(), *loop(8)]
    _, summariser = summarised(make_window, messages=messages)
    assert data[:200] not in "".join(ask.prompt for ask in summariser.asked)


def test_sy16_chinese_text_is_not_taken_for_a_quarter_of_its_tokens(make_window):
    text = "".join(chr(0x4E00 + at * 37 % 5_000) for at in range(15_999))
    assert Sizes().text(text) > 8_000
    window = make_window(WindowSettings(soft_threshold_tokens=4_000, weigh_cost=False))
    assert window.fit([h(text), a(), h()]).compaction is not None


def test_sy17_an_empty_summary_is_no_summary(make_window, notices):
    record, _ = summarised(make_window, "", "  \n ")
    assert "Commands" in record or "Names and numbers" in record
    assert "empty" in notices[-1].why
    assert notices[-1].method == "digest"


def test_sy18_of_content_blocks_only_the_text_becomes_the_summary(make_window):
    blocks = [
        {"type": "thinking", "thinking": "secret musing", "signature": "sig"},
        {"type": "text", "text": "the text"},
    ]
    record, _ = summarised(make_window, blocks)
    assert "the text" in record
    assert "musing" not in record


@pytest.mark.parametrize("raises", [True, False])
def test_sy19_a_flusher_that_raises_or_is_sync_undoes_nothing(make_window, notices, raises):
    class Flusher:
        calls = 0

        def flush(self, state):
            Flusher.calls += 1
            if raises:
                raise ValueError("disk full")

    summariser = Summariser()
    window = make_window(SMALL, summariser=summariser, deps={MemoryFlusher: Flusher()})
    messages = loop(8)
    first, second = window.fit(messages, force=True), window.fit(messages)
    assert first.compaction.method == "model"
    assert first.compaction.flush == ("ValueError: disk full" if raises else "done")
    assert list(second.messages) == list(first.messages)
    assert (Flusher.calls, len(summariser.asked)) == (1, 1)


def test_sy21_a_flusher_cannot_change_the_result(make_window):
    class Meddler:
        def flush(self, state):
            state["messages"].append("junk")
            state["messages"][0]["content"] = "changed"

    messages = loop(8)
    kept = json.dumps(messages)
    fitted = make_window(SMALL, deps={MemoryFlusher: Meddler()}).fit(messages, force=True)
    assert json.dumps(messages) == kept
    assert "junk" not in fitted.messages


def test_sy22_messages_without_ids_are_replaced_not_added_to(make_window):
    messages = loop(8)
    fitted = make_window(SMALL).fit(messages)
    assert len(fitted.messages) < len(messages)
    assert fitted.compaction.after_tokens < fitted.compaction.before_tokens / 2


def test_sy23_a_system_message_is_never_summarised(make_window):
    messages = [s(), *loop(8)]
    fitted = make_window(SMALL).fit(messages)
    assert fitted.messages[0] is messages[0]
    assert text_of(fitted.messages[1])


def test_sy24_forty_turns_at_the_seeds_defaults_take_at_most_four_summaries(make_window, notices):
    summariser = Summariser("a summary of the turns so far")
    window = make_window(SEED, summariser=summariser)
    messages = []
    for at in range(40):
        messages.append(h(words(2_000, f"u{at}")))
        fitted = window.fit(messages)
        assert sum(bool(text_of(m)) for m in fitted.messages) <= 1
        assert list(fitted.messages)[-min(10, len(messages)) :] == messages[-min(10, len(messages)) :]
        messages.append(a(text=words(2_000, f"a{at}")))
    assert 1 <= len(summariser.asked) <= 4
    compactions = [n for n in notices if hasattr(n, "before_tokens")]
    made = [n for n in compactions if n.method != "none"]
    assert len(made) == len(summariser.asked)
    assert all(n.after_tokens <= 0.95 * n.before_tokens for n in made)


def test_sy25_where_a_record_alone_exceeds_the_budget_no_model_is_asked_over_and_over(make_window):
    summariser = Summariser()
    settings = replace(TINY, context_window_tokens=100, keep_recent_messages=4)
    window = make_window(settings, summariser=summariser)
    messages = []
    for at in range(12):
        messages += [h(f"question {at}")]
        fitted = window.fit(messages)
        assert not fitted.over or fitted.why
        messages += [a(text=f"answer {at}")]
    assert len(summariser.asked) <= 3


def test_sy26_a_summariser_that_raises_has_start_and_end_told_and_is_not_retried_every_turn(
    make_window, notices
):
    summariser = Summariser(RuntimeError("boom"))
    window = make_window(SMALL, summariser=summariser)
    messages = loop(8)
    fitted = window.fit(messages)
    assert fitted.compaction.method == "digest"
    calls = [n for n in notices if hasattr(n, "phase")]
    assert [n.phase for n in calls] == ["start", "end"] * (len(calls) // 2)
    assert all("boom" in n.error for n in calls if n.phase == "end")
    asked = len(summariser.asked)
    for at in range(3):
        messages = [*messages, a(text=f"step {at}"), h("next")]
        window.fit(messages)
    assert len(summariser.asked) == asked


def test_sy27_a_prompt_never_exceeds_the_summarisers_window(make_window):
    settings = WindowSettings(context_window_tokens=40_000, max_chunk_tokens=3_000, weigh_cost=False)
    summariser = Summariser()
    make_window(settings, summariser=summariser).fit(loop(40), force=True)
    assert len(summariser.asked) > 3
    assert max(Sizes().text(ask.prompt) + ask.most_tokens for ask in summariser.asked) <= 3_300


def test_sy28_a_loop_of_tools_is_compacted_inside_the_loop(make_window):
    window = make_window(WindowSettings(context_window_tokens=20_000, weigh_cost=False))
    messages = loop(0)
    for at in range(8):
        messages += loop(1, 20_000)[1:]
        messages[-1] = t(f"k{at}", words(20_000, f"k{at}"))
        messages[-2] = a(f"k{at}")
        fitted = window.fit(messages)
        assert not fitted.over
        assert not violations(fitted.messages, "chat")


@pytest.mark.parametrize(
    ("path", "found"), [("$.items[3].price", "30"), ('$["a.b"]', "1"), ("$.items[-1].price", "30")]
)
def test_sy29_paths_into_json_take_brackets_and_dots_in_names(path, found):
    text = json.dumps({"a.b": 1, "items": [{"price": 10 * at} for at in range(4)]})
    assert json_path(text, path).text.strip() == found


def test_sy30_a_call_id_used_again_in_another_conversation_shows_nothing_of_the_first(make_window, store):
    shown = {}
    for session in ("one", "two"):
        messages = [h(), a("c0"), t("c0", words(60_000, session)), h("go on")]
        settings = WindowSettings(context_window_tokens=8_000, keep_recent_messages=8)
        fitted = make_window(settings, session=session).fit(messages)
        shown[session] = json.dumps(list(fitted.messages))
    assert "one line" not in shown["two"]
    assert "two line" in shown["two"]


def test_sy31_what_stands_in_is_shorter_than_what_it_stands_for():
    messages = [h(), a("c1", args=json.dumps({"q": "x" * 400})), t("c1", "y" * 520), h()]
    cleared = clear_tool_results(messages, keep=0, stand_in=lambda text: "z" * 950)
    assert cleared.messages is messages


def test_sy32_a_negative_number_to_keep_is_refused():
    with pytest.raises(TurngateError, match="keep is -1"):
        clear_tool_results([h(), a("c"), t("c")], keep=-1)


def test_sy33_of_several_the_most_recent_are_shown():
    facts = Facts()
    for at in range(30):
        facts = gather(facts, [h(f"request number {at}")], "chat", first=at)
    text = render(facts, Room(200, 100, Sizes().text))
    assert "request number 29" in text
    assert "request number 4\n" not in text


def test_sy34_a_cap_on_messages_counts_the_current_one():
    assert len(trim(chat(4)[:-1], max_messages=3).messages) <= 3


def test_sy35_a_state_without_messages_is_said_to_be_one(make_window):
    assert "no list of messages" in make_window().fit({"context": None}).why
    with pytest.raises(WireError):
        trim({})


def test_sy36_the_chunk_is_what_is_read_not_what_may_be_written(make_window):
    _, summariser = summarised(make_window)
    assert all(ask.most_tokens < 1_000 for ask in summariser.asked)
