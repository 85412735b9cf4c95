"""Stores on the server of a worker, each with a name of its own."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg
import pytest

from tests.postgres_cluster import Cluster


class Server:
    """A running server."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stores = 0

    def url(self, name: str | None = None) -> str:
        """The URL of a store; of a new name if none is given."""
        self._stores += 1
        return self._cluster.url(name or f"s{self._stores}")

    def run(self, text: LiteralString) -> None:
        """Run SQL as the owner of all stores."""
        self.sql(text)

    def sql(self, text: LiteralString) -> list[tuple[Any, ...]]:
        """Run SQL as the owner of all stores, and return the rows."""
        with psycopg.connect(
            f"host={self._cluster.directory} user=postgres dbname=postgres", autocommit=True
        ) as connection:
            cursor = connection.execute(text)
            return [] if cursor.description is None else cursor.fetchall()


@pytest.fixture(scope="session")
def server(postgres_cluster: Cluster) -> Server:
    """A server for all tests of a worker."""
    return Server(postgres_cluster)
