"""A plan applied: what goes is stored whole, what stays is never altered, and a record stands between.

Nothing here decides; `turngate.window.cut` does. Nothing is lost: every text that leaves the list is in the
store before the list that lacks it is handed out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from turngate import ingress, marker
from turngate.compress import shorten
from turngate.events import label
from turngate.marker import Marker
from turngate.store import to_bytes, to_text
from turngate.window import offload
from turngate.window.measure import Sizes
from turngate.window.offload import Leaf
from turngate.window.record import digest, frame, transcript
from turngate.window.record.facts import Facts, gather
from turngate.window.request import Place
from turngate.window.units import SYSTEM_ROLES, Message, Unit, shapes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from turngate.store import Stored
    from turngate.window.book import SummaryNote
    from turngate.window.cut import Plan
    from turngate.window.record.frame import Span
    from turngate.wire import Path, Wire

#: Stores bytes under a kind, a tool's name, a call's id and what brought them about.
Put = Callable[[bytes, str, str, str, str], "Stored"]

#: Of markers that are written here; those of results that were shortened when they arrived say ``inline``.
MODE: Final = "engine"
TRANSCRIPT_KIND: Final = "transcript"
SKELETON_KIND: Final = "skeleton"
#: What the marker of an offloaded text weighs beside the excerpt.
_MARKER_TOKENS: Final = 60
_LONGEST_CALL_CHARS: Final = 2_000
#: Results from this length on are stored by themselves when they go.
_APART_CHARS: Final = 120
#: What of them stays in the transcript: mostly the end, which says how it came out.
_APART_TOKENS: Final = 120
_APART_HEAD_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class Shelf:
    """The store, as far as it is needed here. Each may raise a `StoreError`."""

    put: Put
    """Stores bytes."""
    ours: Callable[[str], bool]
    """Whether a marker's id is one of this session."""
    clean: Callable[[Any], Any]
    """A JSON value as it may be kept."""


class Offloader:
    """Puts long texts away, and knows beforehand what that would save."""

    def __init__(
        self,
        messages: Sequence[Message],
        wire: Wire,
        sizes: Sizes,
        shelf: Shelf,
        *,
        excerpt_tokens: float,
    ) -> None:
        self._messages = messages
        self._wire = wire
        self._sizes = sizes
        self._shelf = shelf
        self._excerpt = excerpt_tokens
        self._calls: dict[str, Leaf] | None = None

    def shrunk(self, unit: Unit) -> float:
        """What a unit would weigh with its long texts put away."""
        weight = unit.tokens
        for at in range(unit.first, unit.end):
            for leaf in self._long(self._messages[at], spoken=unit.user):
                weight -= self._weight(leaf, self._messages[at]) - self._excerpt - _MARKER_TOKENS
        return weight

    def change(self, at: int, *, spoken: bool) -> Message:
        """The message with its long texts put away; the same object where that saves nothing."""
        message = self._messages[at]
        changes = {}
        for leaf in self._long(message, spoken=spoken):
            shown = self._away(leaf)
            value = offload.stand_in(leaf, shown, self._wire)
            if self._sizes.text(shown) < self._sizes.text(leaf.text):
                changes[leaf.path] = value
        return offload.replaced(message, changes) if changes else message

    def _weight(self, leaf: Leaf, message: Message) -> float:
        """What a text weighs in its message; arguments that are an object weigh less than their JSON."""
        value: Any = message
        for step in leaf.path:
            value = value[step]
        return self._sizes.value(value, str(leaf.path[-1]))

    def _long(self, message: Message, *, spoken: bool) -> list[Leaf]:
        least = offload.LONG_TIMES * self._excerpt + _MARKER_TOKENS
        return [
            leaf
            for leaf in offload.leaves(message, self._wire, spoken=spoken)
            # A token has at least a character, so that most texts need no counting.
            if len(leaf.text) > least and self._weight(leaf, message) > least
        ]

    def _away(self, leaf: Leaf) -> str:
        """Store a text; what is shown for it."""
        known = marker.parse(leaf.text)
        if known is not None and self._shelf.ours(known.hash):
            line, _, rest = leaf.text.partition("\n")
            return f"{line}\n{offload.excerpt(rest, self._excerpt, self._sizes.text)}"
        call = self._call(leaf)
        data = to_bytes(leaf.text)
        about = f"{call.name} {call.text}"[:_LONGEST_CALL_CHARS] if call else ""
        tool = call.name if call else leaf.name
        stored = self._shelf.put(data, leaf.what, tool, leaf.call_id, about)
        short = shorten(leaf.text, tool=tool, args=call.text if call else None, least_chars=0)
        fits = leaf.what == "result" and short.changed and self._sizes.text(short.text) <= self._excerpt
        kind, seen, shown = (
            (short.kind, short.preview, short.text)
            if fits
            else (
                leaf.what,
                offload.preview(leaf.text),
                offload.excerpt(leaf.text, self._excerpt, self._sizes.text),
            )
        )
        fields = (("kind", kind), *((("redacted", "yes"),) if stored.redacted else ()))
        sort = ingress.marker_type(tool) if leaf.what == "result" else "context"
        return f"{marker.render(Marker(stored.id, sort, stored.size, MODE, seen, fields))}\n{shown}"

    def _call(self, leaf: Leaf) -> Leaf | None:
        """The call that a result answers."""
        if leaf.what != "result":
            return None
        if self._calls is None:
            found = (each for message in self._messages for each in offload.leaves(message, self._wire))
            self._calls = {each.call_id: each for each in found if each.what == "arguments"}
        return self._calls.get(leaf.call_id)


def restored(message: Message, wire: Wire, whole: Callable[[str], str | None]) -> Message:
    """The message with the texts back that were put away here; `whole` gives the text of an id of ours."""
    changes: dict[Path, Any] = {}
    for leaf in offload.leaves(message, wire):
        text = offload.away(leaf.text) if leaf.what == "arguments" else leaf.text
        found = marker.parse(text)
        original = whole(found.hash) if found is not None and found.mode == MODE else None
        if original is not None:
            is_object = leaf.what == "arguments" and wire == "anthropic"
            changes[leaf.path] = json.loads(original) if is_object else original
    return offload.replaced(message, changes) if changes else message


@dataclass(frozen=True, slots=True)
class Stay:
    """What stays of a list, in order."""

    head: tuple[Place, ...]
    """What stands before the record: system prompts, the provider's own compaction."""
    tail: tuple[Place, ...]
    """What stands behind it."""
    offloaded: int
    """How many messages have texts put away."""


def stay(
    sent: Sequence[Place], plan: Plan, offloader: Offloader, units: Sequence[Unit], *, strip: bool
) -> Stay:
    """What stays by a plan; with `strip`, without thinking from the first change on."""
    head: list[Place] = []
    tail: list[Place] = []
    offloaded = 0
    # A record stands before the whole tail; without one, the first shortened text is the first change.
    touched = records = any(step.action == "summarise" for step in plan.steps)
    leading = True
    for step, unit in zip(plan.steps, units, strict=True):
        alone = unit.compaction or (unit.system and unit.messages == 1)
        leading = leading and step.action == "keep" and alone
        if step.action == "summarise":
            continue
        part = list(sent[step.first : step.end])
        if step.action == "offload":
            touched = True
            part = [_changed(each, at, unit, offloader) for at, each in enumerate(part, step.first)]
            offloaded += sum(
                new is not old for new, old in zip(part, sent[step.first : step.end], strict=True)
            )
        if strip and touched and not leading:
            part = [_place(each, offload.without_thinking(each.message)) for each in part]
        (head if leading and records else tail).extend(part)
    return Stay(tuple(head), tuple(tail), offloaded)


def _changed(place: Place, at: int, unit: Unit, offloader: Offloader) -> Place:
    return _place(place, offloader.change(at, spoken=unit.user))


def _place(old: Place, message: Message) -> Place:
    return old if message is old.message else Place(message, None)


@dataclass(frozen=True, slots=True)
class Removed:
    """What went, stored."""

    facts: Facts
    """What is known of all that ever went."""
    spans: tuple[Span, ...]
    """All that was ever stored, oldest first."""
    ref: str
    """Id under which all of it is retrieved."""
    size_bytes: int
    """Of what is stored there."""
    first: int
    """Number of the first message that went now."""


def remove(messages: Sequence[Message], wire: Wire, old: SummaryNote | None, shelf: Shelf) -> Removed:
    """Store the messages that go, whole and readable. Raises a `StoreError` if that cannot be done.

    Long results are stored each by itself, under the call that brought them about, as a search wants them;
    the transcript has a marker in their place.
    """
    before = Facts.from_dict(old.facts) if old else Facts()
    first = before.messages
    facts = gather(before, messages, wire, first=first)
    apart = _Apart(shelf, facts.markers)
    put = shelf.put
    text, skeleton = transcript.render(apart.all(messages, wire), wire, first=first)
    last = first + len(messages) - 1
    stored = put(to_bytes(text), TRANSCRIPT_KIND, "", "", f"earlier messages {first}-{last}")
    # Packed, so that a search does not come upon it.
    bones = put(zstd.compress(to_bytes(json.dumps(shelf.clean(skeleton)))), SKELETON_KIND, "", "", "")
    span = (first, last, stored.id, stored.size, bones.id)
    spans: tuple[Span, ...] = (*(old.spans if old else ()), span)
    if len(spans) > 1:
        stored = put(to_bytes(frame.contents(spans)), TRANSCRIPT_KIND, "", "", "list of earlier messages")
    return Removed(facts, spans, stored.id, stored.size, first)


def read_span(span: Span, get: Callable[[str], bytes]) -> list[Message]:
    """The messages of a span, as they were when they went; `get` gives stored bytes by id."""
    skeleton = json.loads(zstd.decompress(get(span[4])))
    return list(transcript.parse(to_text(get(span[2])), skeleton))


class _Apart:
    """Stores long results by themselves."""

    def __init__(self, shelf: Shelf, markers: dict[str, str]) -> None:
        self._shelf = shelf
        self._markers = markers

    def all(self, messages: Sequence[Message], wire: Wire) -> list[Message]:
        """The messages with markers in the place of long results."""
        calls: dict[str, Leaf] = {}
        out: list[Message] = []
        for message in messages:
            changes: dict[Path, Any] = {}
            for leaf in offload.leaves(message, wire):
                if leaf.what == "arguments":
                    calls[leaf.call_id] = leaf
                elif leaf.what == "result" and self._is_long(leaf.text):
                    changes[leaf.path] = self._away(leaf, calls.get(leaf.call_id))
            out.append(offload.replaced(message, changes) if changes else message)
        return out

    def _is_long(self, text: str) -> bool:
        if len(text) < _APART_CHARS:
            return False
        known = marker.parse(text)
        return known is None or not self._shelf.ours(known.hash)

    def _away(self, leaf: Leaf, call: Leaf | None) -> str:
        tool, args = (call.name, call.text) if call else (leaf.name, "")
        about = f"{tool} {args}"[:_LONGEST_CALL_CHARS].strip()
        stored = self._shelf.put(to_bytes(leaf.text), leaf.what, tool, leaf.call_id, about)
        self._markers[stored.id] = label(tool, args)
        sort = ingress.marker_type(tool)
        sign = Marker(stored.id, sort, stored.size, MODE, offload.preview(leaf.text), (("kind", leaf.what),))
        seen = offload.excerpt(leaf.text, _APART_TOKENS, head_share=_APART_HEAD_SHARE)
        shown = f"{marker.render(sign)}\n{seen}"
        return shown if len(shown) < len(leaf.text) else leaf.text


def body(
    removed: Removed, prose: str, count: Callable[[str], float], *, most_tokens: float, first_tokens: float
) -> str:
    """What the record says: a model's prose with the first request, or the digest."""
    room = digest.Room(most_tokens, first_tokens, count)
    if not prose:
        return digest.render(removed.facts, room)
    quoted = Facts(requests=removed.facts.requests[:1])
    return "\n".join(filter(None, (digest.render(quoted, room), "## Summary", prose)))


def said(message: Message, wire: Wire) -> str:
    """What is said in a message, results and arguments left out."""
    return "\n".join(leaf.text for leaf in offload.leaves(message, wire) if leaf.what == "said")


def entries_in_view(tail: Sequence[Place], wire: Wire) -> int:
    """Earlier messages that stand verbatim before the newest user message."""
    read = shapes([place.message for place in tail], wire)
    newest = next((at for at in range(len(read) - 1, -1, -1) if read[at].user and not read[at].results), 0)
    return sum(
        place.origin is not None and shape.role not in SYSTEM_ROLES
        for place, shape in zip(tail[:newest], read[:newest], strict=True)
    )


def running(plan: Plan, units: Sequence[Unit]) -> bool:
    """Whether exchanges went that belong to the request which stays in view."""
    newest = max((at for at, unit in enumerate(units) if unit.user), default=-1)
    return any(step.action == "summarise" for step in plan.steps[newest + 1 :]) and newest >= 0


def items(sent: Sequence[Place], *, least_cover: int, total: int) -> tuple[int, tuple[Any, ...]]:
    """How many of the client's messages a list must stand for, and what is sent for these.

    Args:
        sent: the whole list.
        least_cover: what an earlier epoch stood for.
        total: the client's messages.
    """
    tail = len(sent)
    cover = total
    while tail and cover > least_cover and sent[tail - 1].origin == cover - 1:
        tail, cover = tail - 1, cover - 1
    first = sent[:tail]
    return cover, tuple(place.message if place.origin is None else place.origin for place in first)


def plan_data(plan: Plan) -> Mapping[str, Any]:
    """The plan as data, runs of like steps together."""
    steps: list[dict[str, Any]] = []
    for step in plan.steps:
        same = steps and steps[-1]["action"] == step.action and steps[-1]["reason"] == step.reason
        if same:
            steps[-1]["end"] = step.end
            steps[-1]["tokens"] += round(step.tokens)
            steps[-1]["after_tokens"] += round(step.after_tokens)
        else:
            steps.append(
                {
                    "first": step.first,
                    "end": step.end,
                    "action": step.action,
                    "reason": step.reason,
                    "tokens": round(step.tokens),
                    "after_tokens": round(step.after_tokens),
                }
            )
    return {
        "steps": steps,
        "before_tokens": round(plan.before_tokens),
        "limit_tokens": round(plan.limit_tokens),
    }


def as_json(message: Any) -> Any:
    """A message that can be kept as JSON, its containers plain."""
    return json.loads(json.dumps(message, default=dict))
