"""What LangChain 1.5.2, langchain-core 1.8.3 and LangMem 0.0.30 do wrong, row by row."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from window_shapes import Summariser, a, h, loop, results, s, t, use, words

from turngate.errors import SettingsError, TurngateError
from turngate.settings import WindowSettings
from turngate.window import Sizes, Style, clear_tool_results, repair, trim
from turngate.window.record.frame import text_of
from turngate.wire import violations

SMALL = WindowSettings(context_window_tokens=8_000, weigh_cost=False)
#: As `SMALL`, by characters, so that a test can say how large a message is.
CHARS = replace(SMALL, chars_per_token=1, max_history_share=1.0, answer_tokens=0, context_window_tokens=2_000)


def by_number():
    """Sizes with which a budget of tokens is a number of messages."""
    return Sizes(lambda text: 0, frame_tokens=1)


def calls_and_results(messages):
    calls = [c["id"] for m in messages for c in m.get("tool_calls") or ()]
    return calls, [m["tool_call_id"] for m in messages if m["role"] == "tool"]


def test_lc1_a_trimmed_list_does_not_begin_with_a_result():
    messages = [s(), h(), a("t1", "t2"), t("t1"), t("t2"), a(), h("newest")]
    out = trim(messages, 4, sizes=by_number()).messages
    assert [m["role"] for m in out[:2]] == ["system", "user"]
    assert not violations(out, "chat")


def test_lc2_the_task_of_a_loop_of_tools_is_not_lost():
    messages = [s(), *loop(5, 20)]
    trimmed = trim(messages, 5, sizes=by_number())
    assert trimmed.messages[1] == messages[1]
    assert trimmed.met
    assert not violations(trimmed.messages, "chat")


def test_lc3_of_parallel_calls_none_is_left_unanswered():
    out = trim([h(), a("t1", "t2"), t("t1"), t("t2")], 3, sizes=by_number()).messages
    assert calls_and_results(out) in (([], []), (["t1", "t2"], ["t1", "t2"]))


def test_lc4_a_message_with_an_image_keeps_it_when_its_text_is_put_away(make_window):
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    mixed = {"role": "user", "content": [image, {"type": "text", "text": words(60_000)}]}
    messages = [h(), a(), mixed, a(), h("go on")]
    out = make_window(replace(SMALL, keep_recent_messages=4)).fit(messages, force=True).messages
    kept = next(m for m in out if isinstance(m["content"], list))
    assert kept["content"][0] == image
    assert len(kept["content"][1]["text"]) < 10_000


def test_lc5_a_message_larger_than_the_budget_is_said_to_be_so():
    trimmed = trim([h(words(1_000))], 50)
    assert trimmed.messages == [h(words(1_000))]
    assert not trimmed.met


def test_lc6_arguments_count_whatever_form_the_content_has():
    args = json.dumps({"content": words(4_000)})
    call = a("c1", args=args)
    forms = [call, call | {"content": ""}, call | {"content": [{"type": "text", "text": "x"}]}]
    assert min(Sizes().message(form) for form in forms) > 1_000
    assert Sizes().message(use("c1", args={"content": words(4_000)})) > 1_000


DATA = "iVBORw0KGgoAAAANSUhEUg" * 4_600
MEDIA = [
    {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
    {"type": "file", "file": {"file_data": DATA, "filename": "a.pdf"}},
    {"type": "video", "source": {"type": "base64", "media_type": "video/mp4", "data": DATA}},
    {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": DATA}},
    {"type": "something_new", "payload": {"data": DATA}},
    {
        "type": "tool_result",
        "tool_use_id": "x",
        "content": [{"type": "image", "source": {"type": "base64", "data": DATA}}],
    },
]


@pytest.mark.parametrize("block", MEDIA, ids=[block["type"] for block in MEDIA])
def test_lc7_media_cost_the_same_whatever_their_length(block):
    assert Sizes().message({"role": "user", "content": [block]}) < 3_500


def test_lc8_a_task_stays_and_the_model_is_asked_for_a_real_summary(make_window):
    summariser = Summariser("what was done")
    messages = loop(12)
    fitted = make_window(replace(SMALL, keep_recent_messages=4), summariser=summariser).fit(messages)
    assert messages[0] in fitted.messages
    assert "c0" in summariser.asked[0].prompt or "src/f0.py" in summariser.asked[0].prompt
    assert any("what was done" in text_of(m) for m in fitted.messages)


def test_lc9_a_group_larger_than_what_is_kept_does_not_summarise_its_own_summary(make_window):
    summariser = Summariser()
    ids = [f"c{at}" for at in range(25)]
    messages = [h(), a(*ids), *(t(i, words(2_000, i)) for i in ids)]
    window = make_window(replace(SMALL, keep_recent_messages=20), summariser=summariser)
    first = window.fit(messages)
    again = [window.fit(messages) for _ in range(3)]
    assert len(summariser.asked) <= 1
    assert not violations(first.messages, "chat")
    assert first.compaction.after_tokens < first.compaction.before_tokens
    assert all(list(each.messages) == list(first.messages) for each in again)


def test_lc10_a_history_of_one_group_is_reduced_or_said_to_be_too_large(make_window):
    messages = [a("t1", "t2", "t3"), *(t(f"t{at}", words(20_000)) for at in (1, 2, 3))]
    fitted = make_window(replace(SMALL, keep_recent_messages=1)).fit(messages)
    assert fitted.compaction.method == "offload"
    assert not fitted.over
    assert calls_and_results(fitted.messages) == (["t1", "t2", "t3"], ["t1", "t2", "t3"])


@pytest.mark.parametrize(
    "messages",
    [
        [h(), a("t1", "t2"), t("t1"), h("wait"), t("t2"), a()],
        [h(), a("t1"), h(), a("t2"), t("t2"), t("t1"), a()],
        [h(), a("t2"), t("t2"), t("gone"), a()],
        [h(), a("t1", "t2"), t("t1"), a(), t("t2"), h()],
    ],
    ids=["lc11", "lc12", "lc12-gone", "lc20"],
)
@pytest.mark.parametrize("keep", range(6))
def test_lc11_lc12_broken_input_gains_no_orphan(make_window, messages, keep):
    padded = [h(words(3_000)), a(text=words(3_000)), *messages]
    out = make_window(replace(CHARS, keep_recent_messages=keep)).fit(padded, force=True).messages
    calls, answered = calls_and_results(out)
    assert len(violations(out, "chat")) <= len(violations(padded, "chat"))
    assert set(answered) - set(calls) <= {"gone"}


def test_lc13_reported_usage_does_not_fire_a_second_time_without_new_messages(make_window):
    summariser = Summariser()
    window = make_window(SMALL, summariser=summariser, model="m")
    messages = loop(8)
    fitted = window.fit(messages)
    window.observe(fitted, "m", 3 * fitted.tokens)
    second, third = window.fit(messages), window.fit(messages)
    assert len(summariser.asked) == 1
    assert third.compaction is None
    assert list(third.messages) == list(second.messages)


def test_lc14_an_empty_summary_does_not_replace_the_history(make_window):
    fitted = make_window(SMALL, summariser=Summariser("")).fit(loop(8))
    (record,) = [text for m in fitted.messages if (text := text_of(m))]
    assert "src/f0.py" in record


def test_lc15_a_prompt_may_hold_braces_and_must_hold_the_messages(make_window):
    prompt = 'Return JSON {"a":1} {messages} {previous}'
    summariser = Summariser()
    window = make_window(SMALL, summariser=summariser, style=lambda style: replace(style, prompt=prompt))
    window.fit(loop(8))
    assert summariser.asked[0].prompt.startswith('Return JSON {"a":1} <message')
    with pytest.raises(SettingsError, match="messages"):
        Style(100, 1_000, prompt="Summarise!")


def test_lc16_a_system_message_in_the_middle_is_not_removed(make_window):
    note = s("mind the gap")
    messages = [h(), *loop(4)[1:], note, *loop(8)]
    assert note in make_window(SMALL).fit(messages).messages


def test_lc17_a_negative_number_to_keep_is_refused():
    with pytest.raises(TurngateError, match="0 or more"):
        clear_tool_results(loop(2), keep=-1)


def test_lc18_less_than_the_least_clears_nothing():
    messages = loop(5, 500)
    assert clear_tool_results(messages, keep=0, at_least=10**6).messages is messages


def test_lc19_inputs_are_cleared_wherever_they_stand():
    messages = [h(), use("c1", args={"content": words(1_000)}), results(("c1", words(1_000))), h("go on")]
    out = clear_tool_results(messages, keep=0, inputs=True).messages
    assert out[1]["content"][0]["input"] == {}
    assert len(json.dumps(out)) < 400
    assert not violations(out, "anthropic")


def test_lc20_a_result_behind_another_answer_is_cleared_too():
    messages = [h(), a("t1", "t2"), t("t1", words(400)), a(), t("t2", words(400)), h()]
    assert clear_tool_results(messages, keep=0).call_ids == ("t1", "t2")


def test_lc21_a_short_result_is_not_replaced_by_a_longer_one():
    messages = [h(), a("c1"), t("c1", "ok"), a("c2"), t("c2", words(400)), h()]
    out = clear_tool_results(messages, keep=0).messages
    assert out[2] is messages[2]
    assert out[4]["content"] == "[cleared]"


def test_lm1_what_remains_does_not_begin_with_an_orphan(make_window):
    messages = [h(words(700)), a("t1", "t2"), t("t1", words(700)), t("t2", words(700)), a(), h("newest")]
    out = make_window(replace(CHARS, keep_recent_messages=3)).fit(messages, force=True).messages
    assert not violations(out, "chat")


def test_lm2_a_user_message_between_call_and_result_is_neither_lost_nor_split(make_window):
    between = h("H2 " + words(300))
    messages = [h(words(900)), a("t1"), between, t("t1", "T1 " + words(200)), a(), h("newest")]
    window = make_window(replace(CHARS, keep_recent_messages=2))
    out = window.fit(messages, force=True).messages
    gone = window.transcript()
    for message in messages:
        assert (message in out) != (message in gone)


def test_lm3_a_newest_message_larger_than_the_budget_stays(make_window):
    newest = h(words(5_000))
    fitted = make_window(CHARS).fit([h(words(900)), a(), newest])
    assert fitted.messages[-1] is newest
    assert fitted.over
    assert "newest user message" in fitted.why


@pytest.mark.parametrize("answer", ["", "You are X", "You"])
def test_lm4_a_summary_that_is_part_of_the_system_prompt_leaves_that_alone(make_window, answer):
    messages = [s("You are X, a helper"), *loop(8)]
    assert make_window(SMALL, summariser=Summariser(answer)).fit(messages).messages[0] is messages[0]


def test_lm5_a_summary_in_blocks_can_be_carried_on(make_window):
    summariser = Summariser([{"type": "text", "text": "first summary"}], "second summary")
    window = make_window(SMALL, summariser=summariser)
    messages = loop(8)
    window.fit(messages)
    messages += loop(8, task="the next task")
    window.fit(messages)
    assert "first summary" in summariser.asked[1].prompt


def test_lm6_a_history_that_lost_what_was_summarised_is_taken_as_it_is(make_window):
    window = make_window(SMALL)
    messages = loop(8)
    window.fit(messages)
    shorter = [messages[0], *messages[7:], a(), h("go on")]
    fitted = window.fit(shorter)
    assert not fitted.why.startswith("fault")
    assert not violations(fitted.messages, "chat")


def test_lm7_a_request_with_an_empty_context_is_a_request(make_window):
    request = {"messages": loop(8), "context": None}
    fitted = make_window(SMALL).fit(request)
    assert fitted.request["context"] is None
    assert len(fitted.request["messages"]) < len(request["messages"])


def test_lm8_an_unknown_index_or_id_is_no_error(make_window):
    assert make_window(SMALL).fit(loop(8), pinned=[99, -5]).compaction is not None
    assert repair([h(), t("zz"), a()]).messages == [h(), a()]
