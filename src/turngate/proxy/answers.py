"""The proxy's answer to a call of its own tool: what is behind a marker, or what answers a question."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from turngate import asking
from turngate.errors import RetrieveError, TurngateError, UnknownContentError
from turngate.ingress import reference
from turngate.marker import find_all
from turngate.proxy.jsontext import loads
from turngate.store import render_hits, to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turngate.gate import Gate
    from turngate.proxy.chain.ask import Sending
    from turngate.session import Session
    from turngate.store import Retrieved

#: About 5,000 tokens: a model that wants more asks for the next page.
PAGE_CHARS: Final = 20_000
_HITS: Final = 5

_log = logging.getLogger("turngate.proxy")


def answer(gate: Gate, sending: Sending, args: str) -> str:
    """What the model is told. Never raises: what goes wrong is an answer, too."""
    try:
        asked = _arguments(args)
        session = gate.session(sending.session)
        return (
            _retrieved(gate, session, sending, asked)
            if asking.text(asked, "hash")
            else _found(session, asked)
        )
    except TurngateError as error:
        return f"[turngate] {error}"
    except Exception as error:  # noqa: BLE001 - the model's turn goes on without it
        _log.warning("%s while answering a retrieval", type(error).__name__)
        return f"[turngate] this could not be read ({type(error).__name__}); go on without it"


def _arguments(args: str) -> Mapping[str, Any]:
    try:
        value = loads(args.encode("utf-8", "surrogatepass")) if args.strip() else {}
    except TurngateError:
        value = None
    if not isinstance(value, dict):
        raise RetrieveError("the arguments are no JSON object; give a hash, or a query")
    return value


def _retrieved(gate: Gate, session: Session, sending: Sending, asked: Mapping[str, Any]) -> str:
    ref = reference(asking.text(asked, "hash"))
    try:
        session.original(ref)
    except UnknownContentError:
        if not _quoted(gate, sending, ref):
            raise
    page = asking.number(asked, "page", 0)
    found = session.retrieve(
        ref,
        lines=asking.lines(asked),
        pattern=asking.text(asked, "pattern") or None,
        query=asking.text(asked, "query") or None,
        path=asking.text(asked, "path") or None,
        page=page or 1,
        page_chars=PAGE_CHARS,
    )
    return _shown(ref, found)


def _quoted(gate: Gate, sending: Sending, ref: str) -> bool:
    """Whether a marker of the same credential stands in this conversation's messages; then it may be read.

    A client's own summary may quote a marker of the conversation before it.
    """
    store = gate.store
    try:
        original = store.get(ref)
    except UnknownContentError:
        return False
    mine = f"proxy:{sending.scope[:16]}:"
    stands = any(marker.hash == ref for marker in find_all(to_text(sending.body)))
    if not stands or not any(name.startswith(mine) for name in store.sessions_of(original.sha256)):
        return False
    store.note(sending.session, original.sha256, turn=store.turn(sending.session), how="quoted")
    return True


def _shown(ref: str, found: Retrieved) -> str:
    where = f"lines {found.first_line}-{found.last_line} of {found.total_lines:,}" if found.first_line else ""
    pages = f"page {found.page} of {found.pages}" if found.pages > 1 else ""
    head = "; ".join(part for part in (where or f"of {found.total_lines:,} lines", pages, found.note) if part)
    return f"[{ref}: {head}]\n{found.text}"


def _found(session: Session, asked: Mapping[str, Any]) -> str:
    question = asking.text(asked, "query") or asking.text(asked, "pattern")
    if not question:
        raise RetrieveError("name the hash of a marker, or ask a query")
    hits = session.search(question, limit=_HITS)
    if not hits:
        return f"[{session.miss(question)}]"
    return render_hits(hits)
