# ruff: noqa: PLC0415 - the host's modules are there only in its own environment, and cost seconds
"""Runs in the agent's own environment: several conversations in one process, as the host's gateway has them.

One JSON request a line on stdin, one JSON answer a line on stdout. An agent is built as the host's one-shot
mode builds it (`hermes_cli/oneshot.py`).
"""

import contextlib
import copy
import json
import os
import sys


def build(toolsets):
    from hermes_cli.config import load_config
    from hermes_cli.runtime_provider import resolve_runtime_provider
    from hermes_state import SessionDB
    from run_agent import AIAgent

    runtime = resolve_runtime_provider()
    return AIAgent(
        api_key=runtime.get("api_key"),
        base_url=runtime.get("base_url"),
        provider=runtime.get("provider"),
        api_mode=runtime.get("api_mode"),
        model=load_config()["model"]["default"],
        enabled_toolsets=toolsets,
        quiet_mode=True,
        platform="cli",
        session_db=SessionDB(),
        max_iterations=200,
    )


class Conversations:
    def __init__(self):
        self.agents, self.histories = {}, {}

    def turn(self, name, message, toolsets):
        agent = self.agents.get(name)
        if agent is None:
            agent = self.agents[name] = build(toolsets)
        result = agent.run_conversation(message, conversation_history=self.histories.get(name))
        self.histories[name] = result["messages"]
        return {
            "answer": result.get("final_response"),
            "session": agent.session_id,
            "failed": bool(result.get("failed") or result.get("error")),
        }

    def plugin(self):
        from turngate.hermes.host import host

        here = host()
        with here._lock:  # the host's own threads may begin a session meanwhile
            talks = dict(here._talks)
        return {
            "faults": dict(here.faults),
            "talks": {
                name: {
                    "turn_id": talk.turn_id,
                    "rewrites": talk.rewrites,
                    "markers": sorted(talk.view.markers),
                    "usage": dict(talk.usage),
                    "requests": talk.requests,
                    "turn": here.gate.session(name).turn,
                    "parent": here.gate.session(name).parent,
                    "stats": here.gate.session(name).stats().as_dict(),
                }
                for name, talk in talks.items()
            },
        }

    def command(self, text):
        from hermes_cli.plugins import get_plugin_command_handler

        name, _, args = text.lstrip("/").partition(" ")
        return {"answer": get_plugin_command_handler(name)(args)}

    def engine(self, name):
        engine = self.agents[name].context_compressor
        return {"class": type(engine).__name__, "status": engine.get_status()}

    def later_host(self, name):
        """What newer hosts (0.21) ask an engine, on this conversation's own engine and history."""
        engine, history = self.agents[name].context_compressor, self.histories[name]
        before = copy.deepcopy(history)
        pruned = engine.prune_tool_results_only(history, 60_000)
        selected = engine.select_context(
            history, conversation_messages=history, incoming_message="hi", budget_tokens=1_000_000
        )
        squeezed = engine.select_context(history, budget_tokens=1_500)
        engine.on_turn_complete(history, {"prompt_tokens": 1}, session_id="x")
        return {
            "pruned": len(pruned),
            "history": len(history),
            "selected_is_history": selected is history,
            "squeezed": len(squeezed),
            "info": engine.should_compress_info(60_000),
            "untouched": history == before,
            "copied": copy.deepcopy(engine).get_status() == engine.get_status(),
        }


def main():
    os.environ["HERMES_YOLO_MODE"] = "1"
    talks = Conversations()
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):
            try:
                answer = getattr(talks, request.pop("do"))(**request)
            except Exception as error:  # noqa: BLE001 - told to the test
                answer = {"raised": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
