"""Injected text is composed in one place, and its settings follow from their dataclasses."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import turngate
from turngate import flow
from turngate.settings import DEFAULT_DIRECTIVES, FlowSettings, load

SOURCE = Path(turngate.__file__).parent
#: How sections begin.
HEADS = ("[nudge:", "[directives", "[recall]", "[background tasks]", "first-turn orientation]")

#: Names of the module that this room stands in for.
NAMES = (
    "SHIPPED_SESSION_INJECT",
    "WindowStats",
    "build_first_turn_injection",
    "build_turn_context",
    "error_sig",
    "normalize_args_sig",
    "purge_expired_nudges",
    "push_nudge",
    "render_nudges",
    "turn_window",
)


def literals(tree):
    """Every string of a module but docstrings and what is looked for; parts of f-strings among them."""
    docs = {
        id(node.value)
        for parent in ast.walk(tree)
        if isinstance(parent, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for node in parent.body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    looked_for = {id(node.left) for node in ast.walk(tree) if isinstance(node, ast.Compare)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs | looked_for
        ):
            yield node.value


def composing(source):
    return [text for text in literals(ast.parse(source)) if any(head in text for head in HEADS)]


def test_only_this_room_has_the_heads_of_sections():
    guilty = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.parent.name != "flow" and composing(path.read_text(encoding="utf-8"))
    ]
    assert guilty == []


@pytest.mark.parametrize("source", ['x = "[nudge: a]"', 'f(f"[nudge: {a}]")', '"[recall]" + x'])
def test_that_test_would_find_one(source):
    assert composing(source)


@pytest.mark.parametrize(
    "source", ['def f():\n    """Renders [nudge: …] lines."""', 'found = "[nudge:" in block']
)
def test_to_name_them_or_to_look_for_them_is_not_to_compose(source):
    assert not composing(source)


def test_every_head_is_used_here():
    here = [text for path in (SOURCE / "flow").glob("*.py") for text in literals(ast.parse(path.read_text()))]
    assert [head for head in HEADS if not any(head in text for text in here)] == []


def test_the_names_that_hosts_know_are_there():
    for name in NAMES:
        assert name in flow.__all__
    assert {name for name in flow.__all__ if not hasattr(flow, name)} == set()


class TestSettings:
    def test_environment_file_and_arguments_reach_every_section(self, tmp_path):
        file = tmp_path / "c.toml"
        file.write_text(
            "flow_budget_chars = 2600\n[prompts]\nsession_inject = ''\n[flow]\nphase = true\n"
            "[directives]\nactive = ['...', 'mine']\n"
        )
        environ = {"TURNGATE_FLOW_ERROR_LOOP": "off", "TURNGATE_DIRECTIVES_DIR": str(tmp_path)}
        found = load(file, environ=environ, flow={"stale_read": False})
        assert found.flow_budget_chars == 2600
        assert found.prompts.session_inject == ""
        assert found.flow == FlowSettings(phase=True, error_loop=False, stale_read=False)
        assert found.directives.active == (*DEFAULT_DIRECTIVES, "mine")
        assert found.directives.dir == tmp_path

    def test_a_misspelt_key_names_the_nearest(self):
        with pytest.raises(turngate.SettingsError, match=r"did you mean 'flow\.error_loop'"):
            load(environ={}, flow={"eror_loop": True})
        with pytest.raises(turngate.SettingsError, match="must be a text"):
            load(environ={}, prompts={"session_inject": 3})
