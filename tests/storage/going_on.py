"""A program that goes on after an interrupt, a lost answer or a doubt: with the same objects, and second ones beside."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from itertools import count

from storage import EARLIEST, Consumer, Message, MessageId, Producer, Store, SubscriptionType, Transaction
from tests.row_json import row_json

WAIT_S = 30


class GoingOn:
    """Two producers of `t`, two consumers of its subscription `a`, and a table, in use from step to step.

    Attributes:
        sent: values that are stored for sure, each to be read and received once.
        taken: values whose acknowledgement stands.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.producer = store.create_producer("t", producer_name="p")
        self.second = store.create_producer("t", producer_name="q")
        self.consumer, self.beside = (
            store.subscribe("t", "a", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST)
            for _ in range(2)
        )
        store.create_table("sums")
        self.sums = store.table("sums")
        self.sent: list[bytes] = []
        self.taken: list[bytes | None] = []
        self._commits = 0
        self._numbers = count(1)

    def value(self) -> bytes:
        """A value that no message has yet."""
        return b"%d" % next(self._numbers)

    def send(self, producer: Producer, *, value: bytes | None = None, sequence_id: int | None = None) -> None:
        """A message that is stored when the call returns; sent again with a sequence id, the message stays one."""
        sent = self.value() if value is None else value
        producer.send(sent, sequence_id=sequence_id)
        self.sent.append(sent)

    def take(self, consumer: Consumer, message: Message) -> None:
        """Acknowledge a message."""
        consumer.acknowledge(message)
        self.taken.append(message.value)

    def begin(self) -> tuple[Transaction, list[bytes], Message]:
        """A transaction with a message of each producer, a write of the table and an acknowledgement."""
        self.send(self.second)
        txn, values = self.store.transaction(), [self.value(), self.value()]
        for producer, value in zip((self.producer, self.second), values, strict=True):
            producer.send(value, txn=txn)
        (message,) = self.consumer.receive_batch(1, timeout=0)
        self.consumer.acknowledge(message, txn=txn)
        self.sums.put(b"n", b"%d" % (int(self.sums.get(b"n", txn=txn) or 0) + 1), txn=txn)
        return txn, values, message

    def note_commit(self, values: list[bytes], message: Message) -> None:
        """What a transaction of `begin` did stands."""
        self.sent += values
        self.taken.append(message.value)
        self._commits += 1

    def go_on(self) -> None:
        """Send, send behind, commit, abort, group, receive and acknowledge, with each object once."""
        self.send(self.producer)
        behind: list[Future[MessageId]] = []
        for producer in (self.second, self.producer):
            self.sent.append(self.value())
            behind.append(producer.send_async(self.sent[-1]))
        txn, values, message = self.begin()
        txn.commit()
        self.note_commit(values, message)
        self.begin()[0].abort()
        with self.store.group():
            self.send(self.second)
            self.send(self.producer)
        for future in behind:
            future.result(WAIT_S)
        for consumer in (self.beside, self.consumer):
            for message in consumer.receive_batch(3, timeout=0):
                self.take(consumer, message)

    def check_end(self) -> None:
        """Each message is stored once and acknowledged once, the table has each commit, and the store is sound."""
        self.consumer.close()
        while messages := self.beside.receive_batch(99, timeout=0):
            for message in messages:
                self.take(self.beside, message)
        stored = sorted(message.value or b"" for message in self.store.reader("t"))
        assert stored == sorted(self.sent)
        assert sorted(value or b"" for value in self.taken) == stored
        assert row_json(self.store.reports.subscription_stats("t", "a"))["msgBacklog"] == 0
        assert int(self.sums.get(b"n") or 0) == self._commits
        assert self.store.maintenance.verify_store(full=True) == []


Cut = tuple[Callable[[], object], Callable[[], None]]
"""The call to be cut, and what the program does behind it."""

Step = Callable[[GoingOn], Cut]


def commit(program: GoingOn) -> Cut:
    """A commit is repeated."""
    txn, values, message = program.begin()

    def repeat() -> None:
        txn.commit()
        program.note_commit(values, message)

    return txn.commit, repeat


def flush(program: GoingOn) -> Cut:
    """A transaction that was being flushed takes a further message, and commits."""
    txn, values, message = program.begin()

    def send_and_commit() -> None:
        values.append(program.value())
        program.producer.send(values[-1], txn=txn)
        txn.commit()
        program.note_commit(values, message)

    return txn.flush, send_and_commit


def abort(program: GoingOn) -> Cut:
    """An abort is repeated."""
    txn, _, _ = program.begin()
    return txn.abort, txn.abort


def send(program: GoingOn) -> Cut:
    """A message is sent again with its sequence id."""
    value, number = program.value(), program.producer.last_sequence_id + 1

    def once() -> None:
        program.producer.send(value, sequence_id=number)

    return once, lambda: program.send(program.producer, value=value, sequence_id=number)


def send_behind(program: GoingOn) -> Cut:
    """Messages of asynchronous sends are sent again with their sequence ids, in order."""
    number = program.producer.last_sequence_id + 1
    values = {number: program.value(), number + 1: program.value()}

    def once() -> None:
        for sequence_id, value in values.items():
            program.producer.send_async(value, sequence_id=sequence_id)
        program.producer.flush()

    def again() -> None:
        for sequence_id, value in values.items():
            program.send(program.producer, value=value, sequence_id=sequence_id)

    return once, again


def group(program: GoingOn) -> Cut:
    """Of a group a message is sent again, and the transaction is committed again."""
    txn, values, message = program.begin()
    value, number = program.value(), program.second.last_sequence_id + 1

    def once() -> None:
        with program.store.group():
            txn.commit()
            program.second.send(value, sequence_id=number)

    def again() -> None:
        txn.commit()
        program.note_commit(values, message)
        program.send(program.second, value=value, sequence_id=number)

    return once, again


def acknowledge(program: GoingOn) -> Cut:
    """Messages that were received are acknowledged again."""
    received: list[Message] = []
    program.send(program.second)

    def once() -> None:
        received.extend(program.consumer.receive_batch(2, timeout=0))
        for message in received:
            program.consumer.acknowledge(message)

    def again() -> None:
        for message in received:
            program.take(program.consumer, message)

    return once, again


STEPS: list[Step] = [commit, flush, abort, send, send_behind, group, acknowledge]
