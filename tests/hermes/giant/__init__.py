"""A plugin of the host for tests: a tool whose answer has 1.3 MB, and a listener to the engine."""

import json
import os
from pathlib import Path

LINES = 100_000


def report():
    return "".join(f"row {number:06}\n" for number in range(1, LINES + 1))


def compressed(engine=None, stats=None, **_):
    """Note what turngate's engine tells other plugins."""
    with (Path(os.environ["HERMES_HOME"]) / "compressed.jsonl").open("a") as file:
        file.write(json.dumps({"engine": engine.name, "stats": stats}, default=str) + "\n")


def register(ctx):
    ctx.register_hook("turngate_engine_compressed", compressed)
    ctx.register_tool(
        name="giant_report",
        toolset="giant",
        schema={
            "name": "giant_report",
            "description": "All rows.",
            "parameters": {"type": "object", "properties": {}},
        },
        handler=lambda args, **_: report(),
    )
