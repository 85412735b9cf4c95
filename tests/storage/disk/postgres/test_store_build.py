"""Two that make one store at once: the second is told so, wherever it meets the first."""

from __future__ import annotations

import pytest

from storage import Store
from storage.disk.postgres.store_build import SchemaBuild, building
from storage.disk.postgres.url import StoreUrl
from storage.errors import AlreadyExists, StoreInUse
from storage.process.clock import SYSTEM_CLOCK
from tests.postgres_cluster import Cluster


def test_two_copies_that_both_find_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one meets the schema of the first as it makes its own."""
    destination = url.replace("store=", "store=new_")
    with building(destination, SYSTEM_CLOCK, is_replicated=False) as first:
        monkeypatch.setattr(SchemaBuild, "_has", lambda self, schema: False)
        with (
            pytest.raises(StoreInUse),
            building(destination, SYSTEM_CLOCK, is_replicated=False),
        ):
            pytest.fail("both are building")
        first.discard()


def test_a_store_made_meanwhile(url: str, postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that finds its destination taken as it renames its schema names the destination, which stays."""
    destination = url.replace("store=", "store=new_")
    with building(destination, SYSTEM_CLOCK, is_replicated=False) as build:
        Store.create(destination, durability="local")
        monkeypatch.setattr(SchemaBuild, "_has", lambda self, schema: False)
        with pytest.raises(AlreadyExists) as taken:
            build.install()
        assert taken.value.details == {"path": StoreUrl.parse(destination).shown}
        build.discard()
    with Store.open(destination) as store:
        assert store.topics() == []
    name = destination.rpartition("store=")[2]
    postgres_cluster.psql(f"SET client_min_messages = error; DROP SCHEMA {name} CASCADE")
