"""Handing out: order, flight, redelivery, keys (semantics section 5)."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.subscription.dispatch import next_messages
from storage.topic import log
from tests.row_json import row_json
from tests.storage.walk_steps import (
    SHARED,
    TYPES,
    Attach,
    drain,
    receive,
    send,
    values,
)


class TestOrder:
    """First deliveries are in position order (invariant 4)."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_by_position_never_by_commit(self, store: Store, attach: Attach, type_: SubscriptionType) -> None:
        """The transaction that commits last may come first, because its message does."""
        producer = store.create_producer("t")
        one, two = store.begin_transaction(), store.begin_transaction()
        producer.send(b"one", txn=one)
        producer.send(b"two", txn=two)
        consumer = attach(type_)
        store.commit_transaction(two)
        assert values(consumer) == []
        store.commit_transaction(one)
        assert values(consumer) == [b"one", b"two"]

    def test_a_window_of_large_messages_is_bounded_by_their_bytes(
        self, store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A dispatch ends with the message that reaches the bound; the rest waits for the next one."""
        monkeypatch.setattr(next_messages, "DISPATCH_BYTES_MAX", 2000)
        producer = store.create_producer("t")
        for number in range(5):
            producer.send(b"%d" % number * 1000)
        consumer = attach(SHARED)
        received = [consumer.receive(0)]
        stats = row_json(store.reports.subscription_stats("t", "a"))
        assert stats["unackedMessages"] == 2
        received += consumer.receive_batch(9, timeout=0)
        received += consumer.receive_batch(9, timeout=0)
        assert [(message.value or b"")[:1] for message in received] == [b"0", b"1", b"2", b"3"]

    @pytest.mark.parametrize("window", [1, 2, 3, 1000])
    def test_across_entries_ledgers_and_windows(self, store: Store, window: int) -> None:
        """However small the windows, every message comes once, in its place."""
        store.create_topic("r", ledger_entries_max=2)
        producer = store.create_producer("r")
        for size in (3, 1, 4, 1, 5):
            producer.send_batch([b"%d" % number for number in range(size)])
        consumer = store.subscribe("r", "a", initial_position=EARLIEST, receiver_queue_size=window)
        received = []
        while messages := consumer.receive_batch(2, timeout=0):
            received += [(str(message.message_id), message.value) for message in messages]
        assert received == [(str(message.message_id), message.value) for message in store.reader("r")]

    def test_long_stretches_without_a_message_are_passed(
        self, store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """More aborted entries than one dispatch looks at do not hide the message behind them, without waiting."""
        monkeypatch.setattr(next_messages, "DISPATCH_SCAN_ENTRIES_MAX", 3)
        monkeypatch.setattr(log, "PAGE_ENTRIES", 2)
        txn = store.begin_transaction()
        producer = store.create_producer("t")
        for _ in range(9):
            producer.send(b"aborted", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        producer.send(b"behind")
        assert values(attach()) == [b"behind"]

    def test_many_in_flight_do_not_starve_others(
        self, store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A consumer that holds much does not keep what follows from the next one."""
        monkeypatch.setattr(next_messages, "DISPATCH_SCAN_ENTRIES_MAX", 3)
        monkeypatch.setattr(log, "PAGE_ENTRIES", 2)
        send(store, *map(str, range(12)))
        slow = attach(SHARED, window=10)
        held = receive(slow, 10)
        other = attach(SHARED, window=10)
        slow.negative_acknowledge(held[-1], delay=60)
        assert drain(other) == [b"10", b"11"]
