"""The first turn's orientation: what a marker is, how to look behind it, and when not to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turngate.flow.state import FlowState

HEADER = "[turngate: first-turn orientation]"

#: Used where ``[prompts] session_inject`` is not set.
SHIPPED_SESSION_INJECT = """\
Long tool results are shortened once, when they arrive. A first line that begins with <<<CCR:id| says so; \
below it stand lines of the result, word for word, with notes on what is hidden between them. Failures stay.
If you need something that is hidden, ask for just that: turngate_retrieve with the id and a range of lines, \
a pattern or a question; in a shell: turngate retrieve ID.
If what is shown answers your question, don't. Don't repeat a call just to see its output again."""


def build_first_turn_injection(state: FlowState) -> str:
    """The orientation, with its header; "" after the first turn, or where none is wanted."""
    if state.turn_counter > 0 or not state.session_inject.strip():
        return ""
    return f"{HEADER}\n{state.session_inject.strip()}"
