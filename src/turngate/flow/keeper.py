"""A session's flow state between turns: in memory, and in the store's database.

Changes are functions from state to state. Tool events wait in memory and are applied with the next other
change, so that recording one costs no write; every other change is on disk when its method returns. Where
another process saved in the meantime, its state is loaded and our changes are applied to that.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from turngate import marker
from turngate.errors import StoreConflictError, StoreCorruptError, StoreError
from turngate.events import LABEL_CHARS, RING, ToolEvent, WindowStats, one_line, tool_event
from turngate.flow import codec, directives
from turngate.flow.assembler import begin_turn, build_turn_context, commit
from turngate.flow.directives import Library, Listing
from turngate.flow.nudges import push_nudge
from turngate.flow.orientation import SHIPPED_SESSION_INJECT
from turngate.flow.recall import catalogue
from turngate.flow.signals import observe
from turngate.flow.state import FlowState, Item, open_epoch, take_checkpoint, turn_window
from turngate.flow.tasks import set_task
from turngate.flow.text import harmless
from turngate.store import redact

if TYPE_CHECKING:
    from turngate.flow.report import Past
    from turngate.ingress import Arrival
    from turngate.settings import Settings
    from turngate.store import Store

Change = Callable[[FlowState], FlowState]

#: The room's name in the store.
ROOM = "flow"
#: How often a change is repeated on another process's state before it is given up.
TRIES = 16
VERSION_PLACE = "{VERSION}"
#: No more events than these would outlive the next write anyway.
MAX_WAITING = RING


def initial_state(settings: Settings, library: Library) -> FlowState:
    """A new session's state."""
    inject = settings.prompts.session_inject
    if inject is not None and VERSION_PLACE in inject:
        inject = inject.replace(VERSION_PLACE, version("turngate"))
    configured = library.pick(settings.directives.active)
    return FlowState(
        flow_budget_chars=settings.flow_budget_chars,
        session_inject=SHIPPED_SESSION_INJECT if inject is None else harmless(inject),
        switches=settings.flow,
        configured=configured,
        directives=configured,
        turn_counter=-1,
    )


@dataclass(frozen=True, slots=True)
class _Saved:
    """What is known to be on disk."""

    state: FlowState
    version: int


class FlowKeeper:
    """The injected block of one session; safe from any thread. `Session.flow` is how to get one.

    Where the store cannot be read or written, changes stay in memory and the fault goes to `on_fault`.

    Args:
        session: the session's id.
        settings: limits, texts, switches.
        store: gives the store, or raises `StoreError`.
        resting: whether a write should not be tried just now.
        on_fault: is told of what went wrong.
    """

    def __init__(
        self,
        session: str,
        settings: Settings,
        store: Callable[[], Store],
        *,
        resting: Callable[[], bool] = lambda: False,
        on_fault: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self._session = session
        self._settings = settings
        self._store = store
        self._resting = resting
        self._on_fault = on_fault
        self._lock = threading.RLock()
        self._saved: _Saved | None = None
        self._library: Library | None = None
        #: Changes that are not on disk, oldest first. The oldest go first when there are too many.
        self._waiting: deque[Change] = deque(maxlen=MAX_WAITING)
        self._waiting_lock = threading.Lock()

    def record(self, event: ToolEvent, item: Item | None = None) -> None:
        """Take note of a call that was answered; written with the next change."""
        self._wait_with(lambda state: observe(state, event, item))

    def result(self, arrival: Arrival, shown: str) -> None:
        """`record` for a result as it arrived, and what was shown of it."""
        event = tool_event(arrival.name, arrival.args, arrival.text, failed=arrival.failed)
        # What is called, and what failed, goes to disk: secrets don't, as in the store's index.
        event = replace(event, label=redact(event.label), error=event.error and redact(event.error))
        found = None if shown is arrival.text else marker.parse(shown)
        preview = "" if found is None else one_line(found.preview, LABEL_CHARS)
        self.record(event, None if found is None else Item(found.hash, event.label, preview))

    def block(self, turn: int, *, every_turn: bool | None = None) -> str:
        """The block of the session's turn `turn`: rendered once, the same when it is asked for again.

        Of a turn before the last block's it is "" where it is not remembered.
        """
        library = self._known_library()

        def change(state: FlowState) -> FlowState:
            if state.blocks and turn - 1 <= state.blocks[-1].turn_counter:
                return state
            state = begin_turn(state, turn - 1, library)
            return commit(state, build_turn_context(state, every_turn=every_turn))

        return _text_of(self._change(change), turn) or ""

    def push_nudge(self, text: str, *, ttl_turns: int | None = 1, key: str = "") -> None:
        """Say `text` in the next turn, and stop after `ttl_turns` turns; None: never."""
        self._change(lambda state: push_nudge(state, text, ttl_turns, key=key))

    def task(self, id: str, status: str, text: str = "") -> None:  # noqa: A002 - a host's word
        """Take note of what a background task is doing."""
        self._change(lambda state: set_task(state, id, status, text))

    def at_turn(self, turn: int) -> None:
        """The session is in turn `turn`; written with the next change."""
        self._wait_with(lambda state: begin_turn(state, turn - 1))

    def open_epoch(self) -> None:
        """The history was cut: what was injected has left view."""
        self._change(open_epoch)

    def checkpoint(self) -> tuple[str, ...]:
        """The files written since the last checkpoint; the next one counts from here."""
        paths: list[tuple[str, ...]] = []

        def change(state: FlowState) -> FlowState:
            state, found = take_checkpoint(state)
            paths.append(found)
            return state

        self._change(change)
        return paths[-1]

    def list_directives(self) -> Listing:
        """The directives that there are, and those that are active."""
        return directives.list_directives(self.state(), self._fresh_library())

    def swap_directives(self, *names: str) -> None:
        """Make `names` the active directives. Raises `DirectiveError` for an unknown one."""
        library = self._fresh_library()
        self._change(lambda state: directives.swap_directives(state, library, *names))

    def add_directive(self, name: str) -> None:
        """Make one more directive active; an unknown one changes nothing."""
        library = self._fresh_library()
        self._change(lambda state: directives.add_directive(state, library, name))

    def load_directive(self, name: str) -> None:
        """`add_directive` that raises `DirectiveError` for an unknown one, and reads a changed file anew."""
        library = self._fresh_library()
        self._change(lambda state: directives.load_directive(state, library, name))

    def remove_directive(self, name: str) -> None:
        """Make a directive inactive."""
        self._change(lambda state: directives.remove_directive(state, name))

    def reset_directives(self) -> None:
        """Back to the directives that the settings name, without nudges."""
        self._change(directives.reset_directives)

    def catalogue(self) -> str:
        """All that was shortened and is remembered, newest first, a line each."""
        return catalogue(self.state())

    def window(self, n: int) -> WindowStats:
        """Sums over the last `n` turns."""
        return turn_window(self.state(), n)

    def state(self) -> FlowState:
        """The state with all changes, as it is now."""
        with self._lock:
            with self._waiting_lock:
                waiting = list(self._waiting)
            return _applied(self._load().state, waiting)

    def flush(self) -> None:
        """Write what waits, if the state has been in use."""
        with self._lock:
            if self._saved is not None and self._waiting:
                self._change(lambda state: state)

    def _change(self, change: Change) -> FlowState:
        """Apply what waits and `change`, and save. What can't be saved waits on."""
        with self._lock:
            with self._waiting_lock:
                waiting = list(self._waiting)
                self._waiting.clear()
            try:
                state, saved = self._save(waiting, change)
            except BaseException:
                self._put_back(waiting)
                raise
            if not saved:
                self._put_back([*waiting, change])
            return state

    def _save(self, waiting: list[Change], change: Change) -> tuple[FlowState, bool]:
        """The state with the changes, and whether it is on disk."""
        for _ in range(TRIES):
            known = self._load()
            state = change(_applied(known.state, waiting))
            if state is known.state:
                return state, True
            if self._resting():
                return state, False
            try:
                saved = self._store().save_state(self._session, ROOM, codec.encode(state), known.version)
            except StoreConflictError:
                continue
            except StoreError as fault:
                self._on_fault(fault)
                return state, False
            self._saved = _Saved(state, saved)
            return state, True
        raise StoreConflictError(f"others change session {self._session!r} all the time; try again")

    def _wait_with(self, change: Change) -> None:
        with self._waiting_lock:
            self._waiting.append(change)

    def _put_back(self, changes: list[Change]) -> None:
        with self._waiting_lock:
            self._waiting = deque([*changes, *self._waiting], MAX_WAITING)

    def _load(self) -> _Saved:
        """What is on disk; what was last known of it where it cannot be read."""
        try:
            body, number = self._store().load_state(self._session, ROOM)
        except StoreError as fault:
            if self._saved is None:
                self._saved = _Saved(self._initial(), 0)
            self._on_fault(fault)
            return self._saved
        if self._saved is None or self._saved.version != number:
            self._saved = _Saved(self._decoded(body), number)
        return self._saved

    def _decoded(self, body: bytes | None) -> FlowState:
        fresh = self._initial()
        if body is None:
            return fresh
        try:
            return codec.decode(body, fresh, self._known_library())
        except (ValueError, TypeError, KeyError) as fault:
            # Another version's: this one begins anew rather than leave the session without a block.
            self._on_fault(fault)
            return fresh

    def _initial(self) -> FlowState:
        return initial_state(self._settings, self._known_library())

    def _known_library(self) -> Library:
        """The directives as they were when they were last looked for."""
        return self._library or self._fresh_library()

    def _fresh_library(self) -> Library:
        self._library = directives.discover(self._settings.directives.dir)
        return self._library


def past_blocks(store: Store, session: str) -> tuple[Past, ...]:
    """The last blocks that a session was given, oldest first. Only reads.

    Raises:
        StoreError: the store cannot be read.
    """
    body, _ = store.load_state(session, ROOM)
    try:
        return () if body is None else codec.blocks_of(body)
    except ValueError as error:
        raise StoreCorruptError(
            f"what is kept of session {session!r} is damaged or another version's; its next turn begins anew"
        ) from error


def _applied(state: FlowState, changes: list[Change]) -> FlowState:
    for change in changes:
        state = change(state)
    return state


def _text_of(state: FlowState, turn: int) -> str | None:
    """The committed block of a turn, if it is remembered. Looked for from the end: it is mostly the last."""
    return next((past.text for past in reversed(state.blocks) if past.turn_counter == turn - 1), None)
