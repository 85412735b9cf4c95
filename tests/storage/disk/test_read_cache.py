"""The file of remembered reads: it may refuse too much, never too little."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from storage.disk.read_cache import FILE_NAME, RANGES_MAX, ReadCache
from storage.disk.superblock import Superblock
from storage.errors import StoreUnsafe
from storage.process.clock import ManualClock
from tests.model_runs import examples

CLOCK = ManualClock()
KEYS = st.integers(0, 30).map(lambda n: b"k%02d" % n)


def started(directory: Path) -> tuple[ReadCache, Superblock]:
    head = Superblock(b"0123456789abcdef", CLOCK)
    cache = ReadCache(str(directory), CLOCK)
    cache.start_anew(head)
    return cache, head


def blocks(cache: ReadCache, head: Superblock, table: int, key: bytes, timestamp: int) -> bool:
    """Whether a write is refused for what was read."""
    ranges = [r for r in cache.ranges_after(timestamp) if r[0] == table]
    return (
        timestamp < cache.watermark(head)
        or cache.reader_of(table, key)[0] > timestamp
        or any(start <= key and (end is None or key < end) for _, _, _, start, end in ranges)
    )


READS = st.lists(
    st.one_of(
        st.tuples(st.just("key"), st.integers(1, 3), KEYS, st.integers(1, 10_000)),
        st.tuples(
            st.just("range"), st.integers(1, 3), KEYS, st.one_of(st.none(), KEYS), st.integers(1, 10_000)
        ),
    ),
    max_size=40,
)


@settings(max_examples=examples(40))
@given(READS, st.lists(st.tuples(st.integers(1, 3), KEYS, st.integers(1, 10_000)), max_size=20))
def test_no_write_passes_that_a_later_read_forbids(
    tmp_path_factory: pytest.TempPathFactory, reads: list[tuple], writes: list[tuple[int, bytes, int]]
) -> None:
    """Whatever was read by key or by range, in this process or another one."""
    directory = tmp_path_factory.mktemp("cache")
    cache, head = started(directory)
    other = ReadCache(str(directory), CLOCK)
    for number, read in enumerate(reads):
        into = (cache, other)[number % 2]
        assert into.is_valid(head)
        if read[0] == "key":
            into.record_key(read[1], read[2], read[3], 0)
        else:
            into.record_range(read[1], read[2], read[3], read[4], 0)
    assert other.is_valid(head)
    for table, key, timestamp in writes:
        forbidden = any(
            read[1] == table
            and read[-1] > timestamp
            and (
                read[2] == key if read[0] == "key" else read[2] <= key and (read[3] is None or key < read[3])
            )
            for read in reads
        )
        assert blocks(other, head, table, key, timestamp) or not forbidden
    cache.close()
    other.close()


def test_forgetting_ranges_raises_the_watermark(tmp_path: Path) -> None:
    """More ranges than fit: what is forgotten is covered, the newest are known one by one."""
    cache, head = started(tmp_path)
    for number in range(3 * RANGES_MAX):
        cache.record_range(1, b"%06d" % number, b"%06d" % (number + 1), 100 + number, 0)
        assert all(blocks(cache, head, 1, b"%06d" % n, 99 + n) for n in range(number + 1))
    newest = 100 + 3 * RANGES_MAX - 1
    assert not blocks(cache, head, 1, b"other", newest)
    assert cache.watermark(head) < newest
    cache.close()


def test_the_same_range_takes_one_place(tmp_path: Path) -> None:
    """Read again and again it pushes nothing out, and its read time never falls."""
    cache, head = started(tmp_path)
    for number in range(2 * RANGES_MAX):
        cache.record_range(1, b"a", None, 100 + number, 0)
    cache.record_range(1, b"a", None, 50, 0)
    assert len(cache.ranges_after(0)) == 1
    assert cache.watermark(head) == 0
    assert cache.ranges_after(0)[0][1] == 100 + 2 * RANGES_MAX - 1
    cache.close()


def test_a_range_that_is_read_on_takes_one_place(tmp_path: Path) -> None:
    """In both directions, by the same transaction or a later one; for an earlier one it is there already."""
    cache, head = started(tmp_path)
    for number in range(1, 50):
        cache.record_range(1, b"k50", b"k%02d" % (50 + number), 100 + number, 7)
        cache.record_range(2, b"k%02d" % (60 - number), b"k60", 100, 7)
    cache.record_range(2, b"k55", b"k56", 99, 8)
    assert sorted(cache.ranges_after(0)) == [(1, 149, 7, b"k50", b"k99"), (2, 100, 7, b"k11", b"k60")]
    assert cache.watermark(head) == 0
    cache.close()


def test_a_file_of_another_boot_does_not_count(tmp_path: Path) -> None:
    """The clock says which boot this is, whatever the store's head has recorded."""
    clock = ManualClock()
    head = Superblock(b"0123456789abcdef", clock)
    cache = ReadCache(str(tmp_path), clock)
    cache.start_anew(head)
    assert cache.is_valid(head)
    clock.boot = b"manual-boot-0002"
    assert not cache.is_valid(head)
    assert not ReadCache(str(tmp_path), clock).is_valid(head)
    cache.close()


@pytest.mark.parametrize("field", ["store_id", "incarnation", "read_generation"])
def test_a_file_of_another_store_incarnation_or_generation_does_not_count(tmp_path: Path, field: str) -> None:
    """It is foreign, whichever of them differs."""
    cache, head = started(tmp_path)
    assert cache.is_valid(head)
    other = Superblock.decode(memoryview(head.encode()))
    value = getattr(other, field)
    setattr(other, field, value + 1 if isinstance(value, int) else bytes(16))
    assert not ReadCache(str(tmp_path), CLOCK).is_valid(other)
    cache.close()


def test_a_file_left_half_changed_does_not_count(tmp_path: Path) -> None:
    """Its process was killed while it wrote."""
    cache, head = started(tmp_path)
    cache.close()
    with open(tmp_path / FILE_NAME, "r+b") as file:
        file.seek(64)
        file.write(b"\1")
    assert not ReadCache(str(tmp_path), CLOCK).is_valid(head)


def test_a_copy_of_the_file_does_not_count(tmp_path: Path) -> None:
    """A store that was copied by hand does not go on with what was remembered for the first one."""
    cache, head = started(tmp_path)
    data = (tmp_path / FILE_NAME).read_bytes()
    cache.close()
    os.rename(tmp_path / FILE_NAME, tmp_path / "kept")
    (tmp_path / FILE_NAME).write_bytes(data)
    os.chmod(tmp_path / FILE_NAME, 0o600)
    assert not ReadCache(str(tmp_path), CLOCK).is_valid(head)


def test_a_file_that_was_removed_is_let_go_of(tmp_path: Path) -> None:
    """A process that has it mapped does not write into what nobody else sees."""
    cache, head = started(tmp_path)
    os.unlink(tmp_path / FILE_NAME)
    assert not cache.is_valid(head)
    cache.start_anew(head)
    assert cache.is_valid(head)
    assert ReadCache(str(tmp_path), CLOCK).is_valid(head)
    cache.close()


def test_starting_anew_raises_the_watermark_to_all_that_was_issued(tmp_path: Path) -> None:
    """Also to what may have been issued without a commit."""
    cache, head = started(tmp_path)
    assert not blocks(cache, head, 1, b"k", 1)  # before the first file nothing was read
    head.last_timestamp, head.timestamp_mark = 500, 900
    cache.start_anew(head)
    assert (head.read_watermark, head.last_timestamp) == (900, 900)
    assert blocks(cache, head, 1, b"k", 899)
    assert not blocks(cache, head, 1, b"k", 900)
    cache.close()


def test_the_file_is_private_and_no_link_is_followed(tmp_path: Path) -> None:
    """Mode 0600 whatever the umask; a symbolic link in its place is refused."""
    before = os.umask(0)
    try:
        cache, head = started(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / FILE_NAME).st_mode) == 0o600
    cache.close()
    os.rename(tmp_path / FILE_NAME, tmp_path / "kept")
    os.symlink(tmp_path / "kept", tmp_path / FILE_NAME)
    with pytest.raises(StoreUnsafe):
        ReadCache(str(tmp_path), CLOCK).is_valid(head)


def test_timestamps_issued_without_a_commit_are_known_to_all(tmp_path: Path) -> None:
    """The oracle of another process goes on after them."""
    cache, head = started(tmp_path)
    cache.note_issued(12_345)
    other = ReadCache(str(tmp_path), CLOCK)
    other.catch_up(head)
    assert head.last_timestamp == 12_345
    assert other.last_issued(head) == 12_345
    cache.close()
    other.close()


def test_the_last_timestamp_issued_of_a_lost_file_is_the_reserved_mark(tmp_path: Path) -> None:
    """A store without a generation has issued none without a commit; a commit may be later than the file."""
    cache, head = started(tmp_path)
    cache.note_issued(12_345)
    head.last_timestamp, head.timestamp_mark = 20_000, 90_000
    assert cache.last_issued(head) == 20_000
    os.unlink(tmp_path / FILE_NAME)
    assert cache.last_issued(head) == 90_000
    head.read_generation = 0
    assert cache.last_issued(head) == 20_000
    cache.close()
