"""`python -m bench ledger [DIR]`: what keeping the ledger costs, and whether a prefix ever breaks.

With a corpus: every recorded session is sent request by request in both wires, with directives, nudges and
one-shot notes on, through a gate that is closed and opened again in between. Nothing that was sent may
change, and what is injected is charged like everything else.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from turngate import tokens
from turngate.gate import Gate
from turngate.ledger import Ledger, Memory, Policy, root_key
from turngate.ledger.history import Reader
from turngate.replay.transcripts import read_all
from turngate.settings import Settings
from turngate.store import SqliteStore
from turngate.store.connections import disk_bytes
from turngate.turn import NoteBox, attend_with, confirm_with, drop_with
from turngate.wire import elements, request_prefix, violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from turngate.session import Session
    from turngate.wire import ToolResult, Wire

LONG_TURNS, SHORT_TURNS, RUNS = 2_000, 200, 30
#: Anthropic's multipliers of the price of fresh input for a five-minute cache.
WRITE, READ = 1.25, 0.1
MODEL = "claude-opus-5"
LIMITS = {"long_load_ms": 50.0, "load_a_turn_long_to_short": 1.5, "growth_late_to_early": 1.2}


def conversation(turns: int, tag: str) -> list[dict[str, Any]]:
    """A user message, a call and its long result in each turn."""
    out: list[dict[str, Any]] = []
    for turn in range(turns):
        call = {
            "id": f"{tag}{turn}",
            "type": "function",
            "function": {"name": "run", "arguments": f'{{"n": {turn}}}'},
        }
        out += [
            {"role": "user", "content": f"{tag}: step {turn}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"{tag}{turn}", "content": f"{tag} line {turn}\n" * 200},
        ]
    return out


def shortened(result: ToolResult, text: str) -> str:
    """What a policy might show: about a kilobyte of text."""
    return f"{result.call_id} " + text[:1000]


def load_times() -> dict[str, float]:
    """Loading all that is recorded of a session, and preparing a request of it."""
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            name: one_side(Path(folder) / f"{name}.db", name, turns)
            for name, turns in (("short", SHORT_TURNS), ("long", LONG_TURNS))
        }
        # What the benchmark itself holds is no part of the cost.
        gc.collect()
        gc.freeze()
        # By turns, so that what else the machine does falls on both.
        best: dict[str, float] = {}
        for number in range(RUNS):
            for name, (store, keys, body, ledger) in sides.items():
                acts = {"load": lambda store=store, keys=keys: store.ledger.load(keys, session="s")}
                if number % 5 == 0:
                    new = Ledger(lambda store=store: store, scope="x", wire="chat", session="s")
                    acts["prepare"] = lambda new=new, body=body: new.prepare(body)
                    acts["known"] = lambda ledger=ledger, body=body: ledger.prepare(body)
                for act, call in acts.items():
                    key = f"{name}_{act}_ms"
                    best[key] = min(best.get(key, math.inf), timed(call))
        gc.unfreeze()
        for store, *_ in sides.values():
            store.close()
    ratio = (best["long_load_ms"] / LONG_TURNS) / (best["short_load_ms"] / SHORT_TURNS)
    return best | {"load_a_turn_long_to_short": ratio}


def one_side(path: Path, tag: str, turns: int) -> tuple[SqliteStore, list[bytes], bytes, Ledger]:
    """A session of so many turns in a store: the store, its keys, its request, a ledger that knows it."""
    store = SqliteStore(path)
    body = json.dumps(conversation(turns, tag)).encode()
    ledger = Ledger(lambda: store, scope="x", wire="chat", session="s", policy=Policy("1", shortened))
    prepared = ledger.prepare(body)
    assert not prepared.faults, prepared.faults
    keys = [link.key for link in Reader("chat").read(body, root_key("x", "chat")).links]
    page = store.ledger.load(keys, session="s")
    assert (len(page.nodes), len(page.values)) == (3 * turns, turns)
    return store, keys, body, ledger


def growth() -> dict[str, float]:
    """Bytes on disk that a turn adds: in the first half of a session, and in the second."""
    turns = 240
    messages = conversation(turns, "grow")
    sizes = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.db"
        store = SqliteStore(path)
        ledger = Ledger(lambda: store, scope="x", wire="chat", session="s", policy=Policy("1", shortened))
        for turn in range(1, turns + 1):
            for size in (3 * turn - 2, 3 * turn):
                ledger.apply(messages[:size])
            if turn % (turns // 3) == 0:
                store.gc()
                sizes.append(disk_bytes(path))
        store.close()
    early, late = ((b - a) / (turns // 3) for a, b in pairwise(sizes))
    return {"growth_bytes_a_turn": late, "growth_late_to_early": late / early}


def timed(act: Callable[[], object]) -> float:
    start = perf_counter()
    act()
    return (perf_counter() - start) * 1e3


@dataclass(slots=True)
class Sum:
    """What the replay of many sessions came to."""

    sessions: int = 0
    requests: int = 0
    breaks: int = 0
    """Requests that do not begin with the one before, byte for byte."""
    named: Counter[str] = field(default_factory=Counter)
    """Breaks that the ledger named."""
    invalid: int = 0
    """Rules that requests break which the client's did not."""
    faults: int = 0
    added_bytes: int = 0
    added_tokens: int = 0
    """Injected: blocks and notes, once each."""
    cost_as_is: float = 0.0
    """In tokens of fresh input: what is new is written to the cache, the rest is read from it."""
    cost_sent: float = 0.0
    cost_added: float = 0.0
    """The part of `cost_sent` that is injected."""


class Door:
    """One session at a gate that can be closed and opened again."""

    def __init__(self, folder: Path, wire: Wire, name: str) -> None:
        self._folder, self._wire, self._name = folder, wire, name
        self._turn = 0
        self.open()

    def open(self) -> None:
        self._gate = Gate.open(self._folder, Settings())
        self._session: Session = self._gate.session(self._name)
        self._notes = NoteBox(self._gate.store, self._name)
        policy = Policy(
            "1", self._decide, attend_with(notes=self._notes, block=self._block), drop_with(self._notes)
        )
        self._ledger = Ledger(
            lambda: self._gate.store,
            scope="x",
            wire=self._wire,
            session=self._name,
            policy=policy,
            memory=Memory(),
        )

    def reopen(self) -> None:
        self._session.flush()
        self._gate.close()
        self.open()

    def close(self) -> None:
        self._gate.close()

    def send(self, body: bytes, *, speaks: bool) -> Any:
        """A request; `speaks`: it ends with something new that the user said."""
        if speaks:
            self._turn = self._session.next_turn()
            self._session.push_nudge(f"remember the goal of step {self._turn}", ttl_turns=1)
            self._notes.post(f"note {self._turn} of the host: the clock says {self._turn}")
        prepared = self._ledger.prepare(body, native=self._wire == "anthropic")
        confirm_with(self._notes, prepared)
        return prepared

    def _decide(self, result: ToolResult, text: str) -> str:
        return self._session.tool_result(
            name=result.tool, args=result.args, text=text, failed=result.failed, call_id=result.call_id
        )

    def _block(self, _: object) -> str:
        return self._session.turn_block()


def replay(root: Path) -> dict[str, Sum]:
    """Every recorded session, in both wires."""
    sums = {"chat": Sum(), "anthropic": Sum()}
    for transcript in read_all([root], lambda _: None):
        messages = [dict(entry.message) for entry in transcript.epochs[0].entries]
        for wire, total in sums.items():
            shaped = messages if wire == "chat" else as_anthropic(messages)
            with tempfile.TemporaryDirectory() as folder:
                door = Door(Path(folder), wire, "s")
                one_session(door, wire, shaped, total)
                door.close()
    return sums


def one_session(door: Door, wire: Wire, messages: list[dict[str, Any]], total: Sum) -> None:
    total.sessions += 1
    before = b""
    as_is, sent = Cost(wire), Cost(wire)
    sizes = [at for at, message in enumerate(messages) if message["role"] == "assistant" and at]
    for number, size in enumerate(sizes):
        if number == len(sizes) // 2:
            door.reopen()
        body = request(wire, messages[:size])
        prepared = door.send(body, speaks=speaks(messages[size - 1]))
        prefix = request_prefix(prepared.body, wire)
        total.requests += 1
        total.breaks += not prefix.startswith(before)
        total.faults += bool(prepared.faults)
        if prepared.broken is not None:
            total.named[prepared.broken.reason] += 1
        rules = Counter(violation.rule for violation in violations(prepared.body, wire))
        rules -= Counter(violation.rule for violation in violations(body, wire))
        total.invalid += sum(rules.values())
        total.added_bytes += prepared.new_added_bytes
        added = tokens_of(prepared.new_added_bytes)
        total.added_tokens += added
        total.cost_added += added * (WRITE + READ * (len(sizes) - number - 1))
        total.cost_as_is += as_is.of(body)
        total.cost_sent += sent.of(prepared.body)
        before = prefix


class Cost:
    """The price of a session's requests in tokens of fresh input, with a cache that never forgets."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._before: list[bytes] = []
        self._known: dict[bytes, int] = {}

    def of(self, body: bytes) -> float:
        parts = [element.raw for element in elements(body, self._wire)]
        kept = 0
        while kept < min(len(parts), len(self._before)) and parts[kept] == self._before[kept]:
            kept += 1
        self._before = parts
        return READ * sum(map(self._tokens, parts[:kept])) + WRITE * sum(map(self._tokens, parts[kept:]))

    def _tokens(self, raw: bytes) -> int:
        if raw not in self._known:
            self._known[raw] = tokens.estimate(raw)
        return self._known[raw]


def tokens_of(size_bytes: int) -> int:
    """English prose has about 4.3 bytes a token; blocks and notes are that."""
    return round(size_bytes / 4.3)


def speaks(message: dict[str, Any]) -> bool:
    content = message["content"]
    results = isinstance(content, list) and any(block.get("type") == "tool_result" for block in content)
    return message["role"] == "user" and not results


def request(wire: Wire, messages: list[dict[str, Any]]) -> bytes:
    top: dict[str, Any] = {"model": "gpt-5.6", "messages": messages}
    if wire == "anthropic":
        system = [message["content"] for message in messages if message["role"] == "system"]
        top = {
            "model": MODEL,
            "max_tokens": 1000,
            **({"system": system[0]} if system else {}),
            "messages": [message for message in messages if message["role"] != "system"],
        }
    return json.dumps(top, ensure_ascii=False).encode("utf-8", "surrogatepass")


def as_anthropic(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chat Completions as Anthropic Messages: results of one turn are blocks of one message."""
    out: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            block = {
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": message["content"],
            }
            if out and out[-1]["role"] == "user" and isinstance(out[-1]["content"], list):
                out[-1]["content"].append(block)
            else:
                out.append({"role": "user", "content": [block]})
        elif message.get("tool_calls"):
            out.append({"role": "assistant", "content": list(_blocks(message))})
        else:
            out.append({"role": message["role"], "content": message["content"] or "."})
    return out


def _blocks(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if message.get("content"):
        yield {"type": "text", "text": message["content"]}
    for call in message["tool_calls"]:
        try:
            args = json.loads(call["function"]["arguments"])
        except ValueError:
            args = {"text": call["function"]["arguments"]}
        yield {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": args}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench ledger", description=__doc__)
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    found = load_times() | growth()
    sums = replay(args.corpus / "trajectories") if args.corpus else {}
    over = [name for name, limit in LIMITS.items() if found[name] > limit]
    over += [f"{wire} {name}" for wire, total in sums.items() for name in ("breaks", "invalid", "faults")
             if getattr(total, name)]  # fmt: skip
    if args.json:
        print(
            json.dumps(
                found | {"replay": {wire: as_dict(total) for wire, total in sums.items()}, "over": over}
            )
        )
    else:
        show(found, sums)
        print("over the limit: " + ", ".join(over) if over else "all within their limits")
    return int(bool(over))


def as_dict(total: Sum) -> dict[str, Any]:
    return {name: getattr(total, name) for name in Sum.__slots__}


def show(found: dict[str, float], sums: dict[str, Sum]) -> None:
    print(
        f"loading {LONG_TURNS:,} turns: {found['long_load_ms']:.1f} ms; a turn of them costs "
        f"{found['load_a_turn_long_to_short']:.2f} times one of {SHORT_TURNS}"
    )
    print(
        f"a request of {LONG_TURNS:,} turns: {found['long_prepare_ms']:.0f} ms in a new process, "
        f"{found['long_known_ms']:.0f} ms in one that knows it; of {SHORT_TURNS}: "
        f"{found['short_prepare_ms']:.1f} and {found['short_known_ms']:.1f} ms"
    )
    print(
        f"on disk a turn adds {found['growth_bytes_a_turn']:,.0f} bytes, late in a session "
        f"{found['growth_late_to_early']:.2f} times as much as early"
    )
    for wire, total in sums.items():
        named = ", ".join(f"{count} {reason}" for reason, count in total.named.items()) or "none"
        print(
            f"{wire}: {total.sessions} sessions, {total.requests} requests: {total.breaks} prefix breaks "
            f"(named: {named}), {total.invalid} rules broken, {total.faults} faults"
        )
        print(
            f"  cost {total.cost_sent:,.0f} of {total.cost_as_is:,.0f} tokens of fresh input "
            f"({total.cost_sent / total.cost_as_is - 1:+.1%}); injected: {total.added_bytes:,} bytes, "
            f"{total.cost_added / total.cost_as_is:.1%} of the cost, counted in"
        )
