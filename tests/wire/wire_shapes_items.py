"""Documented request shapes of Responses and Gemini, as the official SDKs type them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def ask(text: str = "Hi", **more: Any) -> Json:
    return {"role": "user", "content": text, **more}


def said(text: str = "ok", number: int = 1) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def fcall(call: str = "c1", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call, "name": "read", "arguments": '{"path":"a"}', **more}


def fout(call: str = "c1", output: Any = "out", **more: Any) -> Json:
    return {"type": "function_call_output", "call_id": call, "output": output, **more}


def thought(number: int = 1, **more: Any) -> Json:
    return {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [],
        "encrypted_content": f"sealed{number}",
        **more,
    }


def _items(*items: Json, **more: Any) -> Json:
    return {"model": "gpt-5.6-sol", "input": [ask(), *items], **more}


FUNCTION = {
    "type": "function",
    "name": "read",
    "description": "Read a file",
    "strict": False,
    "parameters": {"type": "object", "properties": {}},
}
_EXIT = {"type": "exit", "exit_code": 1}

RESPONSES: dict[str, Json] = {
    "string": {"model": "m", "input": "Hi", "instructions": "Be kind"},
    "text": _items(),
    "typed message": {
        "model": "m",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        ],
        "instructions": "S",
    },
    "developer first": {
        "model": "m",
        "input": [{"role": "developer", "content": "D"}, ask()],
        "store": False,
    },
    "image and file": _items(
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
                {"type": "input_file", "file_id": "f1"},
            ],
        }
    ),
    "answer": _items(said(), ask("more")),
    "plain answer": _items({"role": "assistant", "content": "ok"}, ask("more"), instructions="S"),
    "call": _items(fcall(), fout(), tools=[FUNCTION]),
    "call with ids": _items(fcall(id="fc_1", status="completed"), fout(id="fo_1", status="completed")),
    "parallel calls": _items(fcall("c1"), fcall("c2"), fout("c2"), fout("c1")),
    "calls and results by turns": _items(fcall("c1"), fout("c1"), fcall("c2"), fout("c2")),
    "text between call and result": _items(fcall(), said(), fout()),
    "result parts": _items(
        fcall(),
        fout(output=[{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]),
    ),
    "marked": _items(
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
            ],
        },
        fcall(),
        fout(
            output=[{"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}],
        ),
    ),
    "image result": _items(
        fcall(), fout(output=[{"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"}])
    ),
    "empty result": _items(fcall(), fout(output="")),
    "reasoning": _items(thought(1), fcall("c1", id="fc_1"), fout("c1"), thought(2), said()),
    "reasoning before parallel calls": _items(thought(), fcall("c1"), fcall("c2"), fout("c1"), fout("c2")),
    "reasoning without id at the end": _items({"type": "reasoning", "id": "", "summary": []}, ask("stop")),
    "custom tool": _items(
        {"type": "custom_tool_call", "call_id": "c1", "name": "sh", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "out"},
        tools=[{"type": "custom", "name": "sh"}],
    ),
    "local shell": _items(
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "c1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        {"type": "local_shell_call_output", "id": "c1", "output": "out"},
    ),
    "shell": _items(
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
        {
            "type": "shell_call_output",
            "call_id": "c1",
            "output": [{"stdout": "o", "stderr": "e", "outcome": _EXIT}],
        },
    ),
    "patch": _items(
        {
            "type": "apply_patch_call",
            "call_id": "c1",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a"},
        },
        {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no such file"},
    ),
    "called by a program": _items(
        {"type": "program", "id": "p1", "call_id": "p1", "code": "read()", "fingerprint": "f"},
        fcall(caller={"type": "program", "caller_id": "p1"}),
        fout(output="read by code", caller={"type": "program", "caller_id": "p1"}),
        {"type": "program_output", "id": "p2", "call_id": "p1", "result": "r", "status": "completed"},
    ),
    "web search": _items(
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "x", "queries": ["x"]},
        },
        said(),
    ),
    "item reference": _items({"type": "item_reference", "id": "msg_1"}, ask("more")),
    "tail of a server conversation": {"model": "m", "input": [fout()], "previous_response_id": "resp_1"},
    "compaction": {
        "model": "m",
        "input": [{"type": "compaction", "encrypted_content": "x"}, ask()],
        "previous_response_id": None,
    },
}


def part(text: str = "Hi") -> Json:
    return {"text": text}


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def gcall(name: str = "read", **more: Any) -> Json:
    return {"functionCall": {"name": name, "args": {"path": "a"}, **more}}


def gout(name: str = "read", response: Any = None, **more: Any) -> Json:
    held = {"output": "out"} if response is None else response
    return {"functionResponse": {"name": name, "response": held, **more}}


def _contents(*contents: Json, **more: Any) -> Json:
    return {"contents": [user(part()), *contents], **more}


_SEAL = {"thoughtSignature": "c2VhbA=="}
DECLARED = {
    "functionDeclarations": [
        {"name": "read", "description": "Read a file", "parameters": {"type": "OBJECT", "properties": {}}}
    ]
}

GEMINI: dict[str, Json] = {
    "text": _contents(),
    "no role": {"contents": [{"parts": [part()]}]},
    "system": _contents(systemInstruction={"parts": [part("S")]}),
    "image": _contents(user({"inlineData": {"mimeType": "image/png", "data": "AA=="}}, part("x"))),
    "answer": _contents(model(part("ok")), user(part("more"))),
    "call": _contents(model(gcall()), user(gout()), tools=[DECLARED]),
    "call with ids": _contents(model(gcall(id="c1")), user(gout(id="c1"))),
    "signed call": _contents(model(gcall() | _SEAL), user(gout())),
    "thought and signed text": _contents(
        model({"text": "hm", "thought": True}, part("ok") | _SEAL), user(part("more"))
    ),
    "parallel calls": _contents(model(gcall() | _SEAL, gcall("list")), user(gout("list"), gout())),
    "same function twice": _contents(model(gcall(), gcall()), user(gout(), gout(response={"output": "2"}))),
    "text beside call and response": _contents(model(part("Let me"), gcall()), user(gout(), part("go on"))),
    "error": _contents(model(gcall()), user(gout(response={"error": "no such file"}))),
    "nested response": _contents(
        model(gcall()),
        user(gout(response={"content": [{"type": "text", "text": "a"}, {"text": "b"}], "n": 1, "ok": True})),
    ),
    "response without text": _contents(model(gcall()), user(gout(response={}))),
    "old role": _contents(model(gcall()), {"role": "function", "parts": [gout()]}),
    "other spelling": _contents(
        model({"function_call": {"name": "read", "args": {}}, "thought_signature": "c2VhbA=="}),
        user({"function_response": {"name": "read", "response": {"output": "out"}}}),
        system_instruction={"parts": [part("S")]},
    ),
    "code execution": _contents(
        model(
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        ),
        user(part("more")),
    ),
}
