"""Open records: shared within a batch, written once when the batch finishes, only if they have changed."""

from __future__ import annotations

from collections.abc import Iterator

import lmdb
import pytest

from storage import Store
from storage.disk.codec import key1
from storage.disk.schema import HEADS, PURGES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import InvalidValue

KEY = key1(7)


class Counter:
    """A record of one number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def encode(self) -> bytes:
        return self.number.to_bytes(1, "big")

    @classmethod
    def decode(cls, payload: memoryview) -> Counter:
        return cls(payload[0])


def open_counter(view: ReadView) -> Counter:
    counter = view.open(PURGES, KEY, Counter.decode)
    assert counter is not None
    return counter


def increment(batch: WriteBatch) -> int:
    counter = open_counter(batch)
    counter.number += 1
    return counter.number


@pytest.fixture
def counted(store: Store) -> Store:
    """A store with a counter at 3, which the purge at the end of the test must not meet."""
    store.connection.write(lambda batch: batch.put(PURGES, KEY, b"\3"))
    return store


@pytest.fixture(autouse=True)
def _clean(store: Store) -> Iterator[None]:
    yield
    store.connection.write(lambda batch: batch.delete(PURGES, KEY))


def stored(store: Store) -> int | None:
    with store.connection.view() as view:
        payload = view.get(PURGES, KEY)
        return None if payload is None else payload[0]


def commits(store: Store) -> int:
    with store.connection.view() as view:
        return view.superblock.commits


def test_all_callers_of_a_batch_share_one_object(counted: Store) -> None:
    """Each view has an object of its own, which is for reading only."""

    def change(batch: WriteBatch) -> None:
        assert batch.opened(PURGES, KEY) is None
        assert increment(batch) == 4
        assert open_counter(batch) is open_counter(batch) is batch.opened(PURGES, KEY)
        assert batch.get(PURGES, KEY) == b"\3"

    counted.connection.write(change)
    assert stored(counted) == 4
    with counted.connection.view() as view:
        assert open_counter(view) is not open_counter(view)
        assert view.opened(PURGES, KEY) is None


def test_a_batch_that_only_reads_records_is_not_committed(counted: Store) -> None:
    """Opening is no change; nor is a change that was taken back."""
    before = commits(counted)
    counted.connection.write(open_counter)

    def there_and_back(batch: WriteBatch) -> None:
        increment(batch)
        open_counter(batch).number -= 1

    counted.connection.write(there_and_back)
    assert commits(counted) == before


def test_a_dry_run_writes_no_open_record(counted: Store) -> None:
    """The batch is dropped, with the object."""
    assert counted.connection.write(increment, dry_run=True) == 4
    assert stored(counted) == 3


def test_an_error_drops_open_records(counted: Store) -> None:
    """But a durable refusal writes them."""

    def fail(batch: WriteBatch) -> None:
        increment(batch)
        raise InvalidValue("no")

    def refuse(batch: WriteBatch) -> None:
        increment(batch)
        raise batch.refuse(InvalidValue("no"))

    for change, expected in ((fail, 3), (refuse, 4)):
        with pytest.raises(InvalidValue):
            counted.connection.write(change)
        assert stored(counted) == expected


def test_a_change_that_runs_again_begins_with_the_stored_record(counted: Store) -> None:
    """After the map has grown, a new batch opens everything anew: nothing is counted twice."""
    runs: list[int] = []

    def change(batch: WriteBatch) -> None:
        runs.append(increment(batch))
        if len(runs) == 1:
            raise lmdb.MapFullError("full")

    counted.connection.write(change)
    assert runs == [4, 4]
    assert stored(counted) == 4


def test_a_new_record_is_found_by_open_alone_until_the_batch_finishes(store: Store) -> None:
    """The batch writes it once, with its last value."""

    def change(batch: WriteBatch) -> None:
        batch.add(PURGES, KEY, Counter(1))
        assert increment(batch) == 2
        assert not batch.has(PURGES, KEY)

    store.connection.write(change)
    assert stored(store) == 2


def test_a_record_that_is_removed_stays_removed(counted: Store) -> None:
    """Though it was changed before."""

    def change(batch: WriteBatch) -> None:
        increment(batch)
        batch.remove(PURGES, KEY)
        assert batch.open(PURGES, KEY, Counter.decode) is None

    counted.connection.write(change)
    assert stored(counted) is None


def test_a_record_that_is_put_is_closed(counted: Store) -> None:
    """The next caller of the batch opens the record as stored; the former object is written no more."""

    def change(batch: WriteBatch) -> None:
        former = open_counter(batch)
        former.number = 9
        batch.put_record(PURGES, KEY, former)
        assert batch.opened(PURGES, KEY) is None
        former.number = 1
        assert open_counter(batch).number == 9

    counted.connection.write(change)
    assert stored(counted) == 9


def test_open_records_are_found_by_the_prefix_of_their_key(counted: Store) -> None:
    """Those of the database alone, new ones too; a record that was written and closed is none of them."""

    def change(batch: WriteBatch) -> None:
        new = Counter(1)
        batch.add(PURGES, KEY + b"n", new)
        assert batch.open_with(PURGES, KEY) == [(KEY + b"n", new)]
        known = open_counter(batch)
        assert batch.open_with(PURGES, KEY) == [(KEY + b"n", new), (KEY, known)]
        assert batch.open_with(PURGES, key1(8)) == batch.open_with(HEADS, KEY) == []
        batch.put_record(PURGES, KEY + b"n", new)
        assert batch.open_with(PURGES, KEY) == [(KEY, known)]
        batch.remove(PURGES, KEY + b"n")

    counted.connection.write(change)
