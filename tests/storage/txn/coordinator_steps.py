"""Steps that the tests of coordinator share."""

from __future__ import annotations

from collections.abc import Callable

from storage import EARLIEST, Store, TxnID

Use = Callable[[Store, TxnID], object]


def produce(store: Store, txn: TxnID) -> object:
    with store.create_producer("t") as producer:
        return producer.send(b"x", txn=txn)


def acknowledge(store: Store, txn: TxnID) -> object:
    consumer = store.subscribe("t", "a", initial_position=EARLIEST)
    with consumer:
        return consumer.acknowledge(consumer.receive(timeout=1), txn=txn)


USES: list[Use] = [produce, acknowledge]
