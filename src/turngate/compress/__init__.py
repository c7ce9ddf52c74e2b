"""Text in, shorter text out: the room that shortens. Pure: no store, no clock, no session."""

from turngate.compress.result import Shortened
from turngate.compress.shorten import shorten

#: Another version may show the same text otherwise, and a history that began under one is never decided on
#: anew by another. So it is raised with any change of what is shown.
VERSION = 3

__all__ = ["VERSION", "Shortened", "shorten"]
