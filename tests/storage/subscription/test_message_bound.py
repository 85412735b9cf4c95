"""The message bound: what a transaction that uses tables may consume."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, MessageId, Position, Store, Table, Transaction, TxnID
from storage.disk.view import WriteBatch
from storage.errors import ConditionFailed, NotDeliverable
from storage.subscription import catalogue as subscriptions, message_bound
from storage.topic import catalogue as topics, log
from storage.txn import record as records


def entry_at(batch: WriteBatch, position: MessageId) -> log.Entry:
    entry = log.read(batch, topics.get(batch, "t").topic_id, position.position)
    assert entry is not None
    return entry


def test_a_message_is_readable_since_its_publish_or_the_commit(store: Store) -> None:
    """One that is not committed never was."""
    producer, txn = store.create_producer("t"), store.begin_transaction()
    plain, sent = producer.send(b"plain"), producer.send(b"sent", txn=txn)
    assert isinstance(plain, MessageId)
    assert isinstance(sent, MessageId)

    def look(batch: WriteBatch) -> tuple[int, int, int]:
        entries = entry_at(batch, plain), entry_at(batch, sent)
        return (
            entries[0].timestamp,
            message_bound.readable_since(batch, entries[0]),
            message_bound.readable_since(batch, entries[1]),
        )

    published, since, undecided = store.connection.write(look)
    assert (since, undecided) == (published, message_bound.NEVER)
    store.commit_transaction(txn)
    with store.connection.view() as view:
        ended = records.get(view, txn.least).ended_timestamp
    assert store.connection.write(look)[2] == ended


def test_the_newest_consumed_message_is_noted_or_refused(store: Store) -> None:
    """Refused once the transaction has used a table and the message came later than its begin."""
    producer = store.create_producer("t")
    producer.send(b"before")
    txn = store.begin_transaction()
    late = producer.send(b"after")
    store.subscribe("t", "s", initial_position=EARLIEST).close()

    def consume(batch: WriteBatch) -> None:
        subscription = subscriptions.get(batch, topics.get(batch, "t"), "s")
        record = records.open_record(batch, txn.least)
        message_bound.note_consumed(batch, subscription, record, [Position(1, 0), Position(1, 9)])
        assert 0 < record.consumed < record.timestamp
        message_bound.note_consumed_through(batch, subscription, record, Position(1, -1), Position(1, 1))
        assert record.consumed == entry_at(batch, late).timestamp > record.timestamp
        record.uses_tables = True
        with pytest.raises(NotDeliverable):
            message_bound.note_consumed(batch, subscription, record, [Position(1, 1)])

    store.connection.write(consume, dry_run=True)


def _failed_condition(table: Table, txn: TxnID | Transaction) -> None:
    with pytest.raises(ConditionFailed):
        table.put(b"absent", b"1", if_version=7, txn=txn)


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize(
    "use",
    [
        lambda table, txn: table.get(b"absent", txn=txn),
        lambda table, txn: list(table.scan(txn=txn)),
        lambda table, txn: table.delete(b"absent", txn=txn),
        _failed_condition,
    ],
)
def test_a_first_use_of_a_table_that_finds_nothing_bounds_the_messages_too(
    store: Store, use: Callable[[Table, TxnID | Transaction], object], by_id: bool
) -> None:
    """A transaction has used a table from its first operation on, whether that found or changed a row or not."""
    table = store.table("accounts", create=True)
    table.put(b"present", b"1")
    txn = store.begin_transaction() if by_id else store.transaction()
    use(table, txn)
    store.create_producer("t").send(b"after")
    with store.subscribe("t", "s", initial_position=EARLIEST) as consumer:
        message = consumer.receive(timeout=0)
        with pytest.raises(NotDeliverable, match="has used tables"):
            consumer.acknowledge(message, txn=txn)
    store.admin.transactions.abort_transaction(txn) if isinstance(txn, TxnID) else txn.abort()
