"""The axes of the curves: what a store has more of, and how a store of each size is filled.

Stores are filled by large commits, which are not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.curves.subject import READ_MESSAGES
from benchmarks.engine import TOPIC
from benchmarks.payload import Payload
from storage import EARLIEST, Position, Store
from storage.disk.view import WriteBatch
from storage.limits import WRITE_BYTES_TARGET
from storage.topic import catalogue as topics
from storage.topic.batching import columns_of, entries_of
from storage.topic.entry import Columns
from storage.topic.open_topic import OpenTopic
from storage.txn import uncommitted_entries
from storage.txn.begin import NewTransaction

MESSAGE_BYTES = 32
FEW_MESSAGES = 10_000
_TIMEOUT_MS = 24 * 3600 * 1000
_AT_ONCE = 500
_STEPS = 20

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Axis:
    """One kind of growth.

    Attributes:
        what: the counted things, as the table says.
        fill: makes a store larger before the messages that are measured are sent; None where these are the axis.
        join: makes the opened store larger: things that live with a process.
        leaves_out: operations that list the counted things, and so are not measured.
    """

    what: str
    fill: Callable[[Store, int, Progress], None] | None = None
    join: Callable[[Store, int], object] | None = None
    leaves_out: tuple[str, ...] = ()


def send_messages(store: Store, count: int, progress: Progress) -> Position:
    """Send messages, packed beforehand in entries of a thousand; return the position before the last thousand."""
    values = Payload(READ_MESSAGES, MESSAGE_BYTES).batch()
    (entry,) = entries_of(columns_of(values, None, None, None))
    whole, rest = divmod(count, READ_MESSAGES)
    with store.create_producer(TOPIC) as producer:
        if rest:
            producer.send_batch(values[:rest])
        at_once = max(1, WRITE_BYTES_TARGET // (READ_MESSAGES * MESSAGE_BYTES))
        done = rest
        while whole > 1:
            some = min(at_once, whole - 1)
            producer.send_packed([entry] * some)
            whole, done = whole - some, done + some * READ_MESSAGES
            progress(done)
        before = store.reports.topic_stats(TOPIC).counts.last_confirmed_entry
        producer.send_packed([entry])
    return Position(*before)


def _topics(store: Store, count: int, progress: Progress) -> None:
    for done in range(count - 1):
        store.create_topic(f"other-{done}")
        progress(done)


def _subscriptions(store: Store, count: int, progress: Progress) -> None:
    for done in range(count - 1):
        store.admin.subscriptions.create_subscription(TOPIC, f"other-{done}", initial_position=EARLIEST)
        progress(done)


def _producers(store: Store, count: int) -> object:
    return [store.create_producer(TOPIC) for _ in range(count - 1)]


def _open_transactions(store: Store, count: int) -> object:
    """Open transactions with a message each on the topic, behind the messages that are measured."""
    _write_transactions(store, count, lambda _done: None, aborts=False)
    return None


def _aborted_transactions(store: Store, count: int, progress: Progress) -> None:
    _write_transactions(store, count, progress, aborts=True)


def _write_transactions(store: Store, count: int, progress: Progress, *, aborts: bool) -> None:
    """Begin transactions with a message each, and abort them: some hundred in a commit."""
    coordinator, process = store.engine.coordinator, store.connection.identity
    body = Columns([b"x" * MESSAGE_BYTES]).body("filler", 0)

    def change(batch: WriteBatch, some: int) -> None:
        topic = OpenTopic.load(batch, topics.get(batch, TOPIC).topic_id)
        for _ in range(some):
            txn = coordinator.begin(batch, process, 0, NewTransaction(_TIMEOUT_MS)).txn_id
            uncommitted_entries.append(topic, txn, 1, body)
            if aborts:
                coordinator.abort(batch, txn, process)

    for done in range(0, count, _AT_ONCE):
        some = min(_AT_ONCE, count - done)
        store.connection.write(lambda batch, some=some: change(batch, some))  # type: ignore[misc]
        progress(done + some)


AXES = {
    "messages": Axis("messages of the topic"),
    "aborted": Axis("aborted transactions on the topic", fill=_aborted_transactions),
    "open": Axis("open transactions on the topic", join=_open_transactions),
    "topics": Axis("topics", fill=_topics),
    "subscriptions": Axis("subscriptions of the topic", fill=_subscriptions, leaves_out=("topic stats",)),
    "producers": Axis("connected producers of the topic", join=_producers, leaves_out=("topic stats",)),
}
