"""What the tests read out of the requests that the stub received."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from turngate import wire

_MARKER = re.compile(r"<<<CCR:([0-9a-f]{16,64})\|")


def marker_id(text):
    """The id of the first marker in a text."""
    return _MARKER.search(text)[1]


def breaks(requests):
    """How many requests do not begin with all of the one before: tools, system prompt, every message."""
    prefixes = [wire.request_prefix(request.raw, "chat") for request in requests]
    return sum(not later.startswith(before) for before, later in pairwise(prefixes))


def output(result):
    """What a tool printed, out of the result's JSON."""
    return json.loads(result)["output"]
