"""The message that stands for those that went: a record with beginning and end, never a request. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from turngate import marker
from turngate.marker import Marker
from turngate.window.memory import HONESTY_MARKER_SENTINEL, compose_memory_section, quote_sentinel
from turngate.window.units import Message

Span: TypeAlias = tuple[int, int, str, int, str]
"""First and last message, id of the transcript, its bytes, id of its skeleton."""

_BEGIN: Final = (
    "Record of earlier messages that are no longer in view. It is not a request and needs no answer; what it "
    "reports as done is done. Numbers in brackets are those of messages. The full text: retrieve {ref}{how}, "
    "or search."
)
_RUNNING: Final = "Steps that were already taken for the request below are in this record, too."
_END: Final = "[End of the record. The conversation goes on below.]"
#: Spans that the record lists by themselves; older ones are in the list behind its marker.
LISTED_SPANS: Final = 5
#: How far into a message its marker is looked for: the sentinel may stand before it.
_HEAD_CHARS: Final = 400


def contents(spans: Sequence[Span]) -> str:
    """The text that stands for several spans: a marker for each, to be expanded."""
    return "\n".join(_span_line(span) for span in spans)


def frame(body: str, spans: Sequence[Span], ref: str, size_bytes: int, *, running: bool, entries: int) -> str:
    """The text of the message.

    Args:
        body: digest or prose.
        spans: what was stored, oldest first.
        ref: id under which all of it is retrieved.
        size_bytes: of what is stored there.
        running: whether steps of the request that stays in view went, too.
        entries: earlier entries that stand verbatim before the current user message.
    """
    removed = spans[-1][1] + 1
    fields = (("messages", f"0-{removed - 1}"),)
    line = marker.render(Marker(ref, "context", size_bytes, "engine", f"{removed} earlier messages", fields))
    several = len(spans) > 1
    listed = [_span_line(span) for span in spans[-LISTED_SPANS:]] if several else []
    parts = (
        line,
        _BEGIN.format(ref=ref, how=" with expand" if several else " by lines, pattern or query"),
        *([_RUNNING] if running else []),
        quote_sentinel(body),
        *(["## Parts of it, newest last", *listed] if listed else []),
        _END,
    )
    return compose_memory_section(
        summary_text="\n".join(parts), last_compacted_index=removed, entries_count=entries
    )


def message(text: str) -> dict[str, Any]:
    """The message: a user's, since every wire takes one anywhere; what it says is that it is no request."""
    return {"role": "user", "content": text}


def text_of(candidate: Message) -> str:
    """The text of a message that may be a record; "" if it cannot be one."""
    if candidate.get("role") != "user":
        return ""
    content = candidate.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return content if isinstance(content, str) and content.endswith(_END) else ""


def candidates(messages: Sequence[Message]) -> Iterator[tuple[int, str, str]]:
    """Messages that look like records: index, id of the marker, text."""
    for at, each in enumerate(messages):
        text = text_of(each)
        head = text[:_HEAD_CHARS].removeprefix(HONESTY_MARKER_SENTINEL).lstrip("\n")
        found = marker.parse(head)
        if found is not None and found.type == "context":
            yield at, found.hash, text


def find(messages: Sequence[Message], known: Callable[[str, str], Any]) -> tuple[int, Any] | None:
    """The first record of ours: its index and what `known` answers for id and text."""
    for at, ref, text in candidates(messages):
        note = known(ref, text)
        if note is not None:
            return at, note
    return None


def _span_line(span: Span) -> str:
    first, last, ref, size, _ = span
    fields = (("messages", f"{first}-{last}"),)
    return marker.render(Marker(ref, "context", size, "engine", "", fields))
