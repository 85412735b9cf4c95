"""Many consumers of one subscription, each of a process of its own, and the number of times that processes are looked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from storage import Consumer, Store
from storage.disk.codec import key1, pack
from storage.disk.lmdb.environment import LmdbEnvironment
from storage.disk.schema import LEASES
from storage.disk.view import WriteBatch
from storage.subscription import attached_consumers, catalogue as subscriptions
from storage.topic import catalogue as topics


class Looks:
    """The leases of a store, with the number of look-ups.

    Attributes:
        number: the look-ups so far.
    """

    def __init__(self, leases: Any) -> None:
        self._leases = leases
        self.number = 0

    def is_held(self, lease: int) -> bool:
        self.number += 1
        return bool(self._leases.is_held(lease))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._leases, name)


@contextmanager
def looks(store: Store) -> Iterator[Looks]:
    """Count the look-ups of leases by the handle of a store."""
    environment = store.connection.environment
    assert isinstance(environment, LmdbEnvironment)
    locks = environment.locks
    leases, counting = locks.leases, Looks(locks.leases)
    locks.leases = counting  # type: ignore[assignment]
    try:
        yield counting
    finally:
        locks.leases = leases


def join(store: Store, number: int) -> list[int]:
    """Attach consumers of so many living processes to subscription `a` of topic `t`; their leases."""
    leases: list[int] = []

    def change(batch: WriteBatch) -> None:
        subscription = subscriptions.get(batch, topics.get(batch, "t"), "a")
        for _ in range(number):
            lease = batch.superblock.last_lease = batch.superblock.last_lease + 1
            assert batch.locks.leases.hold(lease)
            batch.put(LEASES, key1(lease), pack(store.connection.identity.fields()))
            attached_consumers.attach(batch, subscription, None, lease, store.connection.identity)
            leases.append(lease)

    store.connection.write(change)
    return leases


def work(store: Store, consumer: Consumer) -> None:
    """A message is sent, received and acknowledged."""
    store.create_producer("t", connected=False).send(b"x")
    consumer.acknowledge(consumer.receive(timeout=0))
