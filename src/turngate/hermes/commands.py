"""The slash command ``/turngate``: for the person at the keyboard, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.errors import TurngateError
from turngate.hermes.host import current_session, host

if TYPE_CHECKING:
    from collections.abc import Callable

HELP = "/turngate stats | explain | off | on"


def turngate(args: str = "", **_: object) -> str:
    """Answer one command. Never raises."""
    name = (args or "").strip().partition(" ")[0].lower() or "stats"
    command = COMMANDS.get(name)
    if command is None:
        return f"There is no /turngate {name}. {HELP}"
    session_id = current_session()
    if not session_id:
        return "There is no session yet; say something first."
    try:
        return command(session_id)
    except TurngateError as error:
        return f"turngate: {error}"
    except Exception as error:  # noqa: BLE001 - the boundary to the host
        host().fault(f"/turngate {name}", error)
        return f"turngate: {type(error).__name__}; the agent goes on"


def _stats(session_id: str) -> str:
    here = host()
    stats, talk = here.gate.session(session_id).stats(), here.talk(session_id)
    total = stats.total
    counts = f"{total.shortened:,} of {total.results:,} results shortened, {stats.retrievals:,} looked into"
    lines = [
        f"turngate: {counts} again",
        f"about {stats.tokens_saved:,} tokens ({stats.saved_share:.0%}) kept out of view, net",
    ]
    if talk.requests:
        cached = talk.usage.get("cache_read_tokens", 0)
        lines.append(
            f"{talk.requests:,} requests, {talk.usage['prompt_tokens']:,} input tokens reported, "
            f"{cached:,} of them from the cache"
        )
    if talk.rewrites:
        lines.append(f"Hermes took something out of view {talk.rewrites:,} times")
    faults = sum(stats.faults.values()) + here.faults.total()
    if faults:
        lines.append(f"{faults:,} faults; the originals passed: {', '.join([*stats.faults, *here.faults])}")
    if here.is_off(session_id):
        lines.append("switched off for this session: /turngate on")
    return "\n".join(lines)


def _explain(session_id: str) -> str:
    session = host().gate.session(session_id)
    blocks = session.flow.state().blocks
    if not blocks:
        return "turngate: nothing has been injected in this session"
    last = blocks[-1]
    shown = session.flow.catalogue()
    head = f"turngate: injected in turn {last.turn_counter + 1}"
    return f"{head}:\n{last.text or '(nothing)'}\n\nshortened so far:\n{shown or '(nothing)'}"


def _off(session_id: str) -> str:
    host().switch(session_id, on=False)
    return "turngate: off for this session until Hermes ends. What was hidden can still be had back."


def _on(session_id: str) -> str:
    host().switch(session_id, on=True)
    return "turngate: on for this session."


COMMANDS: dict[str, Callable[[str], str]] = {"stats": _stats, "explain": _explain, "off": _off, "on": _on}
