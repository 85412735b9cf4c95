"""The parts of a transaction, each made without the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from storage import Store, faults
from storage.client.append import Appender, Outgoing
from storage.client.work.beginning import Beginning, BeginRequest
from storage.client.work.handle import TransactionHandle
from storage.topic import catalogue as topics
from storage.topic.entry import Columns
from storage.topic.producers.publish_check import Passing

MINUTE_MS = 60_000


@pytest.fixture
def new_handle(store: Store) -> Callable[[], TransactionHandle]:
    """Makes a handle of a transaction that has just begun in this process."""

    def make() -> TransactionHandle:
        connection, coordinator = store.connection, store.engine.coordinator
        beginning = Beginning.now(connection, coordinator, BeginRequest(MINUTE_MS, None))
        return TransactionHandle(connection, coordinator, beginning)

    return make


@pytest.fixture
def new_appender(store: Store) -> Callable[[str], Appender]:
    """Makes the appender of a named producer of `t` that is connected during its appends only."""

    def make(name: str) -> Appender:
        with store.connection.view() as view:
            topic = topics.get(view, "t")
        return Appender(store.engine.coordinator, store.connection.identity, topic, Passing(topic, name))

    return make


def outgoing(*values: bytes, ids: list[int] | None = None) -> Outgoing:
    """The messages of one call."""
    return Outgoing(Columns(list(values)), [len(value) for value in values], ids)


@pytest.fixture
def interrupt_at() -> Iterator[Callable[[str], None]]:
    """Arms Ctrl-C at a fault point, once."""

    def arm(point: str) -> None:
        def stop() -> None:
            faults.disarm()
            raise KeyboardInterrupt

        faults.arm(point, stop)

    yield arm
    faults.disarm()
