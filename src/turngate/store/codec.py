"""How content is laid down: compressed where that helps, and checked against its hash when read."""

from __future__ import annotations

import hashlib
import sys

from turngate.errors import StoreCorruptError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: zstd's own default; levels above 6 cost several times the time for a few percent.
LEVEL = 3
RAW, ZSTD = "raw", "zstd"


def digest(data: bytes) -> str:
    """SHA-256 in lowercase hex."""
    return hashlib.sha256(data).hexdigest()


def pack(data: bytes) -> tuple[str, bytes]:
    """The codec used and the bytes to lay down."""
    packed = zstd.compress(data, LEVEL)
    return (ZSTD, packed) if len(packed) < len(data) else (RAW, data)


def unpack(codec: str, packed: object, *, size: int, sha256: str) -> bytes:
    """The content again.

    Raises:
        StoreCorruptError: it is not the content of that hash.
    """
    try:
        data = _decode(codec, packed, size)
    except (zstd.ZstdError, ValueError, MemoryError) as error:
        raise _corrupt(sha256, str(error)) from error
    if digest(data) != sha256:
        raise _corrupt(sha256, "the hash differs")
    return data


def _decode(codec: str, packed: object, size: int) -> bytes:
    if not isinstance(packed, bytes):
        raise ValueError("no bytes")  # noqa: TRY004 - a value in a file, not an argument
    if codec == RAW:
        return packed
    if codec != ZSTD:
        raise ValueError(f"unknown codec {codec!r}")
    # Bounded by the recorded size, so that damage cannot ask for any amount of memory.
    decoder = zstd.ZstdDecompressor()
    data = decoder.decompress(packed, max_length=size + 1)
    while not decoder.eof and not decoder.needs_input and len(data) <= size:
        data += decoder.decompress(b"", max_length=size + 1 - len(data))
    return data


def _corrupt(sha256: str, why: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"the stored content {sha256} is damaged ({why}); storing the same output again repairs it, "
        "and `turngate doctor` lists what else is damaged"
    )
