"""Offloading to files, and reading them in place of the store: with PyArrow, without Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storage import IsolationLevel, Store
from tests.txnctl.spark.offload_steps import UNCOMMITTED, files, fill, rows, span
from txnctl.spark.ledger_files import offload as offloading
from txnctl.spark.ledger_files.layout import LEDGERS
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


@pytest.mark.parametrize("level", list(IsolationLevel))
def test_files_hold_what_the_store_holds(store: Store, root: Root, level: IsolationLevel):
    """At both levels the rows read from files are those read from the store, in the same order."""
    fill(store)
    txn = store.transaction()
    with store.create_producer("t") as producer:
        producer.send_batch([b"open", b"too"], txn=txn)
        producer.send(b"behind it")
    wanted = span(store, level)
    found = rows(file_partitions(store, [wanted], root.uri))
    assert found == rows([wanted])
    assert {row["txnState"] for row in found} >= (
        {"OPEN", "ABORTED"} if level is UNCOMMITTED else {"COMMITTED"}
    )
    txn.abort()


def test_only_closed_ledgers_whose_transactions_have_ended_are_offloaded(store: Store, root: Root):
    """What stands behind an open transaction waits for its end."""
    fill(store, 7)
    txn = store.transaction()
    with store.create_producer("t") as producer:
        producer.send(b"open", txn=txn)
    fill(store, 10)
    (extent,) = store.reports.topic_extents(["t"])
    done = offload(store, "t", root)
    assert sorted(done.manifest.ledgers) == [1]
    assert done.undecided == len(extent.ledgers) - 2
    txn.commit()
    done = offload(store, "t", root)
    assert done.undecided == 0
    assert sorted(done.manifest.ledgers) == [
        each.ledger_id for each in store.reports.topic_extents(["t"])[0].ledgers[:-1]
    ]


def test_offloading_again_goes_on_where_it_stopped(store: Store, root: Root):
    """What is there is not written again, and neighbouring small ledgers share a file."""
    fill(store)
    first = offload(store, "t", root)
    assert [len(file.ledgers) for file in first.added] == [5]
    fill(store)
    second = offload(store, "t", root)
    assert second.manifest.files[: len(first.manifest.files)] == first.manifest.files
    assert files(second, LEDGERS) == sorted(file.name for file in second.manifest.files)
    assert offload(store, "t", root).added == []


def test_several_that_offload_at_once_do_no_harm(store: Store, root: Root, monkeypatch: pytest.MonkeyPatch):
    """Each ledger is named once, and no file is left that the manifest does not name."""
    monkeypatch.setattr(offloading, "FILE_BYTES", 1)
    fill(store, 60)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(offload, store, "t", root) for _ in range(4)]
    assert (
        sum(len(run.result().added) for run in runs) == len(store.reports.topic_extents(["t"])[0].ledgers) - 1
    )
    done = offload(store, "t", root)
    assert done.added == []
    assert sorted(done.manifest.ledgers) == [
        each.ledger_id for each in store.reports.topic_extents(["t"])[0].ledgers[:-1]
    ]
    assert files(done, LEDGERS) == sorted(file.name for file in done.manifest.files)
