"""Runs in the environment of the peers: histories in, indexes of the messages that each keeps out.

A line is {"messages": [Chat Completions], "keep": number, "tokens": budget}. -1 stands for a summary.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from symfonic.agent.engine import _pair_aware_history_slice


def converted(messages: list[dict[str, Any]]) -> list[BaseMessage]:
    return [_one(message, str(at)) for at, message in enumerate(messages)]


def _one(message: dict[str, Any], name: str) -> BaseMessage:
    role, content = message["role"], message["content"]
    if role == "user":
        return HumanMessage(content, id=name)
    if role == "system":
        return SystemMessage(content, id=name)
    if role == "tool":
        return ToolMessage(content, tool_call_id=message["tool_call_id"], id=name)
    calls = [
        {
            "id": call["id"],
            "name": call["function"]["name"],
            "args": json.loads(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls") or ()
    ]
    return AIMessage(content or "", tool_calls=calls, id=name)


def indexes(messages: list[BaseMessage]) -> list[int]:
    return [int(message.id) for message in messages]


def summarised(messages: list[BaseMessage], keep: int) -> list[int]:
    """What the middleware would keep behind its summary; its own cut, without calling a model."""
    model = FakeListChatModel(responses=["summary"])
    middleware = SummarizationMiddleware(model, trigger=("messages", 1), keep=("messages", max(1, keep)))
    cut = middleware._determine_cutoff_index(messages)  # noqa: SLF001 - the cut without the model
    return indexes(messages) if cut <= 0 else [-1, *indexes(messages[cut:])]


def trimmed(messages: list[BaseMessage], tokens: int, **more: Any) -> list[int]:
    kept = trim_messages(
        messages, max_tokens=tokens, token_counter="approximate", include_system=True, **more
    )
    return indexes(kept)


def main() -> None:
    for line in sys.stdin:
        case = json.loads(line)
        messages = converted(case["messages"])
        print(
            json.dumps(
                {
                    "langchain-core trim_messages": trimmed(messages, case["tokens"]),
                    'trim_messages, start_on="human"': trimmed(messages, case["tokens"], start_on="human"),
                    "LangChain SummarizationMiddleware": summarised(messages, case["keep"]),
                    "symfonic-core _pair_aware_history_slice": indexes(
                        _pair_aware_history_slice(messages, case["keep"])
                    ),
                }
            ),
            flush=True,
        )


main()
