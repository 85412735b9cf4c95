"""A topic with many messages, each an entry of its own, as if they were sent one by one; written in few commits."""

from __future__ import annotations

from storage import Store, TxnID
from storage.disk.view import WriteBatch
from storage.topic import catalogue as topics, log
from storage.topic.entry import MESSAGES, Columns
from storage.topic.open_topic import OpenTopic
from storage.txn import uncommitted_entries

KEYS = 5000
_COMMIT = 10_000


def write_messages(store: Store, topic: str, number: int, keys: int = KEYS) -> None:
    """Append messages with the values 0 to number - 1, and a key each, which comes again after `keys` messages."""
    for begin in range(0, number, _COMMIT):

        def change(batch: WriteBatch, begin: int = begin) -> None:
            opened = OpenTopic.load(batch, topics.get(batch, topic).topic_id)
            for at in range(begin, min(begin + _COMMIT, number)):
                columns = Columns([b"%d" % at], [b"%d" % (at % keys)])
                log.append(opened, MESSAGES, 1, 0, columns.body("producer-999999", at))

        store.connection.write(change)


def write_in_turn(store: Store, topic: str, txns: list[TxnID], number: int) -> None:
    """Append so many messages of open transactions in turn, an entry each."""
    for begin in range(0, number, _COMMIT):

        def change(batch: WriteBatch, begin: int = begin) -> None:
            opened = OpenTopic.load(batch, topics.get(batch, topic).topic_id)
            for at in range(begin, min(begin + _COMMIT, number)):
                body = Columns([b"%d" % at]).body("producer-999999", at)
                uncommitted_entries.append(opened, txns[at % len(txns)].least, 1, body)

        store.connection.write(change)
