"""The store itself: what it is, who holds it, where its space goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import Store
from storage.disk.schema import ALL, FORMAT_NUMBER
from storage.errors import StoreNotFound
from tests.row_json import row_json


def test_facts_are_counted(store: Store, path: str) -> None:
    """As they are at this moment."""
    store.create_table("accounts")
    store.begin_transaction()
    store.commit_transaction(store.begin_transaction())
    info = row_json(store.reports.store_info())
    assert (info["path"], info["format"], info["incarnation"]) == (path, FORMAT_NUMBER, 1)
    assert (info["topics"], info["tables"], info["openTransactions"], info["transactions"]) == (1, 1, 1, 2)
    assert info["dataBytes"] == os.stat(Path(path, "data.mdb")).st_size
    assert info["usedBytes"] <= info["dataBytes"] <= info["mapBytes"]
    assert 0 < info["inUseBytes"] <= info["usedBytes"]
    assert info["inUseBytes"] + info["freeBytes"] == info["dataBytes"]


def test_a_lease_is_listed_as_long_as_it_is_held(store: Store) -> None:
    """With the process that holds it."""
    assert row_json(store.reports.list_locks()) == []
    with store.create_producer("t"):
        (row,) = row_json(store.reports.list_locks())
        assert row["lock"].startswith("lease ")
        assert (row["pid"], row["state"]) == (os.getpid(), "alive")


def test_every_database_is_listed_with_its_space(store: Store) -> None:
    """Which adds up to no more than is used."""
    rows = row_json(store.reports.list_databases())
    assert {row["database"] for row in rows} >= {database.name for database in ALL}
    assert sum(row["bytes"] for row in rows) <= row_json(store.reports.store_info())["usedBytes"]
    (topics,) = [row for row in rows if row["database"] == "topics"]
    assert topics["entries"] == 1


def test_a_view_is_a_reader(store: Store) -> None:
    """With the commit that it shows, and how far that is behind."""
    with store.connection.view() as view:
        store.create_topic("later")
        reading = [row for row in row_json(store.reports.list_readers()) if row["commit"] is not None]
        assert [(row["pid"], row["commit"], row["state"]) for row in reading] == [
            (os.getpid(), view.commit, "reading")
        ]
        assert reading[0]["behind"] >= 1


def test_what_was_removed_is_free_inside_the_file_and_not_in_use(store: Store) -> None:
    """The file keeps its length; the pages of a removed topic are free, and were in use."""
    store.create_topic("large")
    with store.create_producer("large") as producer:
        for _ in range(20):
            producer.send_batch([b"x" * 10_000] * 20)
    full = store.reports.store_info()
    store.admin.topics.delete_topic("large")
    store.maintenance.collect_garbage()
    rest = store.reports.store_info()
    assert rest.in_use_bytes < full.in_use_bytes - 3_000_000
    assert rest.free_bytes > full.free_bytes + 3_000_000
    assert rest.used_bytes >= full.used_bytes


def test_a_store_that_was_moved_away_is_not_found(store: Store, path: str) -> None:
    """Though it is open, and is read on where its files went: sizes are those of files at the path."""
    os.rename(path, f"{path}.moved")
    try:
        for report in (store.reports.store_info, store.reports.store_overview, store.reports.live_facts):
            with pytest.raises(StoreNotFound, match="removed, moved or replaced"):
                report()
    finally:
        os.rename(f"{path}.moved", path)
