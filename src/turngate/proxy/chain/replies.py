"""The client's echo of a reply in which turngate answered calls of its own: cut where the rounds met. Pure.

The client saw one reply; the upstream produced several, with calls and results between them. When the client
sends the reply back, the earlier rounds go upstream as they were produced, and only what is left is the
client's. Clients spell a reply anew (a string for a block, no thinking, other blanks), so places are counted
in blocks where their number is what was relayed, else in characters that are no blanks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from turngate.proxy.jsontext import loads
from turngate.store import to_bytes
from turngate.wire import VIEWS, Wire
from turngate.wire.layout import LAYOUT
from turngate.wire.scan import Node, scan, spell, text_of

if TYPE_CHECKING:
    from turngate.wire import Message

#: Field of a message that holds its blocks.
_BLOCKS: Final[Mapping[Wire, str]] = {"anthropic": "content", "chat": "content", "gemini": "parts"}
#: Field to which a call is added.
_CALLS: Final[Mapping[Wire, str]] = {"anthropic": "content", "chat": "tool_calls", "gemini": "parts"}
#: Fields of a chat message whose text grows from round to round.
_REASONING: Final = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the upstream produced beside what the client saw of one reply."""

    before: bytes = b""
    """The messages of all rounds but the last, with our results, as they were sent on; joined by commas."""
    chars: int = 0
    """Characters of text in these rounds, blanks left out."""
    blocks: int = 0
    """Blocks of these rounds that the client saw."""
    total: int = 0
    """Blocks of all rounds that the client saw."""
    call: bytes = b""
    """Our call in the last round, which stands beside the client's own."""
    index: int = 0
    """Its place among the blocks (chat: calls) of the last round."""
    results: bytes = b""
    """Our result for it."""


@dataclass(frozen=True, slots=True)
class Echo:
    """What a client may send back of a reply, or name it by."""

    text: str = ""
    """All text that it saw."""
    calls: Sequence[str] = ()
    """Ids of its own calls."""
    id: str = ""
    """In Responses: the reply's id, by which a client may go on from it."""
    after: bytes = b""
    """Items that the provider does not find under that id: all that followed the first round."""


@dataclass(frozen=True, slots=True)
class Part:
    """One message of an echo as it goes upstream."""

    before: bytes = b""
    """Messages that go before it."""
    sent: bytes = b""
    """Its bytes; empty where all of it belongs to the rounds before."""
    hold: bytes = b""
    """Results that go with the next message."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block of the echo; in Responses an item."""

    message: int
    """Index in the run."""
    raw: bytes
    """Its bytes."""
    text: str | None
    """Its text, where it is text that the user sees."""


def fingerprint(text: str, calls: Sequence[str]) -> bytes:
    """What a reply is found again by: its text without blanks, and the ids of the client's calls."""
    joined = "\0".join((_dense(text), *sorted(calls)))
    return hashlib.sha256(b"reply\0" + to_bytes(joined)).digest()[:20]


def fingerprint_of(values: Sequence[Any], wire: Wire) -> bytes:
    """The same of an echo: one or more messages of the assistant."""
    messages = _view(values, wire)
    text = "".join(part.text for message in messages for part in message.texts)
    return fingerprint(text, [call.id or call.name for message in messages for call in message.calls])


def trimmed(message: Any) -> Any:
    """An echo without blanks at the ends of its texts, and without texts of blanks only.

    Clients lay replies down and read them again without these, which makes no other reply of it.
    """
    if not isinstance(message, Mapping):
        return message
    out = dict(message)
    for field in ("content", "parts"):
        value = out.get(field)
        if isinstance(value, str):
            out[field] = value.strip() or None
        elif isinstance(value, list):
            blocks = [_trimmed_block(block) for block in value]
            out[field] = [block for block in blocks if block is not None]
    return out


def _trimmed_block(block: Any) -> Any:
    """A block of text trimmed; None where it says nothing."""
    if not isinstance(block, Mapping) or not isinstance(block.get("text"), str):
        return block
    text = block["text"].strip()
    bare = set(block) <= {"type", "text", "annotations"}
    return {**block, "text": text} if text or not bare else None


def cut(raws: Sequence[bytes], wire: Wire, reply: Reply) -> list[Part] | None:
    """Each message of an echo as it goes upstream; None where the places cannot be found."""
    parts = [Part(sent=raw) for raw in raws]
    if reply.before:
        kept = _without_earlier(raws, wire, reply)
        if kept is None:
            return None
        parts = [Part(sent=raw) for raw in kept]
        parts[0] = replace(parts[0], before=reply.before)
    if reply.call:
        parts = _with_call(parts, wire, reply)
    return parts


def with_results(raw: bytes, wire: Wire, results: bytes) -> Part | None:
    """The message that answers the client's calls, with our results; None where it answers none."""
    (message,) = _view([loads(raw)], wire)
    if not message.results:
        return None
    if wire in {"chat", "responses"}:
        return Part(before=results, sent=raw)
    field = _BLOCKS[wire]
    ours = _items(results, scan(results).get(field))
    return Part(sent=_insert(raw, field, 0, b",".join(ours)))


def _dense(text: str) -> str:
    return "".join(text.split())


def _view(values: Sequence[Any], wire: Wire) -> tuple[Message, ...]:
    return VIEWS[wire]({LAYOUT[wire].messages: list(values)}).messages


def _without_earlier(raws: Sequence[bytes], wire: Wire, reply: Reply) -> list[bytes] | None:
    """What is left of each message without the rounds before the last; empty where nothing is."""
    pieces = [piece for at, raw in enumerate(raws) for piece in _pieces(raw, wire, at)]
    left = (
        pieces[reply.blocks :]
        if len(pieces) == reply.total and wire != "chat"
        else _after(pieces, reply.chars)
    )
    if left is None:
        return None
    if wire == "responses":
        kept = {piece.message for piece in left}
        return [raw if at in kept else b"" for at, raw in enumerate(raws)]
    by_message = {at: list(group) for at, group in groupby(left, key=lambda piece: piece.message)}
    return [_rebuilt(raw, wire, by_message.get(at, []), reply) for at, raw in enumerate(raws)]


def _pieces(raw: bytes, wire: Wire, at: int) -> list[_Piece]:
    message = _view([loads(raw)], wire)[0]
    if wire == "responses":
        text = "".join(part.text for part in message.texts) if message.texts else None
        return [_Piece(at, raw, text)]
    blocks = scan(raw).get(_BLOCKS[wire])
    if blocks is None or blocks.kind not in {"string", "array"}:
        return []
    if blocks.kind == "string":
        return [_Piece(at, raw[blocks.start : blocks.end], text_of(raw, blocks))]
    # A path leads from the body by list, message and blocks to the block.
    texts = {part.path[3]: part.text for part in message.texts}
    return [_Piece(at, piece, texts.get(n)) for n, piece in enumerate(_items(raw, blocks))]


def _after(pieces: Sequence[_Piece], chars: int) -> list[_Piece] | None:
    """The pieces behind so many characters of text; one may be cut in two."""
    for at, piece in enumerate(pieces):
        if chars == 0:
            return list(pieces[at:])
        if piece.text is None:
            continue
        size = len(_dense(piece.text))
        if size > chars:
            rest = piece.text[_offset(piece.text, chars) :]
            return [replace(piece, raw=_with_text(piece.raw, rest), text=rest), *pieces[at + 1 :]]
        chars -= size
    return [] if chars == 0 else None


def _offset(text: str, chars: int) -> int:
    """Where in the text so many characters that are no blanks are over."""
    seen = 0
    for at, char in enumerate(text):
        seen += not char.isspace()
        if seen == chars:
            return at + 1
    return len(text)


def _with_text(raw: bytes, text: str) -> bytes:
    """A string, or a block with a text, with another text."""
    node = scan(raw)
    place = node if node.kind == "string" else node.get("text")
    return raw if place is None else raw[: place.start] + spell(text) + raw[place.end :]


def _rebuilt(raw: bytes, wire: Wire, left: Sequence[_Piece], reply: Reply) -> bytes:
    """A message with only these of its blocks; empty where it then says nothing."""
    if wire == "chat":
        raw = _without_reasoning(raw, reply.before)
    node = scan(raw)
    blocks = node.get(_BLOCKS[wire])
    if not left and not _filled(node.get(_CALLS[wire]) if wire == "chat" else None):
        return b""
    if blocks is None:
        return raw
    if blocks.kind == "array":
        new = b"[" + b",".join(piece.raw for piece in left) + b"]"
    else:
        new = left[0].raw if left else b"null"
    return raw[: blocks.start] + new + raw[blocks.end :]


def _filled(node: Node | None) -> bool:
    return node is not None and bool(node.items)


def _without_reasoning(raw: bytes, before: bytes) -> bytes:
    """A chat message whose reasoning begins with that of the rounds before: only its own."""
    earlier = loads(b"[" + before + b"]")
    for field in _REASONING:
        known = "".join(str(message.get(field) or "") for message in earlier)
        place = scan(raw).get(field)
        if (
            known
            and place is not None
            and place.kind == "string"
            and (text := text_of(raw, place)).startswith(known)
        ):
            raw = raw[: place.start] + spell(text[len(known) :]) + raw[place.end :]
    return raw


def _with_call(parts: Sequence[Part], wire: Wire, reply: Reply) -> list[Part]:
    """The echo with our call among the client's."""
    out = list(parts)
    last = max((at for at, part in enumerate(out) if part.sent), default=len(out) - 1)
    if wire == "responses":
        first = next((at for at, part in enumerate(out) if part.sent and _calls(part.sent)), last)
        joined = b",".join(part for part in (out[first].before, reply.call) if part)
        out[first] = replace(out[first], before=joined)
    else:
        out[last] = replace(out[last], sent=_insert(out[last].sent, _CALLS[wire], reply.index, reply.call))
    out[-1] = replace(out[-1], hold=reply.results)
    return out


def _calls(raw: bytes) -> bool:
    return bool(_view([loads(raw)], "responses")[0].calls)


def _insert(raw: bytes, field: str, index: int, new: bytes) -> bytes:
    """A message with `new` in an array of its, at that place or at its end."""
    place = scan(raw).get(field)
    if place is None:
        return raw
    items = _items(raw, place)
    if place.kind == "string":
        items = [b'{"type":"text","text":' + raw[place.start : place.end] + b"}"]
    items.insert(min(index, len(items)), new)
    return raw[: place.start] + b"[" + b",".join(items) + b"]" + raw[place.end :]


def _items(raw: bytes, node: Node | None) -> list[bytes]:
    return [raw[item.start : item.end] for item in node.items] if node is not None else []
