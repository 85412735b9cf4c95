"""This store, through the public Python API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from storage import EARLIEST, Consumer, IsolationLevel, Position, Store
from storage.disk.view import WriteBatch
from storage.topic import catalogue as topics, log
from storage.topic.entry import MESSAGES, Columns
from storage.topic.open_topic import OpenTopic
from storage.values.position import Extreme

TOPIC = "bench"
_RECEIVER_QUEUE_SIZE = 10_000


class Engine:
    """A `Queue`: one topic, one producer and, from the first `take` on, one Exclusive subscription."""

    def __init__(self, directory: Path | str, durability: str | None = None) -> None:
        """Args:
        directory: of a new store, or its URL.
        durability: of the store, as `Store.create` has it.
        """
        Store.create(str(directory), durability=durability)
        self.store = Store.open(str(directory))
        self.store.create_topic(TOPIC)
        self._producer = self.store.create_producer(TOPIC)
        self._consumer: Consumer | None = None

    def append(self, values: Sequence[bytes]) -> None:
        if len(values) == 1:
            self._producer.send(values[0])
        else:
            self._producer.send_batch(list(values))

    def append_each(self, values: Sequence[bytes]) -> None:
        """Append messages as `send` does one by one, each an entry of its own, in one commit: for filling."""

        def change(batch: WriteBatch) -> None:
            opened = OpenTopic.load(batch, topics.get(batch, TOPIC).topic_id)
            for number, value in enumerate(values):
                log.append(opened, MESSAGES, 1, 0, Columns([value]).body("bench", number))

        self.store.connection.write(change)

    def take(self, count: int) -> int:
        consumer = self._consumer or self._subscribe()
        messages = consumer.receive_batch(count)
        values = messages.values
        consumer.acknowledge(messages)
        return len(values)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._producer.close()
        self.store.close()

    def _subscribe(self) -> Consumer:
        self._consumer = self.store.subscribe(
            TOPIC, "bench", initial_position=EARLIEST, receiver_queue_size=_RECEIVER_QUEUE_SIZE
        )
        return self._consumer


def scan(store: Store, topic: str, level: IsolationLevel, start: Position | Extreme, count: int) -> int:
    """Read messages from `start` until there are at least `count`; return their number.

    Reads whole entries, unpacked and checked, as a fast consumer does.
    """
    total = 0
    with store.reader(topic, start=start, isolation_level=level) as reader:
        for entry in reader.entries():
            total += len(entry.values)
            if total >= count:
                break
    return total
