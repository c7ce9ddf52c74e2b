"""List prices, from ``genai-prices``. A model it does not know has no price: never a price of zero."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from turngate.replay.cachesim import Billed

_PROVIDER_IDS: Final = {"gemini": "google"}
"""Our name of a provider -> that of ``genai-prices``, where they differ."""

_PER_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Tier:
    """Prices in US dollars per million tokens, for requests with more input than ``above_tokens``."""

    above_tokens: int
    fresh: float
    read: float
    """Where no price of a cache read is listed, that of fresh input."""
    write: float
    """Where no price of a cache write is listed, that of fresh input."""
    write_1h: float
    output: float


@dataclass(frozen=True, slots=True)
class PriceList:
    """What a model's tokens cost."""

    provider: str
    model: str
    """The name under which the price was found."""
    tiers: tuple[Tier, ...]
    """Ascending. The tier a request's input reaches holds for all of its tokens."""

    def dollars(self, billed: Billed, *, ttl: str = "") -> float:
        """The price of one request, input and output."""
        tier = self.tiers[0]
        for higher in self.tiers[1:]:
            if billed.input_tokens > higher.above_tokens:
                tier = higher
        write = tier.write_1h if ttl == "1h" else tier.write
        total = (
            billed.fresh_tokens * tier.fresh
            + billed.read_tokens * tier.read
            + billed.written_tokens * write
            + billed.output_tokens * tier.output
        )
        return total / _PER_MILLION


@cache
def price_list(provider: str, model: str, at: datetime | None = None) -> PriceList | None:
    """The list price of ``model`` at ``provider``, or ``None`` if it is not known.

    Args:
        provider: One of :data:`turngate.replay.rules.PROVIDERS`.
        model: The model's name as the transcript has it.
        at: When the requests were sent; prices change with the date, and with some providers by the hour.
            ``None``: today at noon UTC.
    """
    import genai_prices  # noqa: PLC0415 - its data take a third of a second to load

    when = at or datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    provider_id = _PROVIDER_IDS.get(provider, provider)
    nothing = genai_prices.Usage(input_tokens=0, output_tokens=0)
    try:
        found = genai_prices.calc_price(nothing, model, provider_id=provider_id, genai_request_timestamp=when)
    except LookupError:
        return None
    tiers = _tiers(found.model_price)
    return PriceList(provider, found.model.id, tiers) if tiers else None


def _tiers(prices: Any) -> tuple[Tier, ...]:
    """One row for every threshold that any of the model's prices has."""
    if _at(prices.input_mtok, 0) is None or _at(prices.output_mtok, 0) is None:
        return ()
    names = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok", "output_mtok")
    starts = {tier.start for name in names for tier in getattr(getattr(prices, name), "tiers", ())}
    return tuple(_tier(prices, start) for start in sorted({0, *starts}))


def _tier(prices: Any, start: int) -> Tier:
    fresh = _at(prices.input_mtok, start) or 0.0
    write = _either(_at(prices.cache_write_mtok, start), fresh)
    return Tier(
        above_tokens=start,
        fresh=fresh,
        read=_either(_at(prices.cache_read_mtok, start), fresh),
        write=write,
        write_1h=_either(_at(prices.cache_write_1h_mtok, start), write),
        output=_at(prices.output_mtok, start) or 0.0,
    )


def _at(price: Any, start: int) -> float | None:
    """A price for input above ``start`` tokens; it is a plain number, a number with tiers, or missing."""
    if price is None:
        return None
    reached = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return float(reached[-1] if reached else getattr(price, "base", price))


def _either(price: float | None, otherwise: float) -> float:
    return otherwise if price is None else price
