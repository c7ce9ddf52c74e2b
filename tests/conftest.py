"""No test sees the user's store or settings."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_users(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TURNGATE_")]:
            patch.delenv(name)
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA"):
            patch.setenv(name, str(home))
        yield
