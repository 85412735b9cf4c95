"""The plugin that runs tests on a server: see `server_stores.py`. It does nothing without TXNCTL_TEST_SERVER."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests import server_stores
from tests.directory_tests import reason_for

_HOOK = str(Path(__file__).parent / "server_hook")
ROOT = Path(__file__).parents[1]


def is_on_server() -> bool:
    """Whether stores of tests lie on a server."""
    return server_stores.SERVER in os.environ


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Wrap storage in this process and, by the environment, in its children."""
    if is_on_server():
        path = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_HOOK, str(ROOT), path]))
        server_stores.install()


@pytest.fixture(scope="session", autouse=True)
def base_of_stores(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Tell children the directory in which each test has one, and drop the schemas that are left at the end."""
    if not is_on_server():
        yield
        return
    base = tmp_path_factory.getbasetemp()
    os.environ[server_stores.BASE] = str(base)
    yield
    for directory in base.iterdir():
        _drop(directory)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Drop the schemas of a test behind its fixtures."""
    directory = getattr(item, "funcargs", {}).get("tmp_path") if is_on_server() else None
    try:
        return (yield)
    finally:
        if directory is not None:
            _drop(directory)


def _drop(directory: Path) -> None:
    """Drop the schemas of the stores in the directory of a test."""
    import psycopg

    prefix = server_stores.schema_prefix(str(directory))
    with psycopg.connect(os.environ[server_stores.SERVER], autocommit=True) as connection:
        connection.execute("SET lock_timeout = '20s'; SET client_min_messages = error")
        names = connection.execute(
            "SELECT nspname::text FROM pg_namespace WHERE starts_with(nspname::text, %s)", (prefix,)
        )
        for (name,) in names.fetchall():
            connection.execute(psycopg.sql.SQL("DROP SCHEMA {} CASCADE").format(psycopg.sql.Identifier(name)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of directories and files."""
    if not is_on_server():
        return
    left_out = [item for item in items if reason_for(item) is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        chosen = set(items).difference(left_out)
        items[:] = [item for item in items if item in chosen]
