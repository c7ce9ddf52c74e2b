from __future__ import annotations

import copy
import json
import threading
from dataclasses import FrozenInstanceError, fields, replace
from types import SimpleNamespace

import pytest

from turngate.errors import StoreUnavailableError
from turngate.store import SqliteStore
from turngate.turn import (
    PROLOGUE,
    Compacted,
    MemoryStates,
    NoteBox,
    PromptTiers,
    TurnContext,
    TurnHost,
    build_turn_context,
    finish_turn,
    outgoing,
)
from turngate.turn import prologue as steps

IMAGE = {"type": "image_url", "image_url": {"url": "u"}}
SEED_FIELDS = [
    "user_message",
    "original_user_message",
    "messages",
    "conversation_history",
    "active_system_prompt",
    "effective_task_id",
    "turn_id",
    "current_turn_user_idx",
    "should_review_memory",
    "plugin_user_context",
    "ext_prefetch_cache",
]


class Recalls:
    def __init__(self, answer="the user likes tabs"):
        self.answer = answer
        self.asked = []

    def prefetch(self, query, *, session_id):
        self.asked.append((query, session_id))
        return self.answer


@pytest.fixture(params=["memory", "store"])
def states(request, tmp_path):
    if request.param == "memory":
        yield MemoryStates()
    else:
        store = SqliteStore(tmp_path / "t.db")
        yield store
        store.close()


def answered(context, text="ok"):
    return [*context.messages, {"role": "assistant", "content": text}]


def sent_user(context):
    return outgoing(context.messages)[context.current_turn_user_idx]


def test_the_context_is_frozen_and_has_the_seed_s_fields_first():
    assert [field.name for field in fields(TurnContext)][: len(SEED_FIELDS)] == SEED_FIELDS
    with pytest.raises(FrozenInstanceError):
        build_turn_context(TurnHost("s"), "hi").turn_id = "x"


def test_a_turn_of_a_bare_host_is_the_history_and_the_message():
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    kept = copy.deepcopy(history)
    context = build_turn_context(TurnHost("s"), "hi", history, "task")
    assert outgoing(context.messages) == [*history, {"role": "user", "content": "hi"}]
    assert history == kept
    assert context.conversation_history == history
    assert context.conversation_history is not history
    assert context.current_turn_user_idx == 2
    assert context.active_system_prompt is None
    assert context.turn_id.startswith("s:task:")
    assert len(context.turn_id) == len("s:task:") + 8


def test_all_that_is_told_stands_beside_the_words_and_the_words_stay_raw():
    memory = Recalls()
    raw = "hi\x00 \ud800"
    host = TurnHost(
        "s",
        agent=SimpleNamespace(_gateway_turn_context_notes="voice on"),
        block=lambda context: f"<block of turn {context.turn}>",
        todo=lambda: "todo: test",
        hooks=(lambda _: "one", lambda _: {"context": "two"}, lambda _: None, lambda _: {"other": 1}),
        memory=memory,
    )
    context = build_turn_context(host, raw)
    assert context.original_user_message == raw
    assert context.user_message == "hi \ufffd"
    assert context.messages[0]["content"] == "hi \ufffd"
    assert memory.asked == [("hi \ufffd", "s")]
    memory_part = "<memory-context>\nthe user likes tabs\n</memory-context>"
    told = ["hi \ufffd", memory_part, "one", "two", "voice on", "<block of turn 1>", "todo: test"]
    assert sent_user(context)["content"].split("\n\n") == told


def test_nothing_is_lost_on_an_image_turn():
    host = TurnHost(
        "s",
        agent=SimpleNamespace(_gateway_turn_context_notes="voice on"),
        block=lambda _: "<block>",
        memory=Recalls(),
    )
    parts = [{"type": "text", "text": "what?"}, IMAGE]
    context = build_turn_context(host, parts)
    content = sent_user(context)["content"]
    assert content[:2] == parts == [{"type": "text", "text": "what?"}, IMAGE]
    (added,) = content[2:]
    assert added["text"].endswith("voice on\n\n<block>")
    assert "likes tabs" in added["text"]
    assert context.api_content is None
    assert context.user_message == parts


def test_what_is_sent_goes_on_being_sent_in_every_later_turn(states):
    texts = iter(["a", "b", "c", "d"])
    host = TurnHost("s", states=states, block=lambda _: f"<{next(texts)}>")
    history, before = [], []
    for words in ("one", [{"type": "text", "text": "two"}, IMAGE], "three"):
        context = build_turn_context(host, words, history)
        wire = outgoing(context.messages)
        assert wire[: len(before)] == before
        before = wire
        finish_turn(host, context)
        history = answered(context)
    assert [context.turn, next(texts)] == [3, "d"]


def test_a_turn_that_was_cut_off_is_sent_as_it_was_prepared(states):
    box = NoteBox(states, "s")
    box.post("posted")
    count = iter(range(100))

    def host():
        agent = SimpleNamespace(_gateway_turn_context_notes="popped")
        return TurnHost("s", states=states, agent=agent, notes=box, block=lambda _: f"<{next(count)}>")

    for words in ("hi", [IMAGE]):
        first = build_turn_context(host(), words)
        box.post("later")
        again = build_turn_context(host(), copy.deepcopy(words))
        assert again.replayed
        assert not first.replayed
        assert outgoing(again.messages) == outgoing(first.messages)
        assert (again.turn, again.turn_id) == (first.turn, first.turn_id)
        finish_turn(host(), first)
    following = build_turn_context(host(), "other")
    assert "later\n\nlater" not in sent_user(first)["content"]
    assert sent_user(following)["content"].count("later") == 1
    assert not following.replayed


def test_a_finished_turn_is_not_taken_up_again():
    host = TurnHost("s", block=lambda _: "<block>")
    first = build_turn_context(host, "hi")
    finish_turn(host, first)
    second = build_turn_context(host, "hi")
    assert (second.turn, second.replayed) == (2, False)
    assert second.turn_id != first.turn_id


def test_many_that_prepare_one_turn_send_the_same_and_lose_no_note(tmp_path):
    for round_number in range(5):
        store = SqliteStore(tmp_path / f"{round_number}.db")
        agent = SimpleNamespace(_gateway_turn_context_notes="popped")
        barrier = threading.Barrier(4)
        out = []

        def work(number, store=store, agent=agent, barrier=barrier, out=out):
            host = TurnHost("s", states=store, agent=agent, block=lambda _: f"<{number}>")
            barrier.wait()
            out.append((host, build_turn_context(host, "hi")))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({json.dumps(outgoing(context.messages)) for _, context in out}) == 1
        assert {context.turn for _, context in out} == {1}
        host, context = out[0]
        finish_turn(host, context)
        later = build_turn_context(host, "next", answered(context))
        assert json.dumps(outgoing(later.messages)).count("popped") == 1
        store.close()


def test_counters_advance_and_are_reset_once_in_a_turn():
    calls = []
    host = TurnHost("s", resets=(lambda: calls.append(1),), review_every=3)
    due, history = [], []
    for words in "abcdefg":
        context = build_turn_context(host, words, history)
        due.append(context.should_review_memory)
        finish_turn(host, context)
        history = answered(context)
    assert due == [False, False, True, False, False, True, False]
    assert (len(calls), context.turn) == (7, 7)


def fails(*_, **__):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    "brought",
    [
        {"hooks": (fails, lambda _: "after")},
        {"block": fails},
        {"todo": fails},
        {"memory": SimpleNamespace(prefetch=fails)},
        {"notes": SimpleNamespace(claim=fails, confirm=fails)},
        {"states": SimpleNamespace(load_state=fails, save_state=fails)},
        {"tiers": PromptTiers(fails)},
        {"resets": (fails,)},
        {"persist": fails},
        {"compact": fails, "threshold_tokens": 1},
    ],
)
def test_what_the_host_brings_may_fail_and_the_turn_goes_on(brought):
    host = TurnHost("s", **brought)
    context = build_turn_context(host, "hi")
    assert "ZeroDivisionError" in context.faults
    assert sent_user(context)["content"].startswith("hi")
    assert context.turn_id.startswith("s:")
    finish_turn(host, context)


def test_notes_that_cannot_be_claimed_keep_waiting(tmp_path):
    states = MemoryStates()
    box = NoteBox(states, "s")
    box.post("note")
    save = states.save_state

    def unavailable(session, room, body, version):
        if room == "notes":
            raise StoreUnavailableError("locked")
        return save(session, room, body, version)

    states.save_state = unavailable
    context = build_turn_context(TurnHost("s", states=states, notes=box), "hi")
    assert "note" not in sent_user(context)["content"]
    states.save_state = save
    finish_turn(TurnHost("s", states=states, notes=box), context)
    later = build_turn_context(TurnHost("s", states=states, notes=box), "next", answered(context))
    assert "note" in sent_user(later)["content"]


def test_each_step_can_be_replaced_and_left_out():
    assert steps.PROLOGUE is PROLOGUE
    mine = tuple(
        (lambda _, context: replace(context, plugin_user_context="mine")) if step is steps.run_hooks else step
        for step in PROLOGUE
        if step is not steps.inject_block
    )
    host = TurnHost("s", block=lambda _: "<block>", hooks=(lambda _: "hook",))
    assert sent_user(build_turn_context(host, "hi", steps=mine))["content"] == "hi\n\nmine"
    bare = build_turn_context(host, "hi", steps=())
    assert (bare.messages, bare.current_turn_user_idx) == ([], -1)


EMPTY = TurnContext("hi", "hi", [], [], None, "", "t", -1)


@pytest.mark.parametrize("step", PROLOGUE)
def test_each_step_by_itself_takes_a_turn_that_knows_nothing_yet(step):
    assert isinstance(step(TurnHost("s"), EMPTY), TurnContext)


def compacting(size, session_id=None):
    def compact(messages, tokens):
        summary = {"role": "user", "content": "Summary: the user said 'go' and 'on'."}
        return Compacted([summary, *[dict(each) for each in messages[-size:]]], session_id)

    return compact


LONG = [
    {"role": role, "content": f"{number} " + "word " * 300}
    for number in range(20)
    for role in ("user", "assistant")
]


def test_a_compaction_that_opens_a_session_leaves_no_history_and_a_new_prompt(states):
    version = iter("abc")
    tiers = PromptTiers(lambda: f"prompt {next(version)}")
    host = TurnHost("s", states=states, tiers=tiers, compact=compacting(2, "t"), threshold_tokens=2_000)
    context = build_turn_context(host, "go", LONG)
    assert context.conversation_history is None
    assert (context.session_id, context.epoch) == ("t", 1)
    assert context.active_system_prompt == "prompt b"
    assert context.messages[context.current_turn_user_idx]["content"] == "go"


def test_a_compaction_in_place_keeps_the_session_and_finds_the_message_again(states):
    host = TurnHost("s", states=states, compact=compacting(3), threshold_tokens=2_000, block=lambda _: "<b>")
    context = build_turn_context(host, "go", LONG)
    assert (context.session_id, context.epoch) == ("s", 1)
    assert context.conversation_history == context.messages[: context.current_turn_user_idx]
    assert sent_user(context)["content"] == "go\n\n<b>"
    finish_turn(host, context)
    assert build_turn_context(host, "on", answered(context)).epoch == 1


def test_a_message_that_the_compaction_lost_is_put_back():
    def compact(messages, tokens):
        return Compacted([{"role": "user", "content": "Summary: the user said 'go'."}])

    context = build_turn_context(TurnHost("s", compact=compact, threshold_tokens=100), "go", LONG)
    assert [message["content"] for message in context.messages][1:] == ["go"]
    assert context.current_turn_user_idx == 1


def test_compaction_stops_without_progress_and_after_three_passes():
    calls = []

    def useless(messages, tokens):
        calls.append(tokens)
        return Compacted(messages)

    def slow(messages, tokens):
        calls.append(tokens)
        return Compacted(messages[1:])

    for compact, count in ((useless, 1), (slow, 3)):
        calls.clear()
        context = build_turn_context(TurnHost("s", compact=compact, threshold_tokens=100), "go", LONG)
        assert len(calls) == count
        assert context.epoch == (0 if compact is useless else 3)


def test_a_short_conversation_is_not_compacted():
    context = build_turn_context(TurnHost("s", compact=fails, threshold_tokens=10_000), "go", LONG[:4])
    assert not context.faults


def test_the_turn_is_stored_before_the_call_and_the_host_s_transcript_too(states):
    stored = []
    host = TurnHost("s", states=states, persist=stored.append)
    context = build_turn_context(host, "hi")
    assert stored == [context]
    assert json.loads(states.load_state("s", "turn")[0])["pending"]["turn_id"] == context.turn_id


@pytest.mark.parametrize("kept", [True, False])
def test_notes_of_a_turn_that_was_never_finished_are_told_again_only_where_they_are_not_in_view(kept):
    states, now = MemoryStates(), [0.0]
    box = NoteBox(states, "s", clock=lambda: now[0])
    box.post("note")
    host = TurnHost("s", states=states, notes=box)
    first = build_turn_context(host, "hi")
    now[0] += 3_600
    later = build_turn_context(host, "next", answered(first) if kept else [])
    assert json.dumps(outgoing(later.messages)).count("note") == 1


def test_posted_notes_that_another_sent_the_turn_without_wait_again():
    states = MemoryStates()
    box = NoteBox(states, "s")

    def post_after_the_other_has_stored(_):
        if not box_was_used:
            box_was_used.append(True)
            build_turn_context(TurnHost("s", states=states), "hi")
            box.post("note")

    box_was_used = []
    host = TurnHost("s", states=states, notes=box, hooks=(post_after_the_other_has_stored,))
    context = build_turn_context(host, "hi")
    assert "note" not in json.dumps(outgoing(context.messages))
    finish_turn(host, context)
    later = build_turn_context(host, "next", answered(context))
    assert "note" in sent_user(later)["content"]
