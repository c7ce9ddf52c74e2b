"""The providers' own clients, unmodified, in a loop of tools: the last word arrives, nothing is refused."""

from __future__ import annotations

import json
import re

import pytest
import sdk_types
from conversations import LONG
from pydantic import ValidationError
from upstream import OWN, Upstream, in_background

TURNS = 3
LAST = "The disk is full."


def moves(body):
    """Call the shell, look behind the first marker, call it again, and so on; then answer."""
    text = body.decode().replace('\\"', '"')
    done = text.count('"call_')
    results = sum(f"ERROR job {n} failed" in text for n in range(TURNS))
    found = re.search(r"<<<CCR:([0-9a-f]{16})\|", text)
    if found and "own_1" not in text:
        marker = found[1]
        return [("text", "Hmm. "), ("call", "own_1", OWN, {"hash": marker, "lines": "41-42"})]
    assert done >= results
    if results < TURNS:
        return [
            ("text", f"Let me look ({results})."),
            ("call", f"call_{results}", "bash", {"command": f"run {results}"}),
        ]
    return [("text", LAST)]


def run(number):
    return f"{LONG}\nERROR job {number} failed: disk {number} is full"


def accepted(stub, wire):
    """Nothing that the provider refuses, no broken prefix, and all of it fits the client's own types."""
    stub.judge(wire)
    assert len(stub.bodies) == TURNS + 2
    for body in stub.bodies:
        sdk_types.check(body, wire)


@pytest.fixture
def proxy(tmp_path):
    stub = Upstream(moves)
    with in_background(stub, tmp_path) as (url, shared):
        yield url, stub, shared
        assert not shared.metrics.faults
        assert shared.metrics.sums()["retrievals"] == 1
        assert shared.metrics.sums()["shortened_results"] == TURNS
    assert all(LONG.splitlines()[200] not in body.decode() for body in stub.bodies)
    assert any(LONG.splitlines()[40] in body.decode() for body in stub.bodies)


@pytest.mark.parametrize("streamed", [False, True])
def test_openai_chat(proxy, streamed):
    openai = pytest.importorskip("openai")
    url, stub, _ = proxy
    tools = [
        {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
    ]
    messages = [{"role": "user", "content": "What went wrong?"}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        for number in range(TURNS + 1):
            if streamed:
                with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
                    for _ in stream:
                        pass
                    reply = stream.get_final_completion().choices[0].message
            else:
                reply = (
                    client.chat.completions.create(model="m", messages=messages, tools=tools)
                    .choices[0]
                    .message
                )
            messages.append(reply.model_dump(exclude_none=True))
            for call in reply.tool_calls or ():
                assert call.function.name == "bash"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": run(number)})
    assert reply.content.endswith(LAST)
    accepted(stub, "chat")


@pytest.mark.parametrize("streamed", [False, True])
def test_openai_responses(proxy, streamed):
    openai = pytest.importorskip("openai")
    url, stub, _ = proxy
    tools = [{"type": "function", "name": "bash", "parameters": {"type": "object"}, "strict": False}]
    items = [{"role": "user", "content": "What went wrong?"}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        for number in range(TURNS + 1):
            if streamed:
                with client.responses.stream(model="m", input=items, tools=tools, store=False) as stream:
                    for _ in stream:
                        pass
                    reply = stream.get_final_response()
            else:
                reply = client.responses.create(model="m", input=items, tools=tools, store=False)
            for item in reply.output:
                items.append(item.to_dict())
                if item.type == "function_call":
                    assert item.name == "bash"
                    items.append(
                        {"type": "function_call_output", "call_id": item.call_id, "output": run(number)}
                    )
    assert reply.output_text.endswith(LAST)
    accepted(stub, "responses")


@pytest.mark.parametrize("streamed", [False, True])
def test_anthropic(proxy, streamed):
    anthropic = pytest.importorskip("anthropic")
    url, stub, _ = proxy
    asked = {
        "model": "claude-opus-5",
        "max_tokens": 500,
        "tools": [{"name": "bash", "input_schema": {"type": "object"}}],
    }
    messages = [{"role": "user", "content": "What went wrong?"}]
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        for number in range(TURNS + 1):
            if streamed:
                with client.messages.stream(messages=messages, **asked) as stream:
                    for _ in stream:
                        pass
                    reply = stream.get_final_message()
            else:
                reply = client.messages.create(messages=messages, **asked)
            messages.append({"role": "assistant", "content": reply.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": run(number)}
                for block in reply.content
                if block.type == "tool_use"
            ]
            assert all(block.name == "bash" for block in reply.content if block.type == "tool_use")
            if results:
                messages.append({"role": "user", "content": results})
    assert reply.content[-1].text.endswith(LAST)
    accepted(stub, "anthropic")


@pytest.mark.parametrize("streamed", [False, True])
def test_google_genai(proxy, streamed):
    genai = pytest.importorskip("google.genai")
    types = genai.types
    url, stub, _ = proxy
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="bash")])
    off = types.AutomaticFunctionCallingConfig(disable=True)
    config = types.GenerateContentConfig(tools=[tool], automatic_function_calling=off)
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
    chat = client.chats.create(model="m", config=config)
    message = "What went wrong?"
    for number in range(TURNS + 1):
        parts = []
        if streamed:
            for chunk in chat.send_message_stream(message):
                parts += (chunk.candidates[0].content and chunk.candidates[0].content.parts) or []
        else:
            parts = chat.send_message(message).candidates[0].content.parts
        calls = [part.function_call for part in parts if part.function_call]
        assert all(call.name == "bash" for call in calls)
        message = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name="bash", response={"output": run(number)}
                )
            )
            for call in calls
        ]
    assert "".join(part.text or "" for part in parts).endswith(LAST)
    accepted(stub, "gemini")
    assert json.loads(stub.bodies[-1])["tools"]


BODIES = {
    "chat": {"model": "m", "messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]},
    "anthropic": {
        "model": "m",
        "max_tokens": 1,
        "messages": [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}
        ],
    },
    "responses": {"model": "m", "input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"output": "x"}}}]}
        ]
    },
}
WRONG = {
    "chat": ('"content": "x"', '"content": 7'),
    "anthropic": ('"tool_use_id": "c"', '"tool_use_id": 7'),
    "responses": ('"call_id": "c"', '"call_id": 7'),
    "gemini": ('"response"', '"result"'),
}


@pytest.mark.parametrize("wire", BODIES)
def test_the_clients_types_refuse_a_result_of_another_shape(wire):
    body = json.dumps(BODIES[wire])
    sdk_types.check(body.encode(), wire)
    changed = body.replace(*WRONG[wire])
    assert changed != body
    with pytest.raises(ValidationError):
        sdk_types.check(changed.encode(), wire)
