"""Message bounds under `--on-open skip`: a transaction that uses tables is handed only what was there before it began."""

from __future__ import annotations

from storage import Store
from tests.storage.skip_walk_steps import (
    Attach,
    receive,
    send,
)


def test_a_transaction_over_tables_is_handed_only_what_was_there(
    store: Store, attach_skipping: Attach
) -> None:
    """What was committed after it began comes to the next one, though it was sent before."""
    late, consumer = store.begin_transaction(), attach_skipping()
    send(store, "late", txn=late)
    send(store, "1")
    store.create_table("balances")
    with store.transaction() as txn:
        store.table("balances").put(b"B", b"1", txn=txn)
        store.commit_transaction(late)
        assert [m.value for m in consumer.receive_batch(9, timeout=0, txn=txn)] == []
        assert consumer.next_is_newer_than(txn)
    assert receive(consumer) == "late 1"
