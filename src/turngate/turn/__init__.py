"""A turn's snapshot: what the host, its memory, its notes and its hooks bring, fixed before the first call.

The names with an underscore are those of Hermes' ``agent.turn_context``.
"""

from turngate.turn.anchor import reanchor_current_turn_user_idx
from turngate.turn.attending import attend_with, confirm_with, drop_with
from turngate.turn.content import (
    append_notes_to_multimodal_content,
    compose_user_api_content,
    drop_stale_api_content,
    extract_api_content_sidecar,
    fence_memory,
    outgoing,
    sanitise,
    substitute_api_content,
)
from turngate.turn.context import Compacted, MemoryProvider, Step, TurnContext, TurnHost
from turngate.turn.documents import MemoryStates, States
from turngate.turn.native import NativeNote, native_note
from turngate.turn.notes import Note, NoteBox, consume_gateway_turn_context_notes
from turngate.turn.preflight import (
    compression_made_progress,
    message_tokens,
    messages_tokens,
    should_run_preflight_estimate,
)
from turngate.turn.prologue import PROLOGUE, build_turn_context, finish_turn
from turngate.turn.prompt import PromptTiers, SystemPrompt, system_prompt, volatile_change

_compression_made_progress = compression_made_progress
_should_run_preflight_estimate = should_run_preflight_estimate
_compose_user_api_content = compose_user_api_content
_substitute_api_content = substitute_api_content
_drop_stale_api_content = drop_stale_api_content
_append_notes_to_multimodal_content = append_notes_to_multimodal_content
_consume_gateway_turn_context_notes = consume_gateway_turn_context_notes
_reanchor_current_turn_user_idx = reanchor_current_turn_user_idx

__all__ = [
    "PROLOGUE",
    "Compacted",
    "MemoryProvider",
    "MemoryStates",
    "NativeNote",
    "Note",
    "NoteBox",
    "PromptTiers",
    "States",
    "Step",
    "SystemPrompt",
    "TurnContext",
    "TurnHost",
    "append_notes_to_multimodal_content",
    "attend_with",
    "build_turn_context",
    "compose_user_api_content",
    "compression_made_progress",
    "confirm_with",
    "consume_gateway_turn_context_notes",
    "drop_stale_api_content",
    "drop_with",
    "extract_api_content_sidecar",
    "fence_memory",
    "finish_turn",
    "message_tokens",
    "messages_tokens",
    "native_note",
    "outgoing",
    "reanchor_current_turn_user_idx",
    "sanitise",
    "should_run_preflight_estimate",
    "substitute_api_content",
    "system_prompt",
    "volatile_change",
]
