"""The upkeep of topics on the way of writes: `storage/subscription/topic_upkeep.py`."""

from __future__ import annotations

from storage import EARLIEST, Store
from storage.disk.schema import SEQUENCES
from storage.limits import SEQUENCE_RETENTION_MS
from storage.process.clock import ManualClock
from tests.storage.subscription.test_trimming import first_position, send

MINUTE_MS = 60_000


def write_until_quiet(store: Store, clock: ManualClock) -> None:
    """Begin some transactions, a second apart: each looks at topics on its way."""
    for _ in range(20):
        clock.advance(1)
        store.admin.transactions.abort_transaction(store.begin_transaction())


def test_a_write_trims_a_hard_topic_and_forgets_its_old_sequence_ids(
    store: Store, clock: ManualClock
) -> None:
    """In one turn over the topics: expired and lost messages are counted, trimmed, and their ids forgotten."""
    store.create_topic("u", ledger_entries_max=2)
    store.admin.topics.set_retention("u", time_ms=MINUTE_MS, hard="trim")
    store.admin.subscriptions.create_subscription("u", "slow", initial_position=EARLIEST)
    with store.create_producer("u", producer_name="gone", connected=False) as producer:
        producer.send(b"m", sequence_id=7)
    send(store, "u", 4)
    clock.advance(61)
    write_until_quiet(store, clock)
    assert store.reports.subscription_stats("u", "slow").row.stats.msg_lost_counter == 5
    assert first_position(store, "u")[0] == 4
    with store.connection.view() as view:
        assert view.count(SEQUENCES) == 1
    clock.advance(SEQUENCE_RETENTION_MS / 1000 + 1)
    write_until_quiet(store, clock)
    with store.connection.view() as view:
        assert view.count(SEQUENCES) == 0
    assert store.maintenance.verify_store(full=True) == []


def test_a_hard_topic_is_compacted_and_trimmed_on_the_way(store: Store, clock: ManualClock) -> None:
    """The compactor moves the horizon, and the ledgers behind it go; the view has every key."""
    store.create_topic("u", ledger_entries_max=2)
    store.admin.topics.set_compaction("u", threshold=1)
    store.admin.topics.set_retention("u", time_ms=MINUTE_MS, hard="trim")
    store.admin.subscriptions.create_subscription("u", "slow", initial_position=EARLIEST)
    with store.create_producer("u", connected=False) as producer:
        for number in range(6):
            producer.send(b"%d" % number, key=b"%d" % (number % 2))
    clock.advance(61)
    write_until_quiet(store, clock)
    assert store.reports.subscription_stats("u", "slow").row.stats.msg_lost_counter == 6
    assert [message.value for message in store.reader("u", start=EARLIEST, read_compacted=True)] == [
        b"4",
        b"5",
    ]
    assert store.maintenance.verify_store(full=True) == []
