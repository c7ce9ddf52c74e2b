"""Replays one transcript under one arm, request by request, at several providers at once."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from turngate.replay.arms import ARMS, Arm, Change, Sheet, Shown
from turngate.replay.cachesim import Billed, CacheSimulator, Step
from turngate.replay.costs import Account, Cost, Offer
from turngate.replay.probes import Probe, in_view, text_of
from turngate.replay.weigh import value_tokens
from turngate.replay.windowed import Compacted, Windowed
from turngate.settings import Settings
from turngate.store import passages
from turngate.tokens import estimate
from turngate.wire import Path, Violation, violations

if TYPE_CHECKING:
    from turngate.replay.recorded import Entry, Epoch, Transcript

SCHEMA_TOKENS: Final = 150
ORIENTATION_TOKENS: Final = 120
"""What the retrieve tool's schema and the orientation add to every request of arm ``turngate``. Set
generously: neither is part of a gate yet."""

CALL_TOKENS: Final = 60
"""What the model writes to ask for something hidden: a tool call with an id and a question."""

FOUND_CHARS: Final = 8_000
"""How much of an original comes back to a question: what a search answers at most."""

ASSUMED_SECONDS: Final = 20.0
"""Between two requests whose times were not recorded."""

REDEEMING: Final = "turngate"
"""The arm that can give back what it took out of view."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request and what it cost."""

    epoch: int
    message: int
    """Index of the message that answers it, in its epoch."""
    input_tokens: int
    request_bytes: int
    reused_bytes: int
    """Of them, those that begin both this request and the one before."""
    billed: tuple[Billed, ...]
    """By provider, in the order of the offers; requests that had something back are included."""


@dataclass(slots=True)
class Outcome:
    """One transcript under one arm."""

    arm: str
    costs: list[Cost] = field(default_factory=list)
    """By provider, in the order of the offers."""
    turns: list[Turn] = field(default_factory=list)
    breaks: int = 0
    """Requests that did not begin with the whole request before, inside an epoch."""
    facts: int = 0
    """Facts that probes asked for. With none, ``retrieved`` and ``lost`` say nothing."""
    retrieved: int = 0
    """Facts that were needed, out of view, and had back."""
    retrieved_tokens: int = 0
    lost: int = 0
    """Facts that were needed, out of view, and not to be had back."""
    faults: dict[str, int] = field(default_factory=dict)
    """Faults inside the policy, by class; what they met was sent as recorded."""
    wrong: list[Violation] = field(default_factory=list)
    """What a provider would refuse of each epoch's last request, though not of the recorded one."""
    changed: list[tuple[int, Change]] = field(default_factory=list)
    """Results that were changed, with the index of their message."""
    compactions: list[Compacted] = field(default_factory=list)
    """With a window: what was done to stay within it."""
    over: int = 0
    """With a window: requests that were still too large for it."""


def replay(
    transcript: Transcript,
    arms: Iterable[str],
    offers: Sequence[Offer],
    *,
    settings: Settings | None = None,
    probes: Sequence[Probe] = (),
    window_tokens: int | None = None,
) -> list[Outcome]:
    """What the session would have been under each arm: every request, its cost, and what was lost on the way.

    Probes name messages by their number, so they are asked of sessions without a compaction of their own.
    With `window_tokens`, every arm's requests are kept within a window of that size.
    """
    sheet = Sheet(transcript.wire)
    known = {
        (v.rule, v.path, i) for i, epoch in enumerate(transcript.epochs) for v in _judged(epoch, transcript)
    }
    setup = _Setup(transcript, sheet, offers, probes, known)
    known_settings = settings or Settings()

    def begin(name: str) -> Arm:
        arm = ARMS[name](sheet, known_settings)
        if window_tokens is None:
            return arm
        return Windowed(
            arm,
            sheet,
            transcript,
            dataclasses.replace(known_settings.window, context_window_tokens=window_tokens),
        )

    return [_Replay(setup, name, begin(name)).run() for name in arms]


@dataclass(frozen=True, slots=True)
class _Setup:
    """What all arms are given."""

    transcript: Transcript
    sheet: Sheet
    offers: Sequence[Offer]
    probes: Sequence[Probe]
    known: set[tuple[str, Path, int]]
    """Rules that the recorded session breaks itself: rule, place, epoch."""


def _judged(epoch: Epoch, transcript: Transcript) -> list[Violation]:
    last = max(epoch.answers, default=0)
    return violations([entry.message for entry in epoch.entries[:last]], transcript.wire) if last else []


class _Sent:
    """The present request: its steps, with running totals."""

    def __init__(self, head: Iterable[tuple[Step, int]]) -> None:
        self.steps: list[Step] = []
        self.shown: list[Shown] = []
        self._tokens = [0]
        self._bytes = [0]
        self._ends: list[int] = []
        for step, size in head:
            self.add(step, size)
        self._head = len(self.steps)

    @property
    def tokens(self) -> int:
        return self._tokens[-1]

    @property
    def bytes(self) -> int:
        return self._bytes[-1]

    def bytes_of(self, steps: int) -> int:
        return self._bytes[steps]

    def add(self, step: Step, size: int) -> None:
        """One step; after a message it belongs to that."""
        self.steps.append(step)
        self._tokens.append(self._tokens[-1] + step.tokens)
        self._bytes.append(self._bytes[-1] + size)
        if self._ends:
            self._ends[-1] = len(self.steps)

    def replace(self, kept: int, new: Sequence[Shown], entries: Sequence[Entry]) -> int:
        """Keep so many messages, append ``new``; answers how many steps were kept."""
        steps = self._ends[kept - 1] if kept else self._head
        del self.steps[steps:], self.shown[kept:], self._ends[kept:]
        del self._tokens[steps + 1 :], self._bytes[steps + 1 :]
        for shown in new:
            system = entries[len(self.shown)].message["role"] in {"system", "developer"}
            static = system and all(step.static for step in self.steps)
            self._ends.append(0)
            self.add(Step(shown.digest, shown.tokens, shown.blocks, static), len(shown.raw))
            self.shown.append(shown)
        return steps


class _Replay:
    """The state of one run."""

    def __init__(self, setup: _Setup, name: str, arm: Arm) -> None:
        transcript, offers = setup.transcript, setup.offers
        self._transcript, self._sheet, self._arm, self._known = transcript, setup.sheet, arm, setup.known
        self._simulator = CacheSimulator(offer.rules for offer in offers)
        self._accounts = [Account(offer) for offer in offers]
        probes = setup.probes if len(transcript.epochs) == 1 else ()
        self._needed = deque(sorted(probes, key=lambda probe: probe.used))
        self._redeems = name == REDEEMING
        self._sent = _Sent(_head(transcript, ours=self._redeems))
        self._before = 0
        self._at = 0.0
        self._texts: dict[bytes, str] = {}
        self._window = arm if isinstance(arm, Windowed) else None
        self._counted: set[int] = set()
        self.outcome = Outcome(name)

    def run(self) -> Outcome:
        for number, epoch in enumerate(self._transcript.epochs):
            for count, index in enumerate(epoch.answers):
                self._request(number, epoch.entries, index, first=count == 0)
            self._judge(number)
        self.outcome.faults = dict(self._arm.faults)
        if self._window is not None:
            self.outcome.compactions, self.outcome.over = self._window.compacted, self._window.over
        self.outcome.costs = [account.cost() for account in self._accounts]
        return self.outcome

    def _request(self, epoch: int, entries: Sequence[Entry], index: int, *, first: bool) -> None:
        compactions = self._compactions()
        kept_messages, new = self._arm.request(entries, index)
        kept = min(self._sent.replace(kept_messages, new, entries), self._before)
        declared = first or self._compactions() > compactions
        self.outcome.breaks += kept < self._before and not declared
        for position, shown in enumerate(new, kept_messages):
            if self._window is None or id(shown) not in self._counted:
                self.outcome.changed += [(position, change) for change in shown.changes]
                self._counted.add(id(shown))
        reused = self._sent.bytes_of(kept)
        self._at = max(self._at, entries[index].at_seconds or self._at + ASSUMED_SECONDS)
        asked: list[list[Billed]] = []
        for probe in self._out_of_view(index):
            kept = self._redeem(probe, kept, asked)
        billed = self._send(kept, self._reply(entries[index]))
        for before in asked:
            billed = [a + b for a, b in zip(before, billed, strict=True)]
        self._before = len(self._sent.steps)
        turn = Turn(epoch, index, self._sent.tokens, self._sent.bytes, reused, tuple(billed))
        self.outcome.turns.append(turn)

    def _compactions(self) -> int:
        return 0 if self._window is None else len(self._window.compacted)

    def _send(self, kept: int, reply: Step) -> list[Billed]:
        """One request to every provider; what each charges."""
        new = self._sent.steps[kept:]
        billed = self._simulator.send(
            new, kept=kept, at_seconds=self._at, reply=reply, output_tokens=reply.tokens
        )
        for account, paid in zip(self._accounts, billed, strict=True):
            account.charge(paid)
        return billed

    def _reply(self, answer: Entry) -> Step:
        """The answer, as later requests carry it; its tokens are those reported, if they were."""
        reported = (answer.usage or {}).get("output_tokens")
        shown = self._sheet.message(answer, (), None)
        size = reported if isinstance(reported, int) and reported > 0 else shown.tokens
        return Step(shown.digest, size)

    def _out_of_view(self, index: int) -> Iterator[Probe]:
        """The facts that the answer at ``index`` needs and does not see."""
        while self._needed and self._needed[0].used <= index:
            probe = self._needed.popleft()
            if probe.first >= index:
                continue
            self.outcome.facts += 1
            if not in_view(probe, [self._text(shown) for shown in self._sent.shown]):
                yield probe

    def _redeem(self, probe: Probe, kept: int, asked: list[list[Billed]]) -> int:
        """Have a fact back: a request more, and call and result in view from here on."""
        hidden = self._hidden(probe)
        if hidden is None or not self._redeems:
            self.outcome.lost += 1
            return kept
        found = passages(hidden, probe.question, size=FOUND_CHARS).text
        call = Step(hashlib.sha256(f"call {probe.question}".encode()).digest(), CALL_TOKENS)
        asked.append(self._send(kept, call))
        kept = len(self._sent.steps)
        answer = Step(hashlib.sha256(found.encode("utf-8", "surrogatepass")).digest(), estimate(found))
        self._sent.add(call, CALL_TOKENS)
        self._sent.add(answer, len(found))
        self.outcome.retrieved_tokens += call.tokens + answer.tokens
        if in_view(probe, [found]):
            self.outcome.retrieved += 1
        else:
            self.outcome.lost += 1
        return kept

    def _hidden(self, probe: Probe) -> str | None:
        """A text out of view that has the fact."""
        changes = [change for shown in self._sent.shown for change in shown.changes]
        if self._window is None:
            changes = (
                list(self._sent.shown[probe.first].changes) if probe.first < len(self._sent.shown) else []
            )
        found = next((change.before for change in changes if in_view(probe, [change.before])), None)
        if found is None and self._window is not None:
            return self._window.hidden(lambda text: in_view(probe, [text]))
        return found

    def _text(self, shown: Shown) -> str:
        """All text of a message."""
        if shown.digest not in self._texts:
            self._texts[shown.digest] = text_of(_loads(shown.raw))
        return self._texts[shown.digest]

    def _judge(self, epoch: int) -> None:
        """Ask the oracle about the last request; one sent as recorded has the record's own faults only."""
        shown, entries = self._sent.shown, self._transcript.epochs[epoch].entries
        if self._window is not None:
            self._judge_window(epoch)
            return
        if not any(message.changes for message in shown):
            return
        messages = [
            _loads(message.raw) if message.changes else entry.message
            for message, entry in zip(shown, entries, strict=False)
        ]
        found = violations(messages, self._transcript.wire)
        self.outcome.wrong += [v for v in found if (v.rule, v.path, epoch) not in self._known]

    def _judge_window(self, epoch: int) -> None:
        """The same where messages stand elsewhere than recorded: only rules that the record keeps count."""
        broken = {rule for rule, _, number in self._known if number == epoch}
        found = violations([_loads(message.raw) for message in self._sent.shown], self._transcript.wire)
        self.outcome.wrong += [v for v in found if v.rule not in broken]


def _head(transcript: Transcript, *, ours: bool) -> Iterator[tuple[Step, int]]:
    """Tools and system prompt; for our arm with what it adds to them."""
    added = {"tools": SCHEMA_TOKENS, "system": ORIENTATION_TOKENS} if ours else {}
    for kind in ("tools", "system"):
        for element in transcript.head:
            if element.kind == kind:
                size = value_tokens(_loads(element.raw))
                yield Step(hashlib.sha256(element.raw).digest(), size, static=True), len(element.raw)
        if kind in added:
            yield Step(f"turngate {kind}".encode(), added[kind], static=True), 0


def _loads(raw: bytes) -> Any:
    return orjson.loads(raw)
