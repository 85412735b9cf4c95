"""Entry: `storage/topic/entry.py`."""

from __future__ import annotations

from storage import Store
from storage.limits import ENTRY_BYTES_TARGET, ENTRY_MESSAGES_MAX
from tests.row_json import row_json
from tests.storage.producer_steps import values


class TestIds:
    """`ledger:entry`, and in a batch `ledger:entry:index`."""

    def test_a_large_batch_is_split_into_entries_of_a_bounded_size(self, store: Store) -> None:
        """By bytes and by number of messages, in order, in one durable commit."""
        producer = store.create_producer("t")
        size = ENTRY_BYTES_TARGET // 4
        before = row_json(store.reports.store_info())["commits"]
        receipt = producer.send_batch([b"x" * size] * 9)
        assert [count for _, count in receipt.entries] == [4, 4, 1]
        receipt = producer.send_batch([b""] * (ENTRY_MESSAGES_MAX + 1))
        assert [count for _, count in receipt.entries] == [ENTRY_MESSAGES_MAX, 1]
        assert row_json(store.reports.store_info())["commits"] == before + 2
        assert len(values(store)) == 10 + ENTRY_MESSAGES_MAX
