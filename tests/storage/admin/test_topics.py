"""Topics: `storage/admin/topics.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store
from storage.errors import (
    TopicNotFound,
)
from tests.row_json import row_json


class TestDeletion:
    """A deleted topic and its successor of the same name."""

    def test_ledger_ids_go_on_counting(self, store: Store) -> None:
        """A position of the first life never names anything in the second (invariant 5)."""
        store.create_topic("r", ledger_entries_max=1)
        with store.create_producer("r") as producer:
            producer.send(b"x")
            producer.send(b"y")
        store.admin.topics.delete_topic("r")
        with pytest.raises(TopicNotFound):
            store.reader("r")
        store.create_topic("r")
        assert str(store.create_producer("r").send(b"z")) == "3:0"
        store.admin.topics.delete_topic("r", force=True)
        store.create_topic("r")
        assert row_json(store.reports.topic_stats("r"))["maxReadPosition"] == "4:-1"

    def test_nothing_of_it_is_left(self, store: Store) -> None:
        """Entries, subscriptions, sequence ids, aborted sets: the successor begins empty."""
        producer = store.create_producer("t", producer_name="p")
        producer.send(b"x", sequence_id=1)
        txn = store.begin_transaction()
        producer.send(b"aborted", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        producer.close()
        store.subscribe("t", "a", initial_position=EARLIEST).close()
        store.admin.topics.delete_topic("t")
        space = {row["database"]: row["entries"] for row in row_json(store.reports.list_databases())}
        for name in (
            "entries",
            "ledgers",
            "sequences",
            "aborted",
            "txn_runs",
            "subscriptions",
            "cursors",
            "producers",
            "owners",
        ):
            assert space[name] == 0, name
        store.create_topic("t")
        assert store.create_producer("t", producer_name="p").send(b"x", sequence_id=1).entry_id == 0
        assert row_json(store.reports.list_subscriptions("t")) == []
