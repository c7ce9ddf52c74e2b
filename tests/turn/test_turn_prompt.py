from __future__ import annotations

import threading

from turngate.turn import (
    MemoryStates,
    PromptTiers,
    TurnHost,
    build_turn_context,
    finish_turn,
    outgoing,
    system_prompt,
    volatile_change,
)


def test_a_prompt_is_built_once_stored_and_replayed():
    states = MemoryStates()
    first = system_prompt(states, "s", PromptTiers(lambda: "who", lambda: "where", lambda: "when"))
    assert first.text == "who\n\nwhere\n\nwhen"
    assert [first.text[:cut] for cut in first.cuts] == ["who", "who\n\nwhere", first.text]
    assert system_prompt(states, "s", PromptTiers(lambda: "other")) == first
    assert system_prompt(states, "t", PromptTiers(lambda: "other")).text == "other"


def test_empty_tiers_leave_no_trace_and_what_cannot_be_sent_is_taken_out():
    prompt = system_prompt(MemoryStates(), "s", PromptTiers(session=lambda: " a\x00b "))
    assert (prompt.text, prompt.cuts) == ("ab", (2,))
    assert system_prompt(MemoryStates(), "s", PromptTiers()).text == ""


def test_only_a_later_epoch_builds_it_anew():
    states = MemoryStates()
    texts = iter("abc")
    tiers = PromptTiers(lambda: next(texts))
    found = [system_prompt(states, "s", tiers, epoch).text for epoch in (0, 0, 1, 0, 1, 2)]
    assert found == ["a", "a", "b", "b", "b", "c"]


def test_of_two_that_build_at_once_both_get_the_same():
    states = MemoryStates()
    barrier = threading.Barrier(4)
    found = []

    def work(number):
        barrier.wait()
        found.append(system_prompt(states, "s", PromptTiers(lambda: f"by {number}")).text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_what_changes_is_told_once_beside_the_message_while_the_prompt_stays():
    states = MemoryStates()
    place = ["home"]
    host = TurnHost("s", states=states, tiers=PromptTiers(lambda: "who", volatile=lambda: f"at {place[0]}"))
    history, told = [], []
    for where in ("home", "work", "work", "home", "home"):
        place[0] = where
        context = build_turn_context(host, f"turn {len(history)}", history)
        assert context.active_system_prompt == "who\n\nat home"
        told.append(outgoing(context.messages)[-1]["content"].partition("\n\n")[2])
        finish_turn(host, context)
        history = [*context.messages, {"role": "assistant", "content": "ok"}]
    assert told == ["", "at work", "", "at home", ""]


def test_a_change_is_told_though_the_process_died_before_the_turn_was_stored():
    states = MemoryStates()
    tiers = PromptTiers(volatile=lambda: "a")
    assert volatile_change(states, "s", tiers) == ""
    system_prompt(states, "s", tiers)
    later = PromptTiers(volatile=lambda: "b")
    assert [volatile_change(states, "s", later) for _ in range(2)] == ["b", "b"]
