"""Gathering the runs of a lost transaction: `storage/subscription/lost_runs.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.disk.schema import TXN_RUNS
from storage.disk.view import WriteBatch
from storage.process.clock import ManualClock
from storage.subscription import lost_runs
from storage.subscription.lost_runs import GatheredRuns
from storage.topic import catalogue as topics
from storage.txn import runs
from storage.values.position import Position
from tests.storage.damage import damage
from tests.storage.lmdb_operations import Operations
from tests.storage.many_messages import write_in_turn
from tests.storage.subscription.test_run_acks import lose


def keys_of_runs(store: Store) -> list[bytes]:
    with store.connection.view() as view:
        return [bytes(key) for key in view.keys(TXN_RUNS)]


def lose_two_in_turn(store: Store, clock: ManualClock, topic: str, number: int, size: int) -> Operations:
    """Let the first ledger go, of which two transactions in turn have the rest of the log, `number` entries."""
    store.create_topic(topic, ledger_entries_max=500)
    store.admin.subscriptions.create_subscription(
        topic, "a", initial_position=EARLIEST, subscription_type=SubscriptionType.SHARED
    )
    txns = [store.begin_transaction(timeout=3600) for _ in range(2)]
    write_in_turn(store, topic, txns, number, size=size)
    for txn in txns:
        store.commit_transaction(txn)
    operations = lose(store, topic, clock)
    stats = store.reports.subscription_stats(topic, "a").row.stats
    assert (stats.msg_lost_counter, stats.unacked_messages) == (number * size, 0)
    return operations


@pytest.mark.parametrize("size", [1, 3])
def test_a_step_does_not_grow_with_the_runs(store: Store, clock: ManualClock, size: int) -> None:
    """With four times as many runs of one entry, the store transaction with the most operations has as many."""
    few = lose_two_in_turn(store, clock, "few", 12_000, size)
    many = lose_two_in_turn(store, clock, "many", 48_000, size)
    assert many.most < 1.2 * few.most


def test_gathered_runs_are_removed_with_their_transaction(store: Store, clock: ManualClock) -> None:
    """They are forgotten with the runs, once all messages are trimmed."""
    lose_two_in_turn(store, clock, "gone", 12_000, 1)
    assert any(key[16] & 0x80 for key in keys_of_runs(store))

    def forget(batch: WriteBatch) -> None:
        for txn in {int.from_bytes(key[8:16], "big") for key in keys_of_runs(store)}:
            runs.forget(batch, topics.get(batch, "gone").topic_id, txn)

    store.connection.write(forget)
    assert keys_of_runs(store) == []


def test_damaged_gathered_runs_are_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry too many in one record (invariant 23); without damage the check finds nothing."""
    monkeypatch.setattr(lost_runs, "LOST_RUNS_STEP", 500)
    store.create_topic("d")
    txns = [store.begin_transaction() for _ in range(2)]
    write_in_turn(store, "d", txns, 4000, size=3)
    for txn in txns:
        store.commit_transaction(txn)

    def gather(batch: WriteBatch) -> bool:
        topic_id = topics.get(batch, "d").topic_id
        return lost_runs.has_rest(batch, topic_id, txns[0].least, Position(1, 7))

    while not store.connection.write(gather):
        pass
    assert store.maintenance.verify_store(full=True) == []
    (*_, last) = (key for key in keys_of_runs(store) if key[16] & 0x80)

    def change_entry(batch: WriteBatch) -> None:
        payload = batch.get(TXN_RUNS, last)
        assert payload is not None
        record = GatheredRuns.decode(last, payload)
        record.entries[3] ^= 1 << 1023  # as it was, the second time
        batch.put(TXN_RUNS, last, record.encode())

    assert {invariant for invariant, _ in damage(store, change_entry)} == {23}
    assert damage(store, change_entry) == []
