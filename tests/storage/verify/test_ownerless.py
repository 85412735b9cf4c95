"""Records without an object: a name that is lost leaves them behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.disk.codec import key1
from storage.disk.schema import (
    HEADS,
    LEASES,
    OWNERS,
    PRODUCERS,
    PURGES,
    SUBSCRIPTIONS,
    TABLES,
    TOPICS,
    Database,
)
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore
from storage.process.clock import ManualClock
from storage.table import state as table_states
from storage.topic import retention
from storage.topic.retention import RetentionLimits
from storage.txn.reaper import EVERY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with an owned topic, a subscription, an attached transaction and a table, not verified at the end."""
    Store.create(tmp_path / "store", clock=ManualClock())
    with Store.open(tmp_path / "store", clock=ManualClock()) as opened:
        opened.create_topic("t")
        opened.create_topic("deleted")
        opened.create_producer("deleted").send(b"x")
        opened.admin.topics.delete_topic("deleted", force=True)
        opened.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
        opened.create_table("a")
        opened.table("a").put(b"k", b"v")
        producer = opened.create_producer("t", access_mode="Exclusive")
        transaction = opened.transaction()
        with transaction as txn:
            producer.send(b"x", txn=txn)
            txn.flush()
            assert opened.maintenance.verify_store() == []
            yield opened
            txn.abort()


def lose(store: Store, database: Database) -> list[str]:
    """Remove the first record of a database; the problems that verify then finds, by object; put the record back."""

    def remove(batch: WriteBatch) -> tuple[bytes, bytes]:
        key, payload = next((key, bytes(payload)) for key, payload in batch.scan(database))
        batch.delete(database, key)
        return key, payload

    key, payload = store.connection.write(remove, naming=EVERY)
    problems = [f"{problem.object} {problem.message}" for problem in store.maintenance.verify_store()]
    store.connection.write(lambda batch: batch.put(database, key, payload), naming=EVERY)
    return problems


@pytest.mark.parametrize(
    ("database", "words"),
    [
        (SUBSCRIPTIONS, "subscription 1 has records in cursors, and no name"),
        (OWNERS, "t session 2 owns it, or may resume; no grant is recorded"),
        (PRODUCERS, "t session 2 owns it, and has no record"),
        (LEASES, "lease 1 has open transactions, and no process"),
        (TABLES, "table 1 has a state, but no name"),
    ],
    ids=str,
)
def test_a_lost_record_leaves_others_behind(store: Store, database: Database, words: str) -> None:
    """Each of them names what is gone."""
    assert words in lose(store, database)


def test_a_lost_topic_leaves_its_records_behind(store: Store) -> None:
    """The record of a deleted topic stays, for its ledger ids; the second record is of the living one."""

    def remove(batch: WriteBatch) -> tuple[bytes, bytes]:
        key, payload = [(key, bytes(payload)) for key, payload in batch.scan(TOPICS)][1]
        batch.delete(TOPICS, key)
        return key, payload

    key, payload = store.connection.write(remove, naming=EVERY)
    problems = [problem.message for problem in store.maintenance.verify_store()]
    store.connection.write(lambda batch: batch.put(TOPICS, key, payload), naming=EVERY)
    for name in ("heads", "entries", "producers", "owners", "subscriptions"):
        assert f"has records in {name}, and no name" in problems


def test_a_table_without_its_state_is_corrupt(store: Store) -> None:
    """It was not deleted: its name is there."""
    table, key = store.table("a"), table_states.key_of(1)
    with store.connection.view() as view:
        payload = bytes(view.get(HEADS, key) or b"")
    store.connection.write(lambda batch: batch.delete(HEADS, key), naming=EVERY)
    for read in (lambda: table.get(b"k"), lambda: list(table.scan())):
        with pytest.raises(CorruptStore):
            read()
    store.connection.write(lambda batch: batch.put(HEADS, key, payload), naming=EVERY)


def test_limits_of_a_topic_that_is_gone(store: Store) -> None:
    def set_limits(batch: WriteBatch) -> None:
        retention.set_for_topic(batch, 99, RetentionLimits(0, None))

    store.connection.write(set_limits, naming=EVERY)
    problems = [f"{problem.object} {problem.message}" for problem in store.maintenance.verify_store()]
    assert problems == ["topic 99 has limits, and no name"]


def test_a_subscription_with_a_name_is_not_deleted(store: Store) -> None:
    """Its records would be purged."""
    store.connection.write(lambda batch: batch.put(PURGES, key1(1 << 63 | 1), b""))
    assert [str(problem) for problem in store.maintenance.verify_store()] != []
    store.connection.write(lambda batch: batch.delete(PURGES, key1(1 << 63 | 1)))
