"""The window of one session: before every model call, the list that fits, the same for the same history.

Three ways to what is sent: a known epoch is replayed, a plan is applied, or the list goes as it came.
Whatever fails, the list goes as it came, and the result says why.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from turngate.errors import StoreError, TurngateError, UnknownContentError, WireError
from turngate.settings import WindowSettings
from turngate.tokens import Calibration
from turngate.window import compaction, outcome, thinking
from turngate.window.book import Book, Chain, State, epoch_name
from turngate.window.budget import Verdict
from turngate.window.case import (
    Case,
    Fitted,
    Job,
    Wishes,
    excerpt_tokens,
    make_plan,
    room_for,
    thinking_rules,
    trigger,
    weighed,
)
from turngate.window.cut import LEAST_PROGRESS_SHARE, Plan
from turngate.window.measure import Sizes
from turngate.window.memory import compose_memory_section, flush_memory
from turngate.window.models import CachePrices, cache_prices
from turngate.window.notices import Compaction, Listener, Trigger, tell
from turngate.window.record import frame, transcript
from turngate.window.record.summary import Endpoint, Style, Writer, Written, check_writer, write
from turngate.window.request import Place, places, read, rebuilt
from turngate.window.units import Message, shapes, units
from turngate.wire import Source, Wire, sniff

if TYPE_CHECKING:
    from turngate.store import Store, Stored

#: How far a factor must move before it is saved.
_FACTOR_STEP_SHARE: Final = 0.02

_log = logging.getLogger("turngate.window")


@dataclass(slots=True)
class _Room:
    """What belongs to one wire."""

    book: Book
    chain: Chain
    state: State = field(default_factory=State)


class Window:
    """Keeps one session's requests within the model's window. Not for two threads at once."""

    def __init__(
        self,
        session: str,
        store: Callable[[], Store],
        settings: WindowSettings | None = None,
        *,
        model: str = "",
        wire: Wire | None = None,
        summariser: Writer | None = None,
        style: Callable[[Style], Style] = lambda style: style,
        listeners: Iterable[Listener] = (),
        deps: Any = None,
        prices: CachePrices | None = None,
        turn: Callable[[], int] = lambda: 0,
        left: Callable[[Collection[str]], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`turngate.session.Session.window` is the usual way.

        Args:
            session: id of the session.
            store: gives the store; it is asked whenever it is needed.
            settings: of the window.
            model: the model, where requests name none.
            wire: the format, where it must not be guessed.
            summariser: writes summaries; None: the endpoint of the settings, else the digest does.
            style: changes how summaries are asked for.
            listeners: told of each compaction and each call of the summariser.
            deps: where `flush_memory` finds a `MemoryFlusher`.
            prices: of the model's cache; None: those of the data file.
            turn: the session's turn.
            left: told the call ids of results that a compaction took out of view, whole or in part.
            clock: seconds, for durations and for a cache that expires.

        Raises:
            SettingsError: the summariser cannot be called.
        """
        self.session = session
        self.settings = settings or WindowSettings()
        self.listeners = tuple(listeners)
        self._store = store
        self._model = model
        self._wire = wire
        self._writer = check_writer(summariser) or _endpoint(self.settings)
        self._style = style
        self._deps = deps
        self._prices = prices
        self._turn = turn
        self._left = left
        self._clock = clock
        chars = self.settings.chars_per_token
        self._sizes = Sizes.by_chars(chars) if chars else Sizes()
        self._calibration = Calibration()
        self._rooms: dict[Wire, _Room] = {}
        self._last_wire: Wire = wire or "chat"
        self._last_used: float | None = None

    # Before a call

    def fit(self, source: Source, **wishes: Unpack[Wishes]) -> Fitted:
        """The request as it can be sent. To be called before every model call, in loops of tools, too.

        Never raises. Takes a body, a parsed request, or a list of messages, and gives back the same.
        """
        try:
            found = self._begin(source, wishes)
            if isinstance(found, Fitted):
                return found
            written = _run(self._write(found)) if found.writes else Written()
            done = self._finish(found, written)
            flush = "" if done is None or not self._flushes(found) else _run(self._flush(found))
            return self._settled(found, written, done, flush)
        except Exception as fault:  # noqa: BLE001 - fail open: the turn goes on with what came
            return self._failed(source, fault)

    async def fit_async(self, source: Source, **wishes: Unpack[Wishes]) -> Fitted:
        """`fit` for an event loop: the store is used on a thread. Only cancellation is raised."""
        try:
            found = await asyncio.to_thread(self._begin, source, wishes)
            if isinstance(found, Fitted):
                return found
            written = await self._write(found) if found.writes else Written()
            done = await asyncio.to_thread(self._finish, found, written)
            flush = "" if done is None or not self._flushes(found) else await self._flush(found)
            return await asyncio.to_thread(self._settled, found, written, done, flush)
        except Exception as fault:  # noqa: BLE001 - fail open: the turn goes on with what came
            return self._failed(source, fault)

    # After a call, and beside it

    def observe(self, fitted: Fitted, model: str, reported_tokens: int) -> None:
        """Learn from the input tokens that the provider reports for a fitted request."""
        if fitted.limits is None:
            return
        before = self._calibration.factor(model)
        estimated = fitted.tokens / before + fitted.limits.beside_tokens
        self._calibration.observe(model, round(estimated), reported_tokens)
        if abs(self._calibration.factor(model) / before - 1) > _FACTOR_STEP_SHARE:
            factors = self._calibration.to_dict()
            self._save(lambda state: replace(state, factors=factors), self._last_wire)

    def dropped(self, messages: int) -> None:
        """The host itself dropped so many messages, by a cap on their number, say: earlier turns are gone."""
        more = max(0, messages)
        self._save(
            lambda state: replace(state, last_compacted_index=state.last_compacted_index + more),
            self._last_wire,
        )

    @property
    def last_compacted_index(self) -> int:
        """How many messages of this conversation are out of view; kept across restarts, never falls."""
        return self._known(self._last_wire).state.last_compacted_index

    def memory_section(self, summary_text: str, *, entries_count: int) -> str:
        """A memory section for a host that composes one itself, with the marker where it is due."""
        return compose_memory_section(
            summary_text=summary_text,
            last_compacted_index=self.last_compacted_index,
            entries_count=entries_count,
        )

    def transcript(
        self, messages: Sequence[Message] = (), *, index: int | None = None, speaker: str = ""
    ) -> list[Message]:
        """The conversation's messages, those out of view first, word for word, long texts whole.

        Args:
            messages: the list as it is sent now; records in it are left out.
            index: only the one of this number among those that are left, negative from the end.
            speaker: only those of ``user``, ``assistant``, ``tool`` or ``system``.

        Raises:
            StoreError: the store cannot be read.
        """
        room = self._room(self._last_wire)
        note = room.book.note(room.book.load().summary)
        gone = [
            message
            for span in (note.spans if note else ())
            for message in compaction.read_span(span, self._bytes)
        ]
        now = [message for message in messages if not frame.text_of(message)]
        found = [each for each in (*gone, *now) if not speaker or transcript.speaker(each) == speaker]
        found = found if index is None else found[index:][:1] if -len(found) <= index < len(found) else []
        return [compaction.restored(each, self._last_wire, self._whole) for each in found]

    # The first half: what is to be done

    def _begin(self, source: Source, wishes: Wishes) -> Fitted | Job:
        begun = self._clock()
        idle = 0.0 if self._last_used is None else begun - self._last_used
        self._last_used = begun
        try:
            case = self._case(source, wishes)
        except WireError as error:
            return Fitted(source, (), 0, why=str(error))
        reason, why = trigger(case, force=wishes.get("force", False))
        if reason is None:
            return self._fitted(case, case.sent, why)
        offloader = self._offloader(case)
        made = make_plan(
            case,
            self.settings,
            self._sizes,
            offloader,
            soft=reason == "soft",
            pinned=wishes.get("pinned", ()),
        )
        if not made.changes:
            return self._latched(case, reason, made, Written())
        verdict = None
        if reason == "soft" and self.settings.weigh_cost:
            prices = self._prices or cache_prices(case.model)
            cold = wishes.get("cold", idle > prices.ttl_seconds)
            by_model = self._writer is not None
            verdict = weighed(case, made, self._sizes, prices=prices, cold=cold, by_model=by_model)
            if not verdict.pays:
                why = f"over the soft threshold: {verdict}"
                return self._fitted(case, case.sent, why, made=made, verdict=verdict)
        return self._job(case, reason, made, verdict, offloader, begun=begun)

    def _case(self, source: Source, wishes: Wishes) -> Case:
        request = read(source)
        wire = self._wire or sniff(request.value, ("chat", "anthropic")) or "chat"
        room = self._known(wire)
        keys = list(room.chain.keys(request.messages)) if room.state.epochs else []
        epoch = room.book.find(room.state, keys) if keys else None
        sent = places(request.messages, epoch)
        messages = [place.message for place in sent]
        model = wishes.get("model", "") or request.model or self._model
        factor = self._calibration.factor(model)
        old = frame.find(messages, room.book.summary)
        at = None if old is None else old[0]
        return Case(
            request=request,
            wire=wire,
            model=model,
            state=room.state,
            keys=keys,
            epoch=epoch,
            sent=sent,
            shapes=shapes(messages, wire),
            units=units(messages, wire, self._sizes, record=at),
            limits=room_for(self.settings, request, model, self._sizes, factor),
            factor=factor,
            old=old,
            drop=room.state.letting_drop or wishes.get("let_drop", False),
            recalled=wishes.get("recalled", 0),
        )

    def _job(
        self,
        case: Case,
        reason: Trigger,
        made: Plan,
        verdict: Verdict | None,
        offloader: compaction.Offloader,
        *,
        begun: float,
    ) -> Job:
        strip = thinking_rules(case).strip
        messages = case.messages
        gone = tuple(messages[at] for at in made.summarised if at != case.old_index)
        note = case.old[1] if case.old else None
        removed = compaction.remove(gone, case.wire, note, self._shelf(case.wire)) if gone else None
        style = Style(
            most_tokens=min(case.limits.summary_tokens, self.settings.max_chunk_tokens / 4),
            chunk_tokens=self.settings.max_chunk_tokens,
            timeout_seconds=self.settings.summary_timeout_seconds,
            model=self.settings.compaction_model,
        )
        grown = case.tokens >= case.state.floor_tokens or reason == "forced"
        return Job(
            case=case,
            trigger=reason,
            plan=made,
            verdict=verdict,
            stay=compaction.stay(case.sent, made, offloader, case.units, strip=strip),
            removed=removed,
            gone=gone,
            strip=strip,
            style=self._style(style),
            writes=removed is not None and self._writer is not None and grown,
            begun=begun,
        )

    # Between the halves

    async def _write(self, job: Job) -> Written:
        assert self._writer is not None
        return await write(
            self._writer,
            job.gone,
            job.case.wire,
            job.style,
            count=self._sizes.text,
            previous=job.case.old[1].prose if job.case.old else "",
            listeners=self.listeners,
        )

    # The second half: what came of it

    def _finish(self, job: Job, written: Written) -> list[Place] | None:
        """Record the epoch; what is sent from now on, or None where nothing was won."""
        case, room = job.case, self._room(job.case.wire)
        sent, text = outcome.sent(job, written, self._sizes)
        if self._weight(sent) > (1 - LEAST_PROGRESS_SHARE) * case.tokens:
            return None
        made = outcome.epoch(job, sent)
        keys = case.keys or list(room.chain.keys(case.request.messages))
        key = keys[made.cover - 1]
        known = (made.cover, key.hex(), epoch_name(key, case.state.epochs))
        made = room.book.record(known[2], made)
        sent = places(case.request.messages, made)
        # Where the store replaces secrets, the record is not what was written.
        text = next((found for place in sent if (found := frame.text_of(place.message))), text)
        note = outcome.note(job, written, text)
        name = room.book.note_summary(job.removed.ref, note) if job.removed and note else ""
        tokens = self._weight(sent)
        room.state = room.book.change(
            lambda state: outcome.state_after(state, job, known, made.removed, tokens=tokens, summary=name)
        )
        self._left(outcome.left_view(case, sent))
        return sent

    def _settled(self, job: Job, written: Written, sent: list[Place] | None, flush: str) -> Fitted:
        if sent is None:
            why = f"no progress: a summary would take about as much as the {len(job.gone)} messages"
            return self._latched(job.case, job.trigger, replace(job.plan, why=why), written)
        notice = outcome.notice(
            job,
            written,
            session=self.session,
            tokens=self._weight(sent),
            number=self._room(job.case.wire).state.compactions,
            flush=flush,
            now=self._clock(),
        )
        tell(self.listeners, notice)
        return self._fitted(job.case, sent, notice.why, made=job.plan, verdict=job.verdict, notice=notice)

    def _flushes(self, job: Job) -> bool:
        return self.settings.enable_memory_flush and self._deps is not None and job.removed is not None

    async def _flush(self, job: Job) -> str:
        """Offer what went to the host's memory; the compaction stands, whatever comes of it."""
        try:
            await flush_memory(outcome.flush_state(job, self.session, self._deps))
        except Exception as fault:  # noqa: BLE001 - a flusher is foreign code
            _log.warning("the memory flusher failed: %s", type(fault).__name__)
            return f"{type(fault).__name__}: {fault}"[:200]
        return "done"

    # What else comes out

    def _latched(self, case: Case, reason: Trigger, made: Plan, written: Written) -> Fitted:
        """Nothing can be won just now: say so once, and what has to happen before a model is asked again."""
        notice = None
        if not case.state.latched or case.tokens >= case.state.floor_tokens or written.calls:
            floor = case.tokens + case.limits.growth_tokens
            self._save(lambda state: replace(state, floor_tokens=floor, latched=made.why), case.wire)
            weight = round(case.factor * case.tokens)
            notice = Compaction(
                session=self.session,
                trigger=reason,
                method="none",
                before_tokens=weight,
                after_tokens=weight,
                calls=written.calls,
                usage=written.usage,
                model=written.model,
                why=f"{made.why}; no model is asked before the messages weigh {floor:,.0f} tokens",
            )
            tell(self.listeners, notice)
        return self._fitted(case, case.sent, made.why, made=made, notice=notice)

    def _fitted(
        self,
        case: Case,
        sent: Sequence[Place],
        why: str,
        *,
        made: Plan | None = None,
        verdict: Verdict | None = None,
        notice: Compaction | None = None,
    ) -> Fitted:
        if case.drop and not case.state.letting_drop:
            self._save(lambda state: replace(state, letting_drop=True), case.wire)
        messages = [place.message for place in sent]
        weight = self._weight(sent)
        if isinstance(case.request.source, bytes):
            # What was parsed from a body never comes again.
            self._sizes.forget()
        request = rebuilt(case.request, sent, drop=case.drop)
        return Fitted(
            request=request,
            messages=messages,
            tokens=round(case.factor * weight),
            limits=case.limits,
            plan=made,
            verdict=verdict,
            compaction=notice,
            epochs=self._room(case.wire).state.compactions,
            headers=(thinking.beta_header(),) if case.drop and case.request.fields.get("thinking") else (),
            why=why,
            over=weight > case.limits.hard_tokens,
        )

    def _failed(self, source: Source, fault: Exception) -> Fitted:
        why = str(fault) if isinstance(fault, TurngateError) else type(fault).__name__
        _log.warning("the window failed (%s); the request goes as it came", type(fault).__name__)
        return Fitted(source, (), 0, why=f"fault: {why}")

    # Parts

    def _weight(self, sent: Sequence[Place]) -> float:
        return self._sizes.messages(place.message for place in sent)

    def _room(self, wire: Wire) -> _Room:
        if wire not in self._rooms:
            self._rooms[wire] = _Room(Book(self._store, self.session, wire), Chain(wire))
        return self._rooms[wire]

    def _known(self, wire: Wire) -> _Room:
        """The wire's room with its state; as last seen, where the store cannot be read."""
        room = self._room(wire)
        self._last_wire = wire
        try:
            room.state = room.book.load()
        except StoreError as fault:
            _log.warning("the window's state cannot be read: %s", fault)
        if room.state.factors:
            self._calibration = Calibration.from_dict({**room.state.factors, **self._calibration.factors})
        return room

    def _save(self, update: Callable[[State], State], wire: Wire) -> None:
        """Change the state; only for this process, where the store cannot be written."""
        room = self._room(wire)
        try:
            room.state = room.book.change(update)
        except StoreError as fault:
            _log.warning("the window's state cannot be saved: %s", fault)
            room.state = update(room.state)

    def _offloader(self, case: Case) -> compaction.Offloader:
        return compaction.Offloader(
            case.messages,
            case.wire,
            self._sizes,
            self._shelf(case.wire),
            excerpt_tokens=excerpt_tokens(case.limits),
        )

    def _shelf(self, wire: Wire) -> compaction.Shelf:
        return compaction.Shelf(self._put, self._ours, self._room(wire).book.clean)

    def _ours(self, ref: str) -> bool:
        return bool(self._store().known([ref], session=self.session))

    def _put(self, data: bytes, kind: str, tool: str, call_id: str, call: str) -> Stored:
        return self._store().put(
            data, session=self.session, turn=self._turn(), kind=kind, tool=tool, call_id=call_id, call=call
        )

    def _whole(self, ref: str) -> str | None:
        try:
            return self._store().get(ref, session=self.session).text
        except UnknownContentError:
            return None

    def _bytes(self, ref: str) -> bytes:
        return self._store().get(ref, session=self.session).data


def _endpoint(settings: WindowSettings) -> Endpoint | None:
    if not (settings.summary_url and settings.compaction_model):
        return None
    return Endpoint(
        settings.summary_url,
        settings.compaction_model,
        settings.summary_api_key,
        settings.summary_wire,
        settings.summary_timeout_seconds,
    )


def _run(work: Any) -> Any:
    """The outcome of a coroutine, from code that is not one; a loop that runs already is left alone."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
