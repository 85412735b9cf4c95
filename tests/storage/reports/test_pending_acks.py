"""Acknowledgements that wait for their transaction, as the report names them."""

from __future__ import annotations

from storage import EARLIEST, Store, SubscriptionType
from tests.row_json import row_json


def test_each_names_message_and_transaction(store: Store) -> None:
    """Of a batch, each message by its index; nothing is left when it has ended."""
    producer = store.create_producer("t")
    producer.send(b"a")
    producer.send_batch([b"b", b"c", b"d"])
    with store.subscribe(
        "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
    ) as consumer:
        messages = consumer.receive_batch(4, timeout=1)
        txn = store.begin_transaction()
        consumer.acknowledge([messages[0], messages[1], messages[3]], txn=txn)
        rows = row_json(store.reports.list_pending_acknowledgements("t", "s"))
        assert [(row["messageId"], row["kind"], row["txnId"], row["messages"]) for row in rows] == [
            ("1:0", "individual", str(txn), 1), ("1:1:0", "individual", str(txn), 1), ("1:1:2", "individual", str(txn), 1),
        ]  # fmt: skip
        store.commit_transaction(txn)
        assert row_json(store.reports.list_pending_acknowledgements("t", "s")) == []


def test_a_cumulative_one_says_through_which(store: Store) -> None:
    """Not how many: that is the backlog's business."""
    store.create_producer("t").send_batch([b"a", b"b", b"c"])
    with store.subscribe("t", "s", initial_position=EARLIEST) as consumer:
        messages = consumer.receive_batch(3, timeout=1)
        txn = store.begin_transaction()
        consumer.acknowledge_cumulative(messages[1], txn=txn)
        (row,) = row_json(store.reports.list_pending_acknowledgements("t", "s"))
        assert (row["messageId"], row["kind"], row["txnId"], row["messages"]) == (
            "1:0:1",
            "cumulative",
            str(txn),
            None,
        )
        row_json(store.admin.transactions.abort_transaction(txn, force=True))
