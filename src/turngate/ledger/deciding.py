"""What is decided about messages that the ledger has not seen at their place."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from turngate import marker
from turngate.errors import UnknownContentError
from turngate.ledger.edits import Edit, block_path, takes_text
from turngate.ledger.policy import Addition, Decide, Occasion, Policy
from turngate.store import to_bytes, to_text
from turngate.store.ledger import DecisionRow
from turngate.wire import VIEWS, Message, TextPart, ToolResult, View

if TYPE_CHECKING:
    from turngate.ledger.history import History, Link
    from turngate.store import Store
    from turngate.store.ledger import Call

T = TypeVar("T")

PASSED: Final = DecisionRow("")
"""The decision to let a text through."""

_log = logging.getLogger("turngate.ledger")


@dataclass(slots=True)
class Decided:
    """What came of new messages."""

    edits: dict[bytes, tuple[Edit, ...]] = field(default_factory=dict)
    """By key."""
    calls: dict[Call, DecisionRow] = field(default_factory=dict)
    """What was decided on each text; to be recorded."""
    faults: list[str] = field(default_factory=list)
    """Classes of faults in the policy; the texts passed."""


@dataclass(frozen=True, slots=True)
class _Text:
    """One text of a tool result."""

    key: bytes
    result: ToolResult
    part: TextPart
    call: Call


def sha256_of(text: str) -> str:
    """The hash under which a value is kept."""
    return hashlib.sha256(to_bytes(text)).hexdigest()


def decide(history: History, fresh: Sequence[Link], policy: Policy, store: Store, scope: bytes) -> Decided:
    """Edits for the tool results in `fresh`: as they were decided elsewhere in this scope, else by `policy`.

    Raises:
        StoreError: the store cannot be read.
    """
    out = Decided()
    texts = list(_texts(history, fresh))
    known = store.ledger.decisions(scope, (text.call for text in texts))
    values = store.ledger.values({row.sha256 for row in known.values() if row.sha256})
    for text in texts:
        row = known.get(text.call)
        if row is not None and not row.sha256:
            continue
        value = to_text(values[row.sha256]) if row is not None and row.sha256 in values else ""
        if row is not None and value and not _refers(value):
            edit: Edit | None = _edit(text, value, row.origin)
        else:
            edit = _by_policy(text, policy.decide, store, out)
        if edit is not None:
            out.edits[text.key] = (*out.edits.get(text.key, ()), edit)
    return out


def edits_of(history: History, link: Link, shown: Decide) -> tuple[Edit, ...]:
    """Edits for the tool results of one message as `shown` has them; nothing is looked up."""
    made = ((text, shown(text.result, text.part.text)) for text in _texts(history, [link]))
    return tuple(_edit(text, new, "") for text, new in made if new is not text.part.text)


def attend(
    history: History, told: Mapping[bytes, frozenset[str]], policy: Policy, store: Store, faults: list[str]
) -> tuple[Edit, ...]:
    """What is added beside the newest message of the request; `told`: the messages that have additions.

    Raises:
        StoreError: from the store.
    """
    link = history.links[-1]
    if policy.attend is None or not takes_text(link.node):
        return ()
    message = _view(history, link.index).messages[-1]
    occasion = Occasion(link.key, message, told, history.model)
    asked = policy.attend
    additions: Sequence[Addition] = guarded(lambda: tuple(asked(occasion)), (), faults)
    return tuple(_added(addition, store) for addition in additions if addition.text)


def with_origins(edits: Iterable[Edit], store: Store, session: str) -> dict[str, str]:
    """Marker id -> full hash of the original, for the markers that these edits show to the session."""
    ids = [found.hash for edit in edits if (found := marker.parse(edit.text)) is not None]
    return store.known(ids, session=session) if session and ids else {}


def named(edit: Edit, origins: dict[str, str]) -> Edit:
    """The edit with the hash of the original it stands for."""
    found = marker.parse(edit.text) if origins and not edit.origin else None
    return replace(edit, origin=origins.get(found.hash, "")) if found is not None else edit


def show_originals(store: Store, session: str, hashes: set[str]) -> None:
    """Let the session see what the markers replayed to it stand for: it may be another than first saw them.

    Raises:
        StoreError: the store cannot be read or written.
    """
    missing = hashes - store.known(hashes, session=session).keys()
    turn = store.turn(session) if missing else 0
    for sha256 in sorted(missing):
        try:
            store.note(session, sha256, turn=turn, how="replayed")
        except UnknownContentError:
            _log.warning("the original of a replayed marker is no longer in the store")


def guarded(call: Callable[[], T], otherwise: T, faults: list[str]) -> T:
    """The policy's boundary: a fault in it is noted and the client's own text is sent."""
    try:
        return call()
    except Exception as fault:  # noqa: BLE001 - fail open
        faults.append(f"policy: {type(fault).__name__}")
        _log.warning("%s in a policy: the text passes as it came", type(fault).__name__)
        return otherwise


def _refers(value: str) -> bool:
    """Whether a value refers to earlier results, which need not stand in this history."""
    found = marker.parse(value)
    return found is not None and found.mode in {"same", "delta"}


def _by_policy(text: _Text, decide: Decide | None, store: Store, out: Decided) -> Edit | None:
    if text.call in out.calls:
        again = out.calls[text.call]
        same = (e for edits in out.edits.values() for e in edits if sha256_of(e.text) == again.sha256)
        return next((replace(e, path=_path(text)) for e in same), None)
    shown = text.part.text
    if decide is not None:
        shown = guarded(lambda: decide(text.result, text.part.text), shown, out.faults)
    if shown == text.part.text or store.ledger.redacted(shown) is not shown:
        out.calls[text.call] = PASSED
        return None
    out.calls[text.call] = DecisionRow(sha256_of(shown))
    return _edit(text, shown, "")


def _edit(text: _Text, shown: str, origin: str) -> Edit:
    return Edit("replace", _path(text), shown, origin)


def _path(text: _Text) -> tuple[str | int, ...]:
    return block_path(text.part.path[1:])


def _added(addition: Addition, store: Store) -> Edit:
    return Edit(addition.op, ("content",), store.ledger.redacted(addition.text), addition.tag)


def _texts(history: History, fresh: Sequence[Link]) -> Iterator[_Text]:
    """The texts of all tool results in `fresh`."""
    if not fresh:
        return
    view = _view(history, fresh[0].index)
    first = len(history.nodes) - len(view.messages)
    for link in fresh:
        message: Message = view.messages[link.index - first]
        for result in message.results:
            name = result.call_id or f"name:{result.tool}"
            for part in result.parts:
                yield _Text(link.key, result, part, (name, sha256_of(part.text)))


def _view(history: History, index: int) -> View:
    """A view of the messages from `index` on, and of those before it back to the calls they may answer.

    These are a whole turn of the assistant: in Responses every call is an item of its own.
    """
    start = index
    roles = {link.index: link.role for link in history.links}
    while start > 0 and not (roles.get(start) == "assistant" and roles.get(start - 1) != "assistant"):
        start -= 1
    messages = [history.message(at) for at in range(start, len(history.nodes))]
    return VIEWS[history.wire](messages)
