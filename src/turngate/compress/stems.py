"""Words that tell of failure, as stems looked up in the distinct words of a text.

They are a help, not the method: rarity alone finds an odd line in any language, and with six of these stems
the measured result is the same. What they add is that every first instance of an error message is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

STRONG = 2.5
WEAK = 1.0

STEMS: tuple[tuple[float, bytes], ...] = tuple(
    (weight, stem)
    for weight, stems in (
        (WEAK, b"warn invalid missing assert cannot unable timeout timed unexpected refused denied conflict"),
        (STRONG, b"error fail fatal panic exception traceback killed abort undefined unresolved crash"),
        (STRONG, b"segfault segmentation unhealthy evicted deadlock expired rollback"),
    )
    for stem in stems.split()
)
#: Too short to be looked for inside other words ("room", "zoom").
WHOLE_WORDS: dict[bytes, float] = {b"oom": STRONG, b"oomkilled": STRONG, b"err": STRONG}


def weigh(distinct: Iterable[bytes]) -> dict[bytes, float]:
    """The failure weight of those of the `distinct` lower-case words that have one."""
    blob = b"\n".join((b"", *distinct, b""))
    found: dict[bytes, float] = {}
    for weight, stem in STEMS:
        if stem in blob:
            found.update((word, weight) for word in _holding(blob, stem))
    found.update((word, weight) for word, weight in WHOLE_WORDS.items() if b"\n" + word + b"\n" in blob)
    return found


def _holding(blob: bytes, stem: bytes) -> Iterator[bytes]:
    """The words in `blob`, one a line, that contain `stem`."""
    at = blob.find(stem)
    while at >= 0:
        end = blob.index(b"\n", at)
        yield blob[blob.rindex(b"\n", 0, at) + 1 : end]
        at = blob.find(stem, end)
