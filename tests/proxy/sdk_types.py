"""Whether a request fits the types that the providers' own clients declare for what they send."""

from __future__ import annotations

import json
from typing import Any

from anthropic.types import message_create_params as anthropic_params
from google.genai import types as gemini_types
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params as responses_params
from pydantic import TypeAdapter

REQUESTS = {
    "anthropic": TypeAdapter(anthropic_params.MessageCreateParamsNonStreaming),
    "chat": TypeAdapter(chat_params.CompletionCreateParamsNonStreaming),
    "responses": TypeAdapter(responses_params.ResponseCreateParamsNonStreaming),
}


def check(body: bytes, wire: str) -> None:
    """Raises pydantic's ValidationError for a body that does not fit."""
    value = json.loads(body)
    # Streamed requests differ in this field alone.
    value.pop("stream", None)
    if wire == "gemini":
        for content in value["contents"]:
            gemini_types.Content.model_validate(content)
        for tool in value.get("tools", ()):
            gemini_types.Tool.model_validate(tool)
    else:
        _walk(REQUESTS[wire].validate_python(value))


def _walk(value: Any) -> None:
    """Pydantic checks an Iterable when it is read, so everything is read."""
    if isinstance(value, dict):
        value = value.values()
    if not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for each in value:
            _walk(each)
