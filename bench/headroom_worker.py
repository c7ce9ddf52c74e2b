"""Runs in the rival's environment: a JSON line in (`text`, `tool`, `args`), one out (`shown`, `seconds`)."""

import json
import sys
from time import perf_counter

from headroom import compress

SYSTEM = "You are a helpful coding agent."
QUESTION = "Run the tool and tell me what matters in its output."


def conversation(text: str, tool: str, args: str) -> list[dict]:
    call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": args}}
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": text},
    ]


def answer(text: str, tool: str, args: str) -> dict:
    messages = conversation(text, tool, args)
    start = perf_counter()
    try:
        found = compress(messages, model="gpt-4o").messages
    except Exception as fault:  # noqa: BLE001 - whatever it raises, the original is what a model would see
        return {"shown": text, "seconds": perf_counter() - start, "fault": repr(fault)}
    seconds = perf_counter() - start
    content = next(m["content"] for m in reversed(found) if m["role"] == "tool")
    return {"shown": content if isinstance(content, str) else json.dumps(content), "seconds": seconds}


def main() -> None:
    out = sys.stdout
    sys.stdout = sys.stderr  # whatever the package prints must not stand among the answers
    answer("warm up\n" * 400, "run_tool", "{}")
    for line in sys.stdin:
        out.write(json.dumps(answer(**json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
