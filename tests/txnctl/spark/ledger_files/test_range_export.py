"""Range export: `txnctl/spark/ledger_files/range_export.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from tests.txnctl.spark.offload_steps import COMMITTED, UNCOMMITTED, fill, rows, span
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


def test_the_decided_tail_is_exported_once(store: Store, root: Root):
    """The second plan reuses the file of the first, and exports only what came since."""
    fill(store, 2)
    first = file_partitions(store, [span(store, COMMITTED)], root.uri)
    again = file_partitions(store, [span(store, COMMITTED)], root.uri)
    assert again == first
    with store.create_producer("t") as producer:
        producer.send(b"more")
    third = file_partitions(store, [span(store, COMMITTED)], root.uri)
    assert third[:-1] == first
    assert [row["value"] for row in rows(third[-1:])] == [b"more"]


def test_the_undecided_tail_keeps_the_states_of_its_plan(store: Store, root: Root):
    """Rows of a READ_UNCOMMITTED plan stay as they are, whatever becomes of the transaction; the next plan sees it."""
    fill(store, 3)
    txn = store.transaction()
    with store.create_producer("t") as producer:
        producer.send(b"open", txn=txn)
    pieces = file_partitions(store, [span(store, UNCOMMITTED)], root.uri)
    txn.commit()
    assert [row["txnState"] for row in rows(pieces)][-1] == "OPEN"
    later = rows(file_partitions(store, [span(store, UNCOMMITTED)], root.uri))
    assert [row["txnState"] for row in later][-1] == "COMMITTED"
