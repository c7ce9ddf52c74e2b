"""The oracle: what a provider would refuse about a request, before it is sent.

Product code, tests and benchmarks all ask this one place. Each rule names its source. Structure is judged:
what depends on the model, the account or a beta header is left to the provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from turngate.errors import WireError
from turngate.wire import rules_anthropic, rules_chat, rules_gemini, rules_history, rules_responses
from turngate.wire.layout import LAYOUT, message_values
from turngate.wire.rule import Asked, Check, Finding, HistoryCheck, Rule
from turngate.wire.scan import Path, show
from turngate.wire.view import Source, Wire, parse

SHAPE: Final = Rule(
    "message-shape",
    "there is an array of messages, each an object with a role (Responses: of items; Gemini: of contents)",
    "the providers' SDK types",
)

RULES: Final[Mapping[Wire, tuple[Rule, ...]]] = {
    "chat": (SHAPE, *rules_chat.RULES, *rules_history.RULES["chat"]),
    "anthropic": (SHAPE, *rules_anthropic.RULES, *rules_history.RULES["anthropic"]),
    "responses": (SHAPE, *rules_responses.RULES, *rules_responses.HISTORY_RULES),
    "gemini": (SHAPE, *rules_gemini.RULES, *rules_gemini.HISTORY_RULES),
}
"""All rules of a wire. Those of history apply only when an earlier request is given."""

_CHECKS: Final[Mapping[Wire, tuple[Check, ...]]] = {
    "chat": rules_chat.CHECKS,
    "anthropic": rules_anthropic.CHECKS,
    "responses": rules_responses.CHECKS,
    "gemini": rules_gemini.CHECKS,
}
_HISTORY_CHECKS: Final[Mapping[Wire, tuple[HistoryCheck, ...]]] = {
    **rules_history.CHECKS,
    "responses": rules_responses.HISTORY_CHECKS,
    "gemini": rules_gemini.HISTORY_CHECKS,
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason for which the provider would refuse the request."""

    rule: str
    """Name of a rule in :data:`RULES`."""
    path: Path
    """Where in the request it is."""
    text: str
    """The place and the fault, for people."""


def violations(source: Source, wire: Wire, *, sent: Source | None = None) -> list[Violation]:
    """Everything the provider would refuse; empty for a valid request. Never raises on any parsed value.

    Args:
        source: The request (raw body or parsed), or a bare list of messages; then rules about tools and
            top-level fields have nothing to look at.
        wire: The format it is meant to be in.
        sent: A request of the same conversation that the provider accepted before. Then signed thinking and
            reasoning fields must come back unchanged, and what signed thinking is bound to must be as it was.
    """
    try:
        asked = _asked(source, wire)
        earlier = None if sent is None else _asked(sent, wire)
    except WireError as error:
        return [Violation(SHAPE.name, (), str(error))]
    return [Violation(f.rule, f.path, f"{show(f.path)}: {f.detail}") for f in _findings(asked, wire, earlier)]


def _asked(source: Source, wire: Wire) -> Asked:
    value: Any = parse(source)
    found = message_values(value, wire)
    request = value if isinstance(value, Mapping) else {}
    base = (LAYOUT[wire].messages,) if request else ()
    if [path for path, _ in found] == [base]:  # Responses: a string, which is the user's message
        return Asked(request, ({"role": "user", "content": found[0][1]},), base)
    for path, message in found:
        if isinstance(message, str):
            raise WireError(f"{show(path)} is a string; send it as a message")
    return Asked(request, tuple(message for _, message in found), base)


def _findings(asked: Asked, wire: Wire, sent: Asked | None) -> Iterator[Finding]:
    for check in _CHECKS[wire]:
        yield from check(asked)
    if sent is not None:
        for history_check in _HISTORY_CHECKS[wire]:
            yield from history_check(sent, asked)
