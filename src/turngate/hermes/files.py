"""Files that the model asks for by path: only those below the folder that the agent works in."""

from __future__ import annotations

from pathlib import Path

from turngate.errors import RetrieveError
from turngate.store import redact, to_text

MAX_FILE_BYTES = 10 * 1024**2


def read_confined(path: str, root: Path | None = None) -> str:
    """A file's text, secrets replaced.

    Raises:
        RetrieveError: it lies outside of the working folder once links are resolved, is no regular file, is
            too large, or cannot be read.
    """
    base = (root or Path.cwd()).resolve()
    try:
        file = (base / path).resolve(strict=True)
        if not file.is_relative_to(base):
            raise RetrieveError(f"{path} lies outside of the working folder; ask for a file below {base}")
        if not file.is_file():
            raise RetrieveError(f"{path} is not a file; name one")
        with file.open("rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        raise RetrieveError(f"{path} cannot be read: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise RetrieveError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes; read a part of it in a shell")
    return redact(to_text(data))
