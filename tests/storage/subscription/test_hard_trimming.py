"""Hard retention: `storage/subscription/hard_trimming.py`, by its rules, and as a property of random histories."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from storage import (
    EARLIEST,
    Consumer,
    IsolationLevel,
    Message,
    OnOpen,
    Position,
    Store,
    SubscriptionType,
    TransactionState,
    TxnID,
    faults,
)
from storage.disk.schema import AWAITED, HELD
from storage.disk.view import WriteBatch
from storage.errors import TransactionNotOpen, TxnctlError
from storage.limits import FORCED_STEP_ENTRIES
from storage.process.clock import ManualClock
from storage.subscription import catalogue as subscriptions
from storage.subscription.hard_trimming import Loss
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics, log
from storage.topic.entry import MESSAGES, Columns
from storage.topic.open_topic import OpenTopic
from storage.values.txn_state import AbortReason
from tests.model_runs import examples
from tests.storage.conftest import check_whole
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import create_subscriptions
from tests.storage.subscription.test_trimming import acknowledge, first_position, send, trimmed, values

MINUTE_MS = 60_000


@pytest.fixture
def topic(store: Store) -> str:
    """A topic with ledgers of three entries and a hard limit of a minute."""
    store.create_topic("short", ledger_entries_max=3)
    store.admin.topics.set_retention("short", time_ms=MINUTE_MS, hard="trim")
    return "short"


def lost(store: Store, topic: str, name: str) -> int:
    return store.reports.subscription_stats(topic, name).row.stats.msg_lost_counter


def create(store: Store, topic: str, *names: str) -> None:
    for name in names:
        store.admin.subscriptions.create_subscription(topic, name, initial_position=EARLIEST)


def test_what_is_not_acknowledged_goes_and_is_counted(store: Store, topic: str, clock: ManualClock) -> None:
    """For each subscription by itself, in statistics and the audit trail; the dry run says the same before."""
    create(store, topic, "slow", "half")
    send(store, topic, 7)
    acknowledge(store, topic, "half", 4)
    clock.advance(61)
    plan = store.admin.topics.trim_topic(topic, dry_run=True).effects
    assert (first_position(store, topic), lost(store, topic, "slow")) == ((1, 0), 0)
    done = store.admin.topics.trim_topic(topic).effects
    assert plan == done
    assert (done.trimmed.messages, done.first_position) == (7, (4, 0))
    assert sorted(done.lost) == [Loss("half", 3), Loss("slow", 7)]
    assert (lost(store, topic, "slow"), lost(store, topic, "half")) == (7, 3)
    noted = next(row for row in store.reports.list_audit_records() if row.action == "messages lost")
    assert noted.effects["lost"] == [
        {"subscription": "half", "messages": 3},
        {"subscription": "slow", "messages": 7},
    ]  # fmt: skip
    assert store.reports.subscription_stats(topic, "slow").row.stats.msg_backlog == 0


def test_without_it_nothing_goes_that_is_not_acknowledged(store: Store, clock: ManualClock) -> None:
    store.create_topic("soft", ledger_entries_max=3)
    store.admin.topics.set_retention("soft", time_ms=MINUTE_MS, hard="off")
    create(store, "soft", "slow")
    send(store, "soft", 7)
    clock.advance(61)
    assert trimmed(store, "soft") == (1, 0)


def test_a_topic_overrides_the_default_of_the_store(store: Store, clock: ManualClock) -> None:
    store.admin.settings.set_retention(time_ms=MINUTE_MS, hard="trim")
    for name, hard in (("inherits", None), ("keeps", "off")):
        store.create_topic(name, ledger_entries_max=1)
        store.admin.topics.set_retention(name, hard=hard)
        create(store, name, "slow")
        send(store, name, 2)
    clock.advance(61)
    assert (trimmed(store, "inherits"), trimmed(store, "keeps")) == ((3, 0), (1, 0))


def test_a_limit_of_0_is_never_hard(store: Store) -> None:
    """Else every message would be gone before a consumer came by."""
    store.create_topic("none", ledger_entries_max=1)
    store.admin.topics.set_retention("none", time_ms=0, size=0, hard="trim")
    create(store, "none", "slow")
    send(store, "none", 2)
    assert trimmed(store, "none") == (1, 0)
    acknowledge(store, "none", "slow", 2)
    assert trimmed(store, "none") == (3, 0)


def test_a_hard_size_holds_though_the_open_ledger_is_large(store: Store) -> None:
    """The open ledger is closed at an eighth of the limit: whole ledgers go."""
    store.admin.topics.set_retention("t", size=16_000, hard="trim")
    create(store, "t", "slow")
    with store.create_producer("t", connected=False) as producer:
        for _ in range(100):
            producer.send(bytes(1000))
            trimmed(store, "t")
    size = store.reports.topic_stats("t").counts.storage_size
    assert 16_000 <= size < 21_000
    assert lost(store, "t", "slow") == 100 - store.reports.topic_stats("t").counts.msg_count


def test_an_open_transaction_is_aborted_first(store: Store, topic: str, clock: ManualClock) -> None:
    """One with messages in a ledger that goes, and one with acknowledgements there; both say why."""
    create(store, topic, "slow")
    send(store, topic, 4)
    consuming, producing, later = (store.begin_transaction(timeout=3600) for _ in range(3))
    acknowledge(store, topic, "slow", 2, consuming)
    send(store, topic, 2, producing)
    clock.advance(61)
    store.admin.topics.set_retention(topic, hard="off")
    send(store, topic, 1, later)
    store.admin.topics.set_retention(topic, hard="trim")
    done = store.admin.topics.trim_topic(topic).effects
    assert sorted(done.transactions_aborted) == sorted([consuming, producing])
    assert done.first_position == (3, 0)
    for txn in (consuming, producing):
        record = store.reports.show_transaction(txn).row
        assert (record.state, record.reason) == (TransactionState.ABORTED, AbortReason.RETENTION.value)
        assert "hard retention of topic short" in (record.reason_text or "")
        with pytest.raises(TransactionNotOpen, match="retention"):
            store.commit_transaction(txn)
    store.commit_transaction(later)
    assert lost(store, topic, "slow") == 4
    expired = [row.target for row in store.reports.list_audit_records() if row.reason == "retention"]
    assert sorted(expired) == sorted(map(str, (consuming, producing)))


def test_a_committed_transaction_is_not_torn(store: Store, topic: str, clock: ManualClock) -> None:
    """A subscription that loses a part of it loses the rest: messages behind the ledger that goes, counted too."""
    create(store, topic, "slow", "quick")
    txn = store.begin_transaction(timeout=3600)
    send(store, topic, 2, txn)
    send(store, topic, 1)
    clock.advance(61)
    store.admin.topics.set_retention(topic, hard="off")
    send(store, topic, 2, txn)
    store.commit_transaction(txn)
    send(store, topic, 1)
    acknowledge(store, topic, "quick", 3)
    store.admin.topics.set_retention(topic, hard="trim")
    done = store.admin.topics.trim_topic(topic).effects
    assert (done.first_position, done.lost) == ((2, 0), [Loss("slow", 5)])
    for name, left in (("slow", 1), ("quick", 3)):
        with store.subscribe(topic, name) as consumer:
            assert len(consumer.receive_batch(10, timeout=0)) == left


def test_a_write_lets_go_on_its_way(store: Store, topic: str, clock: ManualClock) -> None:
    create(store, topic, "slow")
    send(store, topic, 9)
    clock.advance(61)
    for _ in range(6):
        store.begin_transaction()
        clock.advance(1)
    assert (first_position(store, topic), lost(store, topic, "slow")) == ((4, 0), 9)


def test_gc_lets_go_as_its_dry_run_says(store: Store, topic: str, clock: ManualClock) -> None:
    create(store, topic, "slow")
    send(store, topic, 7)
    txn = store.begin_transaction(timeout=3600)
    acknowledge(store, topic, "slow", 1, txn)
    clock.advance(61)
    forecast = store.maintenance.collect_garbage(dry_run=True).collected
    assert lost(store, topic, "slow") == 0
    done = store.maintenance.collect_garbage().collected
    assert done.messages_lost == forecast.messages_lost == 7
    assert done.transactions_aborted == forecast.transactions_aborted == 1
    assert done.messages_trimmed == forecast.messages_trimmed == 7


def test_the_transaction_of_a_write_is_not_aborted_by_the_write(
    store: Store, topic: str, clock: ManualClock
) -> None:
    txn = store.begin_transaction(timeout=3600)
    send(store, topic, 3, txn)
    clock.advance(61)
    store.commit_transaction(txn)
    assert store.reports.show_transaction(txn).row.state is TransactionState.COMMITTED


def test_many_messages_go_in_steps(store: Store, clock: ManualClock) -> None:
    """A step examines a bounded number of entries, and the audit trail has one record for the ledger."""
    entries = 11 * FORCED_STEP_ENTRIES
    store.create_topic("long", ledger_entries_max=entries)
    create(store, "long", "slow")

    def write(batch: WriteBatch) -> None:
        opened = OpenTopic.load(batch, topics.get(batch, "long").topic_id)
        for _ in range(entries):
            log.append(opened, MESSAGES, 1, 0, Columns([b"x"]).body("p", 0))

    store.connection.write(write)
    clock.advance(61)
    soon = store.admin.topics.set_retention(
        "long", time_ms=MINUTE_MS, hard="trim", dry_run=True
    ).effects.lets_go
    assert (soon.messages_lost, soon.has_more) == (10 * FORCED_STEP_ENTRIES, True), "no writer waits for more"
    store.admin.topics.set_retention("long", time_ms=MINUTE_MS, hard="trim")
    with store.connection.view() as view:
        before = view.superblock.commits
    assert trimmed(store, "long") == (2, 0)
    with store.connection.view() as view:
        assert view.superblock.commits - before >= 3
    assert lost(store, "long", "slow") == entries
    assert [row.action for row in store.reports.list_audit_records()].count("messages lost") == 1


def test_a_killed_step_is_gone_on_with(store: Store, topic: str, clock: ManualClock) -> None:
    """Nothing is counted twice, whether the batch came to nothing or was the last one."""
    create(store, topic, "slow")
    send(store, topic, 7)
    clock.advance(61)
    for point in ("topic.after_trim", "environment.before_commit", "environment.after_commit"):
        faults.arm(point, _interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                store.admin.topics.trim_topic(topic)
        finally:
            faults.disarm()
        assert store.maintenance.verify_store() == []
    store.maintenance.collect_garbage()
    assert (values(store, topic), lost(store, topic, "slow")) == ([], 7)


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_an_acknowledgement_of_a_message_that_is_gone_changes_nothing(
    store: Store, topic: str, clock: ManualClock
) -> None:
    """A consumer at work finds its message acknowledged; in a transaction that is a conflict, as always."""
    create(store, topic, "slow")
    send(store, topic, 4)
    with store.subscribe(topic, "slow") as consumer:
        first, second = (consumer.receive(timeout=1) for _ in range(2))
        clock.advance(61)
        store.admin.topics.trim_topic(topic)
        consumer.acknowledge(first)
        consumer.negative_acknowledge(second)
        txn = store.begin_transaction()
        with pytest.raises(TxnctlError, match="is acknowledged already"):
            consumer.acknowledge(first, txn=txn)
        send(store, topic, 1)
        assert consumer.receive(timeout=1).value == b"0"


MODES = [
    (SubscriptionType.EXCLUSIVE, IsolationLevel.READ_COMMITTED, OnOpen.BLOCK),
    (SubscriptionType.FAILOVER, IsolationLevel.READ_UNCOMMITTED, OnOpen.BLOCK),
    (SubscriptionType.SHARED, IsolationLevel.READ_COMMITTED, OnOpen.BLOCK),
    (SubscriptionType.SHARED, IsolationLevel.READ_COMMITTED, OnOpen.SKIP),
    (SubscriptionType.KEY_SHARED, IsolationLevel.READ_UNCOMMITTED, OnOpen.BLOCK),
    (SubscriptionType.KEY_SHARED, IsolationLevel.READ_COMMITTED, OnOpen.SKIP),
]
NAMES = [f"s{number}" for number in range(len(MODES))]
SKIPPING = [name for name, mode in zip(NAMES, MODES, strict=True) if mode[2] is OnOpen.SKIP]

steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["send", "singles", "late"]), st.integers(0, 3)),
        st.tuples(st.sampled_from(["send", "singles", "late"]), st.integers(0, 3)),
        st.tuples(st.just("begin"), st.just(0)),
        st.tuples(st.just("block"), st.integers(1, 12)),
        st.tuples(st.sampled_from(["commit", "abort"]), st.integers(0, 2)),
        st.tuples(st.sampled_from(NAMES), st.integers(1, 12)),
        st.tuples(st.sampled_from(NAMES), st.integers(1, 12)),
        st.tuples(st.just("pass"), st.sampled_from([5, 31, 61])),
        st.tuples(st.just("trim"), st.integers(0, 2)),
    ),
    max_size=40,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(steps=steps, entries=st.sampled_from([1, 2, 3, 4, 12]), ttl=st.sampled_from([None, 30_000]))
def test_every_step_leaves_a_sound_store(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], entries: int, ttl: int | None
) -> None:
    """Over all types and levels, with messages in flight, delayed, or acknowledged out of order, in batches and alone:
    no message is delivered twice or vanishes uncounted.
    """
    path, clock = str(tmp_path_factory.mktemp("hard") / "store"), ManualClock()
    Store.create(path, clock=clock)
    with Store.open(path, clock=clock) as store:
        history = _History(store, clock, entries, ttl)
        try:
            for what, number in steps:
                history.do(what, number)
                assert store.maintenance.verify_store(full=True) == []
            history.drain()
        finally:
            history.close()
    check_whole(path, clock)


class _History:
    """A topic with hard retention, subscriptions of all types, and consumers that stay attached."""

    def __init__(self, store: Store, clock: ManualClock, entries: int, ttl: int | None) -> None:
        self.store, self.clock = store, clock
        self.sent = 0
        self.open: list[TxnID] = []
        self.texts: dict[TxnID | None, list[bytes]] = {None: []}
        self.committed: list[bytes] = []
        self.done: dict[str, list[bytes]] = {name: [] for name in NAMES}
        self.pending: dict[TxnID, list[tuple[str, bytes]]] = {}
        store.create_topic("h", ledger_entries_max=entries)
        store.admin.topics.set_retention("h", time_ms=MINUTE_MS, hard="trim", ttl_ms=ttl)
        for name, (type_, level, on_open) in zip(NAMES, MODES, strict=True):
            store.admin.subscriptions.create_subscription(
                "h", name, subscription_type=type_, subscription_isolation_level=level, on_open=on_open,
                initial_position=EARLIEST,
            )  # fmt: skip
        self.consumers = {name: store.subscribe("h", name, receiver_queue_size=3) for name in NAMES}

    def close(self) -> None:
        for consumer in self.consumers.values():
            consumer.close()

    def _settle(self) -> None:
        """Learn which transactions ended: hard retention may have aborted some."""
        for txn in list(self.open):
            state = self.store.reports.show_transaction(txn).row.state
            if state is TransactionState.OPEN:
                continue
            self.open.remove(txn)
            texts, acked = self.texts.pop(txn, []), self.pending.pop(txn, [])
            if state is TransactionState.COMMITTED:
                self.committed += texts
                for name, text in acked:
                    self.done[name].append(text)

    def do(self, what: str, number: int) -> None:
        self._settle()
        if what == "send":
            self._send(number, 2, together=True)
        elif what == "singles":
            self._send(number, 4, together=False)
        elif what == "late":
            self._send(number, 2, together=number % 2 == 0, delay=20 + 25 * number)
        elif what == "begin" and len(self.open) < 3:
            self.open.append(self.store.begin_transaction(timeout=36_000))
        elif what == "block" and len(self.open) < 3:
            # Messages of an open transaction, and plain ones of the same key behind them, for those that skip it.
            self.open.append(self.store.begin_transaction(timeout=36_000))
            self.do("send", len(self.open))
            self.do("send", 0)
            for name in SKIPPING:
                self._receive(name, number)
        elif what in ("commit", "abort") and number < len(self.open):
            txn = self.open[number]
            end = self.store.commit_transaction
            (end if what == "commit" else self.store.admin.transactions.abort_transaction)(txn)
        elif what in NAMES:
            self._receive(what, number)
        elif what == "pass":
            self.clock.advance(number)
        elif what == "trim":
            self._trim(number)
        self._settle()

    def _send(self, number: int, count: int, *, together: bool, delay: float | None = None) -> None:
        """Send a batch, or messages that are each an entry of their own."""
        txn = self.open[number - 1] if 0 < number <= len(self.open) else None
        texts = [b"%d.%d" % (self.sent, index) for index in range(count)]
        keys = [b"k", b"%d" % (self.sent % 2)] * (count // 2)
        with self.store.create_producer("h", connected=False) as producer:
            if together:
                producer.send_batch(texts, keys=keys, txn=txn, deliver_after=delay)
            else:
                for text, key in zip(texts, keys, strict=True):
                    producer.send(text, key=key, txn=txn, deliver_after=delay)
        self.sent += 1
        if txn is None:
            self.committed += texts
        else:
            self.texts.setdefault(txn, []).extend(texts)

    def _is_held(self, name: str, message: Message) -> bool:
        """Whether a message is still in flight: a limit may have taken it from the consumer."""
        at, index = message.message_id.position, max(message.message_id.batch_index, 0)
        with self.store.connection.view() as view:
            subscription = subscriptions.get(view, topics.get(view, "h"), name)
            delivery = OpenSubscription(view, subscription).deliveries.find(at)
        return delivery is not None and bool(delivery.in_flight() >> index & 1)

    def _trim(self, way: int) -> None:
        if way == 0:
            self.store.admin.topics.trim_topic("h")
        elif way == 1:
            plan = self.store.maintenance.collect_garbage(dry_run=True).collected
            done = self.store.maintenance.collect_garbage().collected
            assert (plan.messages_trimmed, plan.messages_lost, plan.messages_expired) == (
                done.messages_trimmed, done.messages_lost, done.messages_expired
            )  # fmt: skip
        else:
            self.clock.advance(1)
            self.store.begin_transaction()

    def _receive(self, name: str, number: int) -> None:
        """Receive some messages: acknowledge most, some in a transaction, give some back, leave some in flight."""
        consumer: Consumer = self.consumers[name]
        received = consumer.receive_batch(number, timeout=0)
        if received:
            # All that limits do at this time, so that an acknowledgement is not counted beside a loss.
            self.store.admin.transactions.reap_transactions()
            self.store.admin.topics.trim_topic("h")
            self._settle()
        for turn, message in enumerate(received if number % 2 else reversed(received)):
            assert message.value is not None
            assert message.value not in self.done[name], "acknowledged for good"
            if not self._is_held(name, message):
                consumer.acknowledge(message)
                continue
            choice = (turn + number) % 7
            if choice == 5 and self.open:
                consumer.acknowledge(message, txn=self.open[0])
                self.pending.setdefault(self.open[0], []).append((name, message.value))
            elif choice == 6:
                consumer.negative_acknowledge(message, delay=0)
            elif choice < 4:
                consumer.acknowledge(message)
                self.done[name].append(message.value)

    def drain(self) -> None:
        """End everything and receive the rest: each committed message was acknowledged, lost or expired, once."""
        for txn in self.open[:]:
            self.store.commit_transaction(txn)
        self.store.admin.topics.set_retention("h", hard="off", ttl_ms="unset")
        self._settle()
        self.close()
        self.clock.advance(100)
        for name, (_, level, _) in zip(NAMES, MODES, strict=True):
            with self.store.subscribe("h", name) as consumer:
                # A walk ends where messages held behind a transaction have to be recorded first.
                while batch := consumer.receive_batch(10_000, timeout=0):
                    for message in batch:
                        assert message.value is not None
                        assert message.value not in self.done[name]
                        consumer.acknowledge(message)
                        self.done[name].append(message.value)
            stats = self.store.reports.subscription_stats("h", name).row.stats
            gone = stats.msg_lost_counter + stats.msg_expired_counter
            had = [text for text in self.done[name] if text in self.committed]
            assert len(set(had)) == len(had)
            assert len(had) + gone == len(self.committed), name
            if level is IsolationLevel.READ_COMMITTED:
                assert had == self.done[name] or set(had) == set(self.done[name])
        assert self.store.maintenance.verify_store(full=True) == []


def test_what_could_be_freed_counts_a_hard_limit(store: Store, topic: str, clock: ManualClock) -> None:
    create(store, topic, "slow")
    send(store, topic, 7)
    clock.advance(61)
    size = store.reports.topic_stats(topic).counts.storage_size
    rows = {row.action.call: row.freed_bytes for row in store.reports.list_freeable() if row.name == topic}
    assert rows["store.admin.topics.trim_topic"] == size


@pytest.mark.parametrize("commits", [True, False])
def test_a_message_held_behind_a_key_goes_with_its_ledger(
    store: Store, topic: str, clock: ManualClock, commits: bool
) -> None:
    """The transaction before it ended, and dispatch has not met its marker: nothing of it is left behind."""
    txn = store.begin_transaction(timeout=3600)
    with store.subscribe(
        topic,
        "k",
        subscription_type=SubscriptionType.KEY_SHARED,
        on_open=OnOpen.SKIP,
        initial_position=EARLIEST,
    ) as consumer:
        with store.create_producer(topic, connected=False) as producer:
            producer.send(b"first", key=b"k", txn=txn)
            producer.send(b"held", key=b"k")
            producer.send(b"free", key=b"other")
            assert [message.value for message in consumer.receive_batch(10, timeout=0)] == [b"free"]
            clock.advance(61)
            store.admin.topics.set_retention(topic, hard="off")
            end = store.commit_transaction if commits else store.admin.transactions.abort_transaction
            end(txn)
            store.admin.topics.set_retention(topic, hard="trim")
            store.admin.topics.trim_topic(topic)
            assert first_position(store, topic) == (2, 0)
            assert lost(store, topic, "k") == (3 if commits else 2)
            assert store.maintenance.verify_store(full=True) == []
            producer.send(b"next", key=b"k")
        assert [message.value for message in consumer.receive_batch(10, timeout=0)] == [b"next"]
    with store.connection.view() as view:
        assert (view.count(AWAITED), view.count(HELD)) == (0, 0)


def test_positions_go_on(store: Store, topic: str, clock: ManualClock) -> None:
    send(store, topic, 4)
    clock.advance(61)
    assert trimmed(store, topic) == (3, 0)
    assert send(store, topic, 1) == [Position(3, 0)]


def test_many_transactions_are_aborted_step_by_step(store: Store, topic: str, clock: ManualClock) -> None:
    """Those with messages in the ledger, and those with pending acknowledgements there."""
    create(store, topic, "slow")
    send(store, topic, 3)
    consuming, producing = ([store.begin_transaction(timeout=3600) for _ in range(n)] for n in (3, 9))
    for txn in consuming:
        acknowledge(store, topic, "slow", 1, txn)
    for txn in producing:
        send(store, topic, 1, txn)
    clock.advance(61)
    with counted(store) as operations:
        done = store.admin.topics.trim_topic(topic).effects
    assert sorted(done.transactions_aborted) == sorted([*consuming, *producing])
    assert done.first_position == (5, 0)
    assert operations.most < 800


def test_many_subscriptions_are_noted_in_steps(store: Store, topic: str, clock: ManualClock) -> None:
    """Each in one record of the audit trail; the work of a step does not grow with the subscriptions."""
    most = []
    for number in (1200, 2400):
        name = f"t{number}"
        store.create_topic(name, ledger_entries_max=3)
        store.admin.topics.set_retention(name, time_ms=MINUTE_MS, hard="trim")
        send(store, name, 4)
        create_subscriptions(store, name, number)
        clock.advance(61)
        with counted(store) as operations:
            store.admin.topics.trim_topic(name)
        most.append(operations.most)
        assert lost(store, name, "s0") == lost(store, name, f"s{number - 1}") == 4
        rows = [row for row in store.reports.list_audit_records() if row.action == "messages lost"]
        noted = [Loss(**loss) for row in rows if row.target == name for loss in row.effects["lost"]]
        assert sum(loss.messages for loss in noted) == 4 * number
    assert most[1] < 1.2 * most[0]
