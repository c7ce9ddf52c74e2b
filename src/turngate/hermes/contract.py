"""What the host hands to each hook, by name. Data only.

Read in hermes-agent 0.19.0 and seen in runs of it; `ADDED` is what 0.21 hands over besides. A hook has to
bear all of them, each of them missing, and names that nobody knows yet.
"""

from __future__ import annotations

_CALL = "tool_name args task_id session_id tool_call_id turn_id api_request_id"
_API = (
    "task_id turn_id api_request_id session_id platform model provider base_url api_mode api_call_count"
    " message_count started_at"
)
_TURN = "session_id task_id turn_id user_message conversation_history model platform"

KEYWORDS: dict[str, tuple[str, ...]] = {
    hook: (*names.split(), "telemetry_schema_version")
    for hook, names in {
        "on_session_start": "session_id model platform",
        "on_session_reset": "session_id platform reason old_session_id new_session_id",
        "on_session_finalize": "session_id platform reason old_session_id new_session_id",
        "subagent_start": (
            "parent_session_id parent_turn_id parent_subagent_id child_session_id child_subagent_id"
            " child_role child_goal"
        ),
        "subagent_stop": (
            "parent_session_id parent_turn_id child_session_id child_role child_summary child_status"
            " duration_ms"
        ),
        "pre_llm_call": f"{_TURN} is_first_turn sender_id",
        "post_llm_call": f"{_TURN} assistant_response",
        "pre_tool_call": f"{_CALL} middleware_trace",
        "transform_terminal_output": "command output returncode task_id env_type",
        "transform_tool_result": f"{_CALL} result duration_ms status error_type error_message",
        "pre_api_request": (
            f"{_API} user_message conversation_history request_messages tool_count approx_input_tokens"
            " request_char_count max_tokens middleware_trace request"
        ),
        "post_api_request": (
            f"{_API} api_duration ended_at finish_reason response_model response usage assistant_message"
            " assistant_content_chars assistant_tool_call_count"
        ),
    }.items()
}
"""Hook -> the keywords of 0.19.0."""

ADDED: dict[str, tuple[str, ...]] = {"pre_llm_call": ("parent_session_id",)}
"""Hook -> the keywords that came later."""
