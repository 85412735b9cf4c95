"""The outbox of a transaction alone: which messages become one batch, and how receipts learn of their outcome."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import IsolationLevel, MessageId, Store
from storage.client.append import Appender
from storage.client.work.outbox import BufferedBatch, Outbox
from storage.disk.view import WriteBatch
from storage.errors import ProducerFenced, SequenceConflict
from storage.limits import MESSAGE_OVERHEAD_BYTES
from storage.txn import record as records
from tests.row_json import row_json
from tests.storage.client.work.conftest import outgoing

NewAppender = Callable[[str], Appender]


def never(_: BufferedBatch) -> None:
    raise AssertionError("no receipt is looked at")


def write(store: Store, outbox: Outbox, txn: int, error: Exception | None = None) -> None:
    """Check and apply in one batch, which is lost if an error is given."""

    def change(batch: WriteBatch) -> None:
        record = records.get(batch, txn)
        outbox.check(batch, record)
        outbox.apply(batch, record, commits=False)
        records.save(batch, record)
        if error is not None:
            raise error

    store.connection.write(change, naming=txn)


def dirty(store: Store) -> list[bytes | None]:
    return [each.value for each in store.reader("t", isolation_level=IsolationLevel.READ_UNCOMMITTED)]


def test_consecutive_sends_of_a_producer_are_one_entry(store: Store, new_appender: NewAppender) -> None:
    """A send of another producer, or one that brings sequence ids, begins the next entry."""
    outbox, txn, p, q = Outbox(), store.begin_transaction().least, new_appender("p"), new_appender("q")
    receipts = [
        outbox.add(p, outgoing(b"0"), never),
        outbox.add(p, outgoing(b"1", b"2"), never),
        outbox.add(q, outgoing(b"3"), never),
        outbox.add(p, outgoing(b"4", ids=[7]), never),
    ]
    assert all(receipt.is_buffered for receipt in receipts)
    write(store, outbox, txn)
    outbox.settle()
    assert [[str(each) for each in receipt] for receipt in receipts] == [
        ["1:0:0"],
        ["1:0:1", "1:0:2"],
        ["1:1"],
        ["1:2"],
    ]
    assert dirty(store) == [b"0", b"1", b"2", b"3", b"4"]
    assert p.progress.last_sequence_id == 7
    with store.connection.view() as view:
        assert records.get(view, txn).messages == 5


def test_a_lost_batch_keeps_everything(store: Store, new_appender: NewAppender) -> None:
    """Receipts and producers know nothing of it, and the next batch stores the messages once."""
    outbox, txn, p = Outbox(), store.begin_transaction().least, new_appender("p")
    receipt = outbox.add(p, outgoing(b"0"), never)
    with pytest.raises(KeyError):
        write(store, outbox, txn, KeyError())
    assert (outbox.is_empty, receipt.is_buffered, p.progress.last_sequence_id) == (False, True, -1)
    write(store, outbox, txn)
    outbox.settle()
    assert (outbox.is_empty, receipt.last_message_id, dirty(store)) == (True, MessageId(1, 0), [b"0"])
    outbox.settle()
    assert p.progress.last_sequence_id == 0, "a settlement may be repeated"


def test_the_capacity_counts_a_message_with_its_overhead(new_appender: NewAppender) -> None:
    """An outbox without capacity takes nothing."""
    two = 2 * (MESSAGE_OVERHEAD_BYTES + 1)
    outbox, immediate = Outbox(two), Outbox(0)
    assert outbox.has_room(outgoing(b"a", b"b"))
    outbox.add(new_appender("p"), outgoing(b"a"), never)
    assert outbox.has_room(outgoing(b"b"))
    assert not outbox.has_room(outgoing(b"bb"))
    assert not immediate.has_room(outgoing(b""))
    outbox.discard()
    assert outbox.has_room(outgoing(b"a", b"b"))


def test_a_conflict_over_a_sequence_id_keeps_everything(store: Store, new_appender: NewAppender) -> None:
    """It is found while messages are appended; the batch is dropped as a whole."""
    p, other, txn = new_appender("p"), store.begin_transaction(), store.begin_transaction().least
    store.create_producer("t", producer_name="p", connected=False).send(b"theirs", sequence_id=1, txn=other)
    outbox = Outbox()
    outbox.add(p, outgoing(b"0", b"1", ids=[0, 1]), never)
    with pytest.raises(SequenceConflict):
        write(store, outbox, txn)
    assert (outbox.is_empty, dirty(store)) == (False, [b"theirs"])


def test_a_fenced_producer_dooms_and_learns_of_it(store: Store, new_appender: NewAppender) -> None:
    """The check leaves the doom of the transaction; when the messages are discarded, the producer is told."""
    p, txn, outbox = new_appender("p"), store.begin_transaction(), Outbox()
    outbox.add(p, outgoing(b"never"), never)
    store.admin.topics.delete_topic("t", force=True)
    store.create_topic("t")
    with pytest.raises(ProducerFenced):
        write(store, outbox, txn.least)
    assert (p.fenced, row_json(store.reports.show_transaction(txn))["reason"]) == (None, "fenced")
    outbox.discard()
    assert isinstance(p.fenced, ProducerFenced)
    assert outbox.is_empty


def test_a_receipt_that_is_looked_at_has_its_batch_stored(store: Store, new_appender: NewAppender) -> None:
    """By the owner of the outbox, which is asked once."""
    outbox, txn, asked = Outbox(), store.begin_transaction().least, list[BufferedBatch]()

    def locate(batch: BufferedBatch) -> None:
        asked.append(batch)
        write(store, outbox, txn)
        outbox.settle()

    receipt = outbox.add(new_appender("p"), outgoing(b"0"), locate)
    assert str(receipt.last_message_id) == str(receipt.last_message_id) == "1:0"
    assert len(asked) == 1
