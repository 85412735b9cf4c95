"""A store is made whole or not at all."""

from __future__ import annotations

import threading

import pytest

from storage import Store
from storage.errors import AlreadyExists, StoreNotFound, TxnctlError
from tests.postgres_cluster import Cluster


def test_a_schema_that_exists_is_left_alone(url: str, postgres_cluster: Cluster) -> None:
    """A store, and a schema of somebody else."""
    with Store.open(url) as store:
        store.create_topic("t")
    with pytest.raises(AlreadyExists):
        Store.create(url, durability="local")
    with Store.open(url) as store:
        assert store.has_topic("t")


def test_one_of_several_makers_succeeds(url: str, postgres_cluster: Cluster) -> None:
    """The store of the winner is whole, and the others are told that it exists, although each found none before."""
    raced, outcomes = url.replace("store=", "store=raced_"), list[str]()

    def make() -> None:
        try:
            Store.create(raced, durability="local")
        except TxnctlError as error:
            outcomes.append(error.code)
        else:
            outcomes.append("made")

    threads = [threading.Thread(target=make) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["already-exists"] * 4 + ["made"]
    with Store.open(raced) as store:
        assert store.topics() == []
    name = raced.rpartition("store=")[2]
    postgres_cluster.psql(f"SET client_min_messages = error; DROP SCHEMA {name} CASCADE")


def test_a_missing_store_is_not_made_by_opening(url: str) -> None:
    """The error names the call that makes one."""
    with pytest.raises(StoreNotFound) as missing:
        Store.open(url + "x")
    assert "create" in str(missing.value.hint)
