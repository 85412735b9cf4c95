"""The bound of the work that a dispatch records under the writer gate: `storage/subscription/dispatch/walk_work.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Consumer, Store
from storage.client import receive_window
from storage.subscription.dispatch import walk_work
from storage.subscription.dispatch.walk_record import record_selection
from storage.subscription.dispatch.walk_result import Selection
from tests.storage.walk_steps import KEY_SHARED, SHARED, Attach, receive, send, values


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[Selection]:
    """The selections that are recorded, with a bound of 10 entries for each."""
    selections = list[Selection]()

    def noted(opened: object, consumer_id: int, selection: Selection) -> None:
        selections.append(selection)
        record_selection(opened, consumer_id, selection)  # type: ignore[arg-type]

    monkeypatch.setattr(receive_window, "record_selection", noted)
    monkeypatch.setattr(walk_work, "DISPATCH_WORK_MAX", 40)
    return selections


def drain(consumer: Consumer) -> list[bytes | None]:
    """All values that come without waiting."""
    received = list[bytes | None]()
    while more := values(consumer):
        received += more
    return received


def test_messages_behind_many_held_back(store: Store, attach: Attach, records: list[Selection]) -> None:
    """Each record holds a few messages back, and the next begins behind them, until one is free."""
    first, second = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
    for _ in range(50):
        send(store, "blocked", key="a")
    send(store, "free", key="b")
    (blocking,) = receive(first, 1)
    assert values(second) == [b"free"]
    assert max(len(selection.held) for selection in records) == 10
    assert sum(len(selection.held) for selection in records) == 49
    first.acknowledge(blocking)
    first.close()
    assert len(drain(second)) == 49


def test_a_poll_behind_many_held_back(store: Store, attach: Attach, records: list[Selection]) -> None:
    """Where none is free, the messages are held back once, and the next poll examines none."""
    first, second = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
    for _ in range(50):
        send(store, "blocked", key="a")
    receive(first, 1)
    assert values(second) == []
    records.clear()
    assert values(second) == []
    assert records == []


def test_large_batches_count_more(store: Store, attach: Attach, records: list[Selection]) -> None:
    """By messages and by bytes; a single entry is taken whatever its size."""
    producer = store.create_producer("t")
    producer.send(b"blocking", key="a")
    first, second = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
    receive(first, 1)
    for _ in range(3):
        producer.send_batch([b"blocked"] * 1000, keys=["a"] * 1000)
        producer.send(b"x" * 500_000, key="a")
    producer.send(b"free", key="b")
    assert values(second) == [b"free"]
    assert [len(selection.held) for selection in records if selection.held] == [1, 1, 1, 1, 1, 1]


def test_aborted_entries_are_passed_in_steps(store: Store, attach: Attach, records: list[Selection]) -> None:
    """They cost less than messages."""
    txn, producer = store.begin_transaction(), store.create_producer("t")
    for _ in range(100):
        producer.send(b"aborted", txn=txn)
    store.admin.transactions.abort_transaction(txn, force=True)
    producer.send(b"behind")
    assert values(attach(SHARED)) == [b"behind"]
    assert [len(selection.passed) for selection in records] == [40, 40, 21]


def test_many_dead_letters(store: Store, records: list[Selection]) -> None:
    """They go a few in each store transaction, and none is lost."""
    send(store, *map(str, range(30)))
    for _ in range(2):
        consumer = store.subscribe(
            "t", "a", subscription_type=SHARED, initial_position=EARLIEST, max_redeliver_count=0,
            dead_letter_topic="d",
        )  # fmt: skip
        received = drain(consumer)
        consumer.close()
    assert received == []
    assert max(len(selection.exhausted) for selection in records) == 5
    assert [message.value for message in store.reader("d")] == [b"%d" % at for at in range(30)]
