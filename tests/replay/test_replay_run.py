"""What a session would have been under each arm: requests, costs, and what was lost on the way."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.errors import SettingsError, TranscriptError
from turngate.marker import find_all
from turngate.replay.arms import ARMS, HEAD_TAIL_CHARS, MASK_KEEPS, MASKED, Sheet
from turngate.replay.cachesim import Billed
from turngate.replay.costs import Cost, offers
from turngate.replay.probes import Probe, read_probes
from turngate.replay.recorded import Entry, Epoch, Transcript
from turngate.replay.rules import PROVIDERS, owner_of
from turngate.replay.run import ASSUMED_SECONDS, CALL_TOKENS, ORIENTATION_TOKENS, SCHEMA_TOKENS, replay
from turngate.replay.shelf import Shelf
from turngate.settings import Settings
from turngate.wire import VIEWS, elements


def trace(n: int) -> str:
    return hashlib.sha256(b"%d" % n).hexdigest()[:12]


LOG = "\n".join(f"10:00:{n % 60:02} INFO worker job {n} done, trace {trace(n)}" for n in range(700))


def entry(message, **more) -> Entry:
    return Entry(message, json.dumps(message).encode(), 1, **more)


def chat(*texts: str) -> list[dict]:
    """A call, its result and so on, for each text; an answer at the end."""
    out = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Go"}]
    for i, text in enumerate(texts):
        function = {"name": "bash", "arguments": json.dumps({"command": f"step {i}"})}
        out += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{i}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{i}", "content": text},
        ]
    return [*out, {"role": "assistant", "content": "done"}]


def claude(*texts: str) -> list[dict]:
    out = [{"role": "user", "content": "Go"}]
    for i, text in enumerate(texts):
        result = {"type": "tool_result", "tool_use_id": f"t{i}", "content": [{"type": "text", "text": text}]}
        use = {"type": "tool_use", "id": f"t{i}", "name": "Bash", "input": {"command": f"step {i}"}}
        out += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return [*out, {"role": "assistant", "content": "done"}]


MAKERS = {"chat": chat, "anthropic": claude}


def transcript(messages, wire="chat", *, epochs=None, head=(), model="", **more) -> Transcript:
    epochs = epochs or [Epoch(tuple(entry(m, **more) for m in messages))]
    return Transcript("dir/s.json", wire, wire, tuple(epochs), tuple(head), model)


TERMS = offers("", PROVIDERS)


def run(messages, wire="chat", **more):
    return {o.arm: o for o in replay(transcript(messages, wire), ARMS, TERMS, **more)}


# Arms.

SIZES = st.lists(st.integers(0, 3), min_size=1, max_size=14)
TEXTS = ["ok", "x" * 300, LOG, "e" * (2 * HEAD_TAIL_CHARS + 1)]


def assemble(arm, entries, sizes):
    """The requests an arm makes, put together from its changes."""
    shown = []
    for size in sizes:
        kept, new = arm.request(entries, size)
        shown = shown[:kept] + new
        yield [json.loads(s.raw) for s in shown]


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
@given(kinds=SIZES)
def test_mask_shows_the_newest_observations_only_whatever_came_before(wire, kinds):
    messages = MAKERS[wire](*(TEXTS[k] for k in kinds))
    entries = transcript(messages, wire).epochs[0].entries
    for sent in assemble(ARMS["mask"](Sheet(wire), Settings()), entries, range(1, len(entries) + 1)):
        before = VIEWS[wire](messages[: len(sent)]).results
        after = VIEWS[wire](sent).results
        old = max(0, len(before) - MASK_KEEPS)
        for i, (was, now) in enumerate(zip(before, after, strict=True)):
            assert now.text == (MASKED if i < old and len(was.text) > len(MASKED) else was.text)


@pytest.mark.parametrize("name", ["none", "head-tail", "turngate"])
@pytest.mark.parametrize("wire", ["chat", "anthropic"])
@given(kinds=SIZES)
def test_what_is_decided_at_ingress_is_sent_so_ever_after(wire, name, kinds):
    messages = MAKERS[wire](*(TEXTS[k] for k in kinds))
    entries = transcript(messages, wire).epochs[0].entries
    sent: list = []
    for now in assemble(ARMS[name](Sheet(wire), Settings()), entries, range(1, len(entries) + 1)):
        assert now[: len(sent)] == sent
        sent = now
    if name == "none":
        assert sent == messages


def test_head_tail_keeps_both_ends_and_says_how_much_is_gone():
    text = "a" * HEAD_TAIL_CHARS + "m" * 1234 + "z" * HEAD_TAIL_CHARS
    ((_, change),) = run(chat(text))["head-tail"].changed
    assert change.before == text
    assert change.after.startswith("a" * HEAD_TAIL_CHARS)
    assert change.after.endswith("z" * HEAD_TAIL_CHARS)
    assert "1,234 characters" in change.after
    assert run(chat("a" * 2 * HEAD_TAIL_CHARS))["head-tail"].changed == []


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
def test_the_gate_itself_decides_for_turngate(wire):
    ((index, change),) = run(MAKERS[wire]("small", LOG), wire)["turngate"].changed
    assert MAKERS[wire]("small", LOG)[index] == MAKERS[wire]("small", LOG)[-2]
    assert change.call == {"chat": "bash: step 1", "anthropic": "Bash: step 1"}[wire]
    assert change.before == LOG
    (marker,) = find_all(change.after)
    assert (marker.type, marker.mode, marker.size) == ("terminal", "inline", len(LOG))


def test_a_fault_of_the_gate_is_counted_and_the_result_sent_as_recorded(monkeypatch):
    def refuse(*_, **__):
        raise TypeError

    monkeypatch.setattr(Shelf, "put", refuse)
    ours = run(chat(LOG))["turngate"]
    assert ours.changed == []
    assert ours.faults == {"TypeError": 1}


# Requests and costs.


@pytest.mark.parametrize("wire", ["chat", "anthropic"])
@settings(max_examples=20)
@given(kinds=SIZES)
def test_every_request_is_charged_in_full_by_every_provider_and_stays_valid(wire, kinds):
    found = run(MAKERS[wire](*(TEXTS[k] for k in kinds)), wire)
    assert list(found) == list(ARMS)
    for outcome in found.values():
        assert outcome.wrong == []
        assert outcome.faults == {}
        assert len(outcome.turns) == len(kinds) + 1
        for turn in outcome.turns:
            assert [billed.input_tokens for billed in turn.billed] == [turn.input_tokens] * len(PROVIDERS)
        for i, cost in enumerate(outcome.costs):
            assert cost.billed == sum((turn.billed[i] for turn in outcome.turns), Billed())
            assert cost.dollars > 0


@pytest.mark.parametrize("name", ["none", "head-tail", "turngate"])
@settings(max_examples=20)
@given(kinds=SIZES)
def test_an_append_only_arm_never_breaks_its_prefix(name, kinds):
    outcome = run(chat(*(TEXTS[k] for k in kinds)))[name]
    assert outcome.breaks == 0
    sent = 0
    for turn in outcome.turns:
        assert turn.reused_bytes == sent
        sent = turn.request_bytes


def test_mask_breaks_its_prefix_whenever_one_more_observation_is_masked():
    outcome = run(chat(*(f"{n} " + "x" * 300 for n in range(MASK_KEEPS + 3))))["mask"]
    assert outcome.breaks == 3
    assert outcome.turns[-1].reused_bytes < outcome.turns[-2].request_bytes


def test_turngate_is_charged_with_schema_and_orientation_in_every_request():
    found = run(chat("small", "small"))
    extra = SCHEMA_TOKENS + ORIENTATION_TOKENS
    pairs = zip(found["none"].turns, found["turngate"].turns, strict=True)
    assert all(ours.input_tokens - none.input_tokens == extra for none, ours in pairs)


def test_tools_and_system_prompt_are_part_of_every_request():
    body = json.dumps({"messages": claude("x"), "system": "S " * 500, "tools": [{"name": "a"}]}).encode()
    head = [e for e in elements(body, "anthropic") if e.kind != "message"]
    (with_head,) = replay(transcript(claude("x"), "anthropic", head=head), ["none"], TERMS)
    (without,) = replay(transcript(claude("x"), "anthropic"), ["none"], TERMS)
    added = {a.input_tokens - b.input_tokens for a, b in zip(with_head.turns, without.turns, strict=True)}
    assert len(added) == 1
    assert added.pop() > 400


def test_recorded_times_decide_what_has_expired_and_20_seconds_are_assumed():
    messages = chat(*[LOG] * 3)
    (soon,) = replay(transcript(messages), ["none"], TERMS)
    late = [entry(m, at_seconds=i * 400.0) for i, m in enumerate(messages)]
    (gone,) = replay(transcript(messages, epochs=[Epoch(tuple(late))]), ["none"], TERMS)
    assert ASSUMED_SECONDS == 20
    assert soon.costs[0].billed.read_tokens > 0
    assert gone.costs[0].billed.read_tokens == 0


def test_output_is_what_was_reported_or_else_estimated():
    plain = chat("x")
    reported = [entry(m, usage={"output_tokens": 777} if m["role"] == "assistant" else None) for m in plain]
    (told,) = replay(transcript(plain, epochs=[Epoch(tuple(reported))]), ["none"], TERMS)
    assert told.costs[0].billed.output_tokens == 2 * 777
    assert 0 < run(plain)["none"].costs[0].billed.output_tokens < 100


def test_a_compaction_is_no_break_and_keeps_the_head():
    first, second = (
        claude("x" * 9000),
        [{"role": "user", "content": "Summary"}, {"role": "assistant", "content": "ok"}],
    )
    body = json.dumps({"messages": first, "system": "S " * 3000}).encode()
    head = [e for e in elements(body, "anthropic") if e.kind != "message"]
    epochs = [Epoch(tuple(map(entry, first))), Epoch(tuple(map(entry, second)), "compacted")]
    for outcome in replay(transcript([], "anthropic", epochs=epochs, head=head), ARMS, TERMS):
        assert outcome.breaks == 0
        last = outcome.turns[-1]
        assert (last.epoch, last.message) == (1, 1)
        assert 0 < last.reused_bytes < outcome.turns[-2].request_bytes
        assert last.billed[0].read_tokens > 2900


def test_going_back_to_an_earlier_turn_reuses_what_both_share():
    first = claude("x" * 9000, "y" * 9000)
    second = [*first[:3], {"role": "user", "content": "other"}, {"role": "assistant", "content": "ok"}]
    epochs = [Epoch(tuple(map(entry, first))), Epoch(tuple(map(entry, second)), "rewound", 3)]
    (outcome,) = replay(transcript([], "anthropic", epochs=epochs), ["turngate"], TERMS)
    assert outcome.breaks == 0
    assert outcome.turns[-1].reused_bytes == outcome.turns[1].request_bytes


def test_what_the_record_breaks_itself_is_not_held_against_an_arm():
    broken = [m for m in chat(LOG, LOG) if m.get("tool_call_id") != "c0"]
    assert all(outcome.wrong == [] for outcome in run(broken).values())


# Facts.


def test_a_hidden_fact_is_had_back_at_a_price_that_lasts():
    messages = chat(LOG, "fine", "fine")
    fact = Probe("s.json", "What is the trace of job 432?", trace(432), 3, 6)
    without, found = run(messages), run(messages, probes=[fact])
    assert trace(432) not in without["turngate"].changed[0][1].after
    ours = found["turngate"]
    assert (ours.retrieved, ours.lost) == (1, 0)
    assert ours.retrieved_tokens > CALL_TOKENS
    paid = [
        b.input_tokens - a.input_tokens for a, b in zip(without["turngate"].turns, ours.turns, strict=True)
    ]
    assert paid[:2] == [0, 0]
    assert paid[2:] == [ours.retrieved_tokens] * 2
    turn = ours.turns[2]  # asking is a request of its own
    assert turn.billed[0].input_tokens == 2 * turn.input_tokens - ours.retrieved_tokens
    assert ours.costs[0].dollars > without["turngate"].costs[0].dollars
    assert (found["none"].retrieved, found["none"].lost) == (0, 0)
    assert found["none"].costs == without["none"].costs


def test_a_masked_or_cut_fact_is_lost_and_one_in_view_costs_nothing():
    text = "a" * 6000 + " the pin is 4711 " + "b" * 6000
    messages = chat(text, *["fine"] * (MASK_KEEPS + 1))
    fact = Probe("s.json", "What is the pin?", "4711", 3, len(messages) - 1)
    found = run(messages, probes=[fact])
    assert [found[arm].lost for arm in ("none", "head-tail", "mask")] == [0, 1, 1]
    soon = Probe("s.json", "What is the pin?", "4711", 3, 4)
    assert run(messages, probes=[soon])["mask"].lost == 0


def test_a_fact_that_is_never_used_is_not_asked_for():
    messages = chat(LOG)
    late = Probe("s.json", "What is the trace of job 432?", trace(432), 3, 99)
    assert run(messages, probes=[late])["turngate"].retrieved == 0


def test_probes_are_read_with_their_places_and_a_bad_line_is_named(tmp_path):
    path = tmp_path / "p.jsonl"
    rows = [
        {
            "file": "dir/s.json",
            "question": "q",
            "answers": ["a", "b"],
            "first_message_index": 3,
            "used_message_index": 7,
        },
        {"file": "s.json", "question": "q", "answers": ["a"], "first_message_index": 3},
        {"file": "out.txt", "question": "q", "answers": ["a"]},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    one, two = read_probes(path)
    assert (one.answer, one.first, one.used) == ("a", 3, 7)
    assert two.used == 4
    assert one.of("/x/dir/s.json")
    assert one.of("dir/s.json#2")
    assert not one.of("/x/otherdir/s.json")
    for bad in ("{", "[]", '{"file": "x"}', '{"file": "x", "question": "q", "answers": []}'):
        path.write_text(f"{json.dumps(rows[0])}\n{bad}\n")
        with pytest.raises(TranscriptError, match=r"p\.jsonl:2: no probe"):
            read_probes(path)
    with pytest.raises(TranscriptError, match="No such file"):
        read_probes(tmp_path / "none")


# Terms.


def test_a_model_has_its_own_price_at_its_provider_and_the_others_are_for_comparison():
    terms = {o.provider: o for o in offers("claude-opus-5-5-20261001", PROVIDERS)}
    assert terms["anthropic"].model == "claude-opus-5-5-20261001"
    assert terms["anthropic"].rules.read_multiplier == 0.05
    assert terms["anthropic"].prices.tiers[0].fresh == 4.0
    assert terms["openai"].model == "gpt-5.6-sol"
    assert offers("anthropic/claude-opus-5-5", ["anthropic"])[0].rules.read_multiplier == 0.05
    assert offers("claude-opus-5-5", ["openai"], model="gpt-4o")[0].rules.matching == "prefix"


@pytest.mark.parametrize("model", ["acme-1", "claude-unheard-of-9"])
def test_an_unknown_model_is_priced_as_unknown_never_as_zero(model):
    (offer,) = offers(model, ["anthropic"])
    assert offer.prices is None
    (outcome,) = replay(transcript(chat("x")), ["none"], [offer])
    assert (outcome.costs[0].unpriced, outcome.costs[0].dollars) == (2, 0.0)
    assert outcome.costs[0].units > 0
    assert (Cost(dollars=1.0) + outcome.costs[0]).unpriced == 2


def test_models_are_told_by_name():
    names = ["claude-x", "openai/gpt-9", "o3-mini", "models/gemini-5", "deepseek-v9", "llama-4", ""]
    assert [owner_of(n) for n in names] == ["anthropic", "openai", "openai", "gemini", "deepseek", "", ""]
    with pytest.raises(SettingsError):
        offers("", ["acme"])


# The store of a replay.


def test_the_store_of_a_replay_keeps_contents_and_gives_them_back():
    shelf = Shelf()
    one, again = shelf.put(b"abc", session="s"), shelf.put(b"abc")
    assert (one.id, one.new, again.new) == (again.id, True, False)
    assert shelf.get(one.id).data == shelf.get(one.sha256).data == b"abc"
    assert shelf.known([one.id, "0" * 16], session="s") == {one.id: one.sha256}
    assert (shelf.turn("s"), shelf.next_turn("s"), shelf.turn("s")) == (0, 1, 1)
    with pytest.raises(Exception, match="nothing of id"):
        shelf.get(one.id + "0")
