"""What the plugin's hooks, tools, commands and engine share in one process: the gate, and who is who.

The host copies engine objects and calls hooks from many threads, so nothing is kept on those: all state is
here, by session, or in the store.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from turngate import settings as settings_module
from turngate.gate import Gate
from turngate.hermes.view import Results, View

if TYPE_CHECKING:
    from turngate.session import Session
    from turngate.settings import Settings

#: The host puts an injected text over 10,000 characters into a file, and shows its ends.
MAX_BLOCK_BYTES = 9_500
#: Sessions whose state is kept; the store has what must survive.
KEPT_SESSIONS = 500
#: A longer message is a task to work on, not a question that names what is wanted.
QUESTION_CHARS = 500

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger("turngate.hermes")


@dataclass(slots=True)
class Talk:
    """What is remembered of one of the host's sessions while the process lives."""

    turn_id: str = ""
    """The host's name for the turn that was begun last. Not a number."""
    question: str | None = None
    """The user's message, where it is short enough to be a question."""
    view: View = field(default_factory=View)
    """What the last request had in view."""
    results: Results = field(default_factory=Results)
    """The tools' outputs that the last request had in view."""
    rewrites: int = 0
    """How often the host took something out of view."""
    requests: int = 0
    """Requests that the provider reported usage for."""
    usage: Counter[str] = field(default_factory=Counter)
    """Their sums, under the host's names: ``prompt_tokens``, ``cache_read_tokens`` and more."""

    def add_usage(self, usage: Mapping[str, Any]) -> None:
        """Count what a provider reported."""
        self.requests += 1
        self.usage.update({key: value for key, value in usage.items() if isinstance(value, int)})


class Host:
    """One process of the host; safe from any thread."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.faults: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._talks: OrderedDict[str, Talk] = OrderedDict()
        self._off: set[str] = set()
        self._thread = threading.local()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.gate.settings

    def session(self, session_id: str, *, turn_id: str = "", task_id: str = "") -> Session:
        """The session of that id, for which this thread works now.

        One that the host began in place of another has that one for its parent.
        """
        self.bind(session_id)
        return self.gate.session(session_id, parent=_origin(session_id, turn_id, task_id))

    def bind(self, session_id: str) -> None:
        """This thread works for that session now."""
        self._thread.session_id = session_id

    def bound_session(self) -> str:
        """The session that this thread works for, as far as the hooks were told."""
        return getattr(self._thread, "session_id", "") or current_session()

    def talk(self, session_id: str) -> Talk:
        """What is remembered of a session."""
        with self._lock:
            talk = self._talks.setdefault(session_id, Talk())
            self._talks.move_to_end(session_id)
            while len(self._talks) > KEPT_SESSIONS:
                self._talks.popitem(last=False)
            return talk

    def forget(self, session_id: str) -> None:
        """A session is over; write what waits."""
        with self._lock:
            known = self._talks.pop(session_id, None)
        if known is not None:
            self.gate.session(session_id).flush()

    def begin_turn(self, session: Session, turn_id: str, message: str) -> bool:
        """Count the turn, unless it is already begun; whether it is a new one."""
        with self._lock:
            talk = self.talk(session.id)
            if turn_id and talk.turn_id == turn_id:
                return False
            talk.turn_id = turn_id
            talk.question = message if len(message) <= QUESTION_CHARS else None
        session.next_turn()
        return True

    def switch(self, session_id: str, *, on: bool) -> None:
        """Let a session's results pass untouched until this process ends, or no longer."""
        with self._lock:
            (self._off.discard if on else self._off.add)(session_id)

    def is_off(self, session_id: str) -> bool:
        """Whether the session was switched off."""
        return session_id in self._off

    def fault(self, where: str, error: Exception) -> None:
        """Count a fault; the first of each kind is logged, without its message, which might quote content."""
        name = f"{where}: {type(error).__name__}"
        with self._lock:
            self.faults[name] += 1
            first = self.faults[name] == 1
        if first:
            _log.warning("%s; the host goes on as without the plugin", name)
            _log.debug("%s", name, exc_info=error)


def host() -> Host:
    """The one of this process, or the one that `using` has put in its place."""
    return _instead.get() or _of_this_process()


@contextmanager
def using(other: Host) -> Iterator[Host]:
    """Let hooks and tools that are called inside use another, as the smoke test does."""
    token = _instead.set(other)
    try:
        yield other
    finally:
        _instead.reset(token)


_instead: ContextVar[Host | None] = ContextVar("turngate_hermes_host", default=None)


@cache
def _of_this_process() -> Host:
    """Settings that are wrong are logged and left out: the agent has to start."""
    known = settings_module.load(strict=False)
    budget = min(known.flow_budget_chars, MAX_BLOCK_BYTES)
    return Host(Gate.open(settings=replace(known, flow_budget_chars=budget)))


def fail_open(act: Callable[P, T]) -> Callable[P, T | None]:
    """A boundary to the host: whatever is raised inside is counted, and None is answered."""

    @wraps(act)
    def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return act(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - nothing of ours may cost the user a turn
            _count(act.__name__, error)
            return None

    return call


def current_session() -> str:
    """The host's session that a command was typed in, or "" where the host doesn't say."""
    try:
        from gateway.session_context import get_session_env  # type: ignore[import-not-found]  # noqa: PLC0415
    except ImportError:
        return ""
    return str(get_session_env("HERMES_SESSION_ID", "") or "")


def _count(where: str, error: Exception) -> None:
    try:
        host().fault(where, error)
    except Exception:  # noqa: BLE001 - not even settings can be had
        _log.warning("%s: %s; the host goes on as without the plugin", where, type(error).__name__)


def _origin(session_id: str, turn_id: str, task_id: str) -> str | None:
    """The session in whose turn this one was begun, where that is another.

    The host's turn id is ``session:task:8 hex digits``, made when the turn begins; a compaction that gives
    the conversation a new session id keeps the turn's.
    """
    began, mark, _ = turn_id.rpartition(f":{task_id}:") if task_id else ("", "", "")
    return began if mark and began and began != session_id else None
