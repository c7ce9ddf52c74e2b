"""What a provider's prompt cache would have read and written: a pure simulator of one conversation.

A request is a row of steps in render order (tools, system, messages), each with a digest of its bytes and a
number of tokens. The simulator keeps what the provider would keep, and says of each request how many of its
tokens are read from the cache, written to it, or neither. It knows nothing of load, routing or eviction
before the lifetime is over: real hit rates are somewhat lower. Inside a step that changed, nothing is
shared; a provider may still share its unchanged beginning.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from turngate.replay.rules import CacheRules


@dataclass(frozen=True, slots=True)
class Step:
    """One element of a request."""

    digest: bytes
    """Identifies its bytes; equal bytes, equal digest."""
    tokens: int
    blocks: int = 1
    """Content blocks in it."""
    static: bool = False
    """It belongs to tools or system prompt, not to the messages."""


@dataclass(frozen=True, slots=True)
class Billed:
    """How the tokens of one request are charged."""

    read_tokens: int = 0
    """Read from the cache."""
    written_tokens: int = 0
    """Written to the cache, at the price of a write; zero where writing costs nothing."""
    fresh_tokens: int = 0
    """Neither; at the full price."""
    output_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """All tokens that were sent."""
        return self.read_tokens + self.written_tokens + self.fresh_tokens

    def units(self, rules: CacheRules) -> float:
        """Cost of the input, in prices of one fresh input token."""
        read = self.read_tokens * rules.read_multiplier
        return read + self.written_tokens * rules.write_multiplier + self.fresh_tokens

    def __add__(self, other: Billed) -> Billed:
        return Billed(
            self.read_tokens + other.read_tokens,
            self.written_tokens + other.written_tokens,
            self.fresh_tokens + other.fresh_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request, for :func:`simulate`."""

    steps: tuple[Step, ...]
    at_seconds: float = 0.0
    """Time since any fixed moment; must not decrease."""
    marks: tuple[int, ...] | None = None
    """Steps after which a breakpoint stands; ``None``: where the rules say clients put them."""
    reply: Step | None = None
    """The step that the answer becomes in later requests."""


class CacheSimulator:
    """One conversation at several providers; requests come in order of time, each as a change of the last."""

    def __init__(self, rules: Iterable[CacheRules]) -> None:
        self._chain = _Chain()
        self._caches = [_Cache(each, self._chain) for each in rules]

    def send(
        self,
        new: Sequence[Step],
        *,
        kept: int = 0,
        at_seconds: float = 0.0,
        marks: Sequence[int] | None = None,
        reply: Step | None = None,
        output_tokens: int = 0,
    ) -> list[Billed]:
        """Send the first ``kept`` steps of the request before, followed by ``new``.

        The cost is that of the new steps, not of the whole request, as long as the prefix holds.

        Returns:
            What each provider charges, in the order of the rules.
        """
        kept = min(kept, len(self._chain))
        self._chain.replace(kept, new, at_seconds)
        return [cache.bill(kept, at_seconds, marks, reply, output_tokens) for cache in self._caches]


class _Cache:
    """What one provider keeps of a conversation."""

    def __init__(self, rules: CacheRules, chain: _Chain) -> None:
        self._rules = rules
        self._chain = chain
        self._expires: dict[bytes, float] = {}
        self._places: list[int] = []
        """Where in the present chain an entry ends, live or not; ascending."""

    def bill(
        self, kept: int, at: float, marks: Sequence[int] | None, reply: Step | None, output_tokens: int
    ) -> Billed:
        """Charge the request that the chain holds now, of which ``kept`` steps were in the one before."""
        chain, rules = self._chain, self._rules
        del self._places[bisect_right(self._places, kept) :]
        added = range(kept + 1, len(chain) + 1)
        self._places += [place for place in added if chain.key(place) in self._expires]
        if rules.matching == "breakpoints":
            read, written = self._breakpoints(at, self._marks(marks))
        else:
            shared = chain.shared(rules.ttl_seconds)
            tokens = self._unit(at, shared, reply) if rules.matching == "units" else chain.tokens(shared)
            read, written = self._rounded(tokens), 0
        return Billed(read, written, chain.tokens(len(chain)) - read - written, output_tokens)

    def _marks(self, marks: Sequence[int] | None) -> list[int]:
        """Numbers of steps before each honoured mark, ascending."""
        size, static = len(self._chain), self._chain.static
        if marks is not None:
            places = sorted({mark + 1 for mark in marks if 0 <= mark < size})
        else:
            first = max(static, size - self._rules.mark_last_messages)
            places = [static] if self._rules.mark_static and static else []
            places += range(first + 1, size + 1)
        return places[-self._rules.max_marks :]

    def _breakpoints(self, at: float, marks: list[int]) -> tuple[int, int]:
        """Read from every mark backwards, then write at every mark.

        Anthropic's documentation: the longest hit is read, what lies between it and the last mark is written,
        and each entry that is found lives anew.
        """
        chain, rules = self._chain, self._rules
        eligible = [mark for mark in marks if chain.tokens(mark) >= rules.minimum_tokens]
        hits = [hit for mark in eligible if (hit := self._look_back(mark, at))]
        for place in (*hits, *eligible):
            self._keep(place, at)
        read = chain.tokens(max(hits, default=0))
        written = chain.tokens(max(eligible, default=0)) - read
        return read, written

    def _look_back(self, mark: int, at: float) -> int:
        """The longest live entry that ends at ``mark`` or before it, as a number of steps; 0: none."""
        chain, limit, places = self._chain, self._rules.look_back_blocks, self._places
        reach = None if limit is None else chain.blocks(mark) - limit
        for index in range(bisect_right(places, mark) - 1, -1, -1):
            place = places[index]
            if reach is not None and chain.blocks(place) <= reach:
                return 0
            if self._expires.get(chain.key(place), -1.0) >= at:
                return place
        return 0

    def _unit(self, at: float, shared: int, reply: Step | None) -> int:
        """DeepSeek: a unit must match as a whole; a common prefix becomes one for the requests after this."""
        chain = self._chain
        hit = self._look_back(len(chain), at)
        for place in (hit, shared, len(chain)):
            self._keep(place, at)
        if reply is not None:
            self._remember(_link(chain.key(len(chain)), reply), at)
        return chain.tokens(hit)

    def _keep(self, place: int, at: float) -> None:
        """An entry that ends at this place of the chain lives from now on."""
        if place:
            self._remember(self._chain.key(place), at)
            position = bisect_left(self._places, place)
            if self._places[position : position + 1] != [place]:
                self._places.insert(position, place)

    def _remember(self, key: bytes, at: float) -> None:
        self._expires.pop(key, None)  # to the end of the order: the latest ones are remembered
        self._expires[key] = at + self._rules.ttl_seconds
        limit = self._rules.remembered_marks
        if limit is not None and len(self._expires) > limit:
            del self._expires[next(iter(self._expires))]

    def _rounded(self, tokens: int) -> int:
        beyond = tokens - self._rules.minimum_tokens
        return tokens - beyond % self._rules.step_tokens if beyond >= 0 else 0


class _Chain:
    """The present request as prefixes (key, tokens, blocks of its first n steps), and those sent before."""

    def __init__(self) -> None:
        self._keys: list[bytes] = [b""]
        self._tokens = [0]
        self._blocks = [0]
        self._at = self._before = 0.0
        self._kept = 0
        self._left: dict[bytes, float] = {}
        """Prefixes that the present request lacks, and when they were last sent."""
        self.static = 0
        """Steps of tools and system prompt at the beginning."""

    def __len__(self) -> int:
        return len(self._keys) - 1

    def key(self, steps: int) -> bytes:
        return self._keys[steps]

    def tokens(self, steps: int) -> int:
        return self._tokens[steps]

    def blocks(self, steps: int) -> int:
        return self._blocks[steps]

    def replace(self, kept: int, new: Sequence[Step], at: float) -> None:
        """Keep ``kept`` steps, append ``new``."""
        self._before, self._at, self._kept = self._at, at, kept
        if kept < len(self):
            self._left.update(dict.fromkeys(self._keys[kept + 1 :], self._before))
            for column in (self._keys, self._tokens, self._blocks):
                del column[kept + 1 :]
            self.static = min(self.static, kept)
        for step in new:
            self._append(step)

    def shared(self, ttl_seconds: int) -> int:
        """How many leading steps some request of the last ``ttl_seconds`` had, too."""
        fresh_since = self._at - ttl_seconds
        shared = self._kept if self._before >= fresh_since else 0
        for place in range(self._kept + 1, len(self._keys)):
            if shared != place - 1 or self._left.get(self._keys[place], fresh_since - 1) < fresh_since:
                break
            shared = place
        return shared

    def _append(self, step: Step) -> None:
        if step.static and self.static == len(self):
            self.static += 1
        self._keys.append(_link(self._keys[-1], step))
        self._tokens.append(self._tokens[-1] + step.tokens)
        self._blocks.append(self._blocks[-1] + step.blocks)


def _link(key: bytes, step: Step) -> bytes:
    return hashlib.sha256(key + step.digest).digest()


def simulate(requests: Iterable[Request], rules: CacheRules) -> Iterator[Billed]:
    """What each request of one conversation costs, whole requests given."""
    simulator = CacheSimulator([rules])
    before: tuple[Step, ...] = ()
    for request in requests:
        pairs = zip(before, request.steps, strict=False)
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        before = request.steps
        yield from simulator.send(
            request.steps[kept:],
            kept=kept,
            at_seconds=request.at_seconds,
            marks=request.marks,
            reply=request.reply,
            output_tokens=request.reply.tokens if request.reply else 0,
        )
