"""Topic reader: `txnctl/spark/source/topic_reader.py`."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage import Message, Store
from tests.model_runs import examples
from tests.txnctl.spark.source.topic_range_steps import EPOCH, ranges, rows, values


def as_row(message: Message) -> dict[str, Any]:
    """What a message is as a row, taken from the engine's own reader."""
    ledger_id, entry_id, batch_index = message.message_id
    time, due = message.event_time, message.deliver_at
    return {
        "key": message.key, "value": message.value, "topic": message.topic, "ledgerId": ledger_id,
        "entryId": entry_id, "batchIndex": batch_index,
        "publishTime": EPOCH + timedelta(milliseconds=message.publish_time),
        "eventTime": None if time is None else EPOCH + timedelta(milliseconds=time),
        "deliveryTime": None if due is None else EPOCH + timedelta(milliseconds=due),
        "properties": list(message.properties.items()),
        "txnId": None if message.txn_id is None else str(message.txn_id),
        "txnState": None if message.txn_state is None else message.txn_state.value,
    }  # fmt: skip


def write(store: Store, seed: int, batches: int) -> None:
    """Batches of random messages, plain, committed, aborted and open."""
    chance, producer = random.Random(seed), store.create_producer("t")
    txns = [store.begin_transaction() for _ in range(4)]
    for _ in range(batches):
        count = chance.choice([1, 1, 2, 5])
        producer.send_batch(
            [chance.choice([b"", b"value", bytes([255, 0]), None]) for _ in range(count)],
            keys=chance.choice([None, [chance.choice([b"k", b"", None]) for _ in range(count)]]),
            properties=chance.choice([None, [chance.choice([{"a": "1", "b": ""}, {}, None]) for _ in range(count)]]),
            event_times=chance.choice([None, [chance.choice([0, 1_700_000_000_123, None]) for _ in range(count)]]),
            deliver_at=chance.choice([None, [chance.choice([5, 1_700_000_000_123, None]) for _ in range(count)]]),
            txn=chance.choice([None, None, *txns]),
        )  # fmt: skip
    store.commit_transaction(txns[0])
    store.admin.transactions.abort_transaction(txns[1])


@given(seed=st.integers(0, 1 << 30), batches=st.integers(1, 25), parts=st.integers(1, 5))
@settings(max_examples=examples(8))
@pytest.mark.parametrize("level", ["READ_COMMITTED", "READ_UNCOMMITTED"])
def test_a_read_gives_what_the_reader_of_the_engine_gives(
    tmp_path_factory: pytest.TempPathFactory, level: str, seed: int, batches: int, parts: int
) -> None:
    """Every column of every message, at both levels, however it is cut."""
    path = str(tmp_path_factory.mktemp("range") / "store")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("t", ledger_entries_max=4)
        write(store, seed, batches)
        expected = [as_row(message) for message in store.reader("t", isolation_level=level)]  # type: ignore[arg-type]
    assert rows(ranges(path, isolationLevel=level, minPartitions=str(parts))) == expected


def test_several_topics_are_read_as_of_one_moment(store: Store, path: str) -> None:
    """Each message names its topic."""
    for name in ("orders", "payments", "other"):
        store.create_topic(name)
        store.create_producer(name).send(name.encode())
    found = rows(ranges(path, topics="orders,payments"), "topic", "value")
    assert found == [{"topic": "orders", "value": b"orders"}, {"topic": "payments", "value": b"payments"}]
    assert values(ranges(path, topicsPattern="o.*")) == [b"orders", b"other"]
