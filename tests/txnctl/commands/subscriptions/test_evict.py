"""`txnctl subscriptions evict`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestChange:
    """`evict`, `update`, `delete`."""

    def test_evict(self, run: Any, store: Store) -> None:
        """What they held is free; an unknown consumer is not found."""
        consumer = store.subscribe("orders", "billing", consumer_name="anna", receiver_queue_size=3)
        held = consumer.receive_batch(3, timeout=0)
        assert run("subscriptions", "evict", "orders", "billing", "berta").status == 3
        dry = run("subscriptions", "evict", "orders", "billing", "anna", "--dry-run").out
        assert dry.endswith('\nRun: txnctl subscriptions evict orders billing anna --reason "..."\n')
        outcome = run("subscriptions", "evict", "orders", "billing", "anna")
        assert outcome.out == "Evicted anna from billing on orders; 3 messages in flight released.\n"
        from storage.errors import ConsumerEvicted

        with pytest.raises(ConsumerEvicted):
            consumer.acknowledge(held)
        assert (
            run("subscriptions", "evict", "orders", "billing").out
            == "Nobody is attached to billing on orders.\n"
        )
        (record,) = [
            row
            for row in row_json(store.reports.list_audit_records())
            if row["action"] == "subscriptions evict"
        ]
        assert record["target"] == "orders billing anna"

    def test_what_is_no_topic_but_something_else_is_named(self, run: Any, store: Store) -> None:
        """A subscription in its place, also where the two were swapped; a table."""
        store.create_table("accounts")
        for words, told in (
            (("transactions", "blocked", "billing"), "billing is a subscription of orders: name the topic"),
            (("subscriptions", "evict", "billing", "orders"), "billing is a subscription of orders: name"),
            (("topics", "stats", "accounts"), "accounts is a table: `txnctl tables show accounts`."),
            (("topics", "stats", "order"), "Did you mean orders?"),
        ):
            outcome = run(*words)
            assert outcome.status == 3
            assert told in outcome.err

    def test_the_reason_stands_in_the_audit_trail(self, run: Any, store: Store) -> None:
        """Of every administrative command."""
        run("subscriptions", "seek", "orders", "billing", "1:1", "--yes", "--reason", "one")
        run("subscriptions", "skip", "orders", "billing", "1", "--yes", "--reason", "two")
        run("subscriptions", "evict", "orders", "billing", "--reason", "nobody was there")
        with store.subscribe("orders", "billing"):
            run("subscriptions", "evict", "orders", "billing", "--reason", "three")
        run("subscriptions", "delete", "orders", "billing", "--yes", "--reason", "four")
        assert [
            (row["action"], row["reason"]) for row in reversed(row_json(store.reports.list_audit_records()))
        ] == [
            ("subscriptions seek", "one"),
            ("subscriptions skip", "two"),
            ("subscriptions evict", "three"),
            ("subscriptions delete", "four"),
        ]
