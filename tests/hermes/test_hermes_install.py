"""Enabling and disabling the plugin: the user's configuration stays the user's."""

from __future__ import annotations

import json
import subprocess

import pytest

from turngate.cli import main
from turngate.hermes.config_text import EditError, items_of, value_of, with_item, with_value, without_item
from turngate.hermes.install import apply, mistakes, plan_install, plan_uninstall
from turngate.settings import Settings

HAND_WRITTEN = """\
# my own file, do not touch
model:
  default: "stub"   # the one I like
  provider: custom

plugins:   # what I use
    # first mine
    enabled:
    - mine    # keep
    - 'other'
    disabled: []
context: {engine: compressor}
compression:
  enabled: true
"""

#: A configuration, and the items of plugins.enabled in it.
SHAPES = {
    "": [],
    "# nothing yet\n": [],
    "model:\n  default: x\n": [],
    "model:\n  default: x": [],
    "plugins:\n": [],
    "plugins: {}\n": [],
    "plugins:\n  enabled:\n": [],
    "plugins:\n  enabled: []  # none\n": [],
    "plugins:\n  enabled: null\n": [],
    "plugins:\n  enabled: [a, 'b']\nx: 1\n": ["a", "b"],
    "plugins:\n  enabled:\n  - a\n  - b # two\n\n# end\nx: 1\n": ["a", "b"],
    "plugins:\n  enabled:\n      - a\n  disabled:\n      - c\n": ["a"],
    "plugins:\n  disabled:\n    - turngate\n    - c\n  enabled:\n    - a\n": ["a"],
    "x:\n  plugins:\n    enabled: [no]\nplugins:\n  enabled: [a]\n": ["a"],
    "plugins:\r\n  enabled:\r\n    - a\r\nx: 1\r\n": ["a"],
    HAND_WRITTEN: ["mine", "other"],
}
REFUSED = ["plugins: {enabled: [a]}\n", '{"plugins": {"enabled": []}}\n', "plugins:\n  enabled: *list\n"]


@pytest.mark.parametrize("before", SHAPES)
class TestEveryShape:
    def test_an_item_is_added_once_and_taken_away_again(self, before):
        assert items_of(before, "plugins", "enabled") == SHAPES[before]
        after = with_item(before, "plugins", "enabled", "turngate")
        assert items_of(after, "plugins", "enabled") == [*SHAPES[before], "turngate"]
        assert with_item(after, "plugins", "enabled", "turngate") == after
        back = without_item(after, "plugins", "enabled", "turngate")
        assert items_of(back, "plugins", "enabled") == SHAPES[before]
        assert without_item(back, "plugins", "enabled", "turngate") == back

    def test_every_line_that_was_there_stays(self, before):
        after = iter(with_item(before, "plugins", "enabled", "turngate").split("\n"))
        kept = [
            line for line in before.split("\n") if line.strip() and "enabled" not in line and "{}" not in line
        ]
        assert all(line in after for line in kept)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_written_otherwise_is_refused_with_what_to_write(text):
    with pytest.raises(EditError, match="by hand"):
        with_item(text, "plugins", "enabled", "turngate")


def test_a_value_is_set_and_its_comment_stays():
    text = "context:\n  engine: compressor  # theirs\n"
    after = with_value(text, "context", "engine", "turngate")
    assert after == "context:\n  engine: turngate  # theirs\n"
    assert value_of(after, "context", "engine") == "turngate"
    assert with_value("x: 1\n", "context", "engine", "turngate") == "x: 1\ncontext:\n  engine: turngate\n"


def test_the_hosts_parser_reads_what_was_meant(hermes_bin):
    """Edited as text, understood as YAML: the list has the item, and nothing else is another."""
    texts = {text: with_item(text, "plugins", "enabled", "turngate") for text in SHAPES}
    code = (
        "import json, sys, yaml; print(json.dumps([yaml.safe_load(text) for text in json.load(sys.stdin)]))"
    )

    def parsed(given):
        done = subprocess.run(
            [hermes_bin / "python", "-c", code],
            input=json.dumps(list(given)),
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    for before, after, items in zip(parsed(texts), parsed(texts.values()), SHAPES.values(), strict=True):
        rest = dict((before or {}).get("plugins") or {})
        assert after["plugins"] == rest | {"enabled": [*items, "turngate"]}
        assert {k: v for k, v in after.items() if k != "plugins"} == {
            k: v for k, v in (before or {}).items() if k != "plugins"
        }


class TestInstall:
    @pytest.fixture
    def home(self, tmp_path):
        (tmp_path / "config.yaml").write_text(HAND_WRITTEN)
        (tmp_path / "config.yaml").chmod(0o600)
        return tmp_path

    def test_it_can_be_repeated_and_taken_back(self, home):
        config = home / "config.yaml"
        apply(plan_install(home))
        assert "    - turngate\n" in config.read_text()
        assert plan_install(home) == []
        assert config.stat().st_mode & 0o777 == 0o600
        apply(plan_uninstall(home))
        assert config.read_text() == HAND_WRITTEN
        assert plan_uninstall(home) == []

    def test_a_home_without_configuration_gets_one(self, tmp_path):
        apply(plan_install(tmp_path / "new", engine=True))
        text = (tmp_path / "new" / "config.yaml").read_text()
        assert text == "plugins:\n  enabled:\n    - turngate\ncontext:\n  engine: turngate\n"
        apply(plan_uninstall(tmp_path / "new"))
        assert value_of((tmp_path / "new" / "config.yaml").read_text(), "context", "engine") == "compressor"

    def test_a_linked_configuration_stays_a_link(self, home, tmp_path):
        real = tmp_path / "dotfiles.yaml"
        (home / "config.yaml").rename(real)
        (home / "config.yaml").symlink_to(real)
        apply(plan_install(home))
        assert (home / "config.yaml").is_symlink()
        assert "turngate" in real.read_text()

    def test_the_folder_comes_and_goes(self, home):
        apply(plan_install(home, folder=True))
        assert {path.name for path in (home / "plugins" / "turngate").iterdir()} == {
            "plugin.yaml",
            "__init__.py",
        }
        apply(plan_uninstall(home))
        assert not (home / "plugins" / "turngate").exists()

    def test_a_dry_run_changes_nothing_and_shows_the_change(self, home, capsys):
        assert main(["hermes", "install", "--home", str(home), "--dry-run"]) == 0
        assert (home / "config.yaml").read_text() == HAND_WRITTEN
        assert "+    - turngate" in capsys.readouterr().out

    def test_what_cannot_be_edited_is_left_alone(self, tmp_path, capsys):
        (tmp_path / "config.yaml").write_text(REFUSED[0])
        assert main(["hermes", "install", "--home", str(tmp_path)]) == 1
        assert (tmp_path / "config.yaml").read_text() == REFUSED[0]
        assert "by hand" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "engine", "words"),
    [
        ("plugins:\n  enabled: [turngate]\n", False, []),
        ("model:\n  default: x\n", False, ["does not load"]),
        ("plugins:\n  enabled: [turngate]\n  disabled: [turngate]\n", False, ["plugins.disabled"]),
        (
            "plugins:\n  enabled: [turngate]\ncompression:\n  enabled: false\ncontext:\n  engine: turngate\n",
            True,
            ["compression.enabled is false"],
        ),
        ("plugins:\n  enabled: [turngate]\ncontext:\n  engine: turngate\n", False, ["not switched on"]),
        ("plugins:\n  enabled: [turngate]\n", True, ["does not select"]),
        ("plugins:\n  enabled: [turngate]\ncontext:\n  engine: lcm\n", True, ["two engines"]),
        (
            "plugins:\n  enabled: [turngate]\nplatform_toolsets:\n  cli: [terminal]\n",
            False,
            ["platform_toolsets"],
        ),
    ],
)
def test_common_mistakes_are_explained(tmp_path, config, engine, words):
    (tmp_path / "config.yaml").write_text(config)
    found = [what for what, remedy in mistakes(tmp_path, Settings(context_engine=engine)) if remedy]
    assert len(found) == len(words)
    assert all(word in what for word, what in zip(words, found, strict=True))


def test_the_real_host_loads_what_install_enabled(hermes_bin, agent):
    """By the program of the host itself, from a configuration with nothing in it but a comment."""
    (agent.home / "config.yaml").write_text("# mine\n")
    turngate = str(hermes_bin / "turngate")
    for args in (["install"], ["install"]):
        subprocess.run([turngate, "hermes", *args], env=agent.environ, check=True, capture_output=True)
    listed = agent.run("plugins", "list", "--plain").out
    assert [line.split()[0] for line in listed.splitlines() if line.endswith(" turngate")] == ["enabled"]
    subprocess.run([turngate, "hermes", "uninstall"], env=agent.environ, check=True, capture_output=True)
    listed = agent.run("plugins", "list", "--plain").out
    assert "not enabled" in next(line for line in listed.splitlines() if line.endswith(" turngate"))
    assert (agent.home / "config.yaml").read_text().startswith("# mine\n")
