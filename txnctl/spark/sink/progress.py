"""What a sink has stored: one row a sink in the table `txnctl-sinks`, written in the transaction of what it tells of.

Exactly once needs no more than this: a transaction that stores a batch first reads the row and writes it. A batch at or
below the recorded one is there already. Of two that store the same batch, a driver that was taken for dead and its
successor, both read and write the row: one of them loses that conflict, and everything of it is dropped.

Key: the id of the streaming query, or `write:` and the id of a batch write. Value: JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from storage.errors import AlreadyExists

if TYPE_CHECKING:
    from storage import Store, Transaction

SINKS: Final = "txnctl-sinks"


def key_of_write(write_id: str) -> str:
    """The sink that a batch write with an id of its own is."""
    return f"write:{write_id}"


def make_table(store: Store) -> None:
    """Create the table of sinks where it is missing."""
    if not store.has_table(SINKS):
        try:
            store.create_table(SINKS)
        except AlreadyExists:
            return  # another sink was faster


def last_batch(store: Store, key: str, txn: Transaction | None = None) -> int | None:
    """The last batch of a sink that is stored; None if there is none."""
    value = store.table(SINKS).get(key.encode(), txn=txn)
    return None if value is None else int(json.loads(value)["batchId"])


def begin(store: Store, txn: Transaction, key: str, batch_id: int, rows: int, **details: Any) -> bool:
    """Begin to store a batch in a transaction; False if it is stored already, and nothing is to be done.

    From here on whoever stores the same batch meets this transaction.

    Args:
        rows: how many the batch has.
        details: what else to record of it, as JSON takes it.

    Raises:
        LostConflict, WriteTooOld: somebody else stores a batch of this sink; run the whole transaction again.
    """
    last = last_batch(store, key, txn)
    if last is not None and batch_id <= last:
        return False
    row = {"batchId": batch_id, "rows": rows, **details, "txnId": f"0:{txn.number}"}
    store.table(SINKS).put(key.encode(), json.dumps(row).encode(), txn=txn)
    txn.flush()
    return True
