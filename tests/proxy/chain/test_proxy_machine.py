"""Conversations, forked, resumed, retried and spelled as clients like, over any number of processes."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

from conversations import LIST, LONG, body, call, result, said, user
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule
from test_proxy_echoes import OWN, block_of, first_round, merged, spelled

from turngate import Gate, Settings
from turngate.proxy.chain.ask import Ask
from turngate.proxy.chain.deciding import Terms
from turngate.proxy.chain.engine import Engine
from turngate.proxy.chain.replies import Echo, Reply
from turngate.proxy.chain.spelling import unmarked
from turngate.wire import violations
from turngate.wire.scan import scan

MARK = {"cache_control": {"type": "ephemeral"}}


def bare(raw, wire):
    return [unmarked(raw, node) for node in scan(raw).get(LIST[wire]).items]


def respelled(wire, messages, how):
    """The history as a client may send it today."""
    messages = copy.deepcopy(messages)
    if how == "reversed":
        return [dict(reversed(message.items())) for message in messages]
    if how == "blocks" and wire in {"chat", "anthropic"}:
        # Only what was a string at first may become a block: with a mark it could not be one before.
        for message in messages[:-1]:
            if isinstance(message.get("content"), str) and message["role"] != "tool":
                message["content"] = [{"text": message["content"], "type": "text"}]
    if how == "marks" and wire in {"chat", "anthropic"}:
        for message in messages[-2:]:
            if isinstance(message.get("content"), list) and message["content"]:
                message["content"][-1] |= MARK
    return messages


class Proxies(RuleBasedStateMachine):
    """Replicas over one store, and the conversations that pass through them."""

    histories = Bundle("histories")
    wire = "chat"

    @initialize()
    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        self.gate = Gate.open(Path(self.folder.name), Settings())
        self.engines = [self.engine(), self.engine()]
        self.count = 0
        #: By history, as the client has it: the messages that were sent for it.
        self.sent = {}

    def engine(self):
        return Engine(self.gate, Terms("1", retrieve=True, adopt=False, settings=self.gate.settings))

    def teardown(self):
        self.gate.close()
        self.folder.cleanup()

    def name(self):
        self.count += 1
        return f"n{self.count}"

    def send(self, history, replica, how, hint):
        raw = body(self.wire, respelled(self.wire, history, how))
        sending = self.engines[replica].prepare(Ask(raw, self.wire, "scope", hint))
        assert not sending.faults
        assert not violations(sending.body, self.wire)
        now = bare(sending.body, self.wire)
        for size in range(1, len(history) + 1):
            before = self.sent.get(repr(history[:size]))
            assert before is None or now[: len(before)] == before
        self.sent[repr(history)] = now
        return sending

    @rule(target=histories)
    def begin(self):
        return [user(self.wire, f"question {self.name()}")]

    @rule(
        target=histories,
        history=histories,
        replica=st.integers(0, 1),
        how=st.sampled_from(["plain", "reversed", "blocks", "marks"]),
        hint=st.sampled_from(["", "s1", "s2"]),
        long=st.booleans(),
        parallel=st.integers(1, 3),
    )
    def call_tools(self, history, replica, how, hint, long, parallel):
        self.send(history, replica, how, hint)
        ids = [self.name() for _ in range(parallel)]
        turn = [message for id_ in ids for message in call(self.wire, id_)]
        results = [result(self.wire, id_, f"{LONG}\n{id_}" if long else f"fine {id_}") for id_ in ids]
        return [*history, *joined(self.wire, turn), *joined(self.wire, results)]

    @rule(target=histories, history=histories, replica=st.integers(0, 1), hint=st.sampled_from(["", "s1"]))
    def answer(self, history, replica, hint):
        self.send(history, replica, "plain", hint)
        return [
            *history,
            said(self.wire, f"answer {self.name()}"),
            user(self.wire, f"question {self.name()}"),
        ]

    @rule(target=histories, history=histories, replica=st.integers(0, 1))
    def answer_after_a_retrieval(self, history, replica):
        sending = self.send(history, replica, "plain", "")
        text = f"It says {self.name()}."
        reply = Reply(first_round(self.wire, self.name()), 9, 1, 2)
        self.engines[replica].replied(sending, reply, Echo(f"Let me see. {text}", []))
        return [*history, *merged(self.wire, text), user(self.wire, f"question {self.name()}")]

    @rule(target=histories, history=histories, replica=st.integers(0, 1))
    def call_beside_a_retrieval(self, history, replica):
        sending = self.send(history, replica, "plain", "")
        id_, own = self.name(), self.name()
        answer = copy.deepcopy(result(self.wire, own, "line 17"))
        reply = Reply(
            call=block_of(self.wire, own), index=0, results=spelled([answer]).replace(b'"bash"', OWN_NAME)
        )
        self.engines[replica].replied(sending, reply, Echo("", [id_]))
        return [*history, *call(self.wire, id_), result(self.wire, id_, "fine")]

    @rule(history=histories, replica=st.integers(0, 1), how=st.sampled_from(["plain", "reversed"]))
    def retry(self, history, replica, how):
        self.send(history, replica, how, "")

    @rule(replica=st.integers(0, 1))
    def restart(self, replica):
        self.engines[replica] = self.engine()


OWN_NAME = f'"{OWN}"'.encode()


def joined(wire, messages):
    """Parallel calls, and their results, in as many messages as the wire has them in."""
    if wire == "responses" or (wire == "chat" and messages[0]["role"] == "tool"):
        return messages
    first = copy.deepcopy(messages[0])
    field = {"chat": "tool_calls", "anthropic": "content", "gemini": "parts"}[wire]
    first[field] = [each for message in messages for each in message[field]]
    return [first]


class Anthropic(Proxies):
    """The same in Anthropic Messages."""

    wire = "anthropic"


class Responses(Proxies):
    """The same in Responses."""

    wire = "responses"


class Gemini(Proxies):
    """The same in Gemini's format."""

    wire = "gemini"


FEW = hypothesis_settings(max_examples=12, stateful_step_count=14, deadline=None)
TestChat = Proxies.TestCase
TestAnthropic = Anthropic.TestCase
TestResponses = Responses.TestCase
TestGemini = Gemini.TestCase
for case in (TestChat, TestAnthropic, TestResponses, TestGemini):
    case.settings = FEW
