"""`store verify` finds what is wrong: each test breaks one thing behind the engine's back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.disk.codec import U64X2, key1, key2, key3, pack
from storage.disk.schema import (
    ABORTED,
    ACKS,
    CONSUMERS,
    DELIVERIES,
    ENTRIES,
    LEDGERS,
    OPEN_FIRST,
    PENDING,
    SEQUENCES,
    TXN_DEADLINES,
    TXN_RUNS,
    TXNS,
)
from storage.disk.view import WriteBatch
from storage.process.clock import ManualClock
from storage.subscription import cursor as cursors
from storage.subscription.cursor import Cursor
from storage.topic import state
from storage.topic.state import TopicState
from tests.row_json import row_json
from tests.storage.damage import Break, damage

TOPIC, SUBSCRIPTION = 1, 1
COMMITTED, ABORTED_TXN, OPEN = 1, 2, 3


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Store]:
    """A store with something of everything, sound: ledgers of 4; a committed, an aborted and an open transaction."""
    path = str(tmp_path / "store")
    Store.create(path, clock=(clock := ManualClock()))
    with Store.open(path, clock=clock) as store:
        store.create_topic("t", ledger_entries_max=4)
        producer = store.create_producer("t", producer_name="p")
        producer.send_batch([b"0", b"1", b"2"])
        txns = [store.begin_transaction() for _ in range(3)]
        for txn in txns:
            producer.send_batch([b"x", b"y"], txn=txn)
        store.commit_transaction(txns[0])
        store.admin.transactions.abort_transaction(txns[1])
        producer.send(b"z")
        consumer = store.subscribe("t", "a", initial_position=EARLIEST)
        messages = consumer.receive_batch(9, timeout=0)
        consumer.acknowledge(messages[1])
        consumer.acknowledge(messages[2], txn=txns[2])
        assert row_json(store.maintenance.verify_store(full=True)) == []
        yield store


def with_head(change: Callable[[TopicState], None]) -> Break:
    def run(batch: WriteBatch) -> None:
        head = state.load(batch, TOPIC)
        change(head)
        state.save(batch, TOPIC, head)

    return run


def with_cursor(change: Callable[[Cursor], None]) -> Break:
    def run(batch: WriteBatch) -> None:
        cursor = cursors.load(batch, SUBSCRIPTION)
        change(cursor)
        cursors.save(batch, SUBSCRIPTION, cursor)

    return run


def add(name: str, by: int = 1) -> Callable[[object], None]:
    """Changes a counter."""
    return lambda record: setattr(record, name, getattr(record, name) + by)


def remove_first(database: object, prefix: bytes = b"") -> Break:
    def run(batch: WriteBatch) -> None:
        key = next(batch.keys(database, prefix))  # type: ignore[arg-type]
        assert batch.delete(database, key)  # type: ignore[arg-type]

    return run


class TestTopics:
    """Logs, ledgers, transactions on them."""

    @pytest.mark.parametrize(
        "counter",
        ["messages", "bytes", "markers", "open_txns", "uncommitted", "aborted_txns", "aborted_messages"],
    )
    def test_a_counter_that_is_off_by_one(self, written: Store, counter: str) -> None:
        """Every stored counter equals a recount (invariant 23)."""
        assert 23 in {invariant for invariant, _ in damage(written, with_head(add(counter)))}

    @pytest.mark.parametrize("max_read", [(1, 0), (1, 3), (2, 2)])
    def test_max_read_that_is_not_its_formula(self, written: Store, max_read: tuple[int, int]) -> None:
        """Too low and too high (invariant 1)."""
        found = damage(written, with_head(lambda head: setattr(head, "max_read", max_read)))
        assert 1 in {invariant for invariant, _ in found}

    def test_an_entry_that_is_missing(self, written: Store) -> None:
        """Positions are dense (invariant 5)."""
        found = damage(written, lambda batch: batch.delete(ENTRIES, key3(TOPIC, 1, 1)))
        assert any(invariant == 5 or "does not follow" in message for invariant, message in found), found

    def test_a_ledger_whose_record_is_missing(self, written: Store) -> None:
        """What was closed is recorded."""
        assert damage(written, remove_first(LEDGERS))

    def test_an_aborted_transaction_that_the_set_lost(self, written: Store) -> None:
        """A reader would show its messages (invariant 2)."""
        found = damage(written, remove_first(ABORTED))
        assert {invariant for invariant, _ in found} & {2, 23}

    def test_an_open_transaction_that_the_index_lost(self, written: Store) -> None:
        """A reader would pass it (invariants 1 and 23)."""
        found = damage(written, remove_first(OPEN_FIRST))
        assert {invariant for invariant, _ in found} & {1, 6, 23}

    def test_runs_that_are_not_where_the_entries_are(self, written: Store) -> None:
        """What is blocked would be counted wrong (invariant 23)."""
        assert 23 in {invariant for invariant, _ in damage(written, remove_first(TXN_RUNS))}

    def test_sequence_ids_that_are_not_those_of_the_log(self, written: Store) -> None:
        """Deduplication would forget them, or know too many (invariants 20 and 23)."""
        prefix = key1(TOPIC) + b"p\0"
        found = damage(written, lambda batch: batch.put(SEQUENCES, prefix + key1(90), U64X2.pack(95, 0)))
        assert {invariant for invariant, _ in found} & {20, 23}
        found = damage(written, remove_first(SEQUENCES, prefix))
        assert {invariant for invariant, _ in found} & {20, 23}


class TestTransactions:
    """Records and their indexes."""

    def test_a_deadline_that_is_not_indexed(self, written: Store) -> None:
        """Nobody would end it (invariant 6)."""
        assert 6 in {invariant for invariant, _ in damage(written, remove_first(TXN_DEADLINES))}

    def test_a_decided_one_that_is_indexed_as_open(self, written: Store) -> None:
        """It would be ended again (invariant 6)."""
        found = damage(written, lambda batch: batch.put(TXN_DEADLINES, key2(5, COMMITTED), b""))
        assert 6 in {invariant for invariant, _ in found}

    def test_a_record_that_is_missing(self, written: Store) -> None:
        """Its messages name it: outcomes are kept as long as they are (invariant 16)."""
        found = damage(written, lambda batch: batch.delete(TXNS, key1(COMMITTED)))
        assert found

    def test_a_pending_acknowledgement_found_one_way_only(self, written: Store) -> None:
        """It would not end with its transaction (invariant 6)."""
        found = damage(written, remove_first(PENDING))
        assert {invariant for invariant, _ in found} & {6, 7, 8}


class TestSubscriptions:
    """Cursors, deliveries, classes."""

    def test_a_count_of_released_entries_that_is_off(self, written: Store) -> None:
        """Dispatch would not look at them (invariant 23)."""
        assert 23 in {invariant for invariant, _ in damage(written, with_cursor(add("released")))}

    def test_a_cursor_beyond_the_log(self, written: Store) -> None:
        """It would miss what is sent next (invariant 1)."""
        found = damage(written, with_cursor(lambda cursor: setattr(cursor, "mark_delete", (7, 0))))
        assert 1 in {invariant for invariant, _ in found}

    def test_an_acknowledged_range_that_was_not_taken_in(self, written: Store) -> None:
        """What follows markDeletePosition without a gap belongs to it (invariant 1)."""
        found = damage(
            written, lambda batch: batch.put(ACKS, key3(SUBSCRIPTION, 1, 0), (0).to_bytes(8, "big"))
        )
        assert {invariant for invariant, _ in found} & {1, 7, 8}

    def test_a_message_in_flight_at_nobody(self, written: Store) -> None:
        """It would never come again (invariant 19)."""
        assert 19 in {invariant for invariant, _ in damage(written, remove_first(CONSUMERS))}

    def test_a_message_held_as_pending_that_no_transaction_has(self, written: Store) -> None:
        """It would never come again either (invariant 7)."""
        record = pack([1, [[b"", -1, 1, 0, False]]])
        found = damage(written, lambda batch: batch.put(DELIVERIES, key3(SUBSCRIPTION, 2, 2), record))
        assert {invariant for invariant, _ in found} & {7, 8}


class TestChecksums:
    """LMDB notices no flipped bit."""

    @pytest.mark.parametrize("place", [0, 3, 4, 10, -1])
    def test_a_flipped_bit_in_any_record_is_found(self, written: Store, place: int) -> None:
        """Of every database, checksum and payload: with the name of the database, and no traceback."""

        def flip(batch: WriteBatch, name: str, key: bytes) -> None:
            raw, handle = batch._raw, batch._databases[name]
            data = bytearray(raw.get(key, db=handle))
            data[place if abs(place) < len(data) else 0] ^= 0x10
            raw.put(key, bytes(data), db=handle)
            batch.superblock.changes += 1

        with written.connection.view() as view:
            records = {}
            for name, handle in view._databases.items():
                with view._raw.cursor(db=handle) as raw_cursor:
                    if raw_cursor.first() and (name != "heads" or raw_cursor.next()):
                        records[name] = raw_cursor.key()
        assert len(records) > 12
        for name, key in records.items():
            written.connection.write(lambda batch, name=name, key=key: flip(batch, name, key))
            problems = row_json(written.maintenance.verify_store(full=True))
            assert problems, name
            written.connection.write(lambda batch, name=name, key=key: flip(batch, name, key))
        assert row_json(written.maintenance.verify_store(full=True)) == []
