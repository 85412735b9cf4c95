"""Bytes column: `txnctl/spark/bytes_column.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from storage.errors import InvalidValue
from tests.txnctl.spark.offload_steps import COMMITTED, span
from txnctl.spark.ledger_files.range_plan import file_partitions
from txnctl.spark.ledger_files.root import Root


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.of_path(str(tmp_path / "off loaded"))


def test_bytes_that_are_no_text_are_told(store: Store, root: Root):
    """Text was asked for, and a value is not UTF-8: the error says how to ask."""
    import pyarrow as pa

    store.create_topic("t")
    with store.create_producer("t") as producer:
        producer.send(b"\xff")
    (piece,) = file_partitions(store, [span(store, COMMITTED)], root.uri)
    with pytest.raises(InvalidValue, match="is not UTF-8"):
        list(piece.batches(pa.schema([("value", pa.string())])))
