"""Documented request shapes of both wires, as the official SDKs type them."""

from __future__ import annotations

from typing import Any


def _chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.6-sol", "messages": [{"role": "user", "content": "Hi"}, *messages], **more}


def chat_call(call_id: str, name: str = "read", arguments: str = '{"path":"a"}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_calls(*ids: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [chat_call(i) for i in ids], **more}


def chat_result(call_id: str, content: Any = "out") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


CHAT_TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a file",
        "parameters": {"type": "object", "properties": {}},
    },
}
_MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}

CHAT: dict[str, dict[str, Any]] = {
    "text": _chat(),
    "system": {
        "model": "m",
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}],
    },
    "developer": {
        "model": "m",
        "messages": [{"role": "developer", "content": "D"}, {"role": "user", "content": "Hi"}],
    },
    "system parts": {
        "model": "m",
        "messages": [{"role": "system", "content": [{"type": "text", "text": "S"}]}],
    },
    "system in the middle": _chat({"role": "system", "content": "S"}, {"role": "user", "content": "x"}),
    "text parts": _chat(
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ),
    "empty user text": _chat({"role": "user", "content": ""}),
    "named user": _chat({"role": "user", "content": "x", "name": "ann"}),
    "image": _chat(
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}}],
        }
    ),
    "audio": _chat(
        {
            "role": "user",
            "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}],
        }
    ),
    "file": _chat({"role": "user", "content": [{"type": "file", "file": {"file_id": "f1"}}]}),
    "file data": _chat(
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "AA==", "filename": "a.pdf"}}]}
    ),
    "assistant text": _chat({"role": "assistant", "content": "Hello"}),
    "assistant parts": _chat({"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}),
    "refusal": _chat({"role": "assistant", "content": None, "refusal": "No"}),
    "refusal part": _chat({"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}),
    "earlier audio": _chat({"role": "assistant", "content": None, "audio": {"id": "a1"}}),
    "tools": _chat(tools=[CHAT_TOOL], tool_choice="auto"),
    "call": _chat(chat_calls("c1"), chat_result("c1"), tools=[CHAT_TOOL]),
    "call with text": _chat(chat_calls("c1") | {"content": "Let me see"}, chat_result("c1")),
    "call without content": _chat({"role": "assistant", "tool_calls": [chat_call("c1")]}, chat_result("c1")),
    "parallel calls": _chat(
        chat_calls("c1", "c2", "c3"), chat_result("c3"), chat_result("c1"), chat_result("c2")
    ),
    "calls in turn": _chat(chat_calls("c1"), chat_result("c1"), chat_calls("c2"), chat_result("c2")),
    "ids of an earlier turn again": _chat(
        chat_calls("c1"), chat_result("c1"), chat_calls("c1"), chat_result("c1")
    ),
    "result parts": _chat(
        chat_calls("c1"), chat_result("c1", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    ),
    "empty result": _chat(chat_calls("c1"), chat_result("c1", "")),
    "custom tool": _chat(
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
        },
        chat_result("c1"),
        tools=[{"type": "custom", "custom": {"name": "sh"}}],
    ),
    "legacy function": _chat(
        {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
        {"role": "function", "name": "read", "content": "out"},
        functions=[{"name": "read"}],
    ),
    "cache breakpoint": _chat(
        {"role": "user", "content": [{"type": "text", "text": "a", **_MARK}]},
        prompt_cache_options={"mode": "explicit"},
    ),
    "ends with assistant": _chat({"role": "assistant", "content": "{"}),
}


def _ant(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    first = {"role": "user", "content": "Hi"}
    return {"model": "claude-sonnet-5", "max_tokens": 4096, "messages": [first, *messages], **more}


def use(call_id: str, name: str = "read", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"path": "a"}, **more}


def result(call_id: str, content: Any = "out", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def uses(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [use(i) for i in ids]}


def results(*ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [result(i) for i in ids]}


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def user(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
THINK = {"type": "thinking", "thinking": "hm", "signature": "sig1"}
HIDDEN = {"type": "redacted_thinking", "data": "blob1"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}
ANT_TOOL = {
    "name": "read",
    "description": "Read a file",
    "input_schema": {"type": "object", "properties": {}},
}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://x", "title": "X", "encrypted_content": "e"}],
}
SYSTEM = {"role": "system", "content": "Be brief"}

ANTHROPIC: dict[str, dict[str, Any]] = {
    "text": _ant(),
    "text blocks": _ant(assistant(text("a"), text("b")), user(text("c"))),
    "system string": _ant(system="S"),
    "system blocks": _ant(system=[text("S"), text("T", **MARK)]),
    "image": _ant(user(IMAGE, text("what?"))),
    "image by url": _ant(user({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}})),
    "image by file": _ant(user({"type": "image", "source": {"type": "file", "file_id": "f1"}})),
    "document": _ant(user(PDF, text("what?"))),
    "text document": _ant(
        user(
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                "title": "T",
            }
        )
    ),
    "search result": _ant(
        user({"type": "search_result", "source": "https://x", "title": "X", "content": [text("found")]})
    ),
    "two user turns": _ant({"role": "user", "content": "again"}),
    "two assistant turns": _ant({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}),
    "prefill": _ant({"role": "assistant", "content": "The answer is ("}),
    "empty last assistant": _ant({"role": "assistant", "content": []}),
    "tools": _ant(tools=[ANT_TOOL | MARK, {"type": "web_search_20250305", "name": "web_search"}]),
    "call": _ant(assistant(text("look"), use("t1")), results("t1"), tools=[ANT_TOOL]),
    "parallel calls": _ant(uses("t1", "t2"), results("t2", "t1")),
    "text after results": _ant(uses("t1"), user(result("t1"), text("go on"))),
    "text after the call": _ant(assistant(use("t1"), text("done")), results("t1")),
    "calls in turn": _ant(uses("t1"), results("t1"), uses("t2"), results("t2")),
    "result blocks": _ant(uses("t1"), user(result("t1", [text("a"), IMAGE, text("b")]))),
    "result with document": _ant(uses("t1"), user(result("t1", [PDF]))),
    "result with reference": _ant(
        uses("t1"), user(result("t1", [{"type": "tool_reference", "tool_name": "x"}]))
    ),
    "result without content": _ant(uses("t1"), user({"type": "tool_result", "tool_use_id": "t1"})),
    "empty result": _ant(uses("t1"), user(result("t1", ""))),
    "failed result": _ant(uses("t1"), user(result("t1", [text("no such file")], is_error=True))),
    "thinking": _ant(assistant(THINK, text("a")), user(text("b")), thinking={"type": "adaptive"}),
    "empty thinking": _ant(assistant(THINK | {"thinking": ""}, text("a")), user(text("b"))),
    "redacted thinking": _ant(assistant(HIDDEN, text("a")), user(text("b"))),
    "thinking in a tool loop": _ant(
        assistant(THINK, HIDDEN, text("look"), use("t1")),
        results("t1"),
        thinking={"type": "enabled", "budget_tokens": 2048},
    ),
    "thinking once in a tool loop": _ant(
        assistant(THINK, use("t1")),
        results("t1"),
        uses("t2"),
        results("t2"),
        thinking={"type": "enabled", "budget_tokens": 2048},
    ),
    "interleaved thinking": _ant(assistant(THINK, use("t1")), results("t1"), assistant(THINK, text("a"))),
    "server tool": _ant(assistant(SEARCH, FOUND, text("found")), user(text("thanks"))),
    "server tool paused": _ant(assistant(text("look"), SEARCH)),
    "server tool carried on": _ant(assistant(SEARCH), assistant(FOUND, text("found")), user(text("thanks"))),
    "call by a server tool": _ant(
        assistant(
            {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {"code": "x"}},
            use("t1", caller={"type": "code_execution_20260120", "tool_id": "srvtoolu_2"}),
        ),
        results("t1"),
    ),
    "container upload": _ant(user({"type": "container_upload", "file_id": "f1"}, text("use it"))),
    "four cache marks": _ant(
        uses("t1"),
        user(result("t1", [text("a", **MARK)])),
        system=[text("S", **HOUR)],
        tools=[ANT_TOOL | HOUR],
        cache_control={"type": "ephemeral"},
    ),
    "system message last": _ant(SYSTEM),
    "system message before assistant": _ant(SYSTEM, {"role": "assistant", "content": "ok"}, user(text("x"))),
    "system message after results": _ant(uses("t1"), results("t1"), SYSTEM),
    "system message after a server tool": _ant(assistant(SEARCH, FOUND), SYSTEM),
}

ANTHROPIC_BETA: dict[str, dict[str, Any]] = {
    "clear_at": _ant(SYSTEM | {"clear_at": "next_user_message"}),
    "output config alone": _ant({"role": "system", "output_config": {"effort": "low"}}),
    "compaction": {
        "model": "claude-sonnet-5",
        "max_tokens": 10,
        "messages": [assistant({"type": "compaction", "content": "so far"}, text("ok")), user(text("go on"))],
    },
    "signed compaction": {
        "model": "claude-sonnet-5",
        "max_tokens": 10,
        "messages": [
            assistant(
                {"type": "compaction", "content": "so far", "signature": "s", "encrypted_content": "e"}
            ),
            user(text("go on")),
        ],
    },
    "failed compaction": _ant(
        assistant({"type": "compaction", "content": None}, text("ok")), user(text("x"))
    ),
    "mcp tool": _ant(
        assistant(
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "q", "server_name": "s", "input": {}},
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_1",
                "is_error": False,
                "content": [text("r")],
            },
            text("done"),
        ),
        user(text("x")),
    ),
}
