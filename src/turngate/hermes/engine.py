"""The context engine: what the host asks when a conversation outgrows the window.

The host copies the registered object for every agent and writes to its attributes, so it holds plain values
only; whatever must be shared or must last is in `host` and in the store. Nothing here raises: in one of the
places where the host asks, an exception would end its process.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from agent.context_engine import ContextEngine  # type: ignore[import-not-found]

from turngate.hermes.compacting import Request, compact, go_on, prune, selected
from turngate.hermes.gauge import Gauge
from turngate.hermes.host import fail_open, host
from turngate.hermes.view import View
from turngate.window import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.hermes.compacting import Message, Outcome

NAME = "turngate"
#: Other plugins may listen to this hook: ``engine``, ``stats``.
COMPRESSED = "turngate_engine_compressed"
#: Fewer messages than this hold nothing that could go.
LEAST_MESSAGES = 4


class TurngateEngine(ContextEngine):  # type: ignore[misc]
    """Compacts by the session's window: what goes is stored whole, and a record stands for it."""

    def __init__(self) -> None:
        self.gauge = Gauge()
        self.model = ""
        #: "": unknown, until a hook names the session that this thread works for.
        self.session_id = ""
        self.last_prompt_tokens = 0
        self.last_completion_tokens = 0
        self.last_total_tokens = 0
        #: Read by the host where it defers to real usage.
        self.last_real_prompt_tokens = 0
        self.threshold_tokens = 0
        self.context_length = 0
        self.compression_count = 0
        #: The host looks at the whole list before a turn only if it has more than so many messages.
        self.protect_first_n = 0
        self.protect_last_n = 1
        self._last_compression_made_progress = False

    @property
    def name(self) -> str:
        """What ``context.engine`` must say."""
        return NAME

    # What the host tells

    def update_model(self, model: str, context_length: int, *args: Any, **more: Any) -> None:  # noqa: ARG002
        """The model, at the start and whenever the user changes it."""
        self.model, self.context_length = model or "", int(context_length or 0)
        self.threshold_tokens = self.gauge.limit_tokens = _limit(self.context_length)

    @fail_open
    def update_from_response(self, usage: dict[str, Any] | None) -> None:
        """The provider's count of the last request; without one, the host's estimates count."""
        known = usage or {}
        self.last_prompt_tokens = int(known.get("prompt_tokens") or 0)
        self.last_completion_tokens = int(known.get("completion_tokens") or 0)
        self.last_total_tokens = int(known.get("total_tokens") or 0)
        self.last_real_prompt_tokens = self.last_prompt_tokens
        self.gauge.reported(self.last_prompt_tokens)

    @fail_open
    def on_session_start(self, session_id: str, **more: Any) -> None:
        """A session begins, or goes on after a compaction, perhaps under a new id."""
        old = more.get("old_session_id") or ""
        if more.get("boundary_reason") == "compression" and old and old != session_id:
            go_on(host(), old, session_id)
        self.session_id = session_id or self.session_id

    def bind_session_state(self, session_id: str = "", **_: Any) -> None:
        """The host names the session."""
        self.session_id = session_id or self.session_id

    @fail_open
    def on_session_end(self, session_id: str = "", messages: Any = None) -> None:  # noqa: ARG002
        """Called at every compaction, too: nothing is closed."""
        if session_id:
            host().gate.session(session_id).flush()

    def on_session_reset(self) -> None:
        """The user began anew; the host tells the new session's id to the plugin's hooks only."""
        super().on_session_reset()
        self.session_id = ""
        self.last_real_prompt_tokens = 0
        self.gauge = replace(Gauge(), limit_tokens=self.gauge.limit_tokens)

    @fail_open
    def on_turn_complete(self, messages: Any = None, usage: Any = None, **_: Any) -> None:  # noqa: ARG002
        """0.21: a turn is over."""
        if self._session():
            host().gate.session(self._session()).flush()

    # What the host asks

    def should_defer_preflight_to_real_usage(self, rough_tokens: int) -> bool:
        """Never: estimates are corrected by real usage. The host's next question is about this number."""
        self.gauge.told(int(rough_tokens or 0))
        return False

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether the window is full."""
        return self.gauge.is_full(int(self.last_prompt_tokens if prompt_tokens is None else prompt_tokens))

    def should_compress_info(self, prompt_tokens: int | None = None, **_: Any) -> dict[str, Any]:
        """0.21: the same, with the numbers."""
        full = self.should_compress(prompt_tokens)
        return {"should_compress": full, "threshold_tokens": self.gauge.limit_tokens}

    def has_content_to_compress(self, messages: Sequence[Message]) -> bool:
        """Whether there is anything that could go."""
        return len(messages) >= LEAST_MESSAGES

    def compress(
        self,
        messages: list[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[dict[str, Any]]:
        """A shorter list, or the very list that came."""
        request = Request(current_tokens, focus_topic or "", bool(force), memory_context or "")
        outcome = self._compact(messages, request)
        self._last_compression_made_progress = outcome is not None
        if outcome is None:
            return messages
        self.compression_count += 1
        self._tell(outcome)
        return outcome.messages

    def prune_tool_results_only(
        self,
        messages: list[dict[str, Any]],
        current_tokens: int | None = None,  # noqa: ARG002
    ) -> Sequence[Message]:
        """0.21: old results made markers, everything else as it is."""
        return self._pruned(messages) or messages

    def select_context(
        self, request_messages: Sequence[Message], *, budget_tokens: int | None = None, **_: Any
    ) -> Sequence[Message]:
        """0.21: what one request is sent with. A history that fits goes as it is."""
        return self._selected(request_messages, budget_tokens) or request_messages

    # Parts

    def _session(self) -> str:
        if not self.session_id:
            self.session_id = host().bound_session()
        return self.session_id

    @fail_open
    def _compact(self, messages: Sequence[Message], request: Request) -> Outcome | None:
        here, session_id = host(), self._session()
        if not session_id or len(messages) < LEAST_MESSAGES or here.is_off(session_id):
            return None
        outcome = compact(here, session_id, messages, self.gauge, request, model=self.model)
        if outcome is not None:
            # What left view left by our hand: the next request is no surprise.
            here.talk(session_id).view = View()
        return outcome

    @fail_open
    def _pruned(self, messages: Sequence[Message]) -> Sequence[Message]:
        return prune(host(), self._session(), messages)

    @fail_open
    def _selected(self, messages: Sequence[Message], budget_tokens: int | None) -> Sequence[Message] | None:
        here, session_id = host(), self._session()
        if not session_id or not budget_tokens:
            return None
        return selected(here, session_id, messages, budget_tokens, model=self.model)

    @fail_open
    def _tell(self, outcome: Outcome) -> None:
        from hermes_cli.plugins import invoke_hook  # type: ignore[import-not-found]  # noqa: PLC0415

        invoke_hook(COMPRESSED, engine=self, stats=asdict(outcome.notice))


def _limit(context_length: int) -> int:
    """From where on a window of so many tokens is full; a smaller one in the settings counts."""
    known = host().settings.window
    window = min(context_length, known.context_window_tokens or context_length)
    return max(0, round(limits(replace(known, context_window_tokens=max(1, window))).hard_tokens))
