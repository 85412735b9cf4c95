"""`txnctl subscriptions clear-backlog`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import EARLIEST, Store

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestCursor:
    """`seek`, `skip`, `clear-backlog`."""

    def test_a_dry_run_over_many_messages_counts_them_all(self, run: Any, store: Store) -> None:
        """Also where the real one takes several store transactions."""
        store.create_topic("long")
        store.admin.subscriptions.create_subscription("long", "s", initial_position=EARLIEST)
        with store.create_producer("long") as producer:
            txn = store.begin_transaction()
            for _ in range(30):
                producer.send_batch([b"x"] * 1000, txn=txn)
            store.commit_transaction(txn)
        words = ("subscriptions", "clear-backlog", "long", "s", "--yes", "-o", "json")
        dry, real = run(*words, "--dry-run").json, run(*words).json
        assert dry["skipped"] == real["skipped"] == 30_000
        assert dry["markDeletePositionAfter"] == real["markDeletePositionAfter"]
