"""Progress of sinks: a row per sink in the table `txnctl-sinks`, written in the transaction that stores the batch.

The row makes a sink exactly-once: a transaction that stores a batch first reads the row and writes it. A batch at or
below the recorded batch is stored already. Two processes storing the same batch (a driver taken for dead, and its
successor) both read and write the row: one transaction loses that conflict and is aborted whole.

Key: the id of the streaming query, or `write:` and the id of a batch write. Value: JSON. An id of a query is Spark's
own, and counts as proof; an id of a batch write is chosen by people, so its row also describes the content
(`repeated_write.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.errors import AlreadyExists
from txnctl.spark.sink.repeated_write import check_same

if TYPE_CHECKING:
    from storage import Store, Transaction

SINKS: Final = "txnctl-sinks"
_WRITE: Final = "write:"


def key_of_write(write_id: str) -> str:
    """Return the sink key of a batch write with an id."""
    return f"{_WRITE}{write_id}"


def make_table(store: Store) -> None:
    """Create the table of sinks if missing."""
    if not store.has_table(SINKS):
        try:
            store.create_table(SINKS)
        except AlreadyExists:
            return  # created by a concurrent sink


class BatchRecord(NamedTuple):
    """The row of a sink: its latest batch.

    Attributes:
        rows: number of rows of the batch.
        topics: the targets of the rows, if no table is, each with the id that a topic has until it is deleted; 0 for a
            topic that the batch creates, and in rows of txnctl 0.1.0.
        at: time of the write, RFC 3339.
        txn: the transaction that stored the batch; None before it is written.
        content: the sum of the rows (`content_sum.py`); None for a batch of a stream, and in rows of txnctl 0.1.0.
        fingerprint: of the input of the job, as given; None if none was.
    """

    batch_id: int
    rows: int
    topics: Mapping[str, int]
    table: str | None
    at: str | None
    txn: str | None
    content: str | None = None
    fingerprint: str | None = None

    def to_json(self) -> bytes:
        """Encode the row."""
        row: dict[str, object] = {"batchId": self.batch_id, "rows": self.rows}
        if self.table is None:
            row["topics"] = list(self.topics)
            if self.content is not None:
                row["topicIds"] = list(self.topics.values())
        else:
            row["table"] = self.table
        row |= {"at": self.at, "txnId": self.txn}
        for name, value in (("content", self.content), ("fingerprint", self.fingerprint)):
            if value is not None:
                row[name] = value
        return json.dumps(row).encode()

    @classmethod
    def of_json(cls, value: bytes) -> BatchRecord:
        """Decode a row of this release or an earlier one."""
        row: dict[str, Any] = json.loads(value)
        topics = row.get("topics", [])
        return cls(
            int(row["batchId"]), row["rows"], dict(zip(topics, row.get("topicIds", [0] * len(topics)), strict=True)),
            row.get("table"), row["at"], row["txnId"], row.get("content"), row.get("fingerprint"),
        )  # fmt: skip


def find(store: Store, key: str, txn: Transaction | None = None) -> BatchRecord | None:
    """Return the last stored batch of a sink; None before the first."""
    if not store.has_table(SINKS):
        return None
    value = store.table(SINKS).get(key.encode(), txn=txn)
    return None if value is None else BatchRecord.of_json(value)


def last_batch(store: Store, key: str, txn: Transaction | None = None) -> int | None:
    """Return the number of the last stored batch of a sink; None before the first."""
    last = find(store, key, txn)
    return None if last is None else last.batch_id


def record_batch(store: Store, txn: Transaction, key: str, record: BatchRecord) -> bool:
    """Record a batch in the transaction that stores it; False if the batch is stored already.

    From here on a concurrent writer of the same batch conflicts with this transaction.

    Raises:
        AlreadyExists: the id of a batch write was used for a different write.
        LostConflict, WriteTooOld: a concurrent transaction stores a batch of this sink; run the transaction again.
    """
    last = find(store, key, txn)
    if last is not None and record.batch_id <= last.batch_id:
        if key.startswith(_WRITE):
            check_same(key.removeprefix(_WRITE), last, record)
        return False
    put(store, txn, key, record)
    txn.flush()
    return True


def put(store: Store, txn: Transaction, key: str, record: BatchRecord) -> None:
    """Write the row of a sink in the transaction that stores the batch, and name that transaction in it."""
    row = record._replace(txn=f"0:{txn.number}")
    store.table(SINKS).put(key.encode(), row.to_json(), txn=txn)
