"""The hooks: what the host tells us, and the few things that it takes from us.

Every keyword is optional and unknown ones are let by, since the host (0.19) hands over all it has without
looking at our signatures; names and meanings are the host's. None raises, and all may be called from any
thread.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from turngate.hermes.host import Host, fail_open, host
from turngate.hermes.result import output_of, with_shown
from turngate.hermes.view import Results, View, view_of
from turngate.store import redact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from turngate.session import Session

#: What these did is read out of their results by the host, after us.
INTACT_TOOLS = frozenset({"write_file", "patch"})


class _Calling(threading.local):
    """What is known of the tool call that runs on this thread; the terminal hook is told nothing of it."""

    session_id = ""
    exit_code: int | None = None


_calling = _Calling()


@fail_open
def on_session_start(*, session_id: str = "", **_: Any) -> None:
    """A new conversation, or a subagent's. Nothing is cleared: other sessions go on."""
    if session_id:
        host().session(session_id)


@fail_open
def on_session_reset(*, session_id: str = "", old_session_id: str = "", **_: Any) -> None:
    """The user began anew; `session_id` is the new session."""
    if old_session_id and old_session_id != session_id:
        host().forget(old_session_id)
    if session_id:
        host().session(session_id)


@fail_open
def on_session_finalize(*, session_id: str = "", **_: Any) -> None:
    """A conversation is over, or its program ends."""
    if session_id:
        host().forget(session_id)


@fail_open
def subagent_start(*, child_session_id: str = "", parent_session_id: str = "", **_: Any) -> None:
    """A session begins that may see what its parent saw."""
    if child_session_id and parent_session_id:
        host().gate.session(child_session_id, parent=parent_session_id)


@fail_open
def subagent_stop(*, child_session_id: str = "", **_: Any) -> None:
    """It is over; the parent's state is its own."""
    if child_session_id:
        host().forget(child_session_id)


@fail_open
def pre_llm_call(
    *, session_id: str = "", task_id: str = "", turn_id: str = "", user_message: Any = None, **_: Any
) -> str | None:
    """A user's turn begins: what to add to the message. The host keeps it in the history for good.

    To a message with images the host adds nothing. What there is to say waits for the next one without, and
    the turn is counted with that one.
    """
    if not session_id or not isinstance(user_message, str):
        return None
    here = host()
    session = here.session(session_id, turn_id=turn_id, task_id=task_id)
    if not here.begin_turn(session, turn_id, user_message) or here.is_off(session_id):
        return None
    return session.turn_block() or None


@fail_open
def post_llm_call(*, session_id: str = "", **_: Any) -> None:
    """The turn has its answer: what waits in memory goes to disk."""
    if session_id:
        host().gate.session(session_id).flush()


@fail_open
def pre_tool_call(*, session_id: str = "", tool_call_id: str = "", **_: Any) -> None:
    """A tool is about to run on this thread. Registered only where the terminal hook has to know whose."""
    _calling.session_id = session_id if tool_call_id else ""


@fail_open
def transform_terminal_output(
    *, command: str = "", output: str = "", returncode: int | None = None, **_: Any
) -> str | None:
    """A foreground command ended: its exit code is noted, and its output is the host's own affair.

    The host has not yet taken secrets out of it, and does not say whose it is. Where the settings want it
    shortened here nevertheless, secrets go first.
    """
    _calling.exit_code = returncode
    session_id = _calling.session_id
    here = host()
    if not here.settings.hermes.shorten_in_terminal or not session_id or here.is_off(session_id):
        return output
    return here.gate.session(session_id).tool_result(
        name="terminal",
        args={"command": command},
        text=redact(output),
        failed=None if returncode is None else returncode != 0,
        question=here.talk(session_id).question,
    )


@fail_open
def transform_tool_result(
    *,
    tool_name: str = "",
    args: Mapping[str, Any] | None = None,
    result: Any = None,
    session_id: str = "",
    task_id: str = "",
    tool_call_id: str = "",
    turn_id: str = "",
    status: str = "",
    **_: Any,
) -> str | None:
    """A tool has answered: the result as the model will see it, or None to leave it as it is.

    Without a call id it is a call inside a script of ``execute_code``, which reads the answer as JSON.
    """
    exit_code, _calling.exit_code = _calling.exit_code, None
    here = host()
    if not isinstance(result, str) or not session_id or not tool_call_id or here.is_off(session_id):
        return None
    session = here.session(session_id, turn_id=turn_id, task_id=task_id)
    output = output_of(result)
    failed = _first_known(output.failed, exit_code, status)
    if tool_name in INTACT_TOOLS:
        session.event(name=tool_name, args=args, text=output.text, failed=failed)
        return None
    shown = session.tool_result(
        name=tool_name,
        args=args,
        text=output.text,
        failed=failed,
        call_id=tool_call_id,
        question=here.talk(session_id).question,
        in_view=here.talk(session_id).results,
    )
    return None if shown is output.text else with_shown(result, output, shown)


@fail_open
def pre_api_request(
    *,
    session_id: str = "",
    task_id: str = "",
    turn_id: str = "",
    request_messages: Sequence[Mapping[str, Any]] | None = None,
    **_: Any,
) -> None:
    """A request is about to be sent: see what is in view, and whether the host has rewritten the history."""
    if not session_id or not request_messages:
        return
    here = host()
    session = here.session(session_id, turn_id=turn_id, task_id=task_id)
    here.talk(session_id).results = Results(request_messages)
    _look(here, session, view_of(request_messages))


@fail_open
def post_api_request(*, session_id: str = "", usage: Mapping[str, Any] | None = None, **_: Any) -> None:
    """The provider has answered: what it counted."""
    if session_id and usage:
        host().talk(session_id).add_usage(usage)


def _first_known(said: bool | None, exit_code: int | None, status: str) -> bool | None:
    """Whether a call failed: what its result says, else its exit code, else the host's own reading of it."""
    if said is not None:
        return said
    if exit_code is not None:
        return exit_code != 0
    return status == "error" if status else None


def _look(here: Host, session: Session, now: View) -> None:
    talk = here.talk(session.id)
    before, talk.view = talk.view, now
    if before.lost_to(now):
        talk.rewrites += 1
        session.flow.open_epoch()
