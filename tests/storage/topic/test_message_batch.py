"""Message batch: `storage/topic/message_batch.py`."""

from __future__ import annotations

from storage import MessageId, Store


class TestIds:
    """`ledger:entry`, and in a batch `ledger:entry:index`."""

    def test_single_messages_and_batches(self, store: Store) -> None:
        """A batch of one is a single message; ids are those that readers see."""
        producer = store.create_producer("t")
        first = producer.send(b"0")
        receipt = producer.send_batch([b"1", b"2"])
        single = producer.send_batch([b"3"])
        assert str(first) == "1:0"
        assert list(map(str, receipt)) == ["1:1:0", "1:1:1"]
        assert (receipt.last_message_id, receipt.count, len(receipt)) == (MessageId(1, 1, 1), 2, 2)
        assert list(single) == [MessageId(1, 2)]
        assert [message.message_id for message in store.reader("t")] == [first, *receipt, *single]
