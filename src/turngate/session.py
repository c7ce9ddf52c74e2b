"""One conversation at the gate: tool results in, their shortened form out, everything back on demand."""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from turngate import across, earlier, ingress, marker, tokens
from turngate.access import REST_SECONDS, StoreAccess
from turngate.compress import shorten
from turngate.compress.budget import CURVES
from turngate.earlier import Earlier
from turngate.errors import StoreError, StoreUnavailableError, TurngateError, UnknownContentError
from turngate.flow import FlowKeeper
from turngate.ingress import Arrival, Became, Form
from turngate.regret import Regret
from turngate.store import (
    PAGE_CHARS,
    REDACTED_NOTE,
    Hit,
    Original,
    Retrieved,
    Saving,
    Store,
    Stored,
    decode,
    select,
    to_bytes,
)
from turngate.store import expand as expand_markers
from turngate.tally import Flow, Stats, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from turngate.across.memory import InView, Standing
    from turngate.settings import Settings
    from turngate.window import Window

#: How many answers to `retrieve` are remembered, so that one which comes by as a tool result passes whole.
REMEMBERED = 256
#: How a reason of `shorten` begins that names the class of a fault inside it.
SHORTEN_FAULT = "fault: "
#: The shortest marker id; a longer one is checked for when it is known.
_ANY_ID = "5f3a9c0e71d28b46"

#: Tools that a miss names.
_NAMED_TOOLS = 6
#: A result that passed for one of these is not referred to later.
UNCOMPARED = frozenset({"fault", "store unavailable", "retrieved", "already a marker"})

T = TypeVar("T")

_log = logging.getLogger("turngate.session")

__all__ = ["REST_SECONDS", "Session", "StoreAccess"]


class Session:
    """State of one conversation. Get one from `Gate.session`; safe from any thread."""

    def __init__(
        self,
        id: str,  # noqa: A002 - the word of the vocabulary
        *,
        parent: str | None,
        settings: Settings,
        access: StoreAccess,
        whole: Tally,
        injects: bool = True,
    ) -> None:
        self.id = id
        self._injects = injects
        self._parent = None if parent == id else parent
        self._settings = settings
        self._access = access
        self._tallies = (Tally(), whole)
        self._lock = threading.Lock()
        #: The parent that the store was told.
        self._told: str | None = None
        #: The message of the latest fault that is one of ours; other errors might quote content.
        self.last_fault = ""
        self._answers: deque[int] = deque(maxlen=REMEMBERED)
        self._earlier = Earlier(id, lambda: self._store(reading=True))
        self._regret = Regret(
            id,
            store=lambda: self._store(reading=True),
            counts=access.asked,
            parent=lambda: self._parent,
        )
        #: What the turns' blocks are made from: directives, the catalogue, epochs and more.
        self.flow = FlowKeeper(
            id, settings, access.store, resting=lambda: access.resting, on_fault=self._fault
        )

    @property
    def parent(self) -> str | None:
        """The session whose content this one sees, too."""
        return self._parent

    @property
    def turn(self) -> int:
        """The turn the session is in, 0 before the first; it survives restarts.

        Raises:
            StoreError: the store cannot be read.
        """
        return self._access.store().turn(self.id)

    def next_turn(self) -> int:
        """Begin the next turn and return its number; the first is 1.

        Raises:
            StoreError: the store cannot be written.
        """
        turn = self._access.store().next_turn(self.id)
        self.flow.at_turn(turn)
        return turn

    def tool_result(
        self,
        *,
        name: str,
        text: str,
        args: Mapping[str, Any] | str | None = None,
        failed: bool | None = None,
        call_id: str = "",
        question: str | None = None,
        in_view: InView | None = None,
    ) -> str:
        """What to show of a tool's result that has just arrived: marker and shortened text, or `text` itself.

        Never raises, and loses nothing: whatever goes wrong, the very object `text` comes back, and what went
        wrong is in `stats().faults`.

        Args:
            name: the tool.
            text: its result.
            args: its arguments, as a mapping or as the JSON text that the model wrote.
            failed: whether the call failed, where that is known.
            call_id: the provider's id of the call.
            question: what the user wants to know; words of it weigh in what is kept.
            in_view: call ids of the results that stand in the history to which this one is added, best as a
                mapping to the texts that stand there: only these are referred to. None: those that this
                session has shown and was not told (`left_view`) to have left the window.
        """
        return self._pass(Arrival(name, text, args, failed, call_id, question), in_view)

    def tool_bytes(
        self,
        *,
        name: str,
        data: bytes,
        args: Mapping[str, Any] | str | None = None,
        failed: bool | None = None,
        call_id: str = "",
        question: str | None = None,
        in_view: InView | None = None,
    ) -> bytes:
        """`tool_result` for output that is bytes, UTF-8 or not: exactly these are stored and come back."""
        try:
            text, errors = decode(data)
            shown = self._pass(Arrival(name, text, args, failed, call_id, question, data), in_view)
            return data if shown is text else shown.encode("utf-8", errors)
        except Exception as fault:  # noqa: BLE001 - not bytes at all, or too many: fail open here, too
            self._fault(fault)
            return data

    def left_view(self, calls: Collection[str] | None = None) -> None:
        """The results of these calls (None: of all so far) have left the window. Never raises.

        What they showed is shown anew when it comes by again.
        """
        self._fail_open(lambda: self._earlier.left(calls))

    def turn_block(self, turn: int | None = None, *, every_turn: bool | None = None) -> str:
        """What to inject beside a turn's user message; "" where there is nothing to say. Never raises.

        Rendered once a turn and then replayed, so begin the turn with `next_turn` first.

        Args:
            turn: None: the present one.
            every_turn: True for a host that doesn't keep it in the history; None: as the settings have it.
        """

        def block() -> str:
            return self.flow.block(self.turn if turn is None else turn, every_turn=every_turn)

        return self._fail_open(block) or ""

    def push_nudge(self, text: str, *, ttl_turns: int | None = 1, key: str = "") -> None:
        """Say `text` in the next `ttl_turns` turns (None: for good), instead of what was said under `key`."""
        self._fail_open(lambda: self.flow.push_nudge(text, ttl_turns=ttl_turns, key=key))

    def task(self, id: str, status: str, text: str = "") -> None:  # noqa: A002 - a host's word
        """Say in the next turn what a background task is doing. Never raises."""
        self._fail_open(lambda: self.flow.task(id, status, text))

    def event(
        self,
        *,
        name: str,
        args: Mapping[str, Any] | str | None = None,
        text: str = "",
        failed: bool | None = None,
    ) -> None:
        """Take note of a call whose result doesn't pass through `tool_result`. Never raises."""
        self._fail_open(lambda: self.flow.result(Arrival(name, text, args, failed), text))

    def window(self, **options: Any) -> Window:
        """What keeps this conversation within the model's window; `turngate.window.Window` has the options.

        It needs the store for what it takes out of view, and remembers what it did there.
        """
        # It loads asyncio, which sessions do without.
        from turngate.window import Window  # noqa: PLC0415

        known = {"turn": lambda: self.turn, "left": self.left_view}
        return Window(self.id, self._store, self._settings.window, **(known | options))

    def flush(self) -> None:
        """Write what waits in memory. Never raises."""
        self._fail_open(self.flow.flush)

    def retrieve(
        self,
        ref: str,
        *,
        lines: tuple[int, int] | None = None,
        pattern: str | None = None,
        context: int = 2,
        page: int | None = None,
        path: str | None = None,
        query: str | None = None,
        expand: bool = False,
        page_chars: int = PAGE_CHARS,
    ) -> Retrieved:
        """The original behind a marker, whole or in part.

        Args:
            ref: a marker id, a full SHA-256, or a whole marker.
            lines: first and last line, 1-based.
            pattern: a regular expression; the lines that match.
            context: how many lines around each of them.
            page: a page of the text, from 1.
            path: a JSON path such as ``$.items[0].name``.
            query: plain words; the passages that answer best.
            expand: resolve markers of ours inside what comes back.
            page_chars: the most characters of a page.

        Raises:
            UnknownContentError: nothing of that id that this session may see.
            RetrieveError: the range, pattern, page or path cannot be followed.
            StoreError: the store cannot be read, or holds something else than what was put in.
        """
        original = self.original(ref)
        text = original.text
        if expand:
            text = expand_markers(text, self._lookup)
        found = select(
            text,
            lines=lines,
            pattern=pattern,
            context=context,
            page=page,
            path=path,
            query=query,
            page_chars=page_chars,
        )
        self._give_back(original, found.text)
        if original.redacted:
            found = replace(found, note="; ".join(filter(None, (found.note, REDACTED_NOTE))))
        return found

    def original(self, ref: str) -> Original:
        """The stored original itself, as bytes. Raises as `retrieve` does."""
        wanted = ingress.reference(ref)
        try:
            return self._store(reading=True).get(wanted, session=self.id)
        except UnknownContentError as error:
            raise UnknownContentError(
                f"session {self.id!r} knows nothing of the id {wanted[:64]!r}; copy the id from a marker of "
                "this conversation, or find it with search"
            ) from error

    def search(self, query: str, *, limit: int = 10) -> list[Hit]:
        """Stored content that answers `query`, of this session and its ancestors, best first."""
        hits = self._store(reading=True).search(query, session=self.id, limit=limit)
        if hits:
            back = self._came_back("\n".join(line for hit in hits for _, line in hit.lines))
            self._note("searched", back, hits[0].sha256)
            self._note("found", Saving(), *(hit.sha256 for hit in hits[1:]))
        return hits

    def miss(self, query: str) -> str:
        """What to say where a search for `query` found nothing: what was searched, and how to ask."""
        try:
            known = self._store(reading=True).stats(session=self.id).contents
        except StoreError:
            known = 0
        tools = [tool for tool, flow in self._tallies[0].stats().by_tool.items() if flow.shortened][
            :_NAMED_TOOLS
        ]
        of = f" (of {', '.join(tools)})" if tools else ""
        return (
            f"nothing in {known:,} stored results of this conversation{of} answers {query[:200]!r}; ask with "
            "words that stand in the output, or retrieve one by the id in its marker, with lines, a pattern "
            "or a query"
        )

    def stats(self) -> Stats:
        """What this session saved since the process began."""
        try:
            turn = self.turn
        except Exception as fault:  # noqa: BLE001 - what was counted can be told without the store
            _log.debug("the turn is unknown", exc_info=fault)
            turn = 0
        return self._tallies[0].stats(self.id, turn)

    def adopt(self, parent: str) -> None:
        """Name the parent, once; the first one stays."""
        with self._lock:
            if self._parent is None and parent != self.id:
                self._parent = parent

    def _store(self, *, reading: bool = False) -> Store:
        """The store, which knows this session's parent; for reading, one that cannot be written will do."""
        store = self._access.store()
        with self._lock:
            parent, told = self._parent, self._told
        if parent == told:
            return store
        try:
            store.open_session(self.id, parent=parent)
        except StoreUnavailableError:
            if not reading:
                raise
        else:
            self._told = parent
        return store

    def _pass(self, arrival: Arrival, in_view: InView | None) -> str:
        """What to show. The gate's boundary: nothing is raised from here, and faults are counted."""
        before = 0
        try:
            before = tokens.estimate(arrival.text)
            became = self._ingest(arrival, before, in_view)
        except Exception as fault:  # noqa: BLE001 - fail open
            self._fault(fault)
            became = Became(arrival.text, "fault")
        try:
            self._count(arrival, before, became)
        except Exception as fault:  # noqa: BLE001 - counting must not cost anyone a result
            self._fault(fault)
        if self._injects:
            self._fail_open(lambda: self.flow.result(arrival, became.shown))
        return became.shown

    def _fail_open(self, act: Callable[[], T]) -> T | None:
        """What `act` returns; None where it failed, which is counted, and where the gate is switched off."""
        if not self._settings.enabled:
            return None
        try:
            return act()
        except Exception as fault:  # noqa: BLE001 - the turn goes on without it
            self._fault(fault)
            return None

    def _ingest(self, arrival: Arrival, before: int, in_view: InView | None) -> Became:
        """What becomes of a result of so many tokens, and what is remembered of it."""
        passed = ingress.passes(arrival, self._settings) or self._passes(arrival.text)
        if not self._compares(arrival, before, passed):
            return Became(arrival.text, passed) if passed else self._by_itself(arrival, before)
        try:
            standing = self._earlier.standing(arrival, in_view)
        except StoreError as fault:
            self._fault(fault)
            return Became(arrival.text, passed) if passed else self._by_itself(arrival, before)
        became = self._again(arrival, before, standing)
        if became is None:
            became = Became(arrival.text, passed) if passed else self._by_itself(arrival, before, standing)
            if became.passed and became.passed not in UNCOMPARED:
                became = self._by_lines(arrival, before, standing, most=before) or became
        if became.passed not in UNCOMPARED:
            self._fail_open(lambda: self._remember(arrival, before, became))
        return became

    def _compares(self, arrival: Arrival, before: int, passed: str) -> bool:
        return (
            self._settings.across_results
            and before >= earlier.LEAST_TOKENS
            and earlier.is_compared(arrival, passed)
            and not self._access.resting
        )

    def _by_itself(self, arrival: Arrival, before: int, standing: Standing | None = None) -> Became:
        """Shortened; or by reference, where that takes no more and hides nothing."""
        short = shorten(
            arrival.text,
            tool=arrival.name,
            args=arrival.args,
            failed=arrival.failed,
            question=arrival.question,
            budget=self._settings.budget,
            least_chars=None if self._settings.threshold_bytes is None else 0,
            factors=self._factors(arrival),
        )
        if short.reason.startswith(SHORTEN_FAULT):
            self._count_fault(short.reason.removeprefix(SHORTEN_FAULT))
            return Became(arrival.text, "fault")
        if not short.changed:
            return Became(arrival.text, short.reason)
        form = ingress.short_form(arrival, short)
        if standing is not None:
            most = tokens.estimate(form.render(_ANY_ID, len(arrival.stored_form()), redacted=False))
            exact = self._by_lines(arrival, before, standing, most=most)
            if exact is not None:
                return exact
        return self._kept(arrival, before, form)

    def _factors(self, arrival: Arrival) -> dict[str, float]:
        """Budget factors by kind; none where the store cannot tell them, which is no fault yet."""
        small = CURVES[self._settings.budget].leaves_alone(arrival.text)
        if small or not self._settings.regret or self._access.resting:
            return {}
        try:
            return self._regret.factors(arrival.name)
        except StoreError as fault:
            _log.debug("the budget is as usual", exc_info=fault)
            return {}

    def _again(self, arrival: Arrival, before: int, standing: Standing) -> Became | None:
        """One line, where an earlier result has the same content."""
        entry = standing.same(earlier.content_hash(arrival))
        return None if entry is None else self._if_kept(arrival, before, ingress.same_form(arrival, entry))

    def _by_lines(self, arrival: Arrival, before: int, standing: Standing, *, most: int) -> Became | None:
        """The lines that are new, where the others stand in earlier results; in at most `most` tokens."""
        bases = self._earlier.bases(standing, arrival.text)
        delta = across.delta_of(arrival.text, bases) if bases else None
        if delta is None:
            return None
        form = ingress.delta_form(arrival, delta)
        shown = form.render(_ANY_ID, len(arrival.stored_form()), redacted=False)
        return self._if_kept(arrival, before, form) if tokens.estimate(shown) <= most else None

    def _if_kept(self, arrival: Arrival, before: int, form: Form) -> Became | None:
        became = self._kept(arrival, before, form)
        return None if became.passed else became

    def _kept(self, arrival: Arrival, before: int, form: Form) -> Became:
        """In that form, if it pays: the original is stored before its marker is handed out."""
        text, data = arrival.text, arrival.stored_form()
        likely = form.render(_ANY_ID, len(data), redacted=False)
        after = tokens.estimate(likely)
        if not form.pays(before, after) or len(to_bytes(likely)) >= len(data):
            return Became(text, "no gain")
        if self._access.resting:
            return Became(text, "store unavailable")
        stored = self._put(arrival, data, form.kind, Saving(results=1, came_in=before, shown=after))
        shown = form.render(stored.id, stored.size, redacted=stored.redacted)
        if len(shown) != len(likely):
            after = tokens.estimate(shown)
            if not form.pays(before, after) or len(to_bytes(shown)) >= len(data):
                return Became(text, "no gain")
        return Became(shown, "", form, tokens.estimate(shown))

    def _remember(self, arrival: Arrival, before: int, became: Became) -> None:
        """Take note of a result; where others may be compared with it line by line, its text is stored."""
        form, text = became.form, arrival.text
        kept = False
        if form is None and earlier.is_base(text):
            kept = not self._put(arrival, arrival.stored_form(), "", None).redacted
        self._earlier.remember(
            earlier.entry_of(
                arrival,
                became.shown,
                "whole" if form is None else form.name,
                tokens=before,
                of=() if form is None else form.of,
                kept=kept,
            )
        )

    def _put(self, arrival: Arrival, data: bytes, kind: str, saving: Saving | None) -> Stored:
        store = self._store()
        return store.put(
            data,
            session=self.id,
            turn=store.turn(self.id),
            kind=kind,
            tool=arrival.name,
            call_id=arrival.call_id,
            call=ingress.call_line(arrival),
            saving=saving,
        )

    def _passes(self, text: str) -> str:
        """Why this session must let the result pass untouched, or ""."""
        with self._lock:
            answered = hash(text) in self._answers
        if answered:
            return "retrieved"
        found = marker.parse(text)
        if found and self._store(reading=True).known([found.hash], session=self.id):
            return "already a marker"
        return ""

    def _lookup(self, ref: str) -> str | None:
        """Text behind a marker of ours, for expanding."""
        try:
            return self._store(reading=True).get(ref, session=self.id).text
        except UnknownContentError:
            return None

    def _give_back(self, original: Original, text: str) -> None:
        """Count what came back, and let it feed the index."""
        with self._lock:
            self._answers.append(hash(text))
        self._note("retrieved", self._came_back(text), original.sha256)

    def _came_back(self, text: str) -> Saving:
        """Count what came back into view."""
        count = tokens.estimate(text)
        for tally in self._tallies:
            tally.retrieved(len(to_bytes(text)), count)
        return Saving(had_back=count)

    def _note(self, how: str, saving: Saving, *hashes: str) -> None:
        """Feed the index and the sums; an answer that is already there does not fail for it."""
        try:
            store = self._store()
            turn = store.turn(self.id)
            for nth, sha256 in enumerate(hashes):
                store.note(self.id, sha256, turn=turn, how=how, saving=None if nth else saving)
            self._access.count_again()
        except StoreError as fault:
            self._fault(fault)

    def _count(self, arrival: Arrival, before: int, became: Became) -> None:
        size, form = len(arrival.stored_form()), became.form
        after = (size, before) if form is None else (len(to_bytes(became.shown)), became.tokens)
        flow = Flow(1, int(form is not None), size, after[0], before, after[1])
        kind = "" if form is None else form.kind or form.name
        for tally in self._tallies:
            tally.saw(flow, tool=arrival.name, kind=kind, passed=became.passed)

    def _fault(self, fault: Exception) -> None:
        self._count_fault(type(fault).__name__)
        if isinstance(fault, TurngateError):
            self.last_fault = str(fault)
        if isinstance(fault, StoreUnavailableError):
            self._access.rest()

    def _count_fault(self, name: str) -> None:
        own, whole = self._tallies
        own.fault(name)
        if whole.fault(name):
            _log.warning("%s: the original is handed on; further ones are only counted", name)
