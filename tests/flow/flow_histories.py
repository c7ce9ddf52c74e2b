"""Random histories: states as any order of changes makes them, and states that nothing made."""

from __future__ import annotations

from hypothesis import strategies as st

from turngate import flow
from turngate.events import tool_event
from turngate.flow import Directive, FlowState, Item, Library
from turngate.settings import FlowSettings

#: Whatever a host may hand over: line breaks, controls, lone surrogates, wide characters, lookalikes.
text = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(exclude_categories=()), max_size=60),
    st.sampled_from(
        ["", "\n\n", "\ud800", "é" * 500, "x" * 3000, "a\nb\r\nc", "[nudge: x]", "\x1b[31mred", "]\n[recall]"]
    ),
    st.builds("\n".join, st.lists(st.text(max_size=200), max_size=40)),
)
directive = st.builds(flow.directives.directive, st.text(max_size=50), text)
raw_directive = st.builds(Directive, text, text)
tool = st.sampled_from(["read_file", "write_file", "terminal", "search_files", "x"])
path = st.sampled_from(["a.py", "b.py", "./a.py", "dir/c\ud800.py"])
item = st.none() | st.builds(Item, st.integers(0, 40).map("{:016x}".format), text, text)

LIBRARY = Library(
    "the test's",
    {
        each.name: each
        for each in map(
            flow.directives.directive,
            ("explore", "edit", "verify", "mine"),
            ("look", "# do\n\nit", "run", "x" * 3000),
        )
    },
)


@st.composite
def changes(draw):  # noqa: PLR0911 - a way out for each kind
    """A function from state to state."""
    kind = draw(
        st.sampled_from(
            ["nudge", "nudge", "task", "event", "event", "event", "turn", "turn", "epoch", "block", "swap"]
        )
    )
    match kind:
        case "nudge":
            given = (draw(text), draw(st.none() | st.integers(-1, 4)), draw(st.sampled_from(["", "k", "l"])))
            return lambda state: flow.push_nudge(state, given[0], given[1], key=given[2])
        case "task":
            status = draw(st.sampled_from(["running", "done", "failed", "\x00"]))
            given = (draw(st.sampled_from("abcdefghijkl")), status, draw(text))
            return lambda state: flow.set_task(state, *given)
        case "event":
            event = tool_event(
                draw(tool),
                {"path": draw(path), "x": draw(st.integers(0, 1))},
                draw(text),
                failed=draw(st.booleans()),
            )
            behind = draw(item)
            return lambda state: flow.observe(state, event, behind)
        case "turn":
            return lambda state: flow.begin_turn(state, state.turn_counter + 1, LIBRARY)
        case "epoch":
            return flow.open_epoch
        case "block":
            return lambda state: flow.commit(state, flow.build_turn_context(state))
        case _:
            names = draw(st.lists(st.sampled_from(sorted(LIBRARY.found)), max_size=3))
            return lambda state: flow.swap_directives(state, LIBRARY, *names)


switches = st.builds(FlowSettings, *[st.booleans()] * 7)


@st.composite
def states(draw):
    """A state after any history of changes."""
    state = FlowState(
        flow_budget_chars=draw(st.integers(0, 6_000)),
        session_inject=draw(text),
        switches=draw(switches),
        directives=tuple(draw(st.lists(directive | raw_directive, max_size=4))),
        turn_counter=draw(st.integers(-1, 2)),
    )
    for change in draw(st.lists(changes(), max_size=25)):
        state = change(state)
    return state
