"""What the plugin saves in a whole session of the real agent."""

from __future__ import annotations

import pytest
from hermes_session import CALLS, both


@pytest.mark.timeout(180)
def test_a_session_of_forty_calls_sends_less_than_half_and_breaks_no_prefix(tmp_path, hermes_bin):
    without, with_plugin = both(tmp_path, calls_per_request=4)
    assert (without.answer, with_plugin.answer) == ("found it", "found it")
    assert len(without.requests[-1].results) == len(with_plugin.requests[-1].results) == CALLS
    assert with_plugin.bytes <= 0.4 * without.bytes
    assert with_plugin.tokens <= 0.4 * without.tokens
    assert (without.breaks, with_plugin.breaks) == (0, 0)
