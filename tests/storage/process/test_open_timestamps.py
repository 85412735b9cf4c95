"""Open timestamps: `storage/process/open_timestamps.py`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.process.byte_locks import ByteLocks
from storage.process.clock import ManualClock
from storage.process.open_timestamps import ByteTimestamps

NOW = 1_700_000_000_000_000_000
LATER = 1 << 62


@pytest.fixture
def two(tmp_path: Path, clock: ManualClock) -> Iterator[tuple[ByteTimestamps, ByteTimestamps]]:
    """The open timestamps of two openings of one lock file, which the kernel keeps apart as it does two processes."""
    path = tmp_path / "locks"
    path.write_bytes(b"")
    locks = [ByteLocks(str(path), writable=True) for _ in range(2)]
    yield ByteTimestamps(locks[0], clock), ByteTimestamps(locks[1], clock)
    for each in locks:
        each.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_the_lowest_of_all_processes_is_found(two: tuple[ByteTimestamps, ByteTimestamps]) -> None:
    """Neighbours, which the kernel joins into one lock, are two timestamps all the same."""
    first, second = two
    for timestamp in (NOW + 70, NOW + 31, NOW + 30):
        first.hold(timestamp, LATER)
    second.hold(NOW + 50, LATER)
    for one in two:
        assert one.lowest(NOW + 29) is None
        assert [one.lowest(NOW + up_to) for up_to in (30, 31, 49, 100)] == [NOW + 30] * 4
    first.release(NOW + 30)
    assert [one.lowest(NOW + 100) for one in two] == [NOW + 31, NOW + 31]
    first.release(NOW + 31)
    assert [one.lowest(NOW + 100) for one in two] == [NOW + 50, NOW + 50]
    second.release(NOW + 50)
    second.release(NOW + 50)
    assert [one.lowest(NOW + 100) for one in two] == [NOW + 70, NOW + 70]


def test_the_timestamps_of_a_closed_file_are_released(tmp_path: Path, clock: ManualClock) -> None:
    """As the kernel does when a process dies; releasing one of them again does nothing."""
    path = tmp_path / "locks"
    path.write_bytes(b"")
    locks, reading = ByteLocks(str(path), writable=True), ByteLocks(str(path), writable=False)
    held, seen = ByteTimestamps(locks, clock), ByteTimestamps(reading, clock)
    held.hold(NOW, LATER)
    assert seen.lowest(NOW) == NOW
    locks.close()
    assert seen.lowest(NOW) is None
    held.release(NOW)
    reading.close()


def test_a_timestamp_past_its_deadline_is_released_by_the_next_one(
    two: tuple[ByteTimestamps, ByteTimestamps], clock: ManualClock
) -> None:
    """A program that forgot a transaction holds no reader back for longer than it goes on."""
    first, second = two
    first.hold(NOW, clock.boot_ns() + 10)
    first.hold(NOW + 1, LATER)
    assert second.lowest(NOW + 9) == NOW
    clock.advance(1)
    assert second.lowest(NOW + 9) == NOW
    first.hold(NOW + 2, LATER)
    assert second.lowest(NOW + 9) == NOW + 1


class _Counting(dict[int, int]):
    """Timestamps that count how often each of them is looked at."""

    looks = 0

    def __iter__(self) -> Iterator[int]:
        self.looks += 1
        return super().__iter__()


@pytest.mark.parametrize("number", [10, 1000])
def test_a_begin_looks_at_no_other_timestamp(
    two: tuple[ByteTimestamps, ByteTimestamps], clock: ManualClock, number: int
) -> None:
    """Only once the first deadline has passed, and once a second at most, all of them are looked at."""
    held = two[0]
    held._held.deadlines_ns = counting = _Counting()
    for at in range(number):
        held.hold(NOW + at, clock.boot_ns() + 1_500_000_000)
    assert counting.looks == 0
    clock.advance(2)
    for at in range(number, number + 5):
        held.hold(NOW + at, clock.boot_ns())
    assert (counting.looks, len(counting)) == (1, 5)
    clock.advance(1)
    held.hold(NOW + number + 5, LATER)
    assert (counting.looks, len(counting)) == (2, 1)


class _Forgotten:
    """A forgotten transaction in a cycle, as an exception and its frames make one: garbage collection finds it."""

    def __init__(self, timestamps: ByteTimestamps, timestamp: int) -> None:
        self._timestamps = timestamps
        self._timestamp = timestamp
        self._cycle = self

    def __del__(self) -> None:
        self._timestamps.release(self._timestamp)


class _CollectingClock(ManualClock):
    """A clock behind whose reading garbage collection begins with the twentieth new object."""

    __slots__ = ()

    def boot_ns(self) -> int:
        now_ns = super().boot_ns()
        gc.set_threshold(gc.get_count()[0] + 20)
        gc.enable()
        return now_ns


def test_garbage_collection_may_release_timestamps_meanwhile(tmp_path: Path) -> None:
    """A timestamp is held while a collection, which a list of tuples may begin, releases forgotten ones."""
    path = tmp_path / "locks"
    path.write_bytes(b"")
    locks, thresholds = ByteLocks(str(path), writable=True), gc.get_threshold()
    held, calm = ByteTimestamps(locks, _CollectingClock()), ByteTimestamps(locks, ManualClock())
    gc.collect()
    gc.disable()
    try:
        for number in range(100):
            calm.hold(NOW + number, LATER)
            _Forgotten(held, NOW + number)
        held._held = calm._held
        held._held.note_held(NOW, 0)  # A look is due.
        spare = [(number, number) for number in range(4000)]  # No freed tuple is left to be used again.
        held.hold(NOW + 100, LATER)
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()
        gc.collect()
    assert len(spare) == 4000
    assert held.lowest(NOW + 100) == NOW + 100
    locks.close()
