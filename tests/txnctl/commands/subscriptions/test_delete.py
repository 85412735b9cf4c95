"""`txnctl subscriptions delete`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestChange:
    """`evict`, `update`, `delete`."""

    def test_delete(self, run: Any, store: Store) -> None:
        """Refused while somebody is attached; --force evicts. The topic stays."""
        consumer = store.subscribe("orders", "billing", consumer_name="anna")
        assert run("subscriptions", "delete", "orders", "billing", "--yes").status == 4
        outcome = run("subscriptions", "delete", "orders", "billing", "--yes", "--force")
        assert outcome.out.splitlines() == [
            "Deleted subscription billing on orders.",
            "Consumers were evicted: anna.",
        ]
        assert run("subscriptions", "show", "orders", "billing").status == 3
        assert run("subscriptions", "delete", "orders", "billing", "--yes").status == 3
        assert len(store.reader("orders").read_batch(10)) == 5
        del consumer
