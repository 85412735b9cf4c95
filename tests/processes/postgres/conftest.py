"""Stores on servers of the tests, and children that use them. Every test of `path` ends in a full verify."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.processes.child import Children
from tests.processes.postgres.servers import Server

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name a machine without a server at the end of the run."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.needs_program("initdb"))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server without a standby, for all tests that leave it running."""
    running = Server()
    yield running
    running.remove()


@pytest.fixture
def own() -> Iterator[Server]:
    """A server for one test, which may kill it."""
    running = Server()
    yield running
    running.remove()


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    """A primary and its synchronous standby, for one test."""
    primary = Server()
    try:
        standby = primary.add_standby()
        yield primary, standby
        standby.remove()
    finally:
        primary.remove()


@pytest.fixture
def empty(server: Server) -> Iterator[str]:
    """The URL of an empty store. It is verified at the end, whatever was done to it."""
    url = server.url(f"s{next(_numbers)}")
    Store.create(url, durability="local")
    yield url
    with Store.open(url) as store:
        assert store.maintenance.verify_store(full=True) == []


@pytest.fixture
def path(empty: str) -> str:
    """The URL of a store with the empty topic `t`."""
    with Store.open(empty) as store:
        store.create_topic("t")
    return empty


@pytest.fixture
def children(path: str) -> Iterator[Children]:
    """Starts children; all of them are gone before the store is verified."""
    started = Children(path)
    yield started
    started.close()


@pytest.fixture
def store(path: str, children: Children) -> Iterator[Store]:
    """The store, open in the process of the test."""
    with Store.open(path) as opened:
        yield opened
