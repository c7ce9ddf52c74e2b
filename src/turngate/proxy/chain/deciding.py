"""What becomes of messages that are new at their place."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from turngate import ingress, tokens
from turngate.compress import shorten
from turngate.errors import WireError
from turngate.ingress import Arrival
from turngate.ledger import Policy, child_key, deciding
from turngate.ledger.edits import Edit, byte_edits, splice_bytes
from turngate.proxy.chain import replies, tool
from turngate.proxy.chain.held import Held
from turngate.proxy.chain.spelling import unmarked
from turngate.proxy.chain.standing import StandingResults
from turngate.proxy.chain.work import Work, runs
from turngate.proxy.jsontext import loads
from turngate.store import to_bytes
from turngate.wire import VIEWS
from turngate.wire.scan import scan

if TYPE_CHECKING:
    from turngate.ledger.history import Link
    from turngate.proxy.chain.replies import Reply
    from turngate.session import Session
    from turngate.settings import Settings
    from turngate.store import Store
    from turngate.wire import ToolResult

#: So many messages back the user's question is looked for.
_LOOK_BACK: Final = 400
#: A longer message is a task to work on, not a question that names what is wanted.
_QUESTION_CHARS: Final = 500
#: Nothing shorter is shortened, so it needs no question.
_LEAST_CHARS: Final = 500
#: A marker alone is about as long.
_TINY_CHARS: Final = 100
#: Said of a message that went out as it came because the store could not be asked.
OUTAGE: Final = "outage"
#: Said of the first message of a history that began elsewhere.
ADOPTED: Final = "adopted"


@dataclass(frozen=True, slots=True)
class Terms:
    """What decides for all requests of a process."""

    version: str
    """Version of the policy."""
    retrieve: bool
    """Whether our tool is offered at all; without it nothing is shortened."""
    adopt: bool
    """Whether a history that began elsewhere is treated as one that begins now."""
    settings: Settings
    """The gate's settings."""
    refers: bool = True
    """Whether a result may refer to earlier ones; not where a window may take these out of view."""


def root(work: Work, terms: Terms) -> None:
    """Settle what holds for the conversation: whether the model is offered our tool."""
    before = work.before
    if before is not None and work.common:
        work.rooted_tool, work.policy = before.rooted_tool, before.policy
    else:
        held = work.held.get(work.first_key)
        if held is not None:
            work.rooted_tool, work.policy = held.tool, held.policy
        else:
            work.rooted_tool, work.policy = _new_root(work, terms)
    reading = work.reading
    if work.rooted_tool and tool.offer_place(reading) is not None and not tool.has_one(reading):
        work.tool = work.rooted_tool


def follows(work: Work) -> bool:
    """Whether the request belongs to a conversation that is kept.

    Clients put the same first message into requests beside the conversation (a title, a count of tokens),
    without tools or with one that must be called. What these are must not decide for the conversation.
    """
    known = bool(work.common) or work.first_key in work.held
    return known or bool(work.rooted_tool) or work.policy in {ADOPTED, OUTAGE}


def _new_root(work: Work, terms: Terms) -> tuple[bytes, str]:
    if "assistant" in work.roles and not terms.adopt:
        return b"", ADOPTED
    reading = work.reading
    if not (terms.retrieve and terms.settings.enabled) or tool.has_one(reading):
        return b"", terms.version
    offers = tool.offer_place(reading) is not None and tool.permitted(reading)
    return (tool.declaration(reading.wire) if offers else b""), terms.version


def decide(
    work: Work, terms: Terms, session: Session, store: Store, reply_of: Callable[[bytes], Reply | None]
) -> None:
    """Decide on the new messages.

    Raises:
        StoreError: the store cannot be read.
    """
    fresh = work.fresh
    if not fresh:
        return
    active = bool(work.tool) and tool.permitted(work.reading)
    asked = _asked(work, session, refers=terms.refers) if active else None
    decided = deciding.decide(work.history(), fresh, Policy(terms.version, asked), store, work.root)
    work.faults += decided.faults
    work.calls = decided.calls
    _settle(work, {key: tuple(edits) for key, edits in decided.edits.items()}, terms.version)
    _split(work, reply_of)
    _name_origins(work, store)


def without_store(work: Work, terms: Terms) -> None:
    """Settle what is new while the store cannot be asked.

    Results before the assistant's last turn were sent before, so they are shortened again, as the policy at
    the root has it; what is newer passes.
    """
    if not work.common and work.first_key not in work.held:
        # Nothing is known of its beginning, and what was taken out of it might not be in the store.
        work.rooted_tool, work.tool, work.policy = b"", b"", OUTAGE
    last = max((at for at, role in enumerate(work.roles) if role == "assistant"), default=-1)
    again = work.rooted_tool and work.policy == terms.version
    old = [link for link in work.fresh if link.index < last] if again else []
    edits: dict[bytes, tuple[Edit, ...]] = {}
    if old:
        edits = _edits_of(work, old, _recomputing(terms.settings, _question(work)))
    for link in work.fresh:
        policy = terms.version if link.key in edits or link in old else OUTAGE
        _settle_one(work, link, edits.get(link.key, ()), policy)
    work.held |= work.new


def _asked(work: Work, session: Session, *, refers: bool) -> Callable[[ToolResult, str], str]:
    asked: list[str | None] = []
    standing = StandingResults(work) if refers else {}

    def question(text: str) -> str | None:
        if len(text) < _LEAST_CHARS:
            return None
        if not asked:
            asked.append(_question(work))
        return asked[0]

    def shown(result: ToolResult, text: str) -> str:
        # Where the call is not in sight (the server holds it), the tool might be one whose results pass.
        if not result.tool or len(text) < _TINY_CHARS:
            return text
        return session.tool_result(
            name=result.tool,
            text=text,
            args=result.args,
            failed=result.failed,
            call_id=result.call_id,
            question=question(text),
            in_view=standing,
        )

    return shown


def _question(work: Work) -> str | None:
    """What the user asked last before the first new message, where it is short enough to be a question."""
    start = work.fresh[0].index
    for at in range(start - 1, max(-1, start - _LOOK_BACK), -1):
        if work.roles[at] != "user" or _answers(work.reading.raw(at)):
            continue
        message = VIEWS[work.reading.wire]([work.reading.message(at)]).messages[0]
        text = "\n".join(part.text for part in message.texts)
        if text and not message.results:
            return text if len(text) <= _QUESTION_CHARS else None
    return None


def _answers(raw: bytes) -> bool:
    """Whether a user's message is most likely the results of tools; it needs no reading then."""
    return b'"tool_result"' in raw or b'"functionResponse"' in raw


def _settle(work: Work, edits: Mapping[bytes, tuple[Edit, ...]], version: str) -> None:
    for link in work.fresh:
        _settle_one(work, link, edits.get(link.key, ()), version)


def _settle_one(work: Work, link: Link, edits: tuple[Edit, ...], version: str) -> None:
    bare = unmarked(work.reading.body, link.node)
    sent = bare
    if edits:
        try:
            sent = splice_bytes(bare, tuple(byte_edits(bare, scan(bare), edits, native=False)))
        except WireError as fault:
            work.faults.append(str(fault))
            edits = ()
    is_first = link.key == work.first_key
    work.new[link.key] = Held(
        spelled=link.spelled,
        edits=edits,
        sent=sent,
        tool=work.rooted_tool if is_first else b"",
        policy=work.policy if is_first and version != OUTAGE else version,
    )


def _split(work: Work, reply_of: Callable[[bytes], Reply | None]) -> None:
    """Split echoes of replies in which calls of ours were answered, and add results that were held."""
    for run in runs(work):
        reply = reply_of(echo_key(work, run))
        if reply is None:
            continue
        raws = [work.new[link.key].sent or b"" for link in run]
        parts = replies.cut(raws, work.reading.wire, reply)
        for link, part in zip(run, parts or (), strict=False):
            work.new[link.key] = _owned(work.new[link.key], part)
    named = reply_of(previous_key(work))
    if named is not None and work.first_key in work.new:
        work.new[work.first_key] = replace(work.new[work.first_key], before=named.before, own=True)
    for link in work.fresh:
        held = _before(work, link)
        if held is not None and held.hold:
            answer = replies.with_results(work.new[link.key].sent or b"", work.reading.wire, held.hold)
            if answer is not None:
                work.new[link.key] = _owned(work.new[link.key], answer)


def _before(work: Work, link: Link) -> Held | None:
    return work.new.get(link.parent) or work.held.get(link.parent)


def _owned(held: Held, part: replies.Part) -> Held:
    return replace(held, sent=part.sent, own=True, before=part.before, hold=part.hold)


def reply_key(tip: bytes, fingerprint: bytes) -> bytes:
    """Under which a reply is kept: the message that it answers, and what the client saw of it."""
    return child_key(tip, fingerprint)


def named_key(root: bytes, id_: str) -> bytes:
    """Under which is kept what a provider does not find under the id of a reply."""
    return child_key(root, b"response\0" + to_bytes(id_))


def previous_key(work: Work) -> bytes:
    """The same of the reply that a Responses request goes on from; empty where it names none."""
    raw = work.reading.field("previous_response_id") if work.reading.wire == "responses" else b""
    id_ = loads(raw) if raw else None
    return named_key(work.root, id_) if isinstance(id_, str) else b""


def echo_key(work: Work, run: Sequence[Link]) -> bytes:
    """Under which the reply would be kept that these messages of the client echo."""
    said = [work.reading.message(link.index) for link in run]
    return reply_key(run[0].parent, replies.fingerprint_of(said, work.reading.wire))


def _name_origins(work: Work, store: Store) -> None:
    """Note which originals the new markers stand for."""
    every = [edit for held in work.new.values() for edit in held.edits if not edit.origin]
    origins = deciding.with_origins(every, store, work.session)
    if not origins:
        return
    for key, held in work.new.items():
        work.new[key] = replace(held, edits=tuple(deciding.named(edit, origins) for edit in held.edits))
    by_value = {deciding.sha256_of(e.text): e.origin for held in work.new.values() for e in held.edits}
    work.calls = {
        call: replace(row, origin=by_value.get(row.sha256, row.origin)) for call, row in work.calls.items()
    }


def _edits_of(
    work: Work, links: list[Link], shown: Callable[[ToolResult, str], str]
) -> dict[bytes, tuple[Edit, ...]]:
    return {
        link.key: edits for link in links if (edits := tuple(deciding.edits_of(work.history(), link, shown)))
    }


def _recomputing(settings: Settings, question: str | None) -> Callable[[ToolResult, str], str]:
    """What a result was shortened to, without asking the store: its marker's id is its hash."""

    def shown(result: ToolResult, text: str) -> str:
        arrival = Arrival(result.tool, text, result.args, result.failed, result.call_id)
        if not result.tool or ingress.passes(arrival, settings):
            return text
        least = None if settings.threshold_bytes is None else 0
        short = shorten(
            text,
            tool=result.tool,
            args=result.args,
            failed=result.failed,
            question=question,
            budget=settings.budget,
            least_chars=least,
        )
        if not short.changed:
            return text
        data = arrival.stored_form()
        made = ingress.render(hashlib.sha256(data).hexdigest()[:16], result.tool, len(data), short)
        return made if ingress.pays(made, len(data), tokens.estimate(text)) else text

    return shown
