"""Text in, shorter text out: the room that shortens. Pure: no store, no clock, no session."""

from turngate.compress.result import Shortened
from turngate.compress.shorten import shorten

__all__ = ["Shortened", "shorten"]
