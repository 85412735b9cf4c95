"""Much of one thing in a store, and everyday changes and looks beside it: none grows with what it does not list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from storage import EARLIEST, Store
from storage.disk.view import WriteBatch
from storage.table import catalogue as tables
from storage.topic import catalogue as topics
from storage.topic.catalogue import LedgerLimits
from storage.topic.open_topic import OpenTopic
from storage.topic.producers.access_mode import AccessMode
from storage.topic.producers.admission import AccessRequest, ProducerRegistry, SessionLifetime
from storage.txn.begin import NewTransaction
from storage.txn.fenced_txns import FencedTransactions
from tests.storage.many_messages import begin_open, create_subscriptions, write_messages

T = TypeVar("T")


def _in_one_commit(store: Store, change: Callable[[WriteBatch, int], object], number: int) -> None:
    def every(batch: WriteBatch) -> None:
        for at in range(number):
            change(batch, at)

    store.connection.write(every)


def open_transactions(store: Store, number: int) -> None:
    begin_open(store, "t", number)


def aborted_transactions(store: Store, number: int) -> None:
    txns, coordinator, process = (
        begin_open(store, "t", number),
        store.engine.coordinator,
        store.engine.process,
    )
    _in_one_commit(store, lambda batch, at: coordinator.abort(batch, txns[at].least, process), number)


def committed_transactions(store: Store, number: int) -> None:
    txns, coordinator, process = (
        begin_open(store, "t", number),
        store.engine.coordinator,
        store.engine.process,
    )
    _in_one_commit(store, lambda batch, at: coordinator.commit(batch, txns[at].least, process), number)


def attached_transactions(store: Store, number: int) -> None:
    """Open transactions of this living process, without messages."""
    coordinator, process = store.engine.coordinator, store.engine.process

    def begin(batch: WriteBatch, _at: int) -> None:
        coordinator.begin(batch, process, store.connection.lease(batch), NewTransaction(3_600_000))

    _in_one_commit(store, begin, number)


def subscriptions(store: Store, number: int) -> None:
    create_subscriptions(store, "t", number)


def limited_subscriptions(store: Store, number: int) -> None:
    create_subscriptions(store, "t", number)
    store.admin.topics.set_retention("t", time_ms=0, ttl_ms=3_600_000, expire_after_ms=3_600_000)


def other_topics(store: Store, number: int) -> None:
    limits = LedgerLimits(None, None, None)
    _in_one_commit(store, lambda batch, at: topics.create(batch, f"other-{at}", limits), number)


def other_tables(store: Store, number: int) -> None:
    _in_one_commit(store, lambda batch, at: tables.create(batch, f"other-{at}"), number)


def shared_producers(store: Store, number: int) -> None:
    _admit(store, AccessMode.SHARED, number)


def waiting_producers(store: Store, number: int) -> None:
    _admit(store, AccessMode.WAIT_FOR_EXCLUSIVE, number)


def _admit(store: Store, mode: AccessMode, number: int) -> None:
    """Connect producers of this process, or let each wait for the topic."""

    def admit(batch: WriteBatch, at: int) -> None:
        lifetime = SessionLifetime(store.engine.process, lease=store.connection.lease(batch))
        topic = OpenTopic.load(batch, topics.get(batch, "t").topic_id, "t")
        request = AccessRequest(mode, f"p{at}")
        fenced = FencedTransactions(store.engine.coordinator, store.engine.process)
        ProducerRegistry(topic, fenced, is_swept=False, request=request).admit(request, lifetime)

    _in_one_commit(store, admit, number)


def closed_ledgers(store: Store, number: int) -> None:
    def close_soon(batch: WriteBatch) -> None:
        OpenTopic.load(batch, topics.get(batch, "t").topic_id).state.ledger_entries_max = 1

    store.connection.write(close_soon)
    write_messages(store, "t", number)


def rows(store: Store, number: int) -> None:
    store.table("accounts").import_rows((b"row %d" % at, b"1") for at in range(number))


def intents(store: Store, number: int) -> None:
    pairs = ((b"row %d" % at, b"1") for at in range(number))
    store.table("accounts").import_rows(pairs, txn=store.begin_transaction())


def versions(store: Store, number: int) -> None:
    for at in range(number // 5):
        store.table("accounts").put(b"k", b"%d" % at)


class Scene:
    """A topic, a table, and transactions begun before the rest is there."""

    def __init__(self, store: Store) -> None:
        self.store = store
        store.create_topic("t")
        self.accounts = store.table("accounts", create=True)
        self.accounts.put(b"k", b"first")
        self.producer = store.create_producer("t")
        self.producer.send(b"first")
        self.open = [store.begin_transaction() for _ in range(4)]
        for txn in self.open[:2]:
            self.producer.send(b"in it", txn=txn)
        store.admin.subscriptions.create_subscription("t", "z", initial_position=EARLIEST)
        consumer = store.subscribe(
            "t", "z", subscription_type="Shared", subscription_isolation_level="READ_UNCOMMITTED"
        )
        for message, txn in zip(consumer.receive_batch(2, timeout=0), self.open[2:], strict=True):
            consumer.acknowledge(message, txn=txn)

    def look_ahead(self) -> None:
        """Make subscriptions beyond maxReadPosition and with `--on-open skip`, when the rest is there."""
        store = self.store
        store.subscribe("t", "ahead", subscription_isolation_level="READ_UNCOMMITTED").close()
        self.producer.send(b"behind")
        store.subscribe("t", "ahead", subscription_isolation_level="READ_COMMITTED").close()
        store.subscribe("t", "skips", subscription_type="Shared", on_open="skip").close()

    def send(self) -> None:
        self.producer.send(b"x")

    def send_in_an_open_one(self) -> None:
        self.producer.send(b"x", txn=self.store.begin_transaction())

    def begin_and_commit(self) -> None:
        with self.store.transaction() as txn:
            self.producer.send(b"x", txn=txn)

    def begin_and_abort(self) -> None:
        self.store.admin.transactions.abort_transaction(self.store.begin_transaction())

    def commit(self) -> None:
        self.store.commit_transaction(self.open[0])

    def abort(self) -> None:
        self.store.admin.transactions.abort_transaction(self.open[1])

    def commit_an_acknowledgement(self) -> None:
        self.store.commit_transaction(self.open[2])

    def abort_an_acknowledgement(self) -> None:
        self.store.admin.transactions.abort_transaction(self.open[3])

    def reap(self) -> None:
        self.store.admin.transactions.reap_transactions()

    def connect(self) -> None:
        self.store.create_producer("t").close()

    def put(self) -> None:
        self.accounts.put(b"k", b"v")

    def get(self) -> None:
        self.accounts.get(b"k")

    def get_and_put(self) -> None:
        with self.store.transaction() as txn:
            self.accounts.get(b"k", txn=txn)
            self.accounts.put(b"k", b"v", txn=txn)

    def topic_stats(self) -> None:
        self.store.reports.topic_stats("t")

    def last_message_id(self) -> None:
        self.store.reports.last_message_id("t")


EVERY = (
    Scene.send, Scene.send_in_an_open_one, Scene.begin_and_commit, Scene.begin_and_abort, Scene.commit, Scene.abort,
    Scene.commit_an_acknowledgement, Scene.abort_an_acknowledgement, Scene.reap, Scene.connect, Scene.put, Scene.get,
    Scene.get_and_put, Scene.topic_stats, Scene.last_message_id,
)  # fmt: skip
WITH_NAMES = (Scene.abort, Scene.abort_an_acknowledgement)
"""An operator's abort names the topics that it touched, and the subscriptions whose backlog it changes."""

AXES: dict[Callable[[Store, int], object], tuple[Callable[[Scene], None], ...]] = {
    open_transactions: (),
    aborted_transactions: (),
    committed_transactions: (),
    attached_transactions: (),
    subscriptions: (*WITH_NAMES, Scene.topic_stats),
    limited_subscriptions: (*WITH_NAMES, Scene.topic_stats),
    other_topics: WITH_NAMES,
    other_tables: (),
    shared_producers: (Scene.topic_stats,),
    waiting_producers: (Scene.topic_stats, Scene.connect, Scene.send),
    closed_ledgers: (),
    rows: (),
    intents: (),
    versions: (),
}
"""What there is much of, with the operations that list it."""


def counts_of(
    store: Store,
    axis: Callable[[Store, int], object],
    number: int,
    count: Callable[[Callable[[], object]], T],
) -> dict[str, T]:
    """Make much of one thing, and count each operation that does not list it; the counts by name."""
    scene = Scene(store)
    axis(store, number)
    if axis is not waiting_producers:
        scene.look_ahead()
    return {
        operation.__name__: count(partial(operation, scene))
        for operation in EVERY
        if operation not in AXES[axis]
    }
