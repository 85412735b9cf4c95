"""A store that is measured: one topic, one subscription, one table, and the operations on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.engine import TOPIC
from benchmarks.payload import Payload
from storage import EARLIEST, IsolationLevel, MessageBatch, Position, Store
from storage.limits import RECEIVER_QUEUE_SIZE

SUBSCRIPTION = "bench"
TABLE = "bench"
KEYS = 100
READ_MESSAGES = 1_000
RECEIVED = 10
_TIMEOUT_S = 3600.0


class Subject:
    """A store of some size, opened for its turns.

    Args:
        last_thousand: the position before the messages that `read` reads.
    """

    def __init__(self, store: Store, last_thousand: Position) -> None:
        self.store = store
        self._last_thousand = last_thousand
        self._value = Payload(1).batch()[0]
        self._producer = store.create_producer(TOPIC)
        self._consumer = store.subscribe(
            TOPIC, SUBSCRIPTION, initial_position=EARLIEST, receiver_queue_size=RECEIVED
        )
        self._table = store.table(TABLE)
        self._received: list[MessageBatch] = []
        self._turn = 0

    def operations(self) -> dict[str, Callable[[], object]]:
        """The measured operations, by their name in the tables; `consume` comes before `acknowledge`, as often."""
        return {
            "produce": lambda: self._producer.send(self._value),
            "consume": self._consume,
            "acknowledge": self._acknowledge,
            "begin, send, commit": self._commit,
            "begin, send, abort": self._abort,
            "get": lambda: self._table.get(b"key-%d" % (self._turn % KEYS)),
            "read the last 1,000": self._read,
            "topic stats": lambda: self.store.reports.topic_stats(TOPIC),
            "subscription stats": lambda: self.store.reports.subscription_stats(TOPIC, SUBSCRIPTION),
            "connect a producer": lambda: self.store.create_producer(TOPIC).close(),
            "attach a consumer": self._attach,
        }

    def _consume(self) -> None:
        received = self._consumer.receive_batch(RECEIVED, timeout=0)
        assert len(received) == RECEIVED, "the store has messages left"
        self._received.append(received)

    def _acknowledge(self) -> None:
        self._consumer.acknowledge(self._received.pop(0))

    def _commit(self) -> None:
        with self.store.transaction(timeout=_TIMEOUT_S) as txn:
            self._producer.send(self._value, txn=txn)

    def _abort(self) -> None:
        with self.store.transaction(timeout=_TIMEOUT_S) as txn:
            self._producer.send(self._value, txn=txn)
            txn.flush()
            txn.abort()

    def _read(self) -> None:
        total = 0
        with self.store.reader(
            TOPIC, start=self._last_thousand, isolation_level=IsolationLevel.READ_COMMITTED
        ) as reader:
            for entry in reader.entries():
                total += len(entry.values)
                if total >= READ_MESSAGES:
                    return
        raise AssertionError(f"{total} messages instead of {READ_MESSAGES}")

    def _attach(self) -> None:
        self._turn += 1
        name = f"attached-{self._turn % 4}"
        self.store.subscribe(TOPIC, name, receiver_queue_size=RECEIVER_QUEUE_SIZE).close()


def create(path: Path) -> None:
    """Make a store with topic and table, and nothing in the topic."""
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic(TOPIC)
        table = store.table(TABLE, create=True)
        with store.transaction() as txn:
            for number in range(KEYS):
                table.put(b"key-%d" % number, b"value", txn=txn)
