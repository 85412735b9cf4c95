"""Views and batches: reading records in order, and changing them all or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage import Store
from storage.disk.codec import key1, key2, unpack
from storage.disk.schema import PURGES, TXN_KEYS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import CorruptStore, InvalidValue
from storage.process.clock import ManualClock
from tests.storage.conftest import Scratch

PREFIX = key1(7)
KEYS = [key2(7, number) for number in (1, 3, 5)]
AROUND = [key2(6, 9), *KEYS, key2(8, 0)]


def fill(batch: WriteBatch) -> None:
    """Five records, three with the prefix; each holds the last byte of its key."""
    for key in AROUND:
        batch.put(TXN_KEYS, key, key[-1:])


class TestReading:
    """Reads, on a batch that is dropped."""

    def test_a_record_is_there_or_not(self, scratch: Scratch) -> None:
        """`has` checks it like every read."""

        def check(batch: WriteBatch) -> None:
            fill(batch)
            assert batch.get(TXN_KEYS, KEYS[1]) == b"\3"
            assert batch.get(TXN_KEYS, key2(7, 2)) is None
            assert (batch.has(TXN_KEYS, KEYS[1]), batch.has(TXN_KEYS, key2(7, 2))) == (True, False)
            assert batch.count(TXN_KEYS) == 5

        scratch.run(check)

    def test_a_key_without_its_value_is_checked_too(self, scratch: Scratch) -> None:
        """A flipped bit in a key, or in a value that no caller asks for, is `corrupt`."""

        def check(batch: WriteBatch) -> None:
            fill(batch)
            batch._raw.put(KEYS[1], b"noise", db=batch._databases[TXN_KEYS.name])
            for read in (lambda: batch.has(TXN_KEYS, KEYS[1]), lambda: list(batch.keys(TXN_KEYS, PREFIX))):
                with pytest.raises(CorruptStore, match=f"record {KEYS[1].hex()} of txn_keys"):
                    read()

        scratch.run(check)

    @pytest.mark.parametrize(
        ("start", "stop", "numbers"),
        [
            (None, None, [1, 3, 5]),
            (3, None, [3, 5]),
            (2, 5, [3, 5]),
            (None, 3, [1, 3]),
            (6, None, []),
            (None, 0, []),
        ],
    )
    def test_scanning_goes_up_within_a_prefix(
        self, scratch: Scratch, start: int | None, stop: int | None, numbers: list[int]
    ) -> None:
        """Bounds are inclusive."""
        first = None if start is None else key2(7, start)
        last = None if stop is None else key2(7, stop)

        def check(batch: WriteBatch) -> None:
            fill(batch)
            assert [bytes(value)[0] for _, value in batch.scan(TXN_KEYS, PREFIX, first, last)] == numbers
            if stop is None:
                assert [key[-1] for key in batch.keys(TXN_KEYS, PREFIX, first)] == numbers

        scratch.run(check)

    @pytest.mark.parametrize(
        ("before", "numbers"), [(key2(7, 5), [3, 1]), (key2(9, 0), []), (key1(8), [5, 3, 1]), (PREFIX, [])]
    )
    def test_scanning_back_goes_down_from_a_key(
        self, scratch: Scratch, before: bytes, numbers: list[int]
    ) -> None:
        """The key itself is not among them."""

        def check(batch: WriteBatch) -> None:
            fill(batch)
            assert [key[-1] for key, _ in batch.scan_back(TXN_KEYS, PREFIX, before)] == numbers

        scratch.run(check)

    def test_first_and_last(self, scratch: Scratch) -> None:
        """Of a prefix, from a key or up to one."""

        def check(batch: WriteBatch) -> None:
            assert batch.first(TXN_KEYS, PREFIX) is None
            assert batch.last(TXN_KEYS, PREFIX, key2(7, 9)) is None
            fill(batch)
            assert [batch.first(TXN_KEYS, PREFIX, key2(7, n)) for n in (0, 2, 6)] == [
                (KEYS[0], b"\1"), (KEYS[1], b"\3"), None
            ]  # fmt: skip
            assert [batch.last(TXN_KEYS, PREFIX, key2(7, n)) for n in (0, 3, 4, 9)] == [
                None, (KEYS[1], b"\3"), (KEYS[1], b"\3"), (KEYS[2], b"\5")
            ]  # fmt: skip

        scratch.run(check)


class TestChanging:
    """Batches."""

    def test_deleting_counts(self, scratch: Scratch) -> None:
        """A limit and a bound hold; others keep their records."""

        def check(batch: WriteBatch) -> None:
            fill(batch)
            assert (batch.delete(TXN_KEYS, KEYS[0]), batch.delete(TXN_KEYS, KEYS[0])) == (True, False)
            fill(batch)
            assert batch.delete_prefix(TXN_KEYS, PREFIX, stop=KEYS[1]) == 2
            fill(batch)
            assert batch.delete_prefix(TXN_KEYS, PREFIX, limit=1) == 1
            assert batch.delete_prefix(TXN_KEYS, PREFIX) == 2
            assert [key for key, _ in batch.scan(TXN_KEYS)] == [AROUND[0], AROUND[-1]]

        scratch.run(check)

    def test_a_refusal_keeps_what_the_batch_holds(self, store: Store) -> None:
        """Any other error drops it."""

        def change(batch: WriteBatch, key: bytes, refuse: bool) -> None:
            batch.put(PURGES, key, b"")
            error = InvalidValue("no")
            raise batch.refuse(error) if refuse else error

        for key, refuse in ((b"dropped", False), (b"stored", True)):
            with pytest.raises(InvalidValue, match="no"):
                store.connection.write(lambda batch, key=key, refuse=refuse: change(batch, key, refuse))
        with purged(store), store.connection.view() as view:
            assert [key for key, _ in view.scan(PURGES)] == [b"stored"]

    def test_timestamps_grow_though_the_clock_stands_still(self, store: Store, clock: ManualClock) -> None:
        """And though it is set back, and over commits."""

        def issue(batch: WriteBatch) -> list[int]:
            batch.superblock.changes += 1
            return [batch.timestamp() for _ in range(3)]

        first = store.connection.write(issue)
        clock.wall_now_ns -= 10**12
        second = store.connection.write(issue)
        assert [*first, *second] == sorted({*first, *second})

    def test_a_view_stays_as_it_was(self, store: Store) -> None:
        """Whatever is committed meanwhile; the next one has a higher number."""
        with store.connection.view() as before:
            store.create_topic("later")
            with store.connection.view() as after:
                assert after.commit > before.commit
                assert after.superblock.last_topic == before.superblock.last_topic + 1


@contextmanager
def purged(store: Store) -> Iterator[None]:
    """Remove what no topic answers to, so that verify finds the store sound."""
    yield
    store.connection.write(lambda batch: batch.delete(PURGES, b"stored"))


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x90"], ids=["empty", "noise", "short"])
@pytest.mark.parametrize("is_batch", [False, True])
def test_the_last_record_read_is_named_where_it_does_not_decode(
    tmp_path: Path, payload: bytes, is_batch: bool
) -> None:
    """Decoding is the caller's; the view knows which record it was."""
    key = key2(1, 2)

    def read(view: ReadView) -> object:
        return unpack(view.get(TXN_KEYS, key) or b"", 1)

    def ask(store: Store) -> object:
        if is_batch:
            return store.connection.write(read)
        with store.connection.view() as view:
            return read(view)

    Store.create(tmp_path / "damaged")
    with Store.open(tmp_path / "damaged") as store:
        store.connection.write(lambda batch: batch.put(TXN_KEYS, key, payload))
        with pytest.raises(CorruptStore, match=f"record {key.hex()} of txn_keys is corrupt"):
            ask(store)
