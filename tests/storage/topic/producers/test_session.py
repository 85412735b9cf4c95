"""Sessions by lease: opened by one process, used by the next, closed (`storage/topic/producers/session.py`)."""

from __future__ import annotations

from typing import Any

import pytest

from storage import AccessMode, Store
from storage.errors import InvalidValue, ProducerBusy, ProducerFenced, SessionNotFound, TxnctlError
from tests.row_json import row_json
from tests.storage.topic.producers.modes import EXCLUSIVE, FENCING, SHARED, WAITING
from tests.storage.topic.producers.rivals import (
    Rivals,
    TurnClock,
    epochs,
    lease,
    publish,
    records,
    topic_epoch,
    values,
)


class TestLeased:
    """A session opened by one shell command and used by the next."""

    def test_it_outlives_the_process_that_opened_it(self, store: Store, rivals: Rivals) -> None:
        """Each command is a process of its own; all of them publish under one epoch and one name."""
        token = lease(rivals, producer_name="script")
        for number in range(3):
            publish(rivals, token, b"%d" % number)
        messages = list(store.reader("t"))
        assert [(m.value, m.epoch, m.producer_name, m.sequence_id) for m in messages] == [
            (b"%d" % number, 0, "script", number) for number in range(3)
        ]
        assert topic_epoch(store) == 0

    def test_it_keeps_others_out_while_it_runs(self, rivals: Rivals, clock: TurnClock) -> None:
        """To the last moment of the lease, not one longer."""
        lease(rivals, 60)
        clock.advance(59.999)
        for mode in (SHARED, EXCLUSIVE):
            with pytest.raises(ProducerBusy):
                rivals.produce(mode)
        clock.advance(0.001)
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1

    def test_every_publish_renews_it(self, rivals: Rivals, clock: TurnClock) -> None:
        """Used every 40 seconds, a lease of a minute lives for ever."""
        token = lease(rivals, 60)
        for _ in range(5):
            clock.advance(40)
            publish(rivals, token)
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)

    def test_a_refused_publish_renews_nothing(self, store: Store, rivals: Rivals, clock: TurnClock) -> None:
        """Bad input leaves the lease as it is."""
        token = lease(rivals, 60)
        clock.advance(30)
        before = records(store)
        with rivals.open() as process, pytest.raises(TxnctlError):
            process.session_producer("t", token).send("text")  # type: ignore[arg-type]
        assert records(store) == before
        assert row_json(store.reports.show_session(token))["leaseEndsInMs"] == 30_000

    def test_a_publish_in_a_transaction_renews_it_too(
        self, store: Store, rivals: Rivals, clock: TurnClock
    ) -> None:
        """By use, not by commit."""
        token, txn = lease(rivals, 60), store.begin_transaction(timeout=3600)
        clock.advance(50)
        publish(rivals, token, txn=txn)
        clock.advance(50)
        publish(rivals, token, txn=txn)
        assert store.commit_transaction(txn) is True
        assert epochs(store) == [0, 0]

    def test_a_jump_of_the_wall_clock_ends_no_lease(self, rivals: Rivals, clock: TurnClock) -> None:
        """Leases run on the boot clock."""
        token = lease(rivals, 60)
        for days in (1000, -2000):
            clock.wall_now_ns += days * 86_400 * 10**9
            with pytest.raises(ProducerBusy):
                rivals.produce(EXCLUSIVE)
        publish(rivals, token)

    def test_closing_it_leaves_the_topic(self, store: Store, rivals: Rivals) -> None:
        """`producers close`: the next one may own it, and the token is worth nothing any more."""
        token = lease(rivals)
        planned = row_json(store.admin.producers.close_session(token, dry_run=True))
        assert row_json(store.reports.show_session(token))["isOwner"] is True
        report = row_json(store.admin.producers.close_session(token))
        assert planned["sessionId"] == report["sessionId"]
        with pytest.raises((ProducerFenced, SessionNotFound)):
            publish(rivals, token)
        with pytest.raises(SessionNotFound):
            store.reports.show_session(token)
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1
        assert values(store) == []

    def test_closing_what_was_taken_over_says_so(self, rivals: Rivals, store: Store) -> None:
        """A script that ends learns that it was not the only writer to the end; the successor stays."""
        token = lease(rivals)
        successor = rivals.produce(FENCING)
        with pytest.raises((ProducerFenced, SessionNotFound)):
            store.admin.producers.close_session(token)
        successor.send(b"undisturbed")
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)

    def test_closing_a_producer_that_borrows_it_leaves_it_open(self, rivals: Rivals) -> None:
        """The session belongs to whoever opened it."""
        token = lease(rivals)
        with rivals.open() as process, process.session_producer("t", token) as producer:
            producer.send(b"1")
        publish(rivals, token, b"2")
        with pytest.raises(ProducerBusy):
            rivals.produce(EXCLUSIVE)

    @pytest.mark.parametrize("mode", [EXCLUSIVE, WAITING, FENCING, SHARED])
    def test_it_may_be_opened_in_every_mode(self, store: Store, rivals: Rivals, mode: str) -> None:
        """The mode says who else may be there, the lease how long it lasts."""
        with rivals.open() as process:
            row = row_json(process.open_session("t", access_mode=mode, lease=5))
        assert (row["accessMode"], row["state"], row["leaseMs"], row["leaseEndsInMs"]) == (
            mode,
            "leased",
            5000,
            5000,
        )
        publish(rivals, row["session"])
        assert epochs(store) == [-1 if mode == SHARED else 0]
        if mode != SHARED:
            with pytest.raises(ProducerBusy):
                rivals.produce(SHARED)

    @pytest.mark.parametrize("seconds", [0, -1, "long", float("nan"), 25 * 3600])
    def test_a_lease_has_bounds(self, store: Store, seconds: Any) -> None:
        """Some time, a day at most."""
        before = records(store)
        with pytest.raises(InvalidValue):
            store.open_session("t", lease=seconds)
        assert records(store) == before

    def test_opening_one_waits_its_turn(self, rivals: Rivals, clock: TurnClock) -> None:
        """A waiting `producers open` is attached to its process as long as it waits: the lease begins with the turn."""
        owner = rivals.produce(EXCLUSIVE)
        process = rivals.open()
        waiter = rivals.wait(store=process, call="open_session", lease=10)
        rivals.pass_time(3600)
        assert waiter.waits
        owner.close()
        rivals.look()
        process.close()
        row = waiter.result
        assert (row["epoch"], row["leaseEndsInMs"]) == (1, 10_000)
        clock.advance(9)
        publish(rivals, row["session"])

    def test_a_process_that_dies_while_it_waits_for_a_lease_leaves_the_queue(self, rivals: Rivals) -> None:
        """It has no lease yet that could outlive it."""
        owner = rivals.produce(EXCLUSIVE)
        process = rivals.open()
        rivals.wait(store=process, call="open_session", lease=3600)
        process.close()
        owner.close()
        assert rivals.produce(EXCLUSIVE).topic_epoch == 1


class TestMode:
    """What a session says of itself."""

    def test_a_borrowed_producer_has_the_mode_of_its_session(self, rivals: Rivals) -> None:
        """And its epoch and name."""
        leader = rivals.produce(WAITING, producer_name="leader")
        borrower = rivals.open().session_producer("t", leader.session)
        assert (borrower.access_mode, borrower.topic_epoch, borrower.producer_name, borrower.session) == (
            AccessMode.WAIT_FOR_EXCLUSIVE, 0, "leader", leader.session,
        )  # fmt: skip
