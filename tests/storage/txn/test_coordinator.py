"""Coordinator: `storage/txn/coordinator.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, Store, TxnID
from storage.errors import (
    InvalidValue,
    ObjectHeld,
    TransactionNotOpen,
    TransactionTimedOut,
)
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.ending import end_transaction
from tests.storage.txn.coordinator_steps import USES, Use, produce


class TestEnd:
    """OPEN to COMMITTED or ABORTED, once."""

    def test_repeating_a_commit_succeeds_and_says_so(
        self, store: Store, txn: TxnID, clock: ManualClock
    ) -> None:
        """The second one changes nothing, however long after the deadline."""
        assert store.commit_transaction(txn) is True
        clock.advance(1_000_000)
        assert store.commit_transaction(txn) is False
        assert row_json(store.reports.show_transaction(txn))["state"] == "COMMITTED"

    def test_repeating_an_abort_succeeds_and_says_so(
        self, store: Store, txn: TxnID, clock: ManualClock
    ) -> None:
        """The second one changes nothing, however long after the deadline."""
        assert row_json(store.admin.transactions.abort_transaction(txn))["already"] is False
        clock.advance(1_000_000)
        assert row_json(store.admin.transactions.abort_transaction(txn))["already"] is True

    def test_an_abort_can_be_repeated_after_its_topic_was_deleted(self, store: Store, txn: TxnID) -> None:
        """What became of the topics has nothing to do with what became of the transaction."""
        produce(store, txn)
        store.admin.transactions.abort_transaction(txn)
        store.admin.topics.delete_topic("t", force=True)
        assert row_json(store.admin.transactions.abort_transaction(txn))["already"] is True
        assert row_json(store.reports.show_transaction(txn))["state"] == "ABORTED"

    def test_asking_for_the_other_names_state_time_reason_and_owner(
        self, store: Store, txn: TxnID, clock: ManualClock
    ) -> None:
        """The conflict tells what happened, when, why and by whom."""
        store.admin.transactions.abort_transaction(txn, reason="changed my mind")
        with pytest.raises(TransactionNotOpen) as caught:
            store.commit_transaction(txn)
        error = caught.value
        assert (error.exit_code, error.details["state"], error.details["reason"]) == (4, "ABORTED", "asked")
        for word in (
            "aborted",
            "2023-11-14T22:13:20Z",
            "changed my mind",
            row_json(store.reports.show_transaction(txn))["endedBy"],
        ):
            assert word in error.message

    def test_a_committed_one_is_never_aborted(self, store: Store, txn: TxnID) -> None:
        """A decided state does not change, by force neither (invariant 16)."""
        produce(store, txn)
        store.commit_transaction(txn)
        for force in (False, True):
            with pytest.raises(TransactionNotOpen):
                store.admin.transactions.abort_transaction(txn, force=force)
        assert [message.value for message in store.reader("t")] == [b"plain", b"x"]

    @pytest.mark.parametrize("use", USES)
    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_one_that_has_ended_is_of_no_use(self, store: Store, txn: TxnID, use: Use, end: str) -> None:
        """Producing and acknowledging in it is an error, and leaves nothing behind."""
        end_transaction(store, end, txn)
        with pytest.raises(TransactionNotOpen):
            use(store, txn)
        assert len(list(row_json(store.reports.topic_log("t")))) == 1
        assert (
            row_json(store.reports.show_transaction(txn))["messages"]
            == row_json(store.reports.show_transaction(txn))["acknowledgements"]
            == 0
        )

    def test_an_empty_transaction_ends_without_a_trace(self, store: Store, txn: TxnID) -> None:
        """One that touched nothing leaves no marker anywhere."""
        store.commit_transaction(txn)
        assert [row["kind"] for row in row_json(store.reports.topic_log("t"))] == ["messages"]

    def test_a_marker_is_appended_to_every_topic_produced_to(self, store: Store, txn: TxnID) -> None:
        """One marker a topic, whatever the number of messages."""
        store.create_topic("u")
        for topic in ("t", "u", "t"):
            store.create_producer(topic).send(b"x", txn=txn)
        store.commit_transaction(txn)
        assert [row["kind"] for row in row_json(store.reports.topic_log("t"))] == [
            "messages",
            "messages",
            "messages",
            "commit",
        ]
        assert [row["kind"] for row in row_json(store.reports.topic_log("u"))] == ["messages", "commit"]

    def test_a_topic_with_an_open_transaction_is_not_deleted(self, store: Store, txn: TxnID) -> None:
        """Deleting is refused, and by force aborts the transaction first, whole, with its other topics."""
        store.create_topic("u")
        for topic in ("t", "u"):
            store.create_producer(topic).send(b"x", txn=txn)
        with pytest.raises(ObjectHeld) as caught:
            store.admin.topics.delete_topic("t")
        assert caught.value.details["transactions"] == [str(txn)]
        store.admin.topics.delete_topic("t", force=True)
        assert row_json(store.reports.show_transaction(txn))["state"] == "ABORTED"
        assert [row["kind"] for row in row_json(store.reports.topic_log("u"))] == ["messages", "abort"]


class TestDryRun:
    """What an abort would do."""

    def test_it_changes_nothing_and_tells_what_the_real_one_tells(self, store: Store, txn: TxnID) -> None:
        """The numbers are those of the abort that follows."""
        produce(store, txn)
        store.create_producer("t").send(b"blocked")
        store.subscribe("t", "a", initial_position=EARLIEST)
        rehearsed = row_json(store.admin.transactions.abort_transaction(txn, dry_run=True))
        assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN"
        assert len(list(row_json(store.reports.topic_log("t")))) == 3
        done = row_json(store.admin.transactions.abort_transaction(txn))
        assert rehearsed["effects"] == done["effects"]
        assert done["effects"][0]["unblocks"]["a"] == {
            "visibleBefore": 1, "visibleAfter": 2, "blockedBefore": 1, "blockedAfter": 0,
        }  # fmt: skip


class TestDeadline:
    """After it a transaction can only be aborted."""

    def test_it_is_ten_minutes_unless_given(self, store: Store, clock: ManualClock) -> None:
        """One second before it goes on, at it it is over."""
        for seconds, is_late in ((599, False), (600, True)):
            txn = store.begin_transaction()
            clock.advance(seconds)
            if is_late:
                with pytest.raises(TransactionTimedOut):
                    store.commit_transaction(txn)
            else:
                assert store.commit_transaction(txn)

    @pytest.mark.parametrize("timeout", [0.001, 24 * 3600])
    def test_it_may_be_so_short_and_so_long(self, store: Store, timeout: float) -> None:
        """A millisecond to 24 hours."""
        assert (
            row_json(store.reports.show_transaction(store.begin_transaction(timeout=timeout)))["timeoutMs"]
            == timeout * 1000
        )

    @pytest.mark.parametrize(
        "timeout", [0, -1, 0.0001, 24 * 3600 + 0.001, float("inf"), float("-inf"), float("nan"), 1e300]
    )
    def test_any_other_is_refused(self, store: Store, timeout: float) -> None:
        """Zero, negative, endless and no number at all begin no transaction."""
        for begin in (store.begin_transaction, store.transaction):
            with pytest.raises(InvalidValue):
                begin(timeout=timeout)
        assert row_json(store.reports.list_transactions()) == []

    @pytest.mark.parametrize("use", ["send", "acknowledge", "acknowledge cumulatively", "commit"])
    def test_a_late_use_aborts_before_it_is_refused(
        self, store: Store, txn: TxnID, clock: ManualClock, use: str
    ) -> None:
        """The abort is durable when the error is reported, complete, and with its reason."""
        producer = store.create_producer("t")
        producer.send(b"x", txn=txn)
        consumer = store.subscribe("t", "a", initial_position=EARLIEST)
        message = consumer.receive(timeout=1)
        clock.advance(60)
        uses: dict[str, Callable[[], object]] = {
            "send": lambda: producer.send(b"x", txn=txn),
            "acknowledge": lambda: consumer.acknowledge(message, txn=txn),
            "acknowledge cumulatively": lambda: consumer.acknowledge_cumulative(message, txn=txn),
            "commit": lambda: store.commit_transaction(txn),
        }
        with pytest.raises(TransactionTimedOut):
            uses[use]()
        assert row_json(store.reports.list_pending_acknowledgements("t", "a")) == []
        shown = row_json(store.reports.show_transaction(txn))
        assert (shown["state"], shown["reason"]) == ("ABORTED", "timed-out")
        assert [row["kind"] for row in row_json(store.reports.topic_log("t"))] == [
            "messages",
            "messages",
            "abort",
        ]
        assert [message.value for message in store.reader("t")] == [b"plain"]

    def test_a_late_abort_is_an_abort(self, store: Store, txn: TxnID, clock: ManualClock) -> None:
        """It is what was asked for, and its reason says so."""
        clock.advance(61)
        assert row_json(store.admin.transactions.abort_transaction(txn))["already"] is False
        assert row_json(store.reports.show_transaction(txn))["reason"] == "asked"

    def test_readers_follow_the_recorded_state_and_say_that_it_is_overdue(
        self, store: Store, txn: TxnID, clock: ManualClock
    ) -> None:
        """Reading ends nothing: an overdue transaction goes on holding maxReadPosition until somebody writes."""
        produce(store, txn)
        clock.advance(61)
        assert [message.value for message in store.reader("t")] == [b"plain"]
        (row,) = row_json(store.reports.list_transactions())
        assert (row["txnId"], row["state"], row["overdue"]) == (str(txn), "OPEN", True)

    def test_a_wall_clock_that_jumps_expires_nobody(
        self, store: Store, txn: TxnID, clock: ManualClock
    ) -> None:
        """Deadlines run on the boot clock: a wall clock years ahead or behind changes nothing."""
        for jump_s in (10**9, -(2 * 10**9)):
            clock.wall_now_ns += jump_s * 10**9
            produce(store, txn)
            assert row_json(store.reports.list_transactions())[0]["overdue"] is False
        assert store.commit_transaction(txn)

    def test_a_deadline_passes_although_the_wall_clock_stands(
        self, store: Store, txn: TxnID, clock: ManualClock
    ) -> None:
        """Only the boot clock counts."""
        clock.boot_now_ns += 61 * 10**9
        with pytest.raises(TransactionTimedOut):
            store.commit_transaction(txn)

    def test_what_remains_starts_anew_after_a_reboot(
        self, store: Store, txn: TxnID, path: str, clock: ManualClock
    ) -> None:
        """40 of 60 seconds were used up before the machine went down; 20 remain after it, whatever its clock says."""
        clock.advance(40)
        produce(store, txn)
        store.close()
        clock.boot, clock.boot_now_ns = b"manual-boot-0002", 5
        clock.wall_now_ns += 10**15
        with Store.open(path, clock=clock) as again:
            produce(again, txn)
            clock.advance(19)
            assert row_json(again.reports.list_transactions())[0]["overdue"] is False
            produce(again, txn)
            clock.advance(1)
            assert row_json(again.reports.list_transactions())[0]["overdue"] is True
            with pytest.raises(TransactionTimedOut):
                again.commit_transaction(txn)
