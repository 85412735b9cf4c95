"""Changing level and type with nobody attached: what stays acknowledged, what stays skipped (semantics section 4)."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, MessageId, Store, SubscriptionType, TxnID
from tests.row_json import row_json

RC, RU = IsolationLevel
TYPES = list(SubscriptionType)


def attach(store: Store, level: IsolationLevel, type_: SubscriptionType | None = None) -> Consumer:
    return store.subscribe(
        "t", "a", subscription_type=type_, subscription_isolation_level=level, initial_position=EARLIEST
    )


def values(consumer: Consumer) -> list[bytes | None]:
    return [message.value for message in consumer.receive_batch(99, timeout=0)]


def send(store: Store, value: bytes, txn: TxnID | None = None) -> None:
    store.create_producer("t").send(value, txn=txn)


def mark_delete(store: Store) -> str:
    found: str = row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"]
    return found


class TestToReadCommitted:
    """READ_UNCOMMITTED to READ_COMMITTED."""

    @pytest.mark.parametrize("type_", TYPES)
    @pytest.mark.parametrize("committed", [True, False])
    def test_what_was_acknowledged_while_uncommitted_stays_acknowledged(
        self, store: Store, type_: SubscriptionType, committed: bool
    ) -> None:
        """Whatever became of its transaction; a seek shows it again if it is committed."""
        txn = store.begin_transaction()
        send(store, b"open", txn)
        with attach(store, RU, type_) as consumer:
            consumer.acknowledge(consumer.receive(timeout=1))
        (store.commit_transaction if committed else store.admin.transactions.abort_transaction)(txn)
        send(store, b"plain")
        with attach(store, RC) as consumer:
            assert values(consumer) == [b"plain"]
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        with attach(store, RC) as consumer:
            assert values(consumer) == ([b"open", b"plain"] if committed else [b"plain"])

    def test_what_was_received_and_not_acknowledged_waits_for_its_commit(self, store: Store) -> None:
        """An open message handed out before the change is not handed out after it, until it is committed."""
        txn = store.begin_transaction()
        send(store, b"open", txn)
        with attach(store, RU) as consumer:
            assert values(consumer) == [b"open"]
        consumer = attach(store, RC)
        assert values(consumer) == []
        store.commit_transaction(txn)
        assert values(consumer) == [b"open"]

    def test_the_aborted_leave_the_backlog(self, store: Store) -> None:
        """What would have been handed out at READ_UNCOMMITTED is skipped from now on."""
        txn = store.begin_transaction()
        send(store, b"aborted", txn)
        store.admin.transactions.abort_transaction(txn)
        attach(store, RU).close()
        assert row_json(store.reports.subscription_stats("t", "a"))["msgBacklog"] == 1
        store.admin.subscriptions.update_subscription("t", "a", subscription_isolation_level=RC)
        assert row_json(store.reports.subscription_stats("t", "a"))["msgBacklog"] == 0

    def test_a_cursor_beyond_max_read_counts_right(self, store: Store) -> None:
        """Acknowledged ahead of an open transaction's end, its messages are neither uncommitted nor blocked here."""
        txn = store.begin_transaction()
        send(store, b"open", txn)
        send(store, b"plain")
        with attach(store, RU) as consumer:
            consumer.acknowledge(consumer.receive_batch(9, timeout=0))
        attach(store, RC).close()
        stats = row_json(store.reports.subscription_stats("t", "a"))
        assert [stats[name] for name in ("visible", "blocked", "uncommitted", "pending")] == [0, 0, 0, 0]
        assert mark_delete(store) == "1:1"

    @pytest.mark.parametrize("is_cumulative", [False, True])
    def test_an_aborted_entry_keeps_only_its_pending_message(self, store: Store, is_cumulative: bool) -> None:
        """The rest of the entry directly after markDeletePosition is acknowledged, and stays so at both levels."""
        writer, reader = store.begin_transaction(), store.begin_transaction()
        store.create_producer("t").send_batch([b"0", b"1", b"2"], txn=writer)
        with attach(store, RU) as consumer:
            assert values(consumer) == [b"0", b"1", b"2"]
            if is_cumulative:
                consumer.acknowledge_cumulative(MessageId(1, 0, 0), txn=reader)
            else:
                consumer.acknowledge(MessageId(1, 0, 1), txn=reader)
        store.admin.transactions.abort_transaction(writer)
        attach(store, RC).close()
        stats = row_json(store.reports.subscription_stats("t", "a"))
        names = ("pending", "acknowledgedAhead", "abortedAhead", "msgBacklog")
        assert [stats[name] for name in names] == [1, 2, 0, 0]
        consumer = attach(store, RU)
        store.admin.transactions.abort_transaction(reader)
        assert values(consumer) == [b"0" if is_cumulative else b"1"]


class TestToReadUncommitted:
    """READ_COMMITTED to READ_UNCOMMITTED."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_what_was_skipped_stays_skipped(self, store: Store, type_: SubscriptionType) -> None:
        """An aborted message that dispatch passed is acknowledged, durably; a seek shows it again."""
        send(store, b"0")
        txn = store.begin_transaction()
        send(store, b"aborted", txn)
        store.admin.transactions.abort_transaction(txn)
        send(store, b"1")
        with attach(store, RC, type_) as consumer:
            assert values(consumer) == [b"0", b"1"]
        with attach(store, RU) as consumer:
            assert values(consumer) == [b"0", b"1"]
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        with attach(store, RU) as consumer:
            assert values(consumer) == [b"0", b"aborted", b"1"]

    def test_what_directly_follows_the_cursor_is_taken_in_first(self, store: Store) -> None:
        """Aborted messages and markers right after markDeletePosition are acknowledged by the change itself."""
        attach(store, RC).close()
        for _ in range(2):
            txn = store.begin_transaction()
            send(store, b"aborted", txn)
            store.admin.transactions.abort_transaction(txn)
        attach(store, RU).close()
        assert mark_delete(store) == "1:3"

    def test_what_was_not_passed_is_shown(self, store: Store) -> None:
        """An aborted message behind one that was never handed out is no skipped one."""
        attach(store, RC).close()
        send(store, b"0")
        txn = store.begin_transaction()
        send(store, b"aborted", txn)
        store.admin.transactions.abort_transaction(txn)
        assert values(attach(store, RU)) == [b"0", b"aborted"]

    def test_what_was_blocked_is_handed_out(self, store: Store) -> None:
        """Open messages, and those behind them, come at once."""
        with attach(store, RC) as consumer:
            send(store, b"open", store.begin_transaction())
            send(store, b"blocked")
            assert values(consumer) == []
        assert values(attach(store, RU)) == [b"open", b"blocked"]


class TestBackAndForth:
    """Nothing is lost and nothing acknowledged comes again."""

    def test_an_acknowledged_message_never_comes_back(self, store: Store) -> None:
        """Whatever the sequence of levels and types (invariant 7)."""
        for number in range(6):
            send(store, b"%d" % number)
        for number, (level, type_) in enumerate(zip([RC, RU, RC, RU], TYPES, strict=True)):
            with attach(store, level, type_) as consumer:
                messages = consumer.receive_batch(99, timeout=0)
                assert [message.value for message in messages] == [b"%d" % each for each in range(number, 6)]
                consumer.acknowledge(messages[0])
