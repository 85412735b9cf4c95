"""Acknowledging the rest of a transaction by runs: `storage/subscription/run_acks.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from storage import EARLIEST, Store, SubscriptionType
from storage.disk.view import WriteBatch
from storage.process.clock import ManualClock
from storage.subscription import catalogue as subscriptions, forced_acks, lost_runs
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics
from storage.values.position import Position
from tests.model_runs import examples
from tests.storage.lmdb_operations import Operations, counted
from tests.storage.many_messages import write_in_turn

NUMBER = 20_000


def lose(store: Store, topic: str, clock: ManualClock) -> Operations:
    """Let the first ledger go; the operations of the steps."""
    store.admin.topics.set_retention(topic, time_ms=60_000, hard="off")
    clock.advance(61)
    store.create_producer(topic).send(b"new")
    store.admin.topics.set_retention(topic, size=1, hard="trim", time_ms="unset")
    with counted(store) as operations:
        store.admin.topics.trim_topic(topic)
    return operations


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("in_flight", [False, True])
def test_the_rest_of_a_transaction_is_lost_by_spans(
    store: Store, clock: ManualClock, interleaved: bool, in_flight: bool
) -> None:
    """All of it in one store transaction, for it is not torn: the work is that of runs and spans, not of messages."""
    store.create_topic("l", ledger_entries_max=1000)
    store.admin.subscriptions.create_subscription(
        "l", "a", initial_position=EARLIEST, subscription_type=SubscriptionType.SHARED
    )
    txns = [store.begin_transaction(timeout=3600) for _ in range(2 if interleaved else 1)]
    write_in_turn(store, "l", txns, NUMBER)
    for txn in txns:
        store.commit_transaction(txn)
    with store.subscribe("l", "a", receiver_queue_size=1000) as consumer:
        left = NUMBER if in_flight else 0
        while left > 0:
            left -= len(consumer.receive_batch(1000, timeout=0))
        subscription = store.reports.subscription_stats("l", "a").row.stats
        assert subscription.unacked_messages == (NUMBER if in_flight else 0)
        operations = lose(store, "l", clock)
        stats = store.reports.subscription_stats("l", "a").row.stats
        assert (stats.msg_lost_counter, stats.unacked_messages) == (NUMBER, 0)
    # A ledger of 1,000 entries and its markers are read one by one.
    assert operations.most < (13_000 if interleaved else 4000)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for all examples: each has a topic of its own."""
    place, clock = tmp_path_factory.mktemp("runs") / "store", ManualClock()
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as opened:
        yield opened


_one = st.tuples(st.sampled_from(["t", "u", "plain"]), st.sampled_from([1, 1, 2, 3, 300]))


@settings(max_examples=examples(60))
@given(
    st.lists(_one, min_size=2, max_size=14),
    st.lists(st.integers(0, 40) | st.integers(0, 1000), max_size=12),
    st.lists(st.integers(0, 40) | st.integers(0, 1000), max_size=8),
    st.integers(0, 6),
    st.sampled_from([1, 3, 5000]),
)
def test_runs_are_acknowledged_as_their_entries(
    lasting: Store,
    entries: list[tuple[str, int]],
    acknowledged: list[int],
    pending: list[int],
    border: int,
    step: int,
) -> None:
    """Whatever is acknowledged, pending or in flight among them: counted once, and pending messages stay.

    The same where the runs are gathered first, `step` at once.
    """
    store, topic = lasting, f"r{len(lasting.topics())}"
    store.create_topic(topic, ledger_entries_max=6)
    txns = {name: store.begin_transaction() for name in "tu"}
    with store.create_producer(topic) as producer:
        for name, count in entries:
            producer.send_batch([b"x"] * count, txn=txns.get(name))
    for txn in txns.values():
        store.commit_transaction(txn)
    kind = SubscriptionType.SHARED
    with store.subscribe(
        topic, "a", subscription_type=kind, initial_position=EARLIEST, receiver_queue_size=5000
    ) as consumer:
        messages = list(consumer.receive_batch(5000, timeout=0))
        done = {at for at in acknowledged if at < len(messages)}
        held = {at for at in pending if at < len(messages)} - done
        consuming = store.begin_transaction()
        consumer.acknowledge([messages[at] for at in sorted(done)])
        consumer.acknowledge([messages[at] for at in sorted(held)], txn=consuming)
        log = list(store.reports.topic_log(topic))
        after = log[min(border, len(log) - 1)].position
        rest = {
            at
            for at, message in enumerate(messages)
            if message.txn_id == txns["t"] and message.message_id.position > after
        }

        def lose_rest(batch: WriteBatch) -> int:
            subscription = subscriptions.get(batch, topics.get(batch, topic), "a")
            return forced_acks.acknowledge_rest(
                OpenSubscription(batch, subscription), {txns["t"].least}, Position(*after)
            )

        def gather(batch: WriteBatch) -> bool:
            topic_id = topics.get(batch, topic).topic_id
            return lost_runs.has_rest(batch, topic_id, txns["t"].least, Position(*after))

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(lost_runs, "LOST_RUNS_STEP", step)
            while not store.connection.write(gather):
                assert store.maintenance.verify_store(full=True) == []
            assert store.connection.write(lose_rest) == len(rest - done - held)
        assert store.maintenance.verify_store(full=True) == []
        store.admin.transactions.abort_transaction(consuming, force=True)
        consumer.close()
    with store.subscribe(topic, "a", receiver_queue_size=5000) as again:
        received = {message.message_id for message in again.receive_batch(5000, timeout=0)}
    expected = set(range(len(messages))) - done - (rest - held)
    assert received == {messages[at].message_id for at in expected}
