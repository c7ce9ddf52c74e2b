"""How many tokens a text costs: a fast estimate, its correction by what providers report, and an exact count.

The estimate follows the o200k vocabulary. It counts what a byte-pair vocabulary spends tokens on (words, long
words, groups of digits, runs of punctuation, capitals, line breaks, bytes outside ASCII) instead of dividing
a length, so that prose, code, JSON, CJK, base64 and blanks get each their own density, unrecognised.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from turngate.errors import TurngateError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Texts longer than a sample are estimated from this many windows, evenly spread. On the texts named below
#: this adds 0.2 points to the median error, and makes the cost of an estimate independent of the length.
_WINDOWS: Final = 16
_WINDOW_CHARS: Final = 128
_SAMPLE_CHARS: Final = _WINDOWS * _WINDOW_CHARS


def _table(class_of: Callable[[int], str]) -> bytes:
    """A `bytes.translate` table that names each byte's class by one sign."""
    return bytes(ord(class_of(byte)) for byte in range(256))


def _class(byte: int) -> str:
    """`4`, `3`, `2` lead a UTF-8 sequence of that length, `~` continues one, `!` is a control."""
    ranges = ((0xF0, "4"), (0xE0, "3"), (0xC0, "2"), (0x80, "~"), (0x7F, "!"))
    high = next((sign for start, sign in ranges if byte >= start), "")
    return high or _ascii_class(chr(byte))


def _ascii_class(char: str) -> str:
    tests = ((char.islower(), "a"), (char.isupper(), "A"), (char.isdigit(), "0"), (char in "\n\r", "\n"))
    known = next((sign for holds, sign in tests if holds), "")
    return known or (" " if char in " \t" else "." if char > " " else "!")


_CLASSES: Final = _table(_class)
_LETTERS: Final = _table(lambda byte: "a" if _class(byte) in "aA" else " ")
_SIGNS: Final = _table(lambda byte: "." if _class(byte) == "." else " ")
_BLANKS: Final = _table(lambda byte: _class(byte) if _class(byte) in " \n" else "x")

#: Tokens per occurrence. Fitted by non-negative least squares of the relative error, reweighted towards
#: the median, against exact o200k counts of half (520) of 1,039 tool outputs and tool results, by parity
#: of their SHA-256, with 66 generated texts (hex, base64, digits, blanks, rules, emoji, rare Han and
#: Hangul) at a third of the weight. Non-negative, so that no text comes out below nothing. `python -m
#: bench tokens DIR` gives the error on both halves.
_COSTS: Final[tuple[tuple[bytes, tuple[tuple[bytes, float], ...]], ...]] = (
    (_LETTERS, ((b" a", 0.637),)),  # a word
    (_SIGNS, ((b" .", 0.960),)),  # a run of punctuation
    (
        _BLANKS,
        (
            (b"\n ", 1.101),  # an indented line
            (b"x ", 0.311),  # a run of blanks
            (b"x\n", 0.251),  # a line
        ),
    ),
    (
        _CLASSES,
        (
            (b"A", 0.296),
            (b"0", 0.814),
            (b"000", 0.818 - 3 * 0.814),  # three digits are one token
            (b"0a", 0.496),
            (b"a0", 0.208),
            (b"aA", 0.543),
            (b" 0", 0.447),
            (b"!", 0.744),
        ),
    ),
)
_BYTE_COST: Final = 0.009
#: Of bytes outside ASCII: one that continues a character, and the lead of a character of four bytes.
_WIDE_COSTS: Final = ((b"~", 0.285), (b"4", 0.900))


def estimate(text: str | bytes) -> int:
    """About how many o200k tokens `text` has; 0 for nothing, else at least 1.

    Deterministic, and for long texts read from a sample of 2,048 characters (bytes, if bytes are given).
    """
    if not text:
        return 0
    sample = text if len(text) <= _SAMPLE_CHARS else _sampled(text)
    data = sample.encode("utf-8", "surrogatepass") if isinstance(sample, str) else sample
    return max(1, round(_weigh(data) * (len(text) / len(sample))))


def _sampled(text: str | bytes) -> str | bytes:
    step = (len(text) - _WINDOW_CHARS) / (_WINDOWS - 1)
    starts = [int(index * step) for index in range(_WINDOWS)]
    if isinstance(text, str):
        return "".join([text[start : start + _WINDOW_CHARS] for start in starts])
    return b"".join([text[start : start + _WINDOW_CHARS] for start in starts])


#: A text is estimated several times on its way: as it comes, when it is shortened, when it is shown.
@lru_cache(maxsize=32)
def _weigh(data: bytes) -> float:
    total = len(data) * _BYTE_COST
    data = classes = b" " + data  # so that a word or a sign at the start begins a run
    for table, costs in _COSTS:
        classes = data.translate(table)
        for pattern, cost in costs:
            total += cost * classes.count(pattern)
    if not data.isascii():
        total += sum(cost * classes.count(pattern) for pattern, cost in _WIDE_COSTS)
    return total


#: Once a factor is known, a report counts for no more than this share above or below it: one prompt that was
#: counted otherwise (a cached part left out, say) must not spoil the estimate.
_MAX_STEP_SHARE: Final = 0.25
#: Weight of a new report against what is known.
_SMOOTHING: Final = 0.3
#: No tokenizer in use is further than this from o200k; what is beyond is a fault in the report.
_FACTOR_RANGE: Final = (0.2, 5.0)


@dataclass(slots=True)
class Calibration:
    """What providers' reported usage says about the estimates, per model."""

    factors: dict[str, float]
    """Reported tokens per estimated token, by model."""

    def __init__(self, factors: Mapping[str, float] | None = None) -> None:
        self.factors = dict(factors or {})

    def factor(self, model: str) -> float:
        """What to multiply an estimate for `model` with; 1.0 until something was reported."""
        return self.factors.get(model, 1.0)

    def observe(self, model: str, estimated: int, reported: int) -> None:
        """Learn from one request: `estimated` tokens (uncorrected) were billed as `reported`.

        The first report is taken as it is, later ones are smoothed and bounded; counts below 1 teach nothing.
        """
        if estimated < 1 or reported < 1:
            return
        ratio = _clamp(reported / estimated, *_FACTOR_RANGE)
        known = self.factors.get(model)
        if known is not None:
            bounded = _clamp(ratio, known * (1 - _MAX_STEP_SHARE), known * (1 + _MAX_STEP_SHARE))
            ratio = known + _SMOOTHING * (bounded - known)
        self.factors[model] = ratio

    def estimate(self, text: str | bytes, model: str) -> int:
        """`estimate(text)`, corrected for `model`."""
        return round(estimate(text) * self.factor(model))

    def to_dict(self) -> dict[str, float]:
        """A plain dict for JSON: model to factor."""
        return dict(self.factors)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """From `to_dict`. An entry that is no usable factor is left out: it is a hint, and is learnt anew."""
        low, high = _FACTOR_RANGE
        numbers = {model: value for model, value in data.items() if isinstance(value, (int, float))}
        return cls({model: float(v) for model, v in numbers.items() if isfinite(v) and low <= v <= high})


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


#: bpe_openai refuses over 200,000 tokens at once; a character of UTF-8 is three tokens at most.
_EXACT_CHARS: Final = 60_000


def count_exact(text: str) -> int:
    """How many o200k tokens `text` has. Lone surrogates count as the replacement sign.

    Texts over 60,000 characters are counted in pieces, cut where the vocabulary's own pattern always cuts:
    after a line break before a letter or digit, or between a letter and a digit. A run of 10,000 characters
    without such a place is cut anywhere, which can add a token or two.

    Raises:
        TurngateError: the `tokens` extra is not installed.
    """
    encode = _encoder()
    text = text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text
    total, start = 0, 0
    while len(text) - start > _EXACT_CHARS:
        end = _cut(text, start + _EXACT_CHARS - 10_000, start + _EXACT_CHARS)
        total += len(encode(text[start:end]))
        start = end
    return total + len(encode(text[start:]))


def _cut(text: str, low: int, high: int) -> int:
    """The last place in `low`..`high` where the vocabulary's pattern always cuts, else `high`."""
    for at in range(high, low, -1):
        before, after = text[at - 1], text[at]
        if _always_splits(before, after):
            return at
    return high


def _always_splits(before: str, after: str) -> bool:
    if not (before + after).isascii() or not after.isalnum():
        return False
    return before == "\n" or (before.isalnum() and before.isdigit() != after.isdigit())


@cache
def _encoder() -> Callable[[str], list[int]]:
    try:
        with warnings.catch_warnings():
            # It reads its data by a function of importlib that Python 3.11 and 3.12 call deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            import bpe_openai  # type: ignore[import-untyped] # noqa: PLC0415 - optional, loaded here only

            encoding = bpe_openai.get_encoding("o200k_base")
    except ImportError:
        raise TurngateError(
            "exact token counts need the 'tokens' extra: pip install 'turngate[tokens]'"
        ) from None
    encode: Callable[[str], list[int]] = encoding.encode_ordinary
    return encode


def estimate_media(kind: str, *, provider: str = "", pages: int = 1) -> int:
    """Tokens of an image, a file, or a stretch of audio or video: a fixed cost, whatever the encoded length.

    `kind` is "image", "file" (a document; `pages` counts), "audio" or "video" (`pages` counts seconds);
    `provider` is "anthropic", "openai" or "google". Another provider costs the highest of the three, another
    kind as much as a file.
    """
    costs = _media_costs().get(kind) or _media_costs()["file"]
    return costs.get(provider, max(costs.values())) * max(1, pages)


@cache
def _media_costs() -> dict[str, dict[str, int]]:
    """Kind, provider, tokens: from the dated data file."""
    data = resources.files("turngate").joinpath("data/media_tokens.json").read_text("utf-8")
    return {
        kind: {name: cost["tokens"] for name, cost in row.items()}
        for kind, row in json.loads(data)["costs"].items()
    }
