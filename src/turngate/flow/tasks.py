"""Background tasks: told of when they change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from turngate.events import one_line
from turngate.flow.state import Task

if TYPE_CHECKING:
    from turngate.flow.state import FlowState

HEADER = "[background tasks]"
MAX_TASKS, MAX_LINES = 8, 4
#: One that nobody spoke of for so many turns is forgotten.
STALE_TURNS = 16
ID_CHARS, STATUS_CHARS, TEXT_CHARS = 40, 20, 200
#: How hosts spell that a task is over.
FINISHED = frozenset(
    {
        "done",
        "finished",
        "completed",
        "success",
        "succeeded",
        "failed",
        "error",
        "cancelled",
        "killed",
        "exited",
    }
)


def set_task(state: FlowState, id: str, status: str, text: str = "") -> FlowState:  # noqa: A002 - a host's word
    """Take note of a task's status. Of more than eight, the oldest goes, finished ones first."""
    name = one_line(id, ID_CHARS)
    task = Task(name, one_line(status, STATUS_CHARS), one_line(text, TEXT_CHARS), state.turn_counter)
    old = next((known for known in state.tasks if known.id == name), None)
    if old is not None and (old.status, old.text) == (task.status, task.text):
        task = replace(task, told_epoch=old.told_epoch)
    tasks = [*(known for known in state.tasks if known.id != name), task]
    while len(tasks) > MAX_TASKS:
        tasks.remove(next((known for known in tasks if _finished(known)), tasks[0]))
    return replace(state, tasks=tuple(tasks))


def forget_tasks(state: FlowState) -> FlowState:
    """Without finished tasks that were told of, and those not heard of for long."""
    kept = tuple(
        task
        for task in state.tasks
        if state.turn_counter - task.turn <= STALE_TURNS and not (_finished(task) and task.told_epoch >= 0)
    )
    return state if len(kept) == len(state.tasks) else replace(state, tasks=kept)


def render_tasks(state: FlowState, *, every_turn: bool = True) -> str:
    """The newest tasks of which there is something to tell, or ""."""
    due = [task for task in state.tasks if every_turn or task.told_epoch != state.epoch][-MAX_LINES:]
    if not due:
        return ""
    active = sum(not _finished(task) for task in state.tasks)
    return "\n".join([f"{HEADER} {active} active", *map(_line, due)])


def tell_tasks(state: FlowState, shown: str) -> FlowState:
    """Mark those whose line is in `shown`."""
    lines = set(shown.split("\n"))
    tasks = tuple(
        replace(task, told_epoch=state.epoch) if _line(task) in lines else task for task in state.tasks
    )
    return replace(state, tasks=tasks)


def _finished(task: Task) -> bool:
    return task.status.lower() in FINISHED


def _line(task: Task) -> str:
    return f"- {task.id}: {task.status}" + (f", {task.text}" if task.text else "")
