"""What was done to a message, as data, and the bytes it makes in whatever body the message comes in now.

An edit names its place as if every text were a text block, so that it finds it whether the client sends a
string or a block today. Around it every byte is the client's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from turngate.errors import WireError
from turngate.wire import Path
from turngate.wire.prefix import MARKS
from turngate.wire.scan import Node, show, spell, text_of

Op: TypeAlias = Literal["replace", "append", "note"]
"""``replace``: the text at a path. ``append``: a text behind the message's own. ``note``: a system message
behind it that the provider hides after the next user message; an ``append`` where that is not to be had."""

ByteEdit: TypeAlias = tuple[int, int, bytes]
"""Start, end, and what stands there instead."""

#: Types of blocks that are plain text, in any wire.
_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text"})
#: Types of blocks by which a message is told to be a Responses item.
_OF_RESPONSES: Final = frozenset({"input_text", "input_image", "input_file"})
#: Between a user's text and what is added to it: a blank line, as Hermes joins them.
SEPARATOR: Final = "\n\n"


@dataclass(frozen=True, slots=True)
class Edit:
    """A value of ours in a message."""

    op: Op
    """What is done."""
    path: Path
    """From the message, with every text in a block: ``("content", 0, "text")``."""
    text: str
    """The value."""
    origin: str = ""
    """Full hash of the stored original that it stands for; of an addition its tag."""


def block_path(path: Path) -> Path:
    """A path from a view, as if every text were in a block."""
    if not path:  # Responses: the whole input is a string
        return ("content", 0, "text")
    return path if path[-1:] == ("text",) else (*path, 0, "text")


def byte_edits(body: bytes, message: Node, edits: Sequence[Edit], *, native: bool) -> Iterator[ByteEdit]:
    """The changes to `body` that these edits of one message make.

    Raises:
        WireError: the message has no such place.
    """
    for edit in edits:
        if edit.op == "replace":
            place = _find(body, message, edit.path)
            if text_of(body, place) != edit.text:
                yield place.start, place.end, spell(edit.text)
    added = [edit.text for edit in edits if edit.op == "append" or (edit.op == "note" and not native)]
    if added:
        yield _append(body, message, SEPARATOR.join(added))
    notes = [edit.text for edit in edits if edit.op == "note" and native]
    if notes:
        yield message.end, message.end, b"," + _note(SEPARATOR.join(notes))


def splice_bytes(body: bytes, changes: Sequence[ByteEdit]) -> bytes:
    """`body` with these changes; without any, the very object."""
    if not changes:
        return body
    pieces: list[bytes] = []
    done = 0
    for start, end, new in sorted(changes, key=lambda change: change[:2]):
        pieces += (body[done:start], new)
        done = end
    pieces.append(body[done:])
    return b"".join(pieces)


def takes_text(message: Node) -> bool:
    """Whether a text can be added to the message."""
    content = _content(message)
    return content is not None and content.kind in {"string", "array"}


def _content(message: Node) -> Node | None:
    """What holds a message's text: its content, Gemini's parts, or all of a message that is a string."""
    if message.kind == "string":
        return message
    return message.get("content") or message.get("parts")


def _find(body: bytes, message: Node, path: Path) -> Node:
    """The string at a block path, which may be a string of its own now."""
    node = message
    for depth, step in enumerate(path):
        if node.kind == "string" and path[depth:] in _AS_BLOCK:
            break
        child = node.get(step) if isinstance(step, str) else _item(node, step)
        if child is None:
            raise WireError(f"the message at byte {message.start} has nothing at {show(path)}")
        node = child
    text_of(body, node)
    return node


#: The rest of a block path where a string stands for the block, or for the whole message.
_AS_BLOCK: Final = ((0, "text"), ("content", 0, "text"))


def _item(node: Node, index: int) -> Node | None:
    return node.items[index] if 0 <= index < len(node.items) else None


def _append(body: bytes, message: Node, text: str) -> ByteEdit:
    content = _content(message)
    if content is None or content.kind not in {"string", "array"}:
        raise WireError(f"the message at byte {message.start} has no content to add a text to")
    alone = content if content.kind == "string" else _only_text(body, content)
    if alone is not None:
        return alone.start, alone.end, spell(text_of(body, alone) + SEPARATOR + text)
    comma = b"," if content.items else b""
    block = _block_start(body, message, content) + b'"text":' + spell(text) + b"}"
    return content.end - 1, content.end - 1, comma + block


def _block_start(body: bytes, message: Node, content: Node) -> bytes:
    """How a block of text begins in the message's wire."""
    if content is message.get("parts"):
        return b"{"
    types = {_string(body, item.get("type")) for item in content.items if item.kind == "object"}
    of_responses = _string(body, message.get("type")) == "message" or types & _OF_RESPONSES
    return b'{"type":"input_text",' if of_responses else b'{"type":"text",'


def _only_text(body: bytes, content: Node) -> Node | None:
    """The string of an array that holds one plain text block: the same message as that string alone."""
    if len(content.items) != 1 or content.items[0].kind != "object":
        return None
    block = content.items[0]
    fields = {m.key for m in block.members if not _is_absent(body, m.value)} - MARKS
    text = block.get("text")
    if fields != {"type", "text"} or text is None or text.kind != "string":
        return None
    return text if _string(body, block.get("type")) in _TEXT_TYPES else None


def _string(body: bytes, node: Node | None) -> str:
    return text_of(body, node) if node is not None and node.kind == "string" else ""


def _is_absent(body: bytes, value: Node) -> bool:
    """Whether the value says as much as its absence (as the canonical form has it)."""
    return body[value.start : value.end] == b"null" or (value.kind == "array" and not value.items)


def _note(text: str) -> bytes:
    """Anthropic's mid-conversation system message, hidden after the next user message."""
    return b'{"role":"system","content":' + spell(text) + b',"clear_at":"next_user_message"}'
