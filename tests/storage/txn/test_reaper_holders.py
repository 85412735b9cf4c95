"""Holders in the way: what a dead owner or a passed deadline holds refuses no write, however recent the last look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage import EARLIEST, MessageId, Position, Priority, Store, SubscriptionType, Transaction
from storage.errors import (
    LostConflict,
    NotDeliverable,
    ObjectHeld,
    SequenceConflict,
    TransactionConflict,
    TxnctlError,
)
from storage.limits import REAP_PER_WRITE_MAX
from storage.process.clock import ManualClock

Hold = Callable[[Store, Transaction], object]
Want = Callable[[Store], object]


def put(store: Store, txn: Transaction | None = None) -> object:
    """Write key `k`; a transaction does so at once, as an intent."""
    store.table("a").put(b"k", b"1", txn=txn)
    return None if txn is None else txn.flush()


def read(store: Store) -> object:
    """Read key `k` in a serializable transaction that loses to a holder of high priority."""
    with store.transaction() as txn:
        return store.table("a").get(b"k", txn=txn)


def send(store: Store, txn: Transaction | None = None) -> object:
    """Send a message under sequence id 5 of producer `p`."""
    with store.create_producer("t", producer_name="p") as producer:
        producer.send(b"m", sequence_id=5, txn=txn)
        return producer.flush()


def acknowledge(store: Store, txn: Transaction | None = None) -> object:
    """Acknowledge the first message of topic `t` on subscription `s`."""
    with store.subscribe("t", "s", initial_position=EARLIEST) as consumer:
        message = consumer.receive(timeout=0)
        return consumer.acknowledge(message, txn=txn)


def pending(store: Store) -> object:
    """Acknowledge the message as an operator."""
    return store.admin.acknowledgements.acknowledge_messages("t", "s", [MessageId(1, 0)])


def pending_all(store: Store) -> object:
    """Acknowledge up to the message as an operator."""
    return store.admin.acknowledgements.acknowledge_through("t", "s", Position(1, 0))


def behind(store: Store) -> object:
    """Acknowledge the message behind the holder's as an operator."""
    return store.admin.acknowledgements.acknowledge_messages("t", "s", [MessageId(1, 2)])


WAYS: list[Any] = [
    pytest.param(put, put, LostConflict, id="a key to write"),
    pytest.param(put, read, LostConflict, id="a key to read"),
    pytest.param(put, lambda store: store.admin.tables.delete_table("a"), ObjectHeld, id="a table to delete"),
    pytest.param(send, send, SequenceConflict, id="a sequence id"),
    pytest.param(
        send, lambda store: store.admin.topics.delete_topic("t"), ObjectHeld, id="a topic to delete"
    ),
    pytest.param(acknowledge, pending, TransactionConflict, id="a message to acknowledge"),
    pytest.param(acknowledge, pending_all, TransactionConflict, id="messages to acknowledge"),
    pytest.param(
        acknowledge,
        lambda store: store.admin.subscriptions.seek_subscription("t", "s", EARLIEST),
        ObjectHeld,
        id="a subscription to move",
    ),
    pytest.param(
        acknowledge,
        lambda store: store.admin.subscriptions.update_subscription(
            "t", "s", subscription_type=SubscriptionType.SHARED
        ),
        ObjectHeld,
        id="a subscription to change",
    ),
    pytest.param(send, behind, NotDeliverable, id="a message behind an open transaction"),
]


@pytest.fixture
def held(store: Store) -> Store:
    """A store with a table, a message, and a subscription; the last look for dead owners was just now."""
    store.create_table("a")
    store.create_producer("t", connected=False).send(b"first")
    store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
    return store


def hold_and_follow(store: Store, hold: Hold, txn: Transaction) -> None:
    hold(store, txn)
    store.create_producer("t", connected=False).send(b"behind")


class TestInTheWay:
    """The write that meets a holder ends it first, if the next look would."""

    @pytest.mark.parametrize(("hold", "want", "refusal"), WAYS)
    def test_of_a_dead_owner(
        self, held: Store, path: str, clock: ManualClock, hold: Hold, want: Want, refusal: type[TxnctlError]
    ) -> None:
        """A living owner's transaction refuses; the same one refuses nothing once its owner is dead."""
        with Store.open(path, clock=clock) as owner:
            txn = owner.transaction(priority=Priority.HIGHEST)
            hold_and_follow(owner, hold, txn)
            number = txn.id
            with pytest.raises(refusal):
                want(held)
            assert held.reports.show_transaction(number).row.state.value == "OPEN"
        want(held)
        row = held.reports.show_transaction(number).row
        assert (row.state.value, row.reason) == ("ABORTED", "owner-dead")

    @pytest.mark.parametrize(("hold", "want", "refusal"), WAYS)
    @pytest.mark.parametrize("policy", ["overdue", "manual"])
    def test_the_policy_decides(
        self,
        held: Store,
        path: str,
        clock: ManualClock,
        hold: Hold,
        want: Want,
        refusal: type[TxnctlError],
        policy: str,
    ) -> None:
        """Where dead owners are left to operators, what they hold is held."""
        held.admin.settings.set_reap_policy(policy)
        with Store.open(path, clock=clock) as owner:
            txn = owner.transaction(priority=Priority.HIGHEST)
            hold_and_follow(owner, hold, txn)
        with pytest.raises(refusal):
            want(held)

    def test_more_than_one_write_reaps(self, held: Store, path: str, clock: ManualClock) -> None:
        """The holder is ended however many dead and overdue transactions stand before it."""
        table, keys = held.table("a"), [b"%d" % number for number in range(2 * REAP_PER_WRITE_MAX + 1)]
        with Store.open(path, clock=clock) as owner:
            for key in keys:
                txn = owner.transaction(priority=Priority.HIGHEST)
                owner.table("a").put(key, b"1", txn=txn)
                txn.flush()
        with held.transaction(priority=Priority.LOW) as mine:
            for key in keys:
                table.put(key, b"2", txn=mine)
        assert [table.get(key) for key in keys] == [b"2"] * len(keys)

    def test_of_a_passed_deadline(self, held: Store, clock: ManualClock) -> None:
        """Overdue transactions beyond the few that each write ends are no reason to refuse either."""
        for _ in range(REAP_PER_WRITE_MAX):
            held.begin_transaction(timeout=5)
        holder = held.begin_transaction(timeout=6, priority=Priority.HIGHEST)
        held.table("a").put(b"k", b"1", txn=holder)
        clock.advance(10)
        put(held)
        assert held.reports.show_transaction(holder).row.reason == "timed-out"

    def test_a_dry_run_shows_the_same(self, held: Store, path: str, clock: ManualClock) -> None:
        """A rehearsal is neither refused over a dead owner, nor ends anything."""
        with Store.open(path, clock=clock) as owner:
            put(owner, txn := owner.transaction())
            number = txn.id
        held.admin.tables.delete_table("a", dry_run=True)
        assert held.reports.show_transaction(number).row.state.value == "OPEN"

    def test_a_refusal_for_another_reason_ends_nothing(
        self, held: Store, path: str, clock: ManualClock
    ) -> None:
        """A living holder beside the dead one refuses the write, which leaves both as they are."""
        alive = held.begin_transaction()
        held.table("a").put(b"1", b"1", txn=alive)
        with Store.open(path, clock=clock) as owner:
            put(owner, txn := owner.transaction())
            number = txn.id
        with pytest.raises(ObjectHeld) as caught:
            held.admin.tables.delete_table("a")
        assert caught.value.details["transactions"] == [str(alive)]
        assert held.reports.show_transaction(number).row.state.value == "OPEN"
