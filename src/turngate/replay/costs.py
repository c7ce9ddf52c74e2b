"""A provider's terms, and what a session costs under them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from turngate.replay.cachesim import Billed
from turngate.replay.prices import PriceList, price_list
from turngate.replay.rules import CacheRules, cache_rules, default_model, owner_of

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider's terms for one transcript."""

    provider: str
    model: str
    rules: CacheRules
    prices: PriceList | None
    """``None``: the model's price is not known."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What requests cost at one provider."""

    billed: Billed = field(default_factory=Billed)
    units: float = 0.0
    """Input, in prices of one fresh input token."""
    dollars: float = 0.0
    """Input and output, as far as prices are known."""
    unpriced: int = 0
    """Requests whose price is not known; they are not in ``dollars``."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.billed + other.billed,
            self.units + other.units,
            self.dollars + other.dollars,
            self.unpriced + other.unpriced,
        )


@dataclass(slots=True)
class Account:
    """What one conversation is charged under one offer, request by request."""

    offer: Offer
    units: float = 0.0
    dollars: float = 0.0
    unpriced: int = 0
    read_tokens: int = 0
    written_tokens: int = 0
    fresh_tokens: int = 0
    output_tokens: int = 0

    def charge(self, billed: Billed) -> None:
        """One more request."""
        rules, prices = self.offer.rules, self.offer.prices
        self.read_tokens += billed.read_tokens
        self.written_tokens += billed.written_tokens
        self.fresh_tokens += billed.fresh_tokens
        self.output_tokens += billed.output_tokens
        self.units += billed.units(rules)
        if prices is None:
            self.unpriced += 1
        else:
            self.dollars += prices.dollars(billed, ttl=rules.ttl)

    def cost(self) -> Cost:
        """All of it."""
        billed = Billed(self.read_tokens, self.written_tokens, self.fresh_tokens, self.output_tokens)
        return Cost(billed, self.units, self.dollars, self.unpriced)


def offers(recorded: str, providers: Iterable[str], *, model: str = "") -> tuple[Offer, ...]:
    """The terms of each provider for a session whose model was ``recorded``.

    ``model`` stands for the recorded one. At the provider whose model that is, its own terms hold; at the
    others, those of their newest model, for comparison. A model that is no provider's has no price anywhere.
    """
    wanted = model or recorded
    owner = owner_of(wanted)
    return tuple(_offer(provider, wanted, owner) for provider in providers)


def _offer(provider: str, wanted: str, owner: str) -> Offer:
    name = wanted if owner == provider or (wanted and not owner) else default_model(provider)
    prices = price_list(provider, name) if owner or not wanted else None
    return Offer(provider, name, cache_rules(provider, name), prices)
