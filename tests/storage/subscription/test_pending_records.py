"""The records of pending acknowledgements: `storage/subscription/pending_records.py`."""

from __future__ import annotations

from storage import Store, TxnID
from storage.disk.schema import PENDING, TXN_PENDING
from storage.disk.view import WriteBatch
from storage.subscription import catalogue as subscriptions, pending_records
from storage.topic import catalogue as topics
from storage.values.position import Position
from tests.storage.damage import broken_by
from tests.storage.walk_steps import SHARED, Attach, receive, send


def subscription_id(batch: WriteBatch) -> int:
    return subscriptions.get(batch, topics.get(batch, "t"), "a").subscription_id


def begin_two(store: Store, attach: Attach) -> tuple[TxnID, TxnID]:
    """Messages 0 and 2 are pending in one transaction, 1 and one of a batch in a second."""
    send(store, *"012")
    store.create_producer("t").send_batch([b"3", b"4"])
    messages = receive(attach(SHARED))
    first, second = store.begin_transaction(), store.begin_transaction()
    attached = store.subscribe("t", "a", subscription_type=SHARED)
    attached.acknowledge([messages[0], messages[2]], txn=first)
    attached.acknowledge([messages[1], messages[4]], txn=second)
    return first, second


def test_messages_in_the_order_of_the_log(store: Store, attach: Attach) -> None:
    """Whichever transaction has them, and however they are stored."""
    first, second = (txn.least for txn in begin_two(store, attach))
    with store.connection.view() as view:
        number = subscriptions.get(view, topics.get(view, "t"), "a").subscription_id
        assert pending_records.one_by_one(view, number) == [
            (Position(1, 0), first, b"\x01"),
            (Position(1, 1), second, b"\x01"),
            (Position(1, 2), first, b"\x01"),
            (Position(1, 3), second, b"\x02"),
        ]
        assert pending_records.of_entry(view, number, Position(1, 1)) == [(second, b"\x01")]
        assert (view.count(PENDING), view.count(TXN_PENDING)) == (2, 2)


def test_a_part_of_a_span_is_removed(store: Store, attach: Attach) -> None:
    """The rest stays pending; the last part takes the record along."""
    first, _ = begin_two(store, attach)

    def remove(batch: WriteBatch) -> list[int]:
        number, left = subscription_id(batch), []
        for messages in (0b001, 0b010, 0b100):
            (record,) = pending_records.of_transaction(batch, first.least, number)
            left.append(pending_records.remove(batch, number, record, messages))
        assert pending_records.of_transaction(batch, first.least, number) == []
        return left

    assert store.connection.write(remove, dry_run=True) == [1, 0, 1]


def test_a_pending_message_that_is_not_held(store: Store, attach: Attach) -> None:
    """Verify finds it: dispatch would deliver it (invariant 7)."""
    first, _ = begin_two(store, attach)

    def add(batch: WriteBatch) -> None:
        pending_records.add_to_span(batch, subscription_id(batch), first.least, Position(1, 1024), 1)

    assert 7 in broken_by(store, add)

    def remove(batch: WriteBatch) -> None:
        number = subscription_id(batch)
        for record in pending_records.of_transaction(batch, first.least, number):
            if record.at == (1, 1024):
                pending_records.remove(batch, number, record)

    store.connection.write(remove)
