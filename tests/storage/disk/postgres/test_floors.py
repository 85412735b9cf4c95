"""The floors: no record that is looked for lies below, whatever transactions begin and end."""

from __future__ import annotations

import random

import pytest

from storage import Store
from storage.disk.codec import key1
from storage.disk.postgres import floors
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.layout import RecordPlace
from storage.disk.schema import LEASES, OPEN_FIRST, TXN_DEADLINES
from storage.topic import catalogue
from storage.values.txn_id import TxnID

PLACE = RecordPlace(TXN_DEADLINES)
TOPICS = "t", "u"


@pytest.mark.parametrize(
    ("floor", "first", "changed", "after"),
    [
        (b"", None, {}, b""),
        (b"", b"5", {}, b"5"),
        (b"3", None, {b"4": b""}, b"3"),
        (b"3", b"5", {b"4": b"", b"7": b""}, b"4"),
        (b"3", b"5", {b"5": None}, b"5"),
        (b"3", floors.NO_RECORD, {}, floors.NO_RECORD),
        (floors.NO_RECORD, None, {b"4": b""}, b"4"),
    ],
)
def test_the_floor_after_a_batch(
    floor: bytes, first: bytes | None, changed: dict[bytes, bytes | None], after: bytes
) -> None:
    """The first record that was seen, or an earlier one that is added; other databases do not count."""
    changes = {PLACE: changed, RecordPlace(LEASES): {b"1": b""}}
    assert floors.following(floor, first, changes) == after


def test_a_floor_is_stored_with_a_checksum() -> None:
    """A damaged one is none, and so is that of a store without floors."""
    superblock = bytes(floors._STORED)
    stored = floors.joined(superblock, b"a floor")
    assert floors.split(stored) == (superblock, b"a floor")
    assert floors.split(stored[:-1]) == floors.split(superblock) == (superblock, floors.NO_FLOOR)


def stored(environment: PostgresEnvironment, place: RecordPlace, prefix: bytes = b"") -> list[bytes]:
    """The keys with a prefix as the server has them, without floors."""
    with environment._opened_session() as session:
        rows = session.execute(
            f"SELECT encode(k, 'hex') FROM kv WHERE k >= '\\x{place.prefix.hex()}' ORDER BY k"
        )
    keys = [
        bytes.fromhex((row[0] or b"").decode())[1:]
        for row in rows
        if (row[0] or b"").startswith(place.prefix.hex().encode())
    ]
    return [key for key in keys if key.startswith(prefix)]


def check_found(store: Store, environment: PostgresEnvironment, topics: list[int]) -> int:
    """Check that a view finds every record at and behind the floors; return the number of open transactions."""
    with store.connection.view() as view:
        deadlines = list(view.keys(TXN_DEADLINES))
        assert deadlines == stored(environment, PLACE)
        assert view.has_records(TXN_DEADLINES) == bool(deadlines)
        assert view.count(TXN_DEADLINES) == len(deadlines)
        for topic in topics:
            first = next(iter(stored(environment, RecordPlace(OPEN_FIRST), key1(topic))), None)
            found = view.first(OPEN_FIRST, key1(topic))
            assert first == (None if found is None else found[0])
    return len(deadlines)


def test_every_open_transaction_is_found(url: str, store: Store, environment: PostgresEnvironment) -> None:
    """Two processes begin and end transactions with short and long deadlines, and send in them to two topics."""
    draw = random.Random(5)
    with Store.open(url) as other:
        handles = store, other
        for name in TOPICS:
            store.create_topic(name)
        with store.connection.view() as view:
            topics = [catalogue.get(view, name).topic_id for name in TOPICS]
        producers = [[handle.create_producer(name) for name in TOPICS] for handle in handles]
        begun: list[TxnID] = []
        for _ in range(120):
            if begun and draw.random() < 0.45:
                txn = begun.pop(draw.randrange(len(begun)))
                (
                    store.commit_transaction
                    if draw.random() < 0.7
                    else store.admin.transactions.abort_transaction
                )(txn)
            else:
                which = draw.randrange(2)
                txn = handles[which].begin_transaction(timeout=draw.choice((60, 600, 3000)))
                for producer in draw.sample(producers[which], draw.randrange(3)):
                    producer.send(b"x", txn=txn)
                begun.append(txn)
            for handle in handles:
                assert check_found(handle, environment, topics) == len(begun)
        for txn in begun:
            store.admin.transactions.abort_transaction(txn)
