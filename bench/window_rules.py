"""What the window promises, checked on one history: everything that is wrong, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bench.memory_store import MemoryStore
from turngate.settings import WindowSettings
from turngate.window.offload import leaves
from turngate.window.record import frame
from turngate.window.window import Window
from turngate.wire import violations

if TYPE_CHECKING:
    from random import Random

    from turngate.window.case import Fitted

BOUND_MODEL = "claude-sonnet-5-5"
FREE_MODEL = "claude-sonnet-4-5"
PAIRING = {
    "call-duplicate",
    "result-orphan",
    "result-missing",
    "results-split",
    "result-duplicate",
    "result-order",
}


class Trial:
    """One session that grows, fitted before every call."""

    def __init__(
        self, rng: Random, messages: list[dict[str, Any]], wire: str, *, bound: bool, most_calls: int = 6
    ) -> None:
        self.rng = rng
        self.messages = messages
        self.wire = wire
        self.bound = bound
        self.most_calls = most_calls
        self.store = MemoryStore()
        keep = rng.randint(0, 12)
        self.settings = WindowSettings(
            context_window_tokens=(60, 300, 1_000, 3_000, 10_000, 200_000)[rng.randint(0, 5)],
            keep_recent_messages=None if keep > 8 else keep,
            soft_threshold_tokens=(None, None, 100, 1_000)[rng.randint(0, 3)],
            weigh_cost=bool(rng.randint(0, 1)),
            max_summary_tokens=(None, 60, 300)[rng.randint(0, 2)],
        )
        self.compactions = 0
        self.cannot = 0

    def window(self) -> Window:
        model = BOUND_MODEL if self.bound else FREE_MODEL
        return Window("s", lambda: self.store, self.settings, model=model, wire=self.wire)  # type: ignore[arg-type]

    def faults(self) -> Iterator[str]:
        """Everything that is wrong."""
        window = self.window()
        before: list[dict[str, Any]] = []
        for end in self.calls():
            came = self.messages[:end]
            kept = json.dumps(came)
            fitted = window.fit(came, force=self.rng.randint(0, 9) == 0)
            if json.dumps(came) != kept:
                yield "the caller's list was altered"
            yield from self.judged(came, fitted, before)
            self.compactions += bool(fitted.compaction and fitted.compaction.method != "none")
            if fitted.compaction and fitted.compaction.method != "none":
                yield from self.again(came, fitted)
            before = list(fitted.messages)

    def calls(self) -> list[int]:
        """Where a model is asked: at some ends of results and requests, and at the end."""
        ends = [at for at, m in enumerate(self.messages) if m["role"] == "assistant" and at]
        chosen = [at for at in ends if self.rng.randint(0, 2) == 0]
        return [*chosen[-self.most_calls :], len(self.messages)]

    def judged(self, came: list[Any], fitted: Fitted, before: list[Any]) -> Iterator[str]:
        out = list(fitted.messages)
        if fitted.why.startswith("fault"):
            yield fitted.why
            return
        if not violations(came, self.wire):
            sent = before if self.bound and before else None
            for found in violations(out, self.wire, sent=sent):
                yield f"invalid: {found.rule} {found.text}"
        else:
            yield from self.not_worse(came, out)
        yield from self.intact(came, out)
        yield from self.nothing_lost(came, out)
        if fitted.over and not fitted.why:
            yield "over the limit without a word"
        self.cannot += fitted.over
        if fitted.compaction and fitted.compaction.method != "none":
            notice = fitted.compaction
            if notice.after_tokens > 0.96 * notice.before_tokens:
                yield f"no progress: {notice.before_tokens} to {notice.after_tokens}"
        if sum(bool(frame.text_of(message)) for message in out) > 1:
            yield "two records"

    def not_worse(self, came: list[Any], out: list[Any]) -> Iterator[str]:
        counts = [sum(v.rule in PAIRING for v in violations(each, self.wire)) for each in (came, out)]
        if counts[1] > counts[0]:
            yield f"worse: {counts[0]} faults of pairing became {counts[1]}"

    def intact(self, came: list[Any], out: list[Any]) -> Iterator[str]:
        users = [m for m in came if m["role"] == "user" and not _only_results(m)]
        pure = [m for m in users if not _has_results(m)]
        if pure and pure[-1] not in out:
            yield "the newest user message is not intact"
        for message in came:
            if message["role"] == "system" and message not in out:
                yield "a system message is not intact"
        if out and came and frame.text_of(out[-1]):
            yield "the record stands last"

    def nothing_lost(self, came: list[Any], out: list[Any]) -> Iterator[str]:
        shown = {json.dumps(message) for message in out}
        gone = [json.dumps(message) for message in self.window().transcript()]
        held = b"\n".join((*self.store.contents.values(), *self.store.kept.values()))
        kept = json.dumps(out)
        shown_texts = {leaf.text for message in out for leaf in leaves(message, self.wire)}  # type: ignore[arg-type]
        for message in came:
            spelled = json.dumps(message)
            if spelled in shown or spelled in gone:
                continue
            for leaf in leaves(message, self.wire):  # type: ignore[arg-type]
                if leaf.what == "arguments" and self.wire == "anthropic":
                    texts = [t for t in json.loads(leaf.text).values() if t.encode() not in held]
                    if leaf.text not in shown_texts and leaf.text.encode() not in held and texts:
                        yield f"lost arguments: {texts[0][:60]}"
                elif leaf.text and leaf.text.encode() not in held and leaf.text not in shown_texts:
                    yield f"lost: {leaf.text[:60]!r}"
            for block in _thinking(message):
                if json.dumps(block).encode() not in held and json.dumps(block) not in kept:
                    yield "thinking is lost"

    def again(self, came: list[Any], fitted: Fitted) -> Iterator[str]:
        """The same again, in another process; and what came out, taken over by the host."""
        out = json.dumps(list(fitted.messages))
        replayed = self.window().fit(came)
        if json.dumps(list(replayed.messages)) != out:
            yield "another process does not replay it"
        if not fitted.over:
            adopted = Window("s", lambda: self.store, self.settings, wire=self.wire).fit(  # type: ignore[arg-type]
                list(fitted.messages)
            )
            if json.dumps(list(adopted.messages)) != out:
                yield f"not idempotent: {adopted.why}"


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _has_results(message: dict[str, Any]) -> bool:
    return any(block.get("type") == "tool_result" for block in _blocks(message))


def _only_results(message: dict[str, Any]) -> bool:
    found = _blocks(message)
    return bool(found) and all(block.get("type") == "tool_result" for block in found)


def _thinking(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in _blocks(message) if block.get("type") in {"thinking", "redacted_thinking"}]
