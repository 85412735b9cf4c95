"""Blocks whose end is interrupted before its first line, where a function of Python can do nothing about it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import pytest

from storage import IsolationLevel, Producer, Store, TransactionState
from storage.client.block_end import _Block
from storage.disk.lmdb.data_map import CountedView
from storage.process.clock import ManualClock


@pytest.fixture
def producer(store: Store) -> Producer:
    """Connected to `t`."""
    return store.create_producer("t")


def cut_at_the_begin(function: Callable[..., None], call: Callable[[], None]) -> None:
    """Run a call, with an interrupt (Ctrl-C) as `function` begins, before its first line."""
    came: list[bool] = []

    def trace(frame: FrameType, _event: str, _argument: object) -> None:
        if frame.f_code is function.__code__ and not came:
            came.append(True)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    with suppress(KeyboardInterrupt):
        call()
    sys.settrace(before)
    assert came


def values(store: Store, level: IsolationLevel) -> list[bytes | None]:
    """All messages of `t` at a level."""
    return [message.value for message in store.reader("t", isolation_level=level)]


def test_what_the_block_has_buffered_is_never_stored(store: Store, producer: Producer) -> None:
    """The producer that goes on outside the transaction aborts it, and its own message is visible at once."""
    txn = store.transaction()

    def block() -> None:
        with txn:
            producer.send(b"cut off", txn=txn)

    cut_at_the_begin(_Block.leave, block)
    producer.send(b"plain")
    assert txn.state is TransactionState.ABORTED
    assert [values(store, level) for level in IsolationLevel] == [[b"plain"]] * 2


def test_what_the_block_has_stored_is_aborted_within_a_second(
    store: Store, producer: Producer, clock: ManualClock
) -> None:
    """The watch aborts it, though the program does nothing more with the store, and keeps the variable."""
    txn = store.transaction()

    def block() -> None:
        with txn:
            producer.send(b"cut off", txn=txn)
            txn.flush()

    cut_at_the_begin(_Block.leave, block)
    assert txn.state is TransactionState.OPEN
    clock.advance(1)
    assert txn.state is TransactionState.ABORTED
    assert values(store, IsolationLevel.READ_COMMITTED) == []


def test_an_interrupted_group_queues_nothing_more(
    store: Store, producer: Producer, clock: ManualClock
) -> None:
    """What it had queued is stored within a second, and a send behind it is durable at its return."""

    def block() -> None:
        with store.group():
            producer.send(b"queued")

    cut_at_the_begin(_Block.leave, block)
    assert store.connection.queue is None
    producer.send(b"plain")
    clock.advance(1)
    assert [message.value for message in store.reader("t")] == [b"queued", b"plain"]


def test_an_interrupted_view_does_not_count_for_ever(store: Store, producer: Producer) -> None:
    """A change of the map waits for no view whose end was cut off."""
    producer.send(b"plain")
    data_map = store.connection.environment.data_map  # type: ignore[attr-defined]

    def look() -> None:
        with store.connection.view() as view:
            assert view.commit

    cut_at_the_begin(CountedView.__exit__, look)
    assert data_map._views == set()
    with data_map.between_views():
        assert not data_map._changes
