"""How a tool of ours answers: as JSON, and never so long that the host would put it away. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turngate.store import Retrieved

#: The host puts a result away that is longer than 15 % of the window, at 4 characters a token. With the
#: smallest window that it takes, 64,000 tokens, that is 38,400 characters.
ANSWER_CHARS = 38_000
#: For the keys of an answer and what else stands in it beside the text.
_FRAME_CHARS = 2_000
#: Characters of which JSON makes six. Of quotes, backslashes and line ends it makes two.
_SIXFOLD = re.compile("[\x00-\x07\x0b\x0e-\x1f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def page_chars(text: str) -> int:
    """How many characters of `text` an answer holds, whichever they are."""
    return (ANSWER_CHARS - _FRAME_CHARS) // (6 if _SIXFOLD.search(text) else 2)


def spelled(answer: dict[str, Any]) -> str:
    """The answer as JSON; a lone surrogate, which has no UTF-8, is escaped."""
    text = json.dumps(answer, ensure_ascii=False, default=str)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def fitted(answer: dict[str, Any], key: str) -> dict[str, Any]:
    """`answer`, with only as many items of the list `key` as the host lets by, and how many are left off."""
    items = list(answer[key])
    answer = answer | {key: items}
    while items and len(spelled(answer)) > ANSWER_CHARS:
        items.pop()
        answer["left_off"] = answer.get("left_off", 0) + 1
    return answer


def part(found: Retrieved) -> dict[str, Any]:
    """What was asked for, where it stands, and how to go on."""
    answer: dict[str, Any] = {"found": True, "total_lines": found.total_lines}
    if found.first_line:
        answer["lines"] = f"{found.first_line}-{found.last_line}"
    if found.pages > 1:
        answer["page"] = f"{found.page} of {found.pages}"
    if found.note:
        answer["note"] = found.note
    return answer | {"text": found.text}
