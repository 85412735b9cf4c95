"""Names of new stores on the server of the tests, and SQL on them."""

from __future__ import annotations

import itertools

import pytest

from tests.postgres_cluster import Cluster

_numbers = itertools.count(1)


class Server:
    """The server of a worker's tests. Each store on it has a name of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def url(self, name: str | None = None) -> str:
        """The URL of a store; of a new name if none is given."""
        return self._cluster.url(name or f"copied_{next(_numbers)}")

    def run(self, text: str) -> None:
        """Run SQL as the owner of all stores."""
        self._cluster.psql(text)

    def schemas(self) -> list[str]:
        """The names of all schemas."""
        return self._cluster.psql("SELECT nspname FROM pg_namespace").splitlines()


@pytest.fixture(scope="session")
def server(postgres_cluster: Cluster) -> Server:
    """The server of this worker; its tests carry `needs_program("initdb")`."""
    return Server(postgres_cluster)
