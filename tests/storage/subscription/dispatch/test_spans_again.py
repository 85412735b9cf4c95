"""Polls of a Key_Shared consumer: `storage/subscription/dispatch/spans_again.py`."""

from __future__ import annotations

import pytest

from storage import Consumer, Store
from storage.process.clock import ManualClock
from storage.subscription import span
from storage.subscription.dispatch import held_keys, span_keys
from storage.topic import log
from storage.values.position import Position
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_messages
from tests.storage.walk_steps import KEY_SHARED, Attach, drain, receive, send, values

NUMBER = 20_000


def receive_all(consumer: Consumer) -> None:
    for _ in range(NUMBER // 1000):
        consumer.receive_batch(1000, timeout=0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The entries that are read by position."""
    read, positions = log.read, list[object]()

    def noted(view: object, topic_id: object, position: object) -> object:
        positions.append(position)
        return read(view, topic_id, position)  # type: ignore[arg-type]

    monkeypatch.setattr(log, "read", noted)
    return positions


@pytest.mark.parametrize("size", [1, 10])
def test_an_empty_poll_reads_no_message_in_flight(
    store: Store, attach: Attach, reads: list[object], size: int
) -> None:
    """The first poll of a consumer learns their keys; later polls know them, whatever else is sent."""
    write_messages(store, "t", NUMBER, size=size)
    first = attach(KEY_SHARED)
    receive_all(first)
    second = attach(KEY_SHARED)
    assert values(second) == []
    for _ in range(3):
        send(store, "blocked", key="0")
        reads.clear()
        assert values(second) == []
        assert len(reads) < 20


def test_a_dispatch_beside_many_in_flight(store: Store, attach: Attach) -> None:
    """Under the gate the consumer compares spans."""
    write_messages(store, "t", NUMBER)
    first = attach(KEY_SHARED)
    receive_all(first)
    second = attach(KEY_SHARED)
    assert values(second) == []
    send(store, "free", key="other")
    with counted(store) as operations:
        assert values(second) == [b"free"]
    assert operations.total < 300


def test_keys_become_free_one_by_one(store: Store, attach: Attach) -> None:
    """A message comes as soon as the earlier one of its key is acknowledged, and not before."""
    first = attach(KEY_SHARED)
    send(store, "a0", key="a")
    send(store, "b0", key="b")
    messages = receive(first)
    second = attach(KEY_SHARED)
    send(store, "a1", key="a")
    send(store, "b1", key="b")
    assert values(second) == []
    first.acknowledge(messages[1])
    assert values(second) == [b"b1"]
    assert values(second) == []
    first.negative_acknowledge(messages[0], delay=0)
    assert drain(second) == [b"a0", b"a1"]


def test_a_message_given_back_blocks_until_it_is_due(
    store: Store, attach: Attach, clock: ManualClock
) -> None:
    """Time alone ends an idle state: nothing else has changed."""
    send(store, "a0", key="a")
    send(store, "a1", key="a")
    first, second = attach(KEY_SHARED), attach(KEY_SHARED)
    first.negative_acknowledge(receive(first, 1)[0], delay=30)
    assert values(second) == values(second) == []
    clock.advance(31)
    assert drain(second) == [b"a0", b"a1"]


def test_waiting_messages_of_a_key_in_any_order() -> None:
    """The first waiting one of a key blocks; those that wait no longer do not."""

    keys, first = span_keys.SpanKeys(), Position(1, 0)

    def read(at: Position) -> held_keys.EntryKeys:
        return [b"odd" if at.entry_id % 2 else held_keys.UNREAD if at.entry_id == 4 else None]

    keys.load([(first, 0b11110)], read)
    assert keys.first(b"odd") == (1, 1, 0)
    keys.load([(first, 0b11000)], read)
    assert keys.first(b"odd") == (1, 3, 0)
    assert keys.blocks(b"odd", (1, 4, 0))
    assert not keys.blocks(b"odd", (1, 3, 0))
    keys.load([], read)
    assert keys.first(b"odd") is None


def test_waiting_messages_of_a_key_in_a_batch() -> None:
    """Of an entry of three the first that waits, whichever went before, and again once it waits again."""
    keys, first = span_keys.SpanKeys(), Position(1, 0)

    def read(at: Position) -> held_keys.EntryKeys:
        return [b"a", b"b", b"a"] if at.entry_id else [b"b"]

    def load(messages: int) -> None:
        keys.load([(first, span.place(Position(1, 1), messages))] if messages else [], read)

    load(0b111)
    assert (keys.first(b"a"), keys.first(b"b")) == ((1, 1, 0), (1, 1, 1))
    load(0b110)
    assert keys.first(b"a") == (1, 1, 2)
    assert (keys.blocks(b"a", (1, 1, 2)), keys.blocks(b"a", (1, 2, 0))) == (False, True)
    load(0b111)
    assert keys.first(b"a") == (1, 1, 0)
    load(0b010)
    assert (keys.first(b"a"), keys.first(b"b")) == (None, (1, 1, 1))
    load(0)
    load(0b100)
    assert (keys.first(b"a"), keys.first(b"b")) == ((1, 1, 2), None)


def test_an_exhausted_message_goes_when_its_transaction_is_decided(store: Store) -> None:
    """A poll that found it undecided is no reason not to look again: the decision changes no delivery."""
    options = {
        "subscription_type": KEY_SHARED,
        "subscription_isolation_level": "READ_UNCOMMITTED",
        "max_redeliver_count": 0,
    }
    consumer = store.subscribe("t", "keys", **options)
    txn = store.begin_transaction()
    store.create_producer("t").send(b"1", key="k", txn=txn)
    (message,) = consumer.receive_batch(1, timeout=0)
    consumer.negative_acknowledge(message, delay=0)
    for _ in range(2):
        assert values(consumer) == []
    assert store.reports.subscription_stats("t", "keys").row.stats.msg_backlog == 1
    store.admin.transactions.abort_transaction(txn)
    assert values(consumer) == []
    assert store.reports.subscription_stats("t", "keys").row.stats.msg_backlog == 0
