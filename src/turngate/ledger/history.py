"""A request read as a chain: where each message stands, its key, and what stands before them all."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from turngate.errors import WireError
from turngate.ledger.canonical import child_key, digest
from turngate.wire import Source, Wire
from turngate.wire.layout import message_nodes, role_of, without_marks
from turngate.wire.prefix import head
from turngate.wire.scan import Node, scan, value_of

#: Messages whose facts are remembered by their bytes: a request repeats all but the newest.
_REMEMBERED: Final = 20_000
#: Roles of the messages that are Chat Completions' system prompt when they stand first.
SYSTEM_ROLES: Final = frozenset({"system", "developer"})
_MAX_ROLE_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class Link:
    """A message in the chain."""

    key: bytes
    """Hash of the parent's key and `digest`."""
    parent: bytes
    """Key of the message before it, or of the root."""
    digest: bytes
    """Hash of its canonical form."""
    spelled: bytes
    """Hash of its bytes as they came, cache marks left out."""
    role: str
    """Its role."""
    index: int
    """Its index among all messages of the request."""
    node: Node
    """Its place in the body."""


@dataclass(frozen=True, slots=True)
class History:
    """A request as a chain."""

    body: bytes
    """The request as it came."""
    wire: Wire
    """Its format."""
    nodes: tuple[Node, ...]
    """The places of all messages, the leading system messages of Chat Completions included."""
    links: tuple[Link, ...]
    """The messages in the chain: all but leading system messages, which stand beside it."""
    tools: bytes
    """Hash of the tools as they came, cache marks left out."""
    system: bytes
    """Hash of the system prompt, likewise."""
    model: str
    """The model it asks for; "" if it names none."""

    def message(self, index: int) -> Any:
        """The value of the message of that index."""
        node = self.nodes[index]
        return _loads(self.body[node.start : node.end])


class Reader:
    """Reads requests of one wire; remembers what it found out about each message by the message's bytes."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._known: OrderedDict[bytes, tuple[bytes, bytes, str]] = OrderedDict()

    def read(self, source: Source, root: bytes) -> History:
        """The chain of a request that begins at the key `root`.

        Raises:
            WireError: it is not JSON, or has no list of messages.
        """
        body = as_bytes(source)
        top = scan(body)
        nodes = message_nodes(top, self._wire)
        facts = [self._facts(body, node) for node in nodes]
        first = _leading(facts) if self._wire == "chat" else 0
        links = []
        parent = root
        for index in range(first, len(nodes)):
            own, spelled, role = facts[index]
            key = child_key(parent, own)
            links.append(Link(key, parent, own, spelled, role, index, nodes[index]))
            parent = key
        tools, system = self._beside(body, top)
        if first:
            system = _hash(b"".join(spelled for _, spelled, _ in facts[:first]))
        return History(body, self._wire, tuple(nodes), tuple(links), tools, system, _model(body, top))

    def _facts(self, body: bytes, node: Node) -> tuple[bytes, bytes, str]:
        """(digest, hash without marks, role) of a message."""
        raw = body[node.start : node.end]
        name = _hash(raw)
        known = self._known.get(name)
        if known is None:
            message = _loads(raw)
            role = role_of(message, self._wire)[:_MAX_ROLE_CHARS].encode("ascii", "replace").decode()
            known = (digest(message), _hash(without_marks(body, node, self._wire)), role)
            self._known[name] = known
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known

    def _beside(self, body: bytes, top: Node) -> tuple[bytes, bytes]:
        """Hashes of the tools and of the system field; empty where there are none."""
        found = list(head(body, self._wire, top))
        parts = ([each.raw for each in found if each.kind == kind] for kind in ("tools", "system"))
        tools, system = (_hash(b"\0".join(raws)) if raws else b"" for raws in parts)
        return tools, system


def as_bytes(source: Source) -> bytes:
    """A request's body; one that was given as values is serialised."""
    if isinstance(source, bytes):
        return source
    try:
        return orjson.dumps(source)
    except TypeError:  # lone surrogates, integers beyond 64 bits, mappings that are no dict
        return json.dumps(source, default=_as_json).encode()


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise WireError(f"a {type(value).__name__} cannot stand in a request; give JSON values")


def _leading(facts: Sequence[tuple[bytes, bytes, str]]) -> int:
    return next((i for i, (_, _, role) in enumerate(facts) if role not in SYSTEM_ROLES), len(facts))


def _model(body: bytes, top: Node) -> str:
    node = top.get("model") if top.kind == "object" else None
    return str(value_of(body, node)) if node is not None and node.kind == "string" else ""


def _loads(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:  # lone surrogates, depth: only the scanner takes them
        return value_of(raw, scan(raw))


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]
