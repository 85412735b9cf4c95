"""Steps that the tests of offload share."""

from __future__ import annotations

from typing import Any

from storage import IsolationLevel, Store
from txnctl.spark import schemas
from txnctl.spark.ledger_files.offload import Offloaded
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.topic_range import TopicRange

SCHEMA = schemas.arrow_columns(schemas.MESSAGE_TYPES)


COMMITTED, UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED


def fill(store: Store, entries: int = 23, topic: str = "t") -> None:
    """Ledgers of five entries: plain messages, committed ones, aborted ones, single and in batches."""
    if not store.has_topic(topic):
        store.create_topic(topic, ledger_entries_max=5)
    with store.create_producer(topic) as producer:
        for number in range(entries):
            values = [b"%d-%d" % (number, index) for index in range(1 + number % 3 * 4)]
            if number % 4 != 3:
                keys = [b"k%d" % index for index in range(len(values))] if number % 2 else None
                producer.send_batch(values, keys=keys, properties=[{"n": str(number)}] * len(values))
                continue
            txn = store.transaction()
            producer.send_batch(values, event_times=[number] * len(values), txn=txn)
            txn.flush()
            txn.commit() if number % 8 == 3 else txn.abort()


def span(store: Store, level: IsolationLevel, **given: Any) -> TopicRange:
    """The whole topic, unless something else is given."""
    (extent,) = store.reports.topic_extents(["t"])
    asked = {"after": extent.before, "through": extent.bound(level), **given}
    return TopicRange(
        LocalStore.of_open_store(store), extent.topic, extent.topic_id, level=level,
        open_txns=frozenset(extent.open_txns), **asked,
    )  # fmt: skip


def rows(pieces: list[Any]) -> list[dict[str, Any]]:
    return [
        row
        for piece in pieces
        for batch in getattr(piece, "value", piece).batches(SCHEMA)
        for row in batch.to_pylist()
    ]


def files(done: Offloaded, kind: str) -> list[str]:
    return sorted(done.directory.files_in(kind))
