"""The processes of the traffic test: each plays a part on the same store until the test lets go of it.

    python -m tests.processes.traffic STORE JOURNAL PART SEED

What they send, are handed and acknowledge stands in their journals (see `journal`), with the monotonic clock of the
machine, which all processes share: so the test can tell what came after what.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType
from storage.client.consumer import Consumer
from storage.topic.message import Message
from tests.processes.journal import Journal, Line
from tests.processes.parent import has_let_go, say

SOURCE, TARGET = "requests", "results"
KEYS = 5
SUBSCRIPTIONS = {
    "shared": SubscriptionType.SHARED,
    "keyed": SubscriptionType.KEY_SHARED,
    "standby": SubscriptionType.FAILOVER,
    "transfer": SubscriptionType.SHARED,
}


class Part:
    """What all parts have."""

    def __init__(self, store: Store, journal: Journal, name: str, chance: random.Random) -> None:
        self.store = store
        self.journal = journal
        self.name = name
        self.chance = chance

    def until_let_go(self, step: Callable[[], bool]) -> None:
        """Go on while the test wants it, then until there is nothing left to do."""
        while not has_let_go():
            step()
        while step():
            pass

    def produce(self) -> None:
        """A named producer: after a kill it sends its last message again under the same sequence id."""
        producer = self.store.create_producer(SOURCE, producer_name=self.name)

        def send(number: int) -> None:
            value = f"{self.name}:{number}"
            with self.journal.attempt("send", topic=SOURCE, values=[value], txn=None):
                producer.send(value.encode(), key=f"k{number % KEYS}", sequence_id=number)

        tried = self.journal.of("try", "send")
        number = len({line["values"][0] for line in tried})
        if number:
            send(number - 1)
        while not has_let_go():
            send(number)
            number += 1

    def produce_transactions(self) -> None:
        """Transactions of a few sends to both topics; some are aborted, and a kill leaves some open."""
        source, target = self.store.create_producer(SOURCE), self.store.create_producer(TARGET)
        while not has_let_go():
            txn = self.store.transaction(timeout=60)
            for _ in range(self.chance.randint(1, 3)):
                number = len(self.journal.lines)
                values = [f"{self.name}:{number}:{index}" for index in range(self.chance.randint(1, 3))]
                keys = [f"k{self.chance.randrange(KEYS)}" for _ in values]
                for topic, producer in ((SOURCE, source), (TARGET, target)):
                    with self.journal.attempt("send", topic=topic, values=values, txn=str(txn.id)):
                        producer.send_batch([value.encode() for value in values], keys=keys, txn=txn)
            if self.chance.random() < 0.3:
                txn.abort()
                continue
            with self.journal.attempt("commit", txn=str(txn.id)):
                txn.commit()

    def consume(self) -> None:
        """A consumer with plain acknowledgements; now and then it gives something back."""
        subscription = self.name.partition("-")[0]
        with self._attach(subscription) as consumer:
            self.until_let_go(lambda: self._consume_some(consumer, subscription))

    def _consume_some(self, consumer: Consumer, subscription: str) -> bool:
        found = list(consumer.receive_batch(self.chance.randint(1, 12), timeout=0.3))
        if not found:
            return False
        self._note_received(found)
        if subscription == "shared" and self.chance.random() < 0.2:
            consumer.negative_acknowledge(found.pop(), delay=0.01)
        if found:
            with self.journal.attempt("acknowledge", values=[_text(each) for each in found], txn=None):
                if subscription == "standby":
                    consumer.acknowledge_cumulative(found[-1])
                else:
                    consumer.acknowledge(found)
        return True

    def transfer(self) -> None:
        """Consume, transform and produce in one transaction: each request has its effect once."""
        producer = self.store.create_producer(TARGET)
        with self._attach("transfer") as consumer:
            self.until_let_go(lambda: self._transfer_some(consumer, producer.send_batch))

    def _transfer_some(self, consumer: Consumer, send: Callable[..., object]) -> bool:
        found = list(consumer.receive_batch(self.chance.randint(1, 8), timeout=0.3))
        if not found:
            return False
        self._note_received(found)
        values = [_text(each) for each in found]
        txn = self.store.transaction(timeout=60)
        send([b"done " + value.encode() for value in values], txn=txn)
        consumer.acknowledge(found, txn=txn)
        if self.chance.random() < 0.2:
            txn.abort()
            return True
        with self.journal.attempt("acknowledge", values=values, txn=str(txn.id)):
            txn.commit()
        return True

    def _attach(self, subscription: str) -> Consumer:
        return self.store.subscribe(SOURCE, subscription, consumer_name=self.name, receiver_queue_size=20)

    def _note_received(self, found: list[Message]) -> None:
        self.journal.note("is", "received", values=[_text(each) for each in found])


def _text(message: Message) -> str:
    assert message.value is not None
    return message.value.decode()


def prepare(store: Store) -> None:
    """The topics and subscriptions."""
    store.create_topic(SOURCE, ledger_entries_max=40)
    store.create_topic(TARGET, ledger_entries_max=40)
    for name, type_ in SUBSCRIPTIONS.items():
        store.admin.subscriptions.create_subscription(
            SOURCE, name, subscription_type=type_, initial_position=EARLIEST,
            subscription_isolation_level=IsolationLevel.READ_COMMITTED,
        )  # fmt: skip


def sends(lines: list[Line]) -> dict[tuple[str, str], str | None]:
    """(topic, value) of everything whose sending was acknowledged, with its transaction."""
    return {
        (line["topic"], value): line["txn"]
        for line in lines
        if line["event"] == "did" and line["kind"] == "send"
        for value in line["values"]
    }


def main(path: str, journal: str, part: str, seed: str) -> None:
    """See the module."""
    with Store.open(path, lock_timeout=60) as store:
        name = journal.rpartition("/")[2]
        mine = Part(store, Journal(journal), name, random.Random(seed))
        say("started")
        getattr(mine, part)()


if __name__ == "__main__":
    main(*sys.argv[1:])
