"""Steps of the tests of compaction: topic `t` is sent to, compacted, and read through its view."""

from __future__ import annotations

from collections.abc import Iterator

from storage import (
    EARLIEST,
    Message,
    MessageId,
    Store,
    TxnID,
)
from storage.disk.schema import COMPACTED, COMPACTED_KEYS, TOMBSTONES
from storage.topic import catalogue as topics
from storage.topic.compaction import compaction_state
from storage.topic.open_topic import OpenTopic
from storage.txn import compaction
from storage.txn.aborted import AbortedSet

Row = tuple[str, str | None, str | None]


def rows(messages: list[Message]) -> list[Row]:
    """Id, key and value of messages, as text."""
    return [
        (
            str(message.message_id),
            None if message.key is None else message.key.decode(),
            None if message.value is None else message.value.decode(),
        )
        for message in messages
    ]


def read(store: Store, *, compacted: bool = True, start: MessageId | None = None) -> list[Row]:
    reader = store.reader("t", read_compacted=compacted, start=start or EARLIEST)
    return rows(list(reader))


def send(store: Store, *pairs: tuple[str | None, str | None], txn: TxnID | None = None) -> None:
    """Send messages of key and value, one entry each."""
    with store.create_producer("t", connected=False) as producer:
        for key, value in pairs:
            producer.send(None if value is None else value.encode(), key=key, txn=txn)


def send_batch(store: Store, *pairs: tuple[str | None, str | None]) -> None:
    """Send messages of key and value in one entry."""
    with store.create_producer("t", connected=False) as producer:
        values = [None if value is None else value.encode() for _, value in pairs]
        producer.send_batch(values, keys=[key for key, _ in pairs])


def compact(store: Store) -> None:
    store.admin.topics.compact_topic("t")


def count(store: Store) -> int:
    """Records of compacted views, of every generation."""
    with store.connection.view() as view:
        return sum(view.count(database) for database in (COMPACTED, COMPACTED_KEYS, TOMBSTONES))


def step_by_step(store: Store) -> Iterator[None]:
    """Compact topic `t` step by step."""
    while one_step(store):
        yield


def one_step(store: Store) -> bool:
    """One step of the compaction of topic `t`; False where nothing is left to do."""
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
        topic = OpenTopic.load(view, topic_id)
        state = compaction_state.load(view, topic_id) or compaction_state.CompactionState()
        stretch = compaction.prepare(topic, state, topic.state.max_read, AbortedSet(), [])
    if stretch is None:
        return False
    store.connection.write(lambda batch: compaction.apply(batch, topic_id, stretch))
    return True
