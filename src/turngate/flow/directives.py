"""Directives: standing instructions from Markdown files, and the set of them that is active.

The first folder that exists is the library: the one the settings name (``TURNGATE_DIRECTIVES_DIR``),
``./directives``, the user's, the shipped one. Folders are not merged, and one that is empty means: none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.errors import DirectiveError
from turngate.events import one_line
from turngate.flow.state import Directive
from turngate.flow.text import harmless
from turngate.settings import user_directives_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from importlib.resources.abc import Traversable

    from turngate.flow.state import FlowState

FILE_CHARS, SET_CHARS = 2_000, 4_000
NAME_CHARS = 40
#: A folder with more files than this is no folder of directives.
MAX_FILES = 200
SHIPPED = "data/directives"
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Library:
    """The directives that there are."""

    folder: str
    """Where they come from."""
    found: Mapping[str, Directive]
    """By name."""

    def get(self, name: str) -> Directive:
        """The directive of that name.

        Raises:
            DirectiveError: there is none; the nearest is named.
        """
        if name in self.found:
            return self.found[name]
        near = get_close_matches(name, self.found, n=1)
        hint = (
            f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(self.found)) or 'none'}"
        )
        raise DirectiveError(f"no directive {name!r} in {self.folder}; {hint}")

    def pick(self, names: Iterable[str]) -> tuple[Directive, ...]:
        """Those of `names` that there are."""
        return tuple(self.found[name] for name in dict.fromkeys(names) if name in self.found)


@dataclass(frozen=True, slots=True)
class Listing:
    """What `list_directives` answers."""

    folder: str
    """The library."""
    available: tuple[str, ...]
    """Every name, sorted."""
    active: tuple[str, ...]
    """Those that are active, in order."""
    latched: bool
    """Whether the set was changed by hand."""
    nudges: tuple[tuple[str, int | None], ...]
    """Stored nudges, each with its last turn (of the counter); None: it stays."""


def discover(named: Path | None = None, *, here: Path | None = None, user: Path | None = None) -> Library:
    """The library of the first folder that exists.

    Args:
        named: the folder that the settings name.
        here: stands in for the working directory.
        user: stands in for the user's folder.
    """
    places = (named, (here or Path()) / "directives", user or user_directives_dir())
    folder = next((place for place in places if place is not None and place.is_dir()), None)
    if folder is None:
        return Library("the shipped set", dict(_read(files("turngate").joinpath(SHIPPED))))
    return Library(str(folder), dict(_read(folder)))


def list_directives(state: FlowState, library: Library) -> Listing:
    """What there is and what is active."""
    return Listing(
        library.folder,
        tuple(sorted(library.found)),
        tuple(each.name for each in state.directives),
        state.latched,
        tuple((nudge.text, nudge.expires) for nudge in state.nudges),
    )


def swap_directives(state: FlowState, library: Library, *names: str) -> FlowState:
    """Make `names` the active set. Raises `DirectiveError` for an unknown one, and then changes nothing."""
    for name in names:
        library.get(name)
    return replace(state, directives=library.pick(names), latched=True)


def add_directive(state: FlowState, library: Library, name: str) -> FlowState:
    """Make one more active; an unknown or active one changes nothing."""
    more = library.pick([name])
    active = [each.name for each in state.directives]
    added = state.directives if not more or name in active else (*state.directives, *more)
    return replace(state, directives=added, latched=True)


def load_directive(state: FlowState, library: Library, name: str) -> FlowState:
    """`add_directive` that raises `DirectiveError` for an unknown one, and reads an active one anew."""
    fresh = library.get(name)
    active = [each.name for each in state.directives]
    if name not in active:
        return add_directive(state, library, name)
    directives = tuple(fresh if each.name == name else each for each in state.directives)
    return replace(state, directives=directives, latched=True)


def remove_directive(state: FlowState, name: str) -> FlowState:
    """Make one inactive; one that is not active changes nothing."""
    return replace(
        state, directives=tuple(each for each in state.directives if each.name != name), latched=True
    )


def reset_directives(state: FlowState) -> FlowState:
    """Back to the set that the settings name, without nudges; automatic changes may happen again."""
    return replace(state, directives=state.configured, latched=False, nudges=(), phase="")


def build_directive_context(state: FlowState, *, again: bool = False) -> str:
    """The active directives, or ""; `again`: they take the place of some that stand in the history."""
    active = state.directives
    if not active:
        return "[directives: none] The earlier ones hold no longer." if again else ""
    names = ", ".join(each.name for each in active)
    head = f"[directives: {names}]" + (" They take the place of the earlier ones." if again else "")
    return "\n".join([head, *_bodies(active)])


def directive(name: str, text: str) -> Directive:
    """A directive from a file's text: without leading ``#`` and blank lines, cut at 2,000 characters."""
    stripped = (line.lstrip("#").strip() for line in harmless(text).split("\n"))
    lines = [f"{INDENT}{line}" for line in stripped if line]
    return Directive(one_line(name, NAME_CHARS), "\n".join(_within(lines, FILE_CHARS)))


def _read(folder: Path | Traversable) -> Iterator[tuple[str, Directive]]:
    """Name and directive of each Markdown file that can be read."""
    paths = sorted(
        (path for path in folder.iterdir() if path.name.endswith(".md")), key=lambda path: path.name
    )
    for path in paths[:MAX_FILES]:
        try:
            # A character takes at most four bytes, so nothing that counts is missed.
            with path.open("rb") as file:
                text = file.read(4 * FILE_CHARS + 4).decode("utf-8", "replace")
        except OSError:
            continue
        found = directive(path.name.removesuffix(".md"), text)
        yield found.name, found


def _bodies(active: tuple[Directive, ...]) -> list[str]:
    parts = [f"{each.name}:\n{each.body}" if each.body else f"{each.name}:" for each in active]
    if sum(map(len, parts)) + len(parts) <= SET_CHARS:
        return parts
    return _within([line for part in parts for line in part.split("\n")], SET_CHARS)


def _within(lines: list[str], limit_chars: int) -> list[str]:
    """As many of the first lines as fit, and a note on the rest."""
    left = limit_chars
    for at, line in enumerate(lines):
        left -= len(line) + 1
        if left < -1:
            missing = sum(map(len, lines[at:])) + len(lines) - at - 1
            return [*lines[:at], f"{INDENT}[… {missing:,} characters left out]"]
    return lines
