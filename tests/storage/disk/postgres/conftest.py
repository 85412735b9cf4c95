"""Stores and sessions on the server of the worker."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator

import pytest

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.session import Session
from storage.disk.postgres.url import StoreUrl
from storage.process.clock import SYSTEM_CLOCK
from tests.not_run import program
from tests.postgres_cluster import Cluster

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder with a store needs a server."""
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]) and "url" in getattr(
            item, "fixturenames", ()
        ):
            item.add_marker(pytest.mark.needs_program("initdb"))


@pytest.fixture
def url(postgres_cluster: Cluster) -> Iterator[str]:
    """The URL of an empty store, verified at the end unless the test has removed it."""
    name = f"unit{next(_numbers)}"
    url = postgres_cluster.url(name)
    Store.create(url, durability="local")
    yield url
    if postgres_cluster.psql(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{name}'") == "1":
        with Store.open(url) as store:
            assert store.maintenance.verify_store(full=True) == []
        postgres_cluster.psql(f"SET client_min_messages = error; DROP SCHEMA {name} CASCADE")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The store, open."""
    with Store.open(url) as opened:
        yield opened


@pytest.fixture
def environment(store: Store) -> PostgresEnvironment:
    """The environment of the open store."""
    environment = store.connection.environment
    assert isinstance(environment, PostgresEnvironment)
    return environment


@pytest.fixture
def session(url: str) -> Iterator[Session]:
    """A session beside those of the store."""
    session = connected(url)
    yield session
    session.close()


def connected(url: str) -> Session:
    """A further session."""
    return Session.connect(StoreUrl.parse(url), SYSTEM_CLOCK, application="txnctl:test:1")


@pytest.fixture
def bystander(postgres_cluster: Cluster) -> Iterator[subprocess.Popen[str]]:
    """A client that holds a snapshot."""
    process = subprocess.Popen(
        [program("psql"), "-XAtq", "-h", postgres_cluster.directory, "-U", "postgres", "postgres"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 7;\n")
    process.stdin.flush()
    assert process.stdout.readline() == "7\n"
    yield process
    process.kill()
    process.communicate()
