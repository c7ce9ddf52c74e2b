"""The outline of a source file by tree-sitter, where the extra `code` is installed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from turngate.compress.kinds.code import scan
from turngate.compress.kinds.code.languages import Grammar, Language
from turngate.compress.kinds.code.roles import Role, paint

#: Parsing takes some 0.3 ms for 1 kB; longer texts are scanned.
MOST_BYTES = 64_000
#: On what is no source a parser may take minutes: it tries many readings, and looks for the end of a quote
#: from each place that may begin one. So its work is counted, which depends on the text alone. Of source,
#: measured in ten languages, a step is 90 bytes or more, and each block is read up to five times.
STEPS_AT_ONCE, STEP_BYTES = 200, 50
READS_AT_ONCE, BLOCK_READS, BLOCK_BYTES = 30, 8, 4_096
#: How deep a definition may be wrapped: `export const f = wrap(() => { … })`.
WRAPPED_MOST = 5
#: How deep classes and namespaces are followed.
NESTED_MOST = 12

# What nodes are for, by parts of the names of their types, which the grammars choose alike.
_IMPORT = re.compile(r"import|include|use_decl|using_directive|package|extern_crate|namespace_use")
_CONTAINER = re.compile(
    r"class|struct|interface|trait|impl_item|module|namespace_def|namespace_decl|internal_module|object_decl"
    r"|companion|protocol|extension|record|mod_item|foreign_mod|linkage|enum_item|enum_decl|enum_spec|union"
)
_CALLABLE = re.compile(
    r"function|method|constructor|destructor|func_|init_decl|deinit|macro_def|arrow|closure|lambda|operator_decl"
)
#: What only stands around others, at no line of its own or at one that says little.
_WRAPPER = re.compile(
    r"export|template_decl|preproc_if|preproc_el|declaration_list|ERROR|ambient|^program$|^declaration$"
)
_CONSTANT = re.compile(
    r"const|static_item|type_|typedef|alias|field|property|assignment|variable|lexical|declaration|using"
    r"|define|macro"
)
_BODY = re.compile(r"body|block|compound_statement|declaration_list|enumerator_list")
_COMMENT = re.compile(r"comment")
#: Nodes that may wrap a definition.
_SPINE = re.compile(
    r"export|lexical|variable|assignment|declarat|type_|expression|call|arguments|pair|property|value|template"
)


@cache
def _parsing(grammar: Grammar) -> tuple[Any, Any] | None:
    """The class that parses, and the loaded grammar; None where the extra is not installed."""
    try:
        tree_sitter, own = import_module("tree_sitter"), import_module(grammar.module)
        return tree_sitter.Parser, tree_sitter.Language(getattr(own, grammar.function)())
    except (ImportError, AttributeError, ValueError, OSError):
        return None


def roles_of(data: bytes, language: Language) -> bytearray | None:
    """A role for each line of `data`; None where there is no parser for it."""
    if language.grammar is None or len(data) > MOST_BYTES:
        return None
    parsing = _parsing(language.grammar)
    if parsing is None:
        return None
    root = _root(*parsing, data)
    if root is None:
        return None
    rows = data.split(b"\n")
    roles = bytearray(len(rows))
    _Walk(rows, roles).children(root, Role.HEAD)
    # Macros and broken places lead a grammar astray; a line tells by itself.
    return _richer(roles, scan.roles_of(data)) if root.has_error else roles


def _root(parser: Any, grammar: Any, data: bytes) -> Any | None:
    """The root of the tree of `data`; None where that is too much work."""
    work = _Work(data, STEPS_AT_ONCE + len(data) // STEP_BYTES, READS_AT_ONCE + _blocks(data) * BLOCK_READS)
    try:
        # Only a parser that fetches its text reports; it is another for each text, for threads' sake.
        tree = parser(grammar).parse(work.read, progress_callback=work.is_too_much)
    except ValueError:
        return None
    return tree.root_node if work.reads > 0 else None


def _blocks(data: bytes) -> int:
    return len(data) // BLOCK_BYTES + 1


@dataclass(slots=True)
class _Work:
    """What a parser may do with one text."""

    data: bytes
    #: How many steps and reads are left.
    steps: int
    reads: int

    def read(self, offset: int, _: object) -> bytes:
        """The block from `offset`; nothing, which ends the text, when too much was read."""
        self.reads -= 1
        return self.data[offset : offset + BLOCK_BYTES] if self.reads > 0 else b""

    def is_too_much(self, _: int, __: bool) -> bool:
        """Whether parsing is to stop."""
        self.steps -= 1
        return self.steps <= 0 or self.reads <= 0


def _richer(ours: bytearray, other: bytearray) -> bytearray:
    """The outline with more heads."""
    return other if _heads(other) > _heads(ours) else ours


def _heads(roles: bytearray) -> int:
    return roles.count(Role.HEAD) + roles.count(Role.MEMBER)


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk over the tree of one file."""

    rows: list[bytes]
    roles: bytearray

    def children(self, node: Any, head: Role, depth: int = 0) -> None:
        """The roles of the lines of a file or of a class's body; of definitions, `head`."""
        for child in node.named_children:
            kind = child.type
            first, end = child.start_point[0], child.end_point[0] + 1
            if _COMMENT.search(kind):
                continue
            if _IMPORT.search(kind):
                paint(self.roles, first, end - (child.end_point[1] == 0), Role.IMPORT)
            elif defined := _definition(child):
                inside = self._head(first, defined[1], head)
                self._inside(*defined, inside, depth + 1)
            elif _WRAPPER.search(kind) and depth < NESTED_MOST:
                self.children(child, head, depth + 1)
            elif _CONSTANT.search(kind):
                paint(self.roles, first, first + 1, Role.CONSTANT)

    def _head(self, first: int, body: Any, head: Role) -> int:
        """The lines of a head from line `first` up to its `body`; the line that the inside begins in."""
        row, column = body.start_point
        inside: int = max(row + bool(self.rows[row][:column].strip()), first + 1)
        paint(self.roles, first, inside, head)
        return inside

    def _inside(self, node: Any, body: Any, inside: int, depth: int) -> None:
        """The lines of the `body` of `node` from line `inside`."""
        if _CONTAINER.search(node.type) and depth < NESTED_MOST:
            self.children(body, Role.MEMBER, depth)
        else:
            paint(self.roles, inside, body.end_point[0] + 1, Role.BODY)


def _definition(node: Any) -> tuple[Any, Any] | None:
    """What `node` defines, itself or inside what wraps it, and its body."""
    for _ in range(WRAPPED_MOST):
        kind = node.type
        is_defined = _CALLABLE.search(kind) or _CONTAINER.search(kind)
        body = _body(node) if is_defined else None
        if body is not None:
            return node, body
        if _WRAPPER.search(kind) and not kind.startswith("export"):
            return None
        inner = node.named_children if is_defined or _SPINE.search(kind) else ()
        if not inner:
            return None
        node = next((child for child in inner if _is_definition(child.type)), inner[-1])
    return None


def _is_definition(kind: str) -> bool:
    return bool(_CALLABLE.search(kind) or _CONTAINER.search(kind))


def _body(node: Any) -> Any | None:
    """The part of a definition that isn't its head."""
    body = node.child_by_field_name("body")
    if body is not None:
        return body
    last = node.named_children[-1] if node.named_child_count else None
    return last if last is not None and _BODY.search(last.type) else None
