"""A topic with many messages, sent one by one or in small batches, and written in few commits."""

from __future__ import annotations

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType, TxnID
from storage.disk.view import WriteBatch
from storage.subscription import attach
from storage.subscription.isolation import SubscriptionMode
from storage.topic import catalogue as topics, log
from storage.topic.entry import MESSAGES, Columns
from storage.topic.open_topic import OpenTopic
from storage.txn import timed_entries, uncommitted_entries
from storage.txn.begin import NewTransaction

KEYS = 5000
_COMMIT = 10_000


def write_messages(store: Store, topic: str, number: int, keys: int = KEYS, size: int = 1) -> None:
    """Append messages with the values 0 to number - 1, and a key each, which comes again after `keys` messages.

    Args:
        size: messages of an entry, of which `number` is a multiple.
    """
    for begin in range(0, number, _COMMIT * size):

        def change(batch: WriteBatch, begin: int = begin) -> None:
            opened = OpenTopic.load(batch, topics.get(batch, topic).topic_id)
            for first in range(begin, min(begin + _COMMIT * size, number), size):
                numbers = range(first, first + size)
                columns = Columns([b"%d" % at for at in numbers], [b"%d" % (at % keys) for at in numbers])
                log.append(opened, MESSAGES, size, 0, columns.body("producer-999999", first))

        store.connection.write(change)


def write_in_turn(store: Store, topic: str, txns: list[TxnID], number: int, size: int = 1) -> None:
    """Append so many entries of open transactions in turn, of `size` messages each."""
    for begin in range(0, number, _COMMIT):

        def change(batch: WriteBatch, begin: int = begin) -> None:
            opened = OpenTopic.load(batch, topics.get(batch, topic).topic_id)
            for at in range(begin, min(begin + _COMMIT, number)):
                body = Columns([b"%d" % at] * size).body("producer-999999", at * size)
                uncommitted_entries.append(opened, txns[at % len(txns)].least, size, body)

        store.connection.write(change)


def begin_open(store: Store, topic: str, number: int) -> list[TxnID]:
    """Begin so many detached transactions with a message each, in few commits."""
    coordinator, process, txns = store.engine.coordinator, store.connection.identity, list[TxnID]()
    for begin in range(0, number, _COMMIT):

        def change(batch: WriteBatch, begin: int = begin) -> list[TxnID]:
            opened = OpenTopic.load(batch, topics.get(batch, topic).topic_id)
            begun = []
            for _ in range(begin, min(begin + _COMMIT, number)):
                begun.append(coordinator.begin(batch, process, 0, NewTransaction(3_600_000)).id)
                body = Columns([b"open"]).body("producer-999999", begun[-1].least)
                uncommitted_entries.append(opened, begun[-1].least, 1, body)
            return begun

        txns += store.connection.write(change)
    return txns


def write_delayed(store: Store, topic: str, number: int, delivery_ms: int) -> None:
    """Append so many messages with one delivery time each, an entry each; the times follow each other from one on."""
    for begin in range(0, number, _COMMIT):

        def change(batch: WriteBatch, begin: int = begin) -> None:
            opened = OpenTopic.load(batch, topics.get(batch, topic).topic_id)
            for at in range(begin, min(begin + _COMMIT, number)):
                times = [delivery_ms + at]
                body = Columns([b"%d" % at], delivery_times=times).body("producer-999999", at)
                timed_entries.note(opened, log.append(opened, MESSAGES, 1, 0, body), 0, times)

        store.connection.write(change)


def create_subscriptions(store: Store, topic: str, number: int) -> None:
    """Create subscriptions `s0`, `s1` and so on, from the first message on, in few commits."""
    mode = SubscriptionMode(SubscriptionType.SHARED, IsolationLevel.READ_COMMITTED, None)
    for begin in range(0, number, _COMMIT):

        def change(batch: WriteBatch, begin: int = begin) -> None:
            for at in range(begin, min(begin + _COMMIT, number)):
                options = attach.SubscribeOptions(
                    topic, f"s{at}", mode, EARLIEST, attach.DeadLetterPolicy(None, None)
                )
                attach.create(batch, topics.get(batch, topic), options)

        store.connection.write(change)
