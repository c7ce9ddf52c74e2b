"""Every exception turngate raises.

    TurngateError
    ├── SettingsError            a setting is unknown, malformed or out of range
    ├── StoreError               the store of originals
    │   ├── StoreUnavailableError    cannot be opened, read or written just now
    │   ├── StoreCorruptError        holds something other than what was put in
    │   ├── StoreFullError           at its limit, and all that it holds is in view of a live session
    │   ├── StoreConflictError       a session's state was saved by another in the meantime
    │   └── UnknownContentError      no content of that hash that this session may see
    ├── RetrieveError            a range, pattern, page or path that cannot be followed
    ├── DirectiveError           no directive of that name
    ├── WireError                a message list that is not in a provider's format
    ├── TranscriptError          a recorded session that cannot be read
    └── ProxyError               the proxy cannot listen, or cannot run what it was asked to run

A message says what is wrong and what to do about it.
"""

from __future__ import annotations


class TurngateError(Exception):
    """The root of everything turngate raises on purpose."""


class SettingsError(TurngateError):
    """A setting is unknown, malformed or out of range."""


class StoreError(TurngateError):
    """Something about the store of originals."""


class StoreUnavailableError(StoreError):
    """The store cannot be opened, read or written just now."""


class StoreCorruptError(StoreError):
    """The store holds something other than what was put in; the message names the hash."""


class StoreFullError(StoreError):
    """The store is at its limit and all that it holds is in view of a live session."""


class StoreConflictError(StoreError):
    """A session's state was saved by another in the meantime; load it again and repeat the change."""


class UnknownContentError(StoreError):
    """No content of that hash exists that this session may see."""


class RetrieveError(TurngateError):
    """A line range, regular expression, page or JSON path that cannot be followed."""


class DirectiveError(TurngateError):
    """There is no directive of that name; the message names the nearest."""


class WireError(TurngateError):
    """A message list is not in a provider's format; the message names the place."""


class TranscriptError(TurngateError):
    """A recorded session cannot be read; the message names file and line."""


class ProxyError(TurngateError):
    """The proxy cannot listen at its address, or cannot run what it was asked to run."""
