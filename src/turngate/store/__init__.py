"""Originals: stored once under their hash, given back byte for byte, searchable."""

from turngate.store.base import (
    REDACTED_NOTE,
    Asked,
    GcReport,
    Hit,
    Original,
    Problem,
    Redactor,
    Saving,
    ShortHash,
    Store,
    Stored,
    StoreStats,
    decode,
    to_bytes,
    to_text,
)
from turngate.store.lines import line_count, split_lines
from turngate.store.opening import open_store
from turngate.store.redact import redact
from turngate.store.retrieve import (
    PAGE_CHARS,
    Retrieved,
    expand,
    grep,
    json_path,
    line_range,
    page,
    passages,
    select,
    whole,
)
from turngate.store.search import best_lines, render_hits
from turngate.store.sqlite import SqliteStore, short_hash

__all__ = [
    "PAGE_CHARS",
    "REDACTED_NOTE",
    "Asked",
    "GcReport",
    "Hit",
    "Original",
    "Problem",
    "Redactor",
    "Retrieved",
    "Saving",
    "ShortHash",
    "SqliteStore",
    "Store",
    "StoreStats",
    "Stored",
    "best_lines",
    "decode",
    "expand",
    "grep",
    "json_path",
    "line_count",
    "line_range",
    "open_store",
    "page",
    "passages",
    "redact",
    "render_hits",
    "select",
    "short_hash",
    "split_lines",
    "to_bytes",
    "to_text",
    "whole",
]
