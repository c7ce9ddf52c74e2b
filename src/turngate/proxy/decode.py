"""Request bodies without their compression, however small a bomb is. Pure."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from turngate.errors import TurngateError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_STEP_BYTES: Final = 1024 * 1024


class BodyError(TurngateError):
    """A request's body cannot be read."""


class TooLargeError(BodyError):
    """A request's body is larger than is read."""


class UnknownEncodingError(BodyError):
    """A request's body is compressed in a way that is not known."""


class _Unpacker(Protocol):
    def __call__(self, data: bytes, most: int) -> Iterator[bytes]: ...


def decoded(data: bytes, encodings: str, most_bytes: int) -> bytes:
    """A body without its compression.

    Args:
        data: the body as it came.
        encodings: the header `Content-Encoding`: what was done to it, in order.
        most_bytes: the most that comes back.

    Raises:
        BodyError: it is too large, damaged, or of an unknown compression.
    """
    for name in reversed([word.strip().lower() for word in encodings.split(",")]):
        if name in {"", "identity"}:
            continue
        unpack = _UNPACKERS.get(name)
        if unpack is None:
            known = ", ".join(sorted(_UNPACKERS))
            raise UnknownEncodingError(
                f"the body is compressed as {name[:40]!r}; send it as {known}, or plain"
            )
        data = _joined(unpack(data, _STEP_BYTES), name, most_bytes)
    if len(data) > most_bytes:
        raise _too_large(most_bytes)
    return data


def _joined(pieces: Iterator[bytes], name: str, most_bytes: int) -> bytes:
    out, size = [], 0
    try:
        for piece in pieces:
            size += len(piece)
            if size > most_bytes:
                raise _too_large(most_bytes)
            out.append(piece)
    except (zlib.error, zstd.ZstdError, EOFError, ValueError) as fault:
        raise BodyError(f"the body is not valid {name}; send it again, or plain") from fault
    return b"".join(out)


def _too_large(most_bytes: int) -> TooLargeError:
    return TooLargeError(
        f"the body is larger than {most_bytes:,} bytes; raise proxy.max_body_bytes, or send less"
    )


def _zlib(bits: int) -> _Unpacker:
    def unpack(data: bytes, most: int) -> Iterator[bytes]:
        while data:
            unpacker = zlib.decompressobj(bits)
            while data and not unpacker.eof:
                yield unpacker.decompress(data, most)
                data = unpacker.unconsumed_tail
            yield unpacker.flush()
            if not unpacker.eof:
                raise EOFError
            data = unpacker.unused_data

    return unpack


def _deflate(data: bytes, most: int) -> Iterator[bytes]:
    """Clients send it with zlib's frame, as RFC 9110 has it, or without."""
    framed = len(data) > 1 and data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0
    return _zlib(zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)(data, most)


def _zstd(data: bytes, most: int) -> Iterator[bytes]:
    while data:
        unpacker = zstd.ZstdDecompressor()
        while not unpacker.eof:
            piece = unpacker.decompress(data, most)
            if not piece and unpacker.needs_input and not unpacker.eof:
                raise EOFError
            yield piece
            data = b""
        data = unpacker.unused_data


def _brotli(data: bytes, most: int) -> Iterator[bytes]:
    import brotli  # type: ignore[import-untyped]  # noqa: PLC0415 - hardly any client sends it

    unpacker = brotli.Decompressor()
    try:
        yield unpacker.process(data, output_buffer_limit=most)
        while not unpacker.is_finished():
            piece = unpacker.process(b"", output_buffer_limit=most)
            if not piece:
                raise EOFError
            yield piece
    except brotli.error as fault:
        raise ValueError("not brotli") from fault


_UNPACKERS: Final[Mapping[str, Callable[[bytes, int], Iterator[bytes]]]] = {
    "gzip": _zlib(16 + zlib.MAX_WBITS),
    "x-gzip": _zlib(16 + zlib.MAX_WBITS),
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}
