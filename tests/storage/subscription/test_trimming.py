"""Trimming: `storage/subscription/trimming.py`, by its rules, and as a property of random histories."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from storage import (
    EARLIEST,
    LATEST,
    IsolationLevel,
    Message,
    OnOpen,
    Position,
    Store,
    SubscriptionType,
    TxnID,
    faults,
)
from storage.disk.schema import AWAITED, HELD, TXN_RUNS
from storage.disk.view import WriteBatch
from storage.errors import MessageNotFound, ObjectHeld
from storage.limits import OUTCOME_RETENTION_MS, TRIM_STEP_ENTRIES
from storage.process.clock import ManualClock
from storage.subscription import trimming
from storage.topic import catalogue as topics, log, state as topic_states, trim
from storage.topic.entry import MESSAGES, Columns
from storage.topic.open_topic import OpenTopic
from storage.values.position import Extreme
from tests.model_runs import examples
from tests.storage.conftest import check_whole

RU = IsolationLevel.READ_UNCOMMITTED


@pytest.fixture
def topic(store: Store) -> str:
    """A topic with ledgers of three entries that keeps nothing that is acknowledged; `trim_topic` trims it."""
    store.create_topic("short", ledger_entries_max=3)
    store.admin.topics.set_retention("short", time_ms=0)
    return "short"


def send(store: Store, topic: str, count: int, txn: TxnID | None = None) -> list[Position]:
    """Send messages one by one; their positions."""
    with store.create_producer(topic, connected=False) as producer:
        return [producer.send(b"%d" % number, txn=txn).position for number in range(count)]


def acknowledge(store: Store, topic: str, name: str, count: int, txn: TxnID | None = None) -> None:
    """Receive and acknowledge the next messages of a subscription, which is created at the beginning."""
    with store.subscribe(topic, name, initial_position=EARLIEST) as consumer:
        for _ in range(count):
            consumer.acknowledge(consumer.receive(timeout=1), txn=txn)


def first_position(store: Store, topic: str) -> Position:
    """The first position that the topic has, or will have."""
    (extent,) = store.reports.topic_extents([topic])
    return Position(extent.before.ledger_id, 0)


def trimmed(store: Store, topic: str) -> Position:
    """Trim the topic; the first position left."""
    return store.admin.topics.trim_topic(topic).effects.first_position


def values(store: Store, topic: str, level: IsolationLevel = RU) -> list[tuple[Position, bytes | None]]:
    """The messages that a reader from the beginning gets."""
    reader = store.reader(topic, start=EARLIEST, isolation_level=level)
    return [(message.message_id.position, message.value) for message in reader]


def test_nothing_goes_without_a_limit(store: Store) -> None:
    """The default of new stores: everything is kept, also what every subscription has acknowledged."""
    store.create_topic("kept", ledger_entries_max=3)
    send(store, "kept", 7)
    acknowledge(store, "kept", "a", 7)
    assert trimmed(store, "kept") == (1, 0)
    assert store.maintenance.collect_garbage().collected.messages_trimmed == 0
    assert len(values(store, "kept")) == 7


def test_whole_ledgers_go_once_every_subscription_acknowledged_them(store: Store, topic: str) -> None:
    send(store, topic, 7)
    acknowledge(store, topic, "a", 7)
    acknowledge(store, topic, "b", 4)
    assert trimmed(store, topic) == (2, 0)
    hold = store.admin.topics.trim_topic(topic).effects.held_by
    assert hold is not None
    assert (hold.kind, hold.name, hold.position) == ("subscription", "b", (2, 0))
    acknowledge(store, topic, "b", 2)
    assert trimmed(store, topic) == (3, 0)


def test_a_quiet_topic_is_trimmed_to_its_end(store: Store, topic: str) -> None:
    """The open ledger is closed where all of it may go; positions and counters go on."""
    send(store, topic, 5)
    acknowledge(store, topic, "a", 5)
    assert trimmed(store, topic) == (3, 0)
    assert values(store, topic) == []
    assert send(store, topic, 1) == [(3, 0)]
    stats = store.reports.topic_stats(topic).counts
    assert (stats.msg_count, stats.msg_in_counter, stats.first_position) == (1, 6, (3, 0))
    acknowledge(store, topic, "a", 1)
    assert trimmed(store, topic) == (4, 0)


def test_a_topic_without_a_subscription_waits_for_nobody(store: Store, topic: str) -> None:
    send(store, topic, 4)
    assert trimmed(store, topic) == (3, 0)


@pytest.mark.parametrize("start", [EARLIEST, LATEST])
@pytest.mark.parametrize("found", ["nothing", "trimmed", "aborted", "open"])
def test_a_subscription_that_begins_on_nothing_holds_what_follows(
    store: Store, topic: str, found: str, start: Extreme
) -> None:
    """A subscription keeps every later message from its creation on, whether or not the topic had one then."""
    txn = store.begin_transaction() if found in ("aborted", "open") else None
    if found != "nothing":
        send(store, topic, 3, txn)
    if found == "aborted":
        assert txn is not None
        store.admin.transactions.abort_transaction(txn)
    store.admin.topics.trim_topic(topic)
    store.subscribe(topic, "s", initial_position=start).close()
    if found == "open":
        assert txn is not None
        store.commit_transaction(txn)
    send(store, topic, 4)
    hold = store.admin.topics.trim_topic(topic).effects.held_by
    assert hold is not None
    assert (hold.kind, hold.name) == ("subscription", "s")
    with store.subscribe(topic, "s") as consumer:
        values = [message.value for message in consumer.receive_batch(10, timeout=0)]
    assert values == [b"0", b"1", b"2"] * (found == "open") + [b"0", b"1", b"2", b"3"]


def test_an_open_transaction_holds_its_ledger(store: Store, topic: str) -> None:
    send(store, topic, 4)
    txn = store.begin_transaction()
    send(store, topic, 1, txn)
    send(store, topic, 4)
    assert trimmed(store, topic) == (2, 0)
    hold = store.admin.topics.trim_topic(topic).effects.held_by
    assert hold is not None
    assert (hold.kind, hold.name) == ("transaction", str(txn))
    store.commit_transaction(txn)
    assert trimmed(store, topic) == (5, 0)


def test_a_pending_acknowledgement_holds_its_ledger(store: Store, topic: str) -> None:
    send(store, topic, 4)
    txn = store.begin_transaction()
    acknowledge(store, topic, "a", 4, txn)
    assert trimmed(store, topic) == (1, 0)
    store.commit_transaction(txn)
    assert trimmed(store, topic) == (3, 0)


def test_a_message_kept_back_by_skip_holds_its_ledger(store: Store, topic: str) -> None:
    """With on-open skip, markDeletePosition waits below the open transaction, and so do the ledgers."""
    txn = store.begin_transaction()
    send(store, topic, 1, txn)
    send(store, topic, 6)
    with store.subscribe(
        topic, "s", subscription_type=SubscriptionType.SHARED, on_open=OnOpen.SKIP, initial_position=EARLIEST
    ) as consumer:
        for _ in range(6):
            consumer.acknowledge(consumer.receive(timeout=1))
        assert trimmed(store, topic) == (1, 0)
        store.commit_transaction(txn)
        consumer.acknowledge(consumer.receive(timeout=1))
    assert trimmed(store, topic) == (4, 0)


def test_a_marker_that_dispatch_never_met_leaves_nothing_behind(store: Store, topic: str) -> None:
    """A message held behind a key was skipped by an operator, and its ledger goes with the marker before it is met."""
    txn = store.begin_transaction()
    with store.subscribe(
        topic,
        "k",
        subscription_type=SubscriptionType.KEY_SHARED,
        on_open=OnOpen.SKIP,
        initial_position=EARLIEST,
    ) as consumer:
        with store.create_producer(topic, connected=False) as producer:
            producer.send(b"first", key=b"k", txn=txn)
            for value, key in ((b"held", b"k"), (b"free", b"other")):
                producer.send(value, key=key)
            consumer.acknowledge(consumer.receive(timeout=1))
            store.commit_transaction(txn)
            store.admin.subscriptions.clear_backlog(topic, "k")
            assert trimmed(store, topic) == (3, 0)
            assert store.maintenance.verify_store(full=True) == []
            producer.send(b"next", key=b"k")
        assert consumer.receive(timeout=1).value == b"next"
    with store.connection.view() as view:
        assert (view.count(AWAITED), view.count(HELD)) == (0, 0)


def test_the_retention_time_counts_from_the_newest_message(store: Store, clock: ManualClock) -> None:
    store.create_topic("timed", ledger_entries_max=2)
    store.admin.topics.set_retention("timed", time_ms=60_000)
    for _ in range(4):
        send(store, "timed", 1)
        clock.advance(20)
    # Published 80, 60, 40 and 20 seconds ago: the newest message of the first ledger has its time behind it.
    assert trimmed(store, "timed") == (2, 0)
    clock.advance(39)
    assert trimmed(store, "timed") == (2, 0)
    clock.advance(1)
    assert trimmed(store, "timed") == (3, 0)


def test_the_retention_size_keeps_that_much_of_what_is_acknowledged(store: Store) -> None:
    store.create_topic("sized", ledger_entries_max=1)
    with store.create_producer("sized", connected=False) as producer:
        for _ in range(5):
            producer.send(bytes(1000))
    size = store.reports.topic_stats("sized").counts.storage_size // 5
    acknowledge(store, "sized", "a", 4)
    store.admin.topics.set_retention("sized", size=2 * size)
    assert trimmed(store, "sized") == (3, 0)
    store.admin.topics.set_retention("sized", size=2 * size + 1)
    acknowledge(store, "sized", "a", 1)
    assert trimmed(store, "sized") == (3, 0)
    store.admin.topics.set_retention("sized", size=2 * size)
    assert trimmed(store, "sized") == (4, 0)


def test_the_first_limit_reached_trims(store: Store, clock: ManualClock) -> None:
    store.create_topic("both", ledger_entries_max=1)
    store.admin.topics.set_retention("both", time_ms=3_600_000, size=1 << 40)
    send(store, "both", 3)
    assert trimmed(store, "both") == (1, 0)
    clock.advance(3601)
    assert trimmed(store, "both") == (4, 0)
    send(store, "both", 3)
    store.admin.topics.set_retention("both", size=0)
    assert trimmed(store, "both") == (7, 0)


def test_a_topic_overrides_the_limits_of_the_store(store: Store) -> None:
    for name in ("inherits", "keeps"):
        store.create_topic(name, ledger_entries_max=1)
        send(store, name, 2)
    store.admin.topics.set_retention("keeps", time_ms="unset")
    store.admin.settings.set_retention(time_ms=0)
    assert (trimmed(store, "inherits"), trimmed(store, "keeps")) == ((3, 0), (1, 0))
    store.admin.topics.set_retention("keeps", time_ms="store")
    assert trimmed(store, "keeps") == (3, 0)


def test_nothing_goes_for_its_age_after_the_wall_clock_was_moved(store: Store, clock: ManualClock) -> None:
    """Until an operator confirms the clock."""
    store.create_topic("aged", ledger_entries_max=1)
    store.admin.topics.set_retention("aged", time_ms=60_000)
    send(store, "aged", 2)
    clock.wall_now_ns += 3600 * 1_000_000_000
    result = store.admin.topics.trim_topic("aged").effects
    assert (result.first_position, result.clocks_disagree) == ((1, 0), True)
    assert store.maintenance.collect_garbage().collected.messages_trimmed == 0
    assert store.maintenance.collect_garbage(trust_clock=True).collected.messages_trimmed == 2


def test_a_dry_run_tells_what_the_run_does(store: Store, topic: str) -> None:
    send(store, topic, 8)
    forecast = store.maintenance.collect_garbage(dry_run=True).collected
    plan = store.admin.topics.trim_topic(topic, dry_run=True).effects
    assert first_position(store, topic) == (1, 0)
    done = store.admin.topics.trim_topic(topic).effects
    assert plan == done
    assert (forecast.ledgers_trimmed, forecast.messages_trimmed, forecast.bytes_trimmed) == done.trimmed


def test_a_write_trims_on_its_way(store: Store, topic: str, clock: ManualClock) -> None:
    """A few entries at a time, until nothing is left to remove; the next topics follow in turn."""
    send(store, topic, 3 * 2)
    acknowledge(store, topic, "a", 6)
    for _ in range(3):
        clock.advance(1)
        store.begin_transaction()
        store.begin_transaction()
    assert first_position(store, topic) >= (3, 0)
    with store.connection.view() as view:
        state = topic_states.load(view, topics.get(view, topic).topic_id)
        assert trim.remains(view, topics.get(view, topic).topic_id, state, 1) == []


def remains(store: Store, topic: str) -> int:
    """The number of entries of trimmed ledgers that are still on disk."""
    with store.connection.view() as view:
        topic_id = topics.get(view, topic).topic_id
        return len(trim.remains(view, topic_id, topic_states.load(view, topic_id), 1 << 62))


def test_writes_come_to_every_topic_again(store: Store, topic: str, clock: ManualClock) -> None:
    """A process that writes for long looks at the first topics after the last, turn after turn."""
    for turn in range(1, 4):
        send(store, topic, 3)
        for _ in range(4):
            clock.advance(1)
            store.begin_transaction()
        assert (first_position(store, topic), remains(store, topic)) == ((turn + 1, 0), 0)


def test_remains_of_trimming_are_met_by_nobody(store: Store, topic: str) -> None:
    """Between the trimming and the removal of the entries, every report answers as after it."""
    send(store, topic, 7)

    def drop(batch: WriteBatch) -> None:
        opened = OpenTopic.load(batch, topics.get(batch, topic).topic_id)
        trimming.drop(opened, 3)

    store.connection.write(drop)
    assert store.reports.topic_stats(topic).counts.first_position == (3, 0)
    assert [row.position for row in store.reports.topic_log(topic)] == [(3, 0)]
    assert [position for position, _ in values(store, topic)] == [(3, 0)]
    assert store.reports.store_overview().verdict == "ok"
    assert [row.counts.msg_count for row in store.reports.list_topics() if row.name == topic] == [1]
    store.admin.subscriptions.create_subscription(topic, "late", initial_position=EARLIEST)
    acknowledge(store, topic, "late", 1)


def test_gc_counts_what_it_trims_itself(path: str, store: Store, topic: str) -> None:
    """As its dry run says, and in the audit trail with the reason."""
    send(store, topic, 7)
    forecast = store.maintenance.collect_garbage(dry_run=True).collected
    done = store.maintenance.collect_garbage(reason="nightly").collected
    assert done.messages_trimmed == forecast.messages_trimmed == 7
    assert store.reports.list_audit_records()[0].reason == "nightly"


def test_a_limit_that_is_taken_back_lets_nothing_go_first(
    store: Store, topic: str, clock: ManualClock
) -> None:
    send(store, topic, 7)
    clock.advance(10)
    store.admin.topics.set_retention(topic, time_ms="unset")
    assert len(values(store, topic)) == 7


def test_the_transaction_is_named_where_a_subscription_waits_for_it(store: Store, topic: str) -> None:
    """The subscription has everything that it may have."""
    send(store, topic, 1)
    acknowledge(store, topic, "a", 1)
    txn = store.begin_transaction()
    send(store, topic, 1, txn)
    hold = store.admin.topics.trim_topic(topic).effects.held_by
    assert hold is not None
    assert (hold.kind, hold.name) == ("transaction", str(txn))


def test_entries_go_in_steps_of_a_bounded_size(store: Store, topic: str) -> None:
    store.create_topic("long", ledger_entries_max=TRIM_STEP_ENTRIES + 10)
    store.admin.topics.set_retention("long", time_ms=0)

    def write(batch: WriteBatch) -> None:
        opened = OpenTopic.load(batch, topics.get(batch, "long").topic_id)
        for _ in range(TRIM_STEP_ENTRIES + 10):
            log.append(opened, MESSAGES, 1, 0, Columns([b"x"]).body("p", 0))

    store.connection.write(write)
    with store.connection.view() as view:
        before = view.superblock.commits
    assert trimmed(store, "long") == (2, 0)
    with store.connection.view() as view:
        # Two trim ledgers and find no more; two remove entries, and one finds none.
        assert view.superblock.commits - before <= 5


def test_a_reader_behind_learns_that_messages_are_gone(store: Store, topic: str) -> None:
    """One that has read everything goes on; one that has not is told, as is a start at a trimmed position."""
    send(store, topic, 5)
    ahead, behind = (store.reader(topic, start=EARLIEST) for _ in range(2))
    assert len(list(ahead)) == 5
    behind.read_batch(2)
    behind.close()
    assert trimmed(store, topic) == (3, 0)
    send(store, topic, 2)
    assert [message.value for message in ahead] == [b"0", b"1"]
    with pytest.raises(MessageNotFound, match="were trimmed; the first one left is at 3:0"):
        list(store.reader(topic, start=Position(1, 1)))
    with pytest.raises(MessageNotFound, match="trimmed"):
        list(store.reports.topic_log(topic, Position(1, 1)))
    assert [message.value for message in store.reader(topic, start=EARLIEST)] == [b"0", b"1"]


def test_the_aborted_set_goes_with_its_messages(store: Store, topic: str) -> None:
    for _ in range(3):
        txn = store.begin_transaction()
        send(store, topic, 2, txn)
        store.admin.transactions.abort_transaction(txn)
    straddling = store.begin_transaction()
    send(store, topic, 1, straddling)
    assert store.reports.topic_stats(topic).counts.aborted_txn_count == 3
    assert trimmed(store, topic) == (4, 0)
    assert store.reports.topic_stats(topic).counts.aborted_txn_count == 0
    send(store, topic, 4, straddling)
    store.admin.transactions.abort_transaction(straddling)
    send(store, topic, 1)
    assert [value for _, value in values(store, topic, IsolationLevel.READ_COMMITTED)] == [b"0"]


def test_an_aborted_message_at_the_first_position_left_stays_aborted(store: Store, topic: str) -> None:
    """The set keeps a transaction whose only message left is the first one of the topic."""
    send(store, topic, 3)
    txn = store.begin_transaction()
    (aborted,) = send(store, topic, 1, txn)
    store.admin.transactions.abort_transaction(txn)
    send(store, topic, 1)
    acknowledge(store, topic, "a", 3)
    assert trimmed(store, topic) == aborted == (2, 0)
    assert values(store, topic, IsolationLevel.READ_COMMITTED) == [(Position(2, 2), b"0")]


def test_outcomes_are_forgotten_once_their_messages_are_trimmed(
    store: Store, topic: str, clock: ManualClock
) -> None:
    """A transaction stays known while its marker is stored."""
    txn = store.begin_transaction()
    send(store, topic, 2, txn)
    store.commit_transaction(txn)
    store.admin.topics.set_retention(topic, time_ms="unset")
    clock.advance(OUTCOME_RETENTION_MS / 1000 + 1)
    assert store.maintenance.collect_garbage().collected.tables.counts.outcomes_removed == 0
    store.admin.topics.set_retention(topic, time_ms=0)
    with store.connection.view() as view:
        assert view.count(TXN_RUNS) == 1
    assert store.maintenance.collect_garbage().collected.tables.counts.outcomes_removed == 1
    with store.connection.view() as view:
        assert view.count(TXN_RUNS) == 0


def test_truncate_removes_everything_and_moves_every_subscription(store: Store) -> None:
    store.create_topic("full", ledger_entries_max=3)
    last = send(store, "full", 5)[-1]
    acknowledge(store, "full", "a", 2)
    done = store.admin.topics.truncate_topic("full", reason="test data").effects
    assert (done.trimmed.messages, done.first_position, done.subscriptions) == (5, (3, 0), ["a"])
    assert values(store, "full") == []
    assert store.reports.subscription_stats("full", "a").row.stats.mark_delete_position == last
    assert send(store, "full", 1) == [(3, 0)]
    acknowledge(store, "full", "a", 1)


def test_truncate_is_refused_while_a_transaction_holds_something(store: Store) -> None:
    store.create_topic("held", ledger_entries_max=3)
    send(store, "held", 2)
    pending, producing = store.begin_transaction(), store.begin_transaction()
    acknowledge(store, "held", "a", 1, pending)
    send(store, "held", 1, producing)
    with pytest.raises(ObjectHeld):
        store.admin.topics.truncate_topic("held")
    assert len(values(store, "held")) == 3
    done = store.admin.topics.truncate_topic("held", force=True).effects
    assert sorted(done.transactions_aborted) == sorted([pending, producing])
    assert values(store, "held") == []


def test_a_killed_trimming_is_gone_on_with(store: Store, topic: str) -> None:
    """Between the trimming of a ledger and the removal of its entries, and between two steps of that."""
    for point in ("topic.after_trim", "topic.between_purge_steps"):
        send(store, topic, 7)
        acknowledge(store, topic, "a", 7)
        faults.arm(point, _interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                store.admin.topics.trim_topic(topic)
        finally:
            faults.disarm()
        assert store.maintenance.verify_store() == []
        store.maintenance.collect_garbage()
        assert values(store, topic) == []
        assert remains(store, topic) == 0


SUBSCRIPTIONS = {
    "a": (SubscriptionType.EXCLUSIVE, IsolationLevel.READ_COMMITTED, OnOpen.BLOCK),
    "b": (SubscriptionType.FAILOVER, IsolationLevel.READ_UNCOMMITTED, OnOpen.BLOCK),
    "s": (SubscriptionType.SHARED, IsolationLevel.READ_COMMITTED, OnOpen.SKIP),
    "k": (SubscriptionType.KEY_SHARED, IsolationLevel.READ_COMMITTED, OnOpen.SKIP),
}


def _interrupt() -> None:
    raise KeyboardInterrupt


steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 3)),
        st.tuples(st.just("begin"), st.just(0)),
        st.tuples(st.sampled_from(["commit", "abort"]), st.integers(0, 2)),
        st.tuples(st.sampled_from(list(SUBSCRIPTIONS)), st.integers(1, 4)),
        st.tuples(st.sampled_from(list(SUBSCRIPTIONS)), st.integers(1, 30)),
        st.tuples(st.just("trim"), st.just(0)),
    ),
    max_size=40,
)  # fmt: skip
"""Send plainly (0) or in an open transaction, end one, let a subscription receive and acknowledge, trim."""


@settings(max_examples=examples(60), deadline=None)
@given(steps=steps, limit=st.integers(1, 4))
def test_a_trimmed_topic_is_the_end_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], limit: int
) -> None:
    """Beside a topic that is never trimmed: the same answers at both levels, for readers, subscriptions and counts."""
    path, clock = str(tmp_path_factory.mktemp("twins") / "store"), ManualClock()
    Store.create(path, clock=clock)
    with Store.open(path, clock=clock) as store:
        twins = _Twins(store, limit)
        for what, number in steps:
            twins.do(what, number)
            twins.compare()
    check_whole(path, clock)


class _Twins:
    """Two topics with the same history, of which one is trimmed."""

    def __init__(self, store: Store, limit: int) -> None:
        self.store = store
        self.sent = 0
        self.open: list[TxnID] = []
        for name in ("whole", "trimmed"):
            store.create_topic(name, ledger_entries_max=limit)
            for subscription, (type_, level, on_open) in SUBSCRIPTIONS.items():
                store.admin.subscriptions.create_subscription(
                    name, subscription, subscription_type=type_, subscription_isolation_level=level,
                    on_open=on_open, initial_position=EARLIEST,
                )  # fmt: skip
        store.admin.topics.set_retention("trimmed", time_ms=0)

    def do(self, what: str, number: int) -> None:
        if what == "send":
            txn = self.open[number - 1] if 0 < number <= len(self.open) else None
            for name in ("whole", "trimmed"):
                with self.store.create_producer(name, producer_name="p", connected=False) as producer:
                    producer.send_batch(
                        [b"%d" % self.sent, b"second"], keys=[b"k", b"%d" % (self.sent % 2)], txn=txn
                    )
            self.sent += 1
        elif what == "begin" and len(self.open) < 3:
            self.open.append(self.store.begin_transaction())
        elif what in ("commit", "abort") and number < len(self.open):
            txn = self.open.pop(number)
            end = self.store.commit_transaction
            (end if what == "commit" else self.store.admin.transactions.abort_transaction)(txn)
        elif what in SUBSCRIPTIONS:
            whole, rest = (self._received(name, what, number) for name in ("whole", "trimmed"))
            assert whole == rest
        elif what == "trim":
            self.store.admin.topics.trim_topic("trimmed")

    def _received(self, name: str, subscription: str, number: int) -> list[bytes | None]:
        """Receive up to `number` messages: acknowledge some, some in a transaction, give some back, leave some."""
        received: list[Message] = []
        with self.store.subscribe(name, subscription) as consumer:
            for message in consumer.receive_batch(number, timeout=0):
                received.append(message)
                turn = (len(received) + number) % 7
                if turn == 5 and self.open:
                    consumer.acknowledge(message, txn=self.open[0])
                elif turn == 6:
                    consumer.negative_acknowledge(message, delay=0)
                elif turn < 5:
                    consumer.acknowledge(message)
        return [message.value for message in received]

    def compare(self) -> None:
        """Levels from the beginning: the trimmed topic gives the end. Backlogs by class are equal."""
        for level in IsolationLevel:
            every, rest = (
                [value for _, value in values(self.store, name, level)] for name in ("whole", "trimmed")
            )
            assert rest == every[len(every) - len(rest) :]
        for subscription in SUBSCRIPTIONS:
            whole, trimmed_one = (
                self.store.reports.subscription_stats(name, subscription).row.stats
                for name in ("whole", "trimmed")
            )
            for field in ("visible", "blocked", "uncommitted", "pending", "msg_backlog", "backlog_size"):
                assert getattr(whole, field) == getattr(trimmed_one, field), field
