"""Append: `storage/client/append.py`."""

from __future__ import annotations

import pytest

from storage import DUPLICATE, Position, Producer, Store
from storage.errors import SequenceConflict
from storage.limits import PART_SEQUENCES_MAX, WRITE_BYTES_TARGET
from storage.txn import uncommitted_entries
from tests.row_json import row_json
from tests.storage.producer_steps import values


class TestIds:
    """`ledger:entry`, and in a batch `ledger:entry:index`."""

    def test_a_bulk_is_several_commits_of_a_bounded_size(self, store: Store) -> None:
        """No store transaction is larger than 16 MB; in a transaction all of it shows at once."""
        producer, before = store.create_producer("t"), row_json(store.reports.store_info())["commits"]
        count = 3 * WRITE_BYTES_TARGET // (1024 * 1024)
        with store.transaction() as txn:
            receipt = producer.send_batch([b"x" * 1024 * 1024] * count, txn=txn)
            assert receipt.count == count
            assert row_json(store.reports.store_info())["commits"] - before >= 4
            assert values(store) == []
        assert len(values(store)) == count


class TestSequenceIds:
    """Deduplicated per producer name and per message, where the caller gives them."""

    @pytest.fixture
    def producer(self, store: Store) -> Producer:
        """A producer with a name."""
        return store.create_producer("t", producer_name="p")

    def test_a_batch_keeps_what_is_new(self, store: Store, producer: Producer) -> None:
        """Duplicates inside the batch and of what is stored are left out; keys stay with their values."""
        producer.send(b"1", sequence_id=1)
        receipt = producer.send_batch(
            [b"0", b"1'", b"2", b"2'"], keys=["k0", "k1", "k2", "k2"], sequence_ids=[0, 1, 2, 2]
        )
        assert (receipt.count, receipt.duplicates, receipt.last_sequence_id) == (2, 2, 2)
        assert [(m.value, m.key, m.sequence_id) for m in store.reader("t", start=Position(1, 1))] == [
            (b"0", b"k0", 0), (b"2", b"k2", 2),
        ]  # fmt: skip

    def test_a_batch_of_duplicates_stores_nothing(self, store: Store, producer: Producer) -> None:
        """No entry at all."""
        producer.send_batch([b"0", b"1"], sequence_ids=[0, 1])
        receipt = producer.send_batch([b"0", b"1"], sequence_ids=[0, 1])
        assert (receipt.count, receipt.duplicates, list(receipt)) == (0, 2, [])
        assert receipt.last_message_id == DUPLICATE
        assert len(list(row_json(store.reports.topic_log("t")))) == 1


@pytest.mark.parametrize("committed", [True, False])
def test_scattered_sequence_ids_do_not_swell_a_transaction(store: Store, committed: bool) -> None:
    """Its part notes a bounded number of ranges; each id is settled, and no id of a neighbour."""
    count = PART_SEQUENCES_MAX * 3
    txn = store.begin_transaction()
    other = store.begin_transaction()
    with store.create_producer("t", producer_name="p") as producer:
        producer.send_batch([b"m"] * count, sequence_ids=list(range(0, 3 * count, 3)), txn=txn)
        producer.send_batch([b"o"] * count, sequence_ids=list(range(1, 3 * count, 3)), txn=other)
        producer.send_batch([b"p"] * count, sequence_ids=list(range(2, 3 * count, 3)))
    with store.connection.view() as view:
        part = uncommitted_entries.part_of(view, txn.least, 1)
    assert part is not None
    assert len(part.sequences) <= PART_SEQUENCES_MAX
    if committed:
        store.commit_transaction(txn)
    else:
        store.admin.transactions.abort_transaction(txn)
    with store.create_producer("t", producer_name="p") as producer:
        again = producer.send_batch([b"m"] * count, sequence_ids=list(range(0, 3 * count, 3)))
        assert again.duplicates == (count if committed else 0)
        assert producer.send_batch([b"p"], sequence_ids=[2]).duplicates == 1
        with pytest.raises(SequenceConflict):
            producer.send(b"o", sequence_id=1)
    store.admin.transactions.abort_transaction(other)
