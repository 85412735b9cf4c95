"""Skip: `storage/admin/skip.py`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import EARLIEST, IsolationLevel, MessageId, Position, Store, SubscriptionType
from storage.errors import (
    InvalidValue,
)
from tests.row_json import row_json
from tests.storage.admin.administration_steps import RC, RU, attach, send, values


def mark_delete(store: Store) -> str:
    found: str = row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"]
    return found


class TestSkip:
    """Count visible messages, and only those."""

    def test_so_many_visible_messages(self, store: Store) -> None:
        """Aborted ones and markers on the way are passed and not counted."""
        send(store, 2)
        txn = store.begin_transaction()
        send(store, 2, txn=txn)
        store.admin.transactions.abort_transaction(txn)
        send(store, 2)
        attach(store).close()
        assert row_json(store.admin.subscriptions.skip_messages("t", "a", 3))["skipped"] == 3
        assert values(attach(store)) == [b"1"]

    @pytest.mark.parametrize("level", [RC, RU])
    @pytest.mark.parametrize("beyond", [False, True])
    def test_it_stops_at_max_read_unless_told_otherwise(self, store: Store, level: Any, beyond: bool) -> None:
        """Only at READ_UNCOMMITTED is there anything visible beyond."""
        send(store, 2)
        send(store, 1, txn=store.begin_transaction())
        send(store, 1)
        attach(store, subscription_isolation_level=level).close()
        expected = 4 if beyond and level is RU else 2
        assert (
            row_json(store.admin.subscriptions.clear_backlog("t", "a", beyond_max_read=beyond))["skipped"]
            == expected
        )
        assert mark_delete(store) == ("1:3" if expected == 4 else "1:1")

    def test_pending_ones_are_left_alone(self, store: Store) -> None:
        """One by one and cumulatively pending: they are for their transaction to decide."""
        send(store, 3)
        store.create_producer("t").send_batch([b"3", b"4", b"5"])
        consumer = attach(store)
        one, two = store.begin_transaction(), store.begin_transaction()
        consumer.acknowledge(MessageId(1, 2), txn=two)
        consumer.acknowledge_cumulative(MessageId(1, 0), txn=one)
        assert row_json(store.admin.subscriptions.clear_backlog("t", "a"))["skipped"] == 4
        store.admin.transactions.abort_transaction(one)
        store.admin.transactions.abort_transaction(two)
        assert values(consumer) == [b"0", b"2"]

    def test_the_cursor_never_moves_back(self, store: Store) -> None:
        """A cursor that is ahead of maxReadPosition stays there."""
        send(store, 1, txn=store.begin_transaction())
        send(store, 1)
        store.admin.subscriptions.create_subscription("t", "a", initial_position=Position(1, 2))
        before = mark_delete(store)
        assert row_json(store.admin.subscriptions.clear_backlog("t", "a"))["skipped"] == 0
        assert mark_delete(store) == before

    def test_what_is_skipped_leaves_the_queue(self, store: Store) -> None:
        """A consumer is not given what was skipped under its hands."""
        send(store, 4)
        consumer = attach(store)
        consumer.receive(timeout=1)
        store.admin.subscriptions.skip_messages("t", "a", 3)
        assert values(consumer) == [b"3"]

    @pytest.mark.parametrize("count", [0, -1])
    def test_less_than_one_is_refused(self, store: Store, count: int) -> None:
        """There is nothing to skip."""
        attach(store).close()
        with pytest.raises(InvalidValue):
            store.admin.subscriptions.skip_messages("t", "a", count)


def test_skipping_leaves_alone_what_is_pending_and_was_aborted(store: Store) -> None:
    """Acknowledged in a transaction while it was uncommitted: that one can still commit, and nothing is lost."""
    producer, dirty, txn = store.create_producer("t"), store.begin_transaction(), store.begin_transaction()
    producer.send(b"plain")
    producer.send(b"aborted", txn=dirty)
    with store.subscribe(
        "t", "s", subscription_type=SubscriptionType.SHARED,
        subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED, initial_position=EARLIEST,
    ) as consumer:  # fmt: skip
        consumer.acknowledge(list(consumer.receive_batch(9, timeout=0))[1:], txn=txn)
    store.admin.transactions.abort_transaction(dirty)
    store.admin.subscriptions.update_subscription(
        "t", "s", subscription_isolation_level=IsolationLevel.READ_COMMITTED
    )
    assert row_json(store.admin.subscriptions.clear_backlog("t", "s"))["skipped"] == 1
    store.commit_transaction(txn)
    assert store.maintenance.verify_store(full=True) == []
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0
