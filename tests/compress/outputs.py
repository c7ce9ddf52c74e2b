"""Outputs of each format, made from what its lines look like: `<w>` is a word, `<n>` a number, and so on."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS = ("amber", "basil", "cedar", "delta", "ember", "fable", "grove", "heron", "inlet", "jetty", "kiosk")
REPEATS = 25


@dataclass(frozen=True, slots=True)
class Output:
    """How a format looks."""

    kind: str
    command: str
    #: Each a way to look: the lines of a round, of which there are many; behind "%%" those that begin it.
    looks: tuple[str, ...]

    def text(self, look: int, seed: int) -> str:
        """A text with this look; another with another seed."""
        rng = random.Random(seed)
        head, _, body = self.looks[look].rpartition("%%\n")
        lines = [*head.splitlines(), *body.splitlines() * REPEATS]
        return "\n".join(_TOKEN.sub(lambda token: _MAKERS[token[1]](rng), line) for line in lines)


def _hexadecimal(rng: random.Random, digits: int) -> str:
    return "a1" + "".join(rng.choice("0123456789abcdef") for _ in range(digits - 2))


_MAKERS = {
    "w": lambda rng: rng.choice(WORDS),
    "W": lambda rng: rng.choice(WORDS).capitalize(),
    "n": lambda rng: str(rng.randint(1, 999)),
    "h7": lambda rng: _hexadecimal(rng, 7),
    "h8": lambda rng: _hexadecimal(rng, 8),
    "h12": lambda rng: _hexadecimal(rng, 12),
    "h40": lambda rng: _hexadecimal(rng, 40),
    "h4": lambda rng: _hexadecimal(rng, 4),
    "h2": lambda rng: _hexadecimal(rng, 2),
    "time": lambda rng: f"{rng.randint(10, 23)}:{rng.randint(10, 59)}:{rng.randint(10, 59)}",
    "date": lambda rng: f"2026-{rng.randint(10, 12)}-{rng.randint(10, 28)}",
    "path": lambda rng: f"{rng.choice(WORDS)}/{rng.choice(WORDS)}",
    "b64": lambda rng: "".join(rng.choice("abcdefghijkLMNOPQRST0123456789+/") for _ in range(76)),
}

_TOKEN = re.compile(f"<({'|'.join(_MAKERS)})>")


def _outputs() -> Iterator[tuple[str, Output]]:
    """What `outputs.txt` holds: "=== format | kind | command", then the looks with "~~~" between them."""
    text = (Path(__file__).parent / "outputs.txt").read_text("utf-8").replace("\\t", "\t")
    for part in re.split(r"^=== (?=[\w-]+ \| )", text, flags=re.MULTILINE)[1:]:
        head, _, looks = part.partition("\n")
        name, kind, command = map(str.strip, head.split(" |"))
        yield name, Output(kind, command, tuple(re.split(r"^~~~\n", looks, flags=re.MULTILINE)))


OUTPUTS = dict(_outputs())
