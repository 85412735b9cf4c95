"""The scene of a change: a store with messages in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from storage import EARLIEST, AccessMode, Consumer, Store, SubscriptionType, TxnID

TOPIC, NAME = "t", "a"

SHARED, EXCLUSIVE, KEY_SHARED = (
    SubscriptionType.SHARED,
    SubscriptionType.EXCLUSIVE,
    SubscriptionType.KEY_SHARED,
)


class Scene:
    """A store with `number` messages in flight, `size` of them in each entry."""

    def __init__(self, store: Store, number: int, size: int, type_: SubscriptionType) -> None:
        self.store = store
        self.number = number
        self.size = size
        self.type = type_
        self.consumer = self.attach()
        self.txn: TxnID | None = None

    def attach(self) -> Consumer:
        return self.store.subscribe(
            TOPIC, NAME, subscription_type=self.type, initial_position=EARLIEST, receiver_queue_size=1000
        )

    def receive(self) -> None:
        """Have all messages in flight at the consumer."""
        left = self.number
        while left > 0:
            left -= len(self.consumer.receive_batch(1000, timeout=0))

    def acknowledge(self, txn: TxnID | None, every: int = 1) -> None:
        """Receive all messages, and acknowledge each `every`-th, a window at a time."""
        left = self.number
        while left > 0:
            batch = self.consumer.receive_batch(1000, timeout=0)
            left -= len(batch)
            self.consumer.acknowledge([batch[number] for number in range(0, len(batch), every)], txn=txn)

    def pend(self, every: int = 1) -> TxnID:
        """A transaction with a message on the topic, and an acknowledgement of each `every`-th message."""
        txn = self.txn = self.store.begin_transaction(timeout=3600)
        producer = self.store.create_producer(TOPIC, access_mode=AccessMode.EXCLUSIVE)
        producer.send(b"x", txn=txn)
        self.acknowledge(txn, every)
        return txn


Change = Callable[[], object]
Scenario = Callable[[Scene], Change]
Scenarios = dict[str, tuple[SubscriptionType, Scenario]]
"""By name: the type of the subscription, and a function that prepares a change."""


def subscribe(scene: Scene, topic: str, window: int = 1000, **options: Any) -> Consumer:
    """A consumer of a second topic, of the scene's type."""
    return scene.store.subscribe(
        topic,
        NAME,
        subscription_type=scene.type,
        initial_position=EARLIEST,
        receiver_queue_size=window,
        **options,
    )
