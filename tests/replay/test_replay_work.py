"""The work of a turn is that of what is new in it, however long the session is already."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest

from turngate.replay import arms, cachesim
from turngate.replay.arms import ARMS
from turngate.replay.costs import offers
from turngate.replay.recorded import Entry, Epoch, Transcript
from turngate.replay.rules import PROVIDERS
from turngate.replay.run import replay

TERMS = offers("", PROVIDERS)
#: Long enough that all arms but none change it.
LOG = "\n".join(f"10:00:{n % 60:02} INFO worker job {n} done in {n * 7 % 91} ms" for n in range(300))


def session(turns: int) -> Transcript:
    """Turns that are all alike, but for a number."""
    messages: list[dict] = [{"role": "user", "content": "Go"}]
    for i in range(turns):
        function = {"name": "bash", "arguments": json.dumps({"command": f"run {i:04}"})}
        call = {"id": f"c{i:04}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": f"{i:04}\n{LOG}"},
        ]
    messages.append({"role": "assistant", "content": "done"})
    entries = tuple(Entry(message, json.dumps(message).encode(), 1) for message in messages)
    return Transcript("s.json", "chat", "chat", (Epoch(entries),))


#: Numbers of turns.
SIZES = (20, 40, 80)
SESSIONS = {size: session(size) for size in SIZES}


def steps(act) -> int:
    """Calls of functions, Python's and C's, that `act` makes."""
    counts: Counter[str] = Counter()

    def note(_, event, __):
        counts[event] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return counts["call"] + counts["c_call"]


@pytest.mark.parametrize("arm", ARMS)
def test_a_late_turn_takes_no_more_calls_than_an_early_one(arm):
    replay(session(8), [arm], TERMS)  # what is made once is made
    short, middle, long = (steps(lambda n=n: replay(SESSIONS[n], [arm], TERMS)) for n in SIZES)
    early, late = (middle - short) / (SIZES[1] - SIZES[0]), (long - middle) / (SIZES[2] - SIZES[1])
    assert late == pytest.approx(early, abs=25)  # of some 1,000, or 4,000 with a gate


def test_each_message_is_hashed_and_weighed_once_for_all_arms_that_leave_it_alone(monkeypatch):
    weighed: Counter[str] = Counter()
    hashed: Counter[bytes] = Counter()
    weigh, sha256 = arms.message_tokens, arms.hashlib.sha256
    monkeypatch.setattr(
        arms, "message_tokens", lambda m, wire: weighed.update([json.dumps(m)]) or weigh(m, wire)
    )

    class Hashlib:
        @staticmethod
        def sha256(data):
            hashed[data] += 1
            return sha256(data)

    monkeypatch.setattr(arms, "hashlib", Hashlib)
    transcript = SESSIONS[SIZES[0]]
    replay(transcript, ARMS, TERMS)
    recorded = [entry.raw for entry in transcript.epochs[0].entries]
    assert {raw: hashed[raw] for raw in recorded} == dict.fromkeys(recorded, 1)
    assert max(weighed.values()) == 1


def test_providers_share_the_prefixes_of_a_request(monkeypatch):
    links = 0
    link = cachesim._link

    def count(key, step):
        nonlocal links
        links += 1
        return link(key, step)

    monkeypatch.setattr(cachesim, "_link", count)
    replay(SESSIONS[SIZES[0]], ["none"], TERMS)
    messages, answers = 2 * SIZES[0] + 1, SIZES[0] + 1
    assert links == messages + answers  # DeepSeek keeps each request with its answer, too
