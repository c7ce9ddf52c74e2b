from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate import settings
from turngate.errors import SettingsError
from turngate.settings import DEFAULT_SKIP_TOOLS, Settings, StoreSettings, load


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "config.toml"
        path.write_text(text)
        return path

    return write


class TestOrder:
    """Defaults give way to the file, the file to the environment, the environment to arguments."""

    def test_without_any_source_all_are_defaults(self):
        assert load(environ={"TURNGATE_CONFIG": ""}) == Settings()

    def test_each_source_overrides_the_one_before(self, file):
        path = file("threshold_bytes = 2\nbudget = 'wide'\n[store]\nmax_age_days = 2\nlive_days = 2\n")
        environ = {"TURNGATE_THRESHOLD_BYTES": "3", "TURNGATE_STORE_LIVE_DAYS": "3"}
        found = load(path, environ=environ, threshold_bytes=4)
        assert (found.budget, found.threshold_bytes) == ("wide", 4)
        assert found.store == StoreSettings(max_age_days=2, live_days=3)

    def test_a_section_may_be_given_as_its_dataclass(self):
        section = StoreSettings(max_age_days=7)
        assert load(environ={}, store=section).store == section

    def test_every_key_can_be_set_from_the_environment(self):
        spelled = {
            bool: "yes",
            int: "2000000",
            float: "0.5",
            Literal["chat", "anthropic"]: "anthropic",
            int | None: "2000000",
            settings.Budget: "wide",
            tuple[str, ...]: "a, b",
        }
        environ = {
            "TURNGATE_" + key.upper().replace(".", "_"): spelled.get(kind, "/x")
            for key, kind in settings.all_keys()
        }
        found = load(environ=environ)
        assert found.budget == "wide"
        assert found.data_dir == Path("/x")
        assert found.skip_tools == ("a", "b")
        assert found.store == StoreSettings(
            2000000, 2000000, 2000000, redact=True, busy_timeout_ms=2000000, url="/x"
        )

    def test_the_file_named_by_the_environment_is_read(self, file):
        path = file("budget = 'wide'")
        assert load(environ={"TURNGATE_CONFIG": str(path)}).budget == "wide"


class TestUnknown:
    """An unknown key is an error that names the nearest known one; from the environment, a warning."""

    @pytest.mark.parametrize(
        ("given", "nearest"),
        [
            ({"treshold_bytes": 1}, "threshold_bytes"),
            ({"max_bytes": 1}, "store.max_bytes"),
            ({"store": {"max_byte": 1}}, "store.max_bytes"),
            ({"stor": {}}, "store"),
        ],
    )
    def test_an_argument_names_the_nearest(self, given, nearest):
        with pytest.raises(SettingsError, match=f"did you mean '{nearest}'"):
            load(environ={}, **given)

    def test_a_key_in_a_file_names_file_and_nearest(self, file):
        path = file("[store]\nlive_day = 3\n")
        with pytest.raises(SettingsError, match=rf"{path.name}.*store\.live_days"):
            load(path, environ={})

    def test_an_environment_name_is_a_logged_warning(self, caplog):
        environ = {"TURNGATE_BUGET": "wide", "OTHER": "x"}
        with caplog.at_level(logging.WARNING, "turngate"):
            assert load(environ=environ) == Settings()
        assert "TURNGATE_BUDGET" in caplog.text
        assert "OTHER" not in caplog.text
        assert settings.unknown_environment(environ) == [("TURNGATE_BUGET", "TURNGATE_BUDGET")]

    def test_in_a_hosts_path_a_problem_is_a_warning_and_the_rest_holds(self, caplog):
        with caplog.at_level(logging.WARNING, "turngate"):
            found = load(environ={}, strict=False, budget="wide", nonsense=1, threshold_bytes=-1)
        assert found == Settings(budget="wide")
        assert "nonsense" in caplog.text


class TestMalformed:
    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"budget": "huge"}, "default, wide"),
            ({"enabled": "perhaps"}, "true or false"),
            ({"enabled": None}, "true or false"),
            ({"threshold_bytes": "many"}, "whole number"),
            ({"threshold_bytes": True}, "whole number"),
            ({"threshold_bytes": -1}, "at least 0"),
            ({"skip_tools": 3}, "list of names"),
            ({"skip_tools": [3]}, "list of names"),
            ({"data_dir": 3}, "a path"),
            ({"store": 3}, "a table"),
            ({"store": {"max_bytes": 10}}, "at least 1048576"),
        ],
    )
    def test_the_message_says_what_it_must_be(self, given, says):
        with pytest.raises(SettingsError, match=says):
            load(environ={}, **given)

    @pytest.mark.parametrize(("text", "says"), [("budget =", "not valid TOML"), ("store = 3", "a table")])
    def test_a_malformed_file_is_named(self, file, text, says):
        with pytest.raises(SettingsError, match=rf"config\.toml.*{says}|{says}"):
            load(file(text), environ={})

    def test_a_named_file_must_exist(self, tmp_path):
        with pytest.raises(SettingsError, match="does not exist"):
            load(tmp_path / "none.toml", environ={})

    def test_a_folder_in_place_of_a_file_is_named(self, tmp_path):
        with pytest.raises(SettingsError, match="cannot be read"):
            load(tmp_path, environ={})

    def test_out_of_range_numbers_are_refused_by_the_dataclasses_too(self):
        with pytest.raises(SettingsError, match="max_age_days"):
            StoreSettings(max_age_days=0)
        with pytest.raises(SettingsError, match="threshold_bytes"):
            Settings(threshold_bytes=-5)


def test_three_dots_in_skip_tools_keep_the_defaults():
    assert load(environ={}, skip_tools=["...", "mine"]).skip_tools == (*DEFAULT_SKIP_TOOLS, "mine")


def test_the_store_lies_in_the_data_dir():
    assert Settings(data_dir=Path("/d")).store_path == Path("/d/turngate.sqlite3")
    assert Settings().store_path.name == "turngate.sqlite3"


@given(
    st.dictionaries(
        st.text(max_size=8).filter(lambda key: key != "path"),
        st.none() | st.integers() | st.text(max_size=5),
        max_size=3,
    )
)
def test_arguments_give_settings_or_a_settings_error(given):
    with suppress(SettingsError):
        assert isinstance(load(environ={}, **given), Settings)
