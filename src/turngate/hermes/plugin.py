"""What the host calls when it loads the plugin.

Registered as the entry point ``turngate`` of ``hermes_agent.plugins``, and used by the plugin folder, too.
Only this module is loaded at the host's start; hooks and tools load theirs when they are first called.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from turngate import settings as settings_module
from turngate.hermes.schemas import TOOLSET, offered

if TYPE_CHECKING:
    from collections.abc import Callable

#: Hooks of the host, by the name that the function in `hooks` has, too.
HOOKS = (
    "on_session_start",
    "on_session_reset",
    "on_session_finalize",
    "subagent_start",
    "subagent_stop",
    "pre_llm_call",
    "post_llm_call",
    "transform_terminal_output",
    "transform_tool_result",
    "pre_api_request",
    "post_api_request",
)
#: Asked for only with `hermes.shorten_in_terminal`: the host holds a tool back when its hook doesn't answer.
TERMINAL_HOOKS = ("pre_tool_call",)
#: With these the host answers one question and ends: nobody can type a command, and registering one would
#: make the host load its table of commands, which takes it longer than all else here.
_ONE_SHOT = {"-z", "--oneshot"}


def register(ctx: Any) -> None:
    """Offer hooks, tools and the slash command; the context engine where it is switched on."""
    known = settings_module.load(strict=False)
    for name in (*HOOKS, *(TERMINAL_HOOKS if known.hermes.shorten_in_terminal else ())):
        ctx.register_hook(name, _later("hooks", name))
    for schema in offered(known.hermes.tools):
        ctx.register_tool(
            name=schema["name"],
            toolset=TOOLSET,
            schema=schema,
            handler=partial(_later("tools", "call"), schema["name"]),
            description=schema["description"],
        )
    if not _ONE_SHOT & set(sys.argv):
        ctx.register_command(
            "turngate", _later("commands", "turngate"), "What turngate saved and injected; off, on", "stats"
        )
    if known.context_engine:
        ctx.register_context_engine(import_module("turngate.hermes.engine").TurngateEngine())


def _later(module: str, name: str) -> Callable[..., Any]:
    """The function of that name, whose module is loaded with its first call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(import_module(f"turngate.hermes.{module}"), name)(*args, **kwargs)

    call.__name__ = name
    return call
