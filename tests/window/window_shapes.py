"""Messages in a line each, as the contract's table writes them; settings, and a summariser."""

from __future__ import annotations

import json

from turngate.settings import WindowSettings

#: symfonic-core's defaults; every request counts, whether or not it pays.
SEED = WindowSettings(
    max_history_share=0.5,
    chars_per_token=4,
    keep_recent_messages=10,
    soft_threshold_tokens=4_000,
    max_chunk_tokens=30_000,
    answer_tokens=0,
)
#: A window of ten tokens of one character each.
TINY = WindowSettings(
    context_window_tokens=10,
    max_history_share=1.0,
    chars_per_token=1,
    keep_recent_messages=2,
    answer_tokens=0,
)


class Summariser:
    """Answers with what it is told to, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers) or ["the summary"]
        self.asked = []

    def __call__(self, ask):
        self.asked.append(ask)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def s(text="You are X"):
    return {"role": "system", "content": text}


def h(text="question"):
    return {"role": "user", "content": text}


def a(*calls, text=None, args="{}"):
    """An assistant's message; with calls when ids are given."""
    if not calls:
        return {"role": "assistant", "content": text or "answer"}
    made = [{"id": i, "type": "function", "function": {"name": "read", "arguments": args}} for i in calls]
    return {"role": "assistant", "content": text, "tool_calls": made}


def t(call_id, text="result"):
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def loop(exchanges, size=8_000, task="TASK: find the bug"):
    """A request and exchanges of one call each."""
    out = [h(task)]
    for at in range(exchanges):
        out += [a(f"c{at}", args=json.dumps({"path": f"src/f{at}.py"})), t(f"c{at}", words(size, f"r{at}"))]
    return out


def words(size, tag="w"):
    """A text of so many characters, no line like another."""
    lines, length, at = [], 0, 0
    while length < size:
        lines.append(f"{tag} line {at}: value {at * 7919 % 10007}")
        length += len(lines[-1]) + 1
        at += 1
    return "\n".join(lines)[:size]


def chat(turns, size=2_000, first="q0: what is the plan?"):
    """Turns of a request and an answer."""
    out = []
    for at in range(turns):
        out += [h(first if at == 0 else f"q{at} " + words(size, f"u{at}")), a(text=words(size, f"a{at}"))]
    return out


def use(*ids, thinking=None, text=None, args=None):
    """An Anthropic assistant's message with calls."""
    content = []
    if thinking:
        content.append({"type": "thinking", "thinking": "hm", "signature": thinking})
    if text:
        content.append({"type": "text", "text": text})
    content += [{"type": "tool_use", "id": i, "name": "read", "input": args or {"path": "a"}} for i in ids]
    return {"role": "assistant", "content": content}


def results(*pairs, text=None):
    """An Anthropic user's message with results."""
    content = [{"type": "tool_result", "tool_use_id": i, "content": said} for i, said in pairs]
    if text:
        content.append({"type": "text", "text": text})
    return {"role": "user", "content": content}
