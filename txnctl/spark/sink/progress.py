"""Progress of sinks: a row per sink in the table `txnctl-sinks`, written in the transaction that stores the batch.

The row makes a sink exactly-once: a transaction that stores a batch first reads the row and writes it. A batch at or
below the recorded batch is stored already. Two processes storing the same batch (a driver taken for dead, and its
successor) both read and write the row: one transaction loses that conflict and is aborted whole.

Key: the id of the streaming query, or `write:` and the id of a batch write. Value: JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.errors import AlreadyExists

if TYPE_CHECKING:
    from storage import Store, Transaction

SINKS: Final = "txnctl-sinks"


def key_of_write(write_id: str) -> str:
    """Return the sink key of a batch write with an id."""
    return f"write:{write_id}"


def make_table(store: Store) -> None:
    """Create the table of sinks if missing."""
    if not store.has_table(SINKS):
        try:
            store.create_table(SINKS)
        except AlreadyExists:
            return  # created by a concurrent sink


def last_batch(store: Store, key: str, txn: Transaction | None = None) -> int | None:
    """Return the last stored batch of a sink; None before the first."""
    value = store.table(SINKS).get(key.encode(), txn=txn)
    return None if value is None else int(json.loads(value)["batchId"])


class BatchRecord(NamedTuple):
    """The row of a sink: its latest batch.

    Attributes:
        rows: number of rows of the batch.
        topics: the targets of the rows, if no table is.
        at: time of the write, RFC 3339.
    """

    batch_id: int
    rows: int
    topics: Sequence[str]
    table: str | None
    at: str | None

    def to_json(self, txn: Transaction) -> bytes:
        """Encode the row, with the transaction that writes it."""
        target = {"topics": self.topics} if self.table is None else {"table": self.table}
        counts = {"batchId": self.batch_id, "rows": self.rows}
        return json.dumps({**counts, **target, "at": self.at, "txnId": f"0:{txn.number}"}).encode()


def record_batch(store: Store, txn: Transaction, key: str, record: BatchRecord) -> bool:
    """Record a batch in the transaction that stores it; False if the batch is stored already.

    From here on a concurrent writer of the same batch conflicts with this transaction.

    Raises:
        LostConflict, WriteTooOld: a concurrent transaction stores a batch of this sink; run the transaction again.
    """
    last = last_batch(store, key, txn)
    if last is not None and record.batch_id <= last:
        return False
    store.table(SINKS).put(key.encode(), record.to_json(txn), txn=txn)
    txn.flush()
    return True
