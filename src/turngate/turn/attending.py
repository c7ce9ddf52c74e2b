"""The turn at a door that sees requests only: what the ledger is to add beside a new user message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from turngate.ledger import Addition, Attend, Occasion, Prepared
from turngate.turn.native import native_note
from turngate.turn.notes import NoteBox

Block: TypeAlias = Callable[[Occasion], str]
"""The injected block for a user message; "" for none."""


def attend_with(*, notes: NoteBox | None = None, block: Block | None = None, native: bool = True) -> Attend:
    """What a ledger's policy adds beside a user message: the notes that wait, then the injected block.

    Args:
        notes: the session's notes; the ledger's `Policy.dropped` should be ``drop_with(notes)``.
        block: makes the injected block; asked only for messages that are no tool results.
        native: whether the door may use the provider's own one-shot notes; it then sets the beta header.
    """

    def attend(occasion: Occasion) -> Sequence[Addition]:
        return tuple(_additions(occasion, notes, block, native=native))

    return attend


def drop_with(notes: NoteBox) -> Callable[[bytes], None]:
    """For `Policy.dropped`: what was not sent waits again."""
    return lambda key: notes.drop(key.hex())


def confirm_with(notes: NoteBox, prepared: Prepared) -> None:
    """The provider took the request: the notes beside its last message are delivered.

    Raises:
        StoreError: the notes cannot be read or written; a later claim finds them delivered all the same.
    """
    if prepared.footprint is not None and prepared.footprint.steps:
        key = prepared.footprint.steps[-1].key
        notes.confirm(key.hex(), prepared.told.get(key, ()))


def _additions(
    occasion: Occasion, notes: NoteBox | None, block: Block | None, *, native: bool
) -> Iterator[Addition]:
    after_results = bool(occasion.message.results)
    if notes is not None:
        shown = native and native_note(occasion.model, after_results=after_results) is not None
        told = {key.hex(): tags for key, tags in occasion.told.items()}
        for note in notes.claim(occasion.key.hex(), told):
            yield Addition(note.text, "note" if shown else "append", note.id)
    if block is not None and not after_results:
        yield Addition(block(occasion))
