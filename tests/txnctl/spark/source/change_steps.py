"""Steps of tests of changes as a source of Spark: what is asked of readers, in the order in which Spark asks."""

from __future__ import annotations

import json
from typing import Any

from storage import Store
from tests.txnctl.spark.asked import struct
from tests.waiting import let_pass
from txnctl.spark import options
from txnctl.spark.source.change_reader import ChangeReader
from txnctl.spark.source.change_stream import ChangeStreamReader

COLUMNS = ("kind", "key string", "value string", "previousValue string", "timestamp", "txnId")


def given(store: Store, **more: str) -> dict[str, str]:
    return {"path": store.path, "table": "accounts", "readChanges": "true", **more}


def stream(store: Store, **more: str) -> ChangeStreamReader:
    return ChangeStreamReader(options.change_stream(given(store, **more)), struct(*COLUMNS))


def rows(reader: ChangeReader | ChangeStreamReader, partitions: Any) -> list[dict[str, Any]]:
    return [row for part in partitions for batch in reader.read(part) for row in batch.to_pylist()]


def batch_rows(store: Store, **more: str) -> list[dict[str, Any]]:
    reader = ChangeReader(options.change_read(given(store, **more)), struct(*COLUMNS))
    return rows(reader, reader.partitions())


def drained(reader: ChangeStreamReader, start: Any = None) -> tuple[list[list[dict[str, Any]]], Any]:
    """The micro-batches up to the end, each through the JSON of a checkpoint, and the last offset."""
    batches = []
    start = start or reader.initialOffset()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        start, before = json.loads(json.dumps(end)), start
        batches.append(rows(reader, reader.partitions(before, start)))
    return batches, start


def collect(store: Store) -> None:
    """Remove every change that is older than a second."""
    store.admin.settings.set_table_retention(1000)
    let_pass(1.2, "the retention")
    store.maintenance.collect_garbage()
