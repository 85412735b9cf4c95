"""The file of remembered reads: it may refuse too much, never too little."""

from __future__ import annotations

import os
import random
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from storage.disk.lmdb.read_cache import MappedReadCache
from storage.disk.lmdb.read_cache_file import FILE_NAME
from storage.disk.lmdb.read_cache_layout import (
    DIRTY_AT,
    HEADER_BYTES,
    LOG_BYTES_MAX,
    SLOT_BITS_MAX,
    SLOT_BYTES,
    SLOT_READS,
)
from storage.disk.shared_state import LaterRead, ReadsDamaged
from storage.disk.superblock import Superblock
from storage.errors import StoreUnsafe
from storage.process.clock import ManualClock
from tests.model_runs import examples
from tests.storage.disk.unbounded_reads import Key, UnboundedReads

CLOCK = ManualClock()
KEYS = st.integers(0, 30).map(lambda n: b"k%02d" % n)
SECOND_NS = 1_000_000_000


def started(directory: Path) -> tuple[MappedReadCache, Superblock]:
    """A valid cache of a store that has issued timestamps up to 0."""
    head = Superblock(b"0123456789abcdef", CLOCK)
    cache = MappedReadCache(str(directory), CLOCK)
    cache.start_anew(head)
    assert cache.is_valid(head)
    return cache, head


def later(
    cache: MappedReadCache, head: Superblock, table: int, key: bytes, timestamp: int
) -> LaterRead | None:
    """What refuses a write of the key at a timestamp."""
    assert cache.is_valid(head)
    return cache.find_later_read(head, [Key(table, key)], timestamp)


def blocks(cache: MappedReadCache, head: Superblock, table: int, key: bytes, timestamp: int) -> bool:
    return later(cache, head, table, key, timestamp) is not None


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
    other = MappedReadCache(str(directory), CLOCK)
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


def test_it_says_which_transaction_has_read_a_key(tmp_path: Path) -> None:
    """By key and by range: the latest, with its timestamp."""
    cache, head = started(tmp_path)
    for timestamp, txn in ((5, 1), (9, 2), (7, 3)):
        cache.record_key(1, b"k", timestamp, txn)
        cache.record_range(1, b"r", None, timestamp, txn)
    for key in (b"k", b"s"):
        found = later(cache, head, 1, key, 8)
        assert found is not None and (found.place.key, found.timestamp, found.txn) == (key, 9, 2)
        assert later(cache, head, 1, key, 9) is None
        assert later(cache, head, 2, key, 1) is None
    cache.close()


def test_a_range_without_end_is_within_no_other(tmp_path: Path) -> None:
    """Whichever of the two is recorded first."""
    cache, head = started(tmp_path)
    for table, bounds in ((1, (None, b"n")), (2, (b"n", None))):
        for end in bounds:
            cache.record_range(table, b"m", end, 20 if end else 10, 0)
        assert blocks(cache, head, table, b"x", 9)
        assert not blocks(cache, head, table, b"x", 10)
        assert blocks(cache, head, table, b"m", 19)
    cache.close()


class TestBulkImport:
    """Writes of 100,000 keys over half a minute, beside reads: the verdicts of a cache without bounds."""

    @pytest.mark.parametrize(
        ("transfers", "gets", "scans"), [(10, 0, 0), (0, 0, 150), (10, 500, 150), (10, 1000, 500)]
    )
    def test_no_read_is_missed_and_hardly_a_write_refused_without_one(
        self, tmp_path: Path, transfers: int, gets: int, scans: int
    ) -> None:
        """Reads a second, of other keys of the same table too. A false refusal at most once in 10,000 writes."""
        chance, model = random.Random(f"{transfers} {gets} {scans}"), UnboundedReads()
        cache, head = started(tmp_path)
        own = now = 1_700_000_000 * SECOND_NS
        false, writes = 0, 0
        for batch in range(100):
            for _ in range((2 * transfers + gets) * 3 // 10):
                now += 1000
                model.record_key(cache, chance.randint(1, 3), b"acc%06d" % chance.randrange(1_000_000), now)
            for _ in range(scans * 3 // 10):
                now += 1000
                first = chance.randrange(1_000_000)
                end = b"acc%06d" % (first + chance.randint(1, 30))
                model.record_range(cache, chance.randint(1, 3), b"acc%06d" % first, end, now)
            now = max(now, own + batch * 3 * SECOND_NS // 10)
            rows = [Key(1, b"row%08d" % (batch * 1000 + number)) for number in range(1000)]
            assert cache.is_valid(head)
            if cache.find_later_read(head, rows, own) is not None:
                false += sum([cache.find_later_read(head, [row], own) is not None for row in rows])
            for place in [Key(1, b"acc%06d" % chance.randrange(1_000_000)) for _ in range(20)]:
                is_refused, is_read = blocks(cache, head, 1, place.key, own), model.forbids(place, own)
                assert is_refused or not is_read
                false += is_refused and not is_read
            writes += 1020
        assert false * 10_000 <= writes
        cache.close()

    def test_more_reads_than_fit_are_covered(self, tmp_path: Path) -> None:
        """Of keys, in the order of their timestamps and not; half as many again as there are places."""
        chance, model = random.Random(1), UnboundedReads()
        cache, head = started(tmp_path)
        count = (SLOT_READS << SLOT_BITS_MAX) * 3 // 2
        for number in range(count):
            model.record_key(cache, 1, b"%d" % number, chance.randint(1, 100) * SECOND_NS)
        keys = [Key(1, b"%d" % chance.randrange(2 * count)) for _ in range(5000)]
        for key in keys:
            timestamp = chance.randint(1, 100) * SECOND_NS
            assert blocks(cache, head, 1, key.key, timestamp) or not model.forbids(key, timestamp)
        forgotten = [later(cache, head, 1, key.key, SECOND_NS) for key in keys]
        assert any(read is not None and not read.timestamp for read in forgotten)
        cache.close()


class TestForgottenRanges:
    """More ranges than fit, of one table or of many."""

    def test_a_table_forgets_its_oldest_ranges_and_no_other_table_does(self, tmp_path: Path) -> None:
        """Each write under a forgotten range is refused; the newest ranges are known one by one."""
        cache, head = started(tmp_path)
        cache.record_range(2, b"a", b"b", 5, 0)
        count, key = 6000, b"%0150d"
        for number in range(count):
            cache.record_range(1, key % (2 * number), key % (2 * number + 1), 100 + number, 0)
        assert all(blocks(cache, head, 1, key % (2 * number), 99 + number) for number in range(count))
        assert not blocks(cache, head, 1, b"x", 100 + count - 1)
        found = later(cache, head, 1, b"x", 50)
        assert found is not None and not found.timestamp
        assert blocks(cache, head, 2, b"a", 4)
        assert not blocks(cache, head, 2, b"a", 5)
        assert not blocks(cache, head, 2, b"b", 1)
        cache.close()

    def test_ranges_of_too_many_tables_are_covered(self, tmp_path: Path) -> None:
        """By a watermark of the file, which no commit has recorded, and which reads of older transactions leave."""
        cache, head = started(tmp_path)
        count = LOG_BYTES_MAX // 30
        for table in range(1, count):
            cache.record_range(table, b"", None, 100 + table, 0)
        assert head.read_watermark == 0
        assert all(blocks(cache, head, table, b"k", 99 + table) for table in range(1, count))
        assert not blocks(cache, head, 1, b"k", 100 + count)
        other = MappedReadCache(str(tmp_path), CLOCK)
        assert blocks(other, head, 1, b"k", 1)
        for table in range(count, 2 * count):
            other.record_range(table, b"", None, 50, 0)
        assert all(blocks(other, head, table, b"k", 99 + table) for table in range(1, count))
        other.close()
        cache.close()

    def test_the_same_range_takes_one_place(self, tmp_path: Path) -> None:
        """Read again and again, by several processes, it makes the file no larger; its read time never falls."""
        cache, head = started(tmp_path)
        other, size = MappedReadCache(str(tmp_path), CLOCK), os.path.getsize(tmp_path / FILE_NAME)
        for number in range(5000):
            into = (cache, other)[number % 2]
            assert into.is_valid(head)
            into.record_range(1, b"a", None, 100 + number, 0)
            into.record_range(1, b"a", None, 50, 0)
        assert os.path.getsize(tmp_path / FILE_NAME) == size
        assert blocks(cache, head, 1, b"k", 5098)
        assert not blocks(cache, head, 1, b"k", 5099)
        cache.close()
        other.close()

    def test_the_pages_of_one_scan_are_one_record(self, tmp_path: Path) -> None:
        """A scan records its whole range at each page."""
        cache, _ = started(tmp_path)
        before = (tmp_path / FILE_NAME).read_bytes()
        cache.record_range(1, b"a", b"z", 100, 0)
        once = (tmp_path / FILE_NAME).read_bytes()
        cache.record_range(1, b"a", b"z", 100, 0)
        assert before != once == (tmp_path / FILE_NAME).read_bytes()
        cache.close()


class TestGrowing:
    """The file grows with use, under every process that has it mapped."""

    def test_each_process_finds_the_reads_of_each(self, tmp_path: Path) -> None:
        """Keys and ranges from before, between and after the growths of both parts."""
        cache, head = started(tmp_path)
        other, size, model = (
            MappedReadCache(str(tmp_path), CLOCK),
            os.path.getsize(tmp_path / FILE_NAME),
            UnboundedReads(),
        )
        chance = random.Random(2)
        for number in range(1, 8000):
            into = (cache, other)[chance.random() < 0.1]
            assert into.is_valid(head)
            model.record_key(into, 1, b"%d" % number, number)
            if number % 5 == 0:
                model.record_range(into, 2, b"%08d" % number, b"%08d" % (number + 2), number)
        assert os.path.getsize(tmp_path / FILE_NAME) > 4 * size
        for process in (cache, other, MappedReadCache(str(tmp_path), CLOCK)):
            for number in range(1, 8000, 7):
                for key in (Key(1, b"%d" % number), Key(2, b"%08d" % number)):
                    for timestamp in (number - 6, number - 1, number):
                        assert blocks(process, head, key.table_id, key.key, timestamp) == model.forbids(
                            key, timestamp
                        )
            process.close()

    def test_without_room_to_grow_reads_are_forgotten_instead(self, tmp_path: Path) -> None:
        """A full disk refuses some writes too many, and no transaction fails for it."""
        cache, head = started(tmp_path)
        model, limits = UnboundedReads(), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(tmp_path / FILE_NAME), limits[1]))
        try:
            for number in range(1, 10_000):
                model.record_key(cache, 1, b"%d" % number, number)
                model.record_range(cache, 2, b"%08d" % (2 * number), b"%08d" % (2 * number + 1), number)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        for number in range(1, 10_000):
            assert blocks(cache, head, 1, b"%d" % number, number - 1)
            assert blocks(cache, head, 2, b"%08d" % (2 * number), number - 1)
        assert not blocks(cache, head, 1, b"other", 9_999)
        cache.close()


def test_a_file_of_another_boot_does_not_count(tmp_path: Path) -> None:
    """The clock says which boot this is, whatever the store's head has recorded."""
    clock = ManualClock()
    head = Superblock(b"0123456789abcdef", clock)
    cache = MappedReadCache(str(tmp_path), clock)
    cache.start_anew(head)
    assert cache.is_valid(head)
    clock.boot = b"manual-boot-0002"
    assert not cache.is_valid(head)
    assert not MappedReadCache(str(tmp_path), clock).is_valid(head)
    cache.close()


@pytest.mark.parametrize("field", ["store_id", "incarnation", "read_generation"])
def test_a_file_of_another_store_incarnation_or_generation_does_not_count(tmp_path: Path, field: str) -> None:
    """It is foreign, whichever of them differs."""
    cache, head = started(tmp_path)
    assert cache.is_valid(head)
    other = Superblock.decode(memoryview(head.encode()))
    value = getattr(other, field)
    setattr(other, field, value + 1 if isinstance(value, int) else bytes(16))
    assert not MappedReadCache(str(tmp_path), CLOCK).is_valid(other)
    cache.close()


def test_a_file_left_half_changed_does_not_count(tmp_path: Path) -> None:
    """Its process was killed while it wrote."""
    cache, head = started(tmp_path)
    cache.close()
    with open(tmp_path / FILE_NAME, "r+b") as file:
        file.seek(DIRTY_AT)
        file.write(b"\1")
    assert not MappedReadCache(str(tmp_path), CLOCK).is_valid(head)


def test_a_copy_of_the_file_does_not_count(tmp_path: Path) -> None:
    """A store that was copied by hand does not go on with what was remembered for the first one."""
    cache, head = started(tmp_path)
    data = (tmp_path / FILE_NAME).read_bytes()
    cache.close()
    os.rename(tmp_path / FILE_NAME, tmp_path / "kept")
    (tmp_path / FILE_NAME).write_bytes(data)
    os.chmod(tmp_path / FILE_NAME, 0o600)
    assert not MappedReadCache(str(tmp_path), CLOCK).is_valid(head)


def test_a_file_that_was_removed_is_let_go_of(tmp_path: Path) -> None:
    """A process that has it mapped does not write into what nobody else sees."""
    cache, head = started(tmp_path)
    os.unlink(tmp_path / FILE_NAME)
    assert not cache.is_valid(head, looks_at_file=True)
    assert not cache.is_valid(head)
    cache.start_anew(head)
    assert cache.is_valid(head)
    assert MappedReadCache(str(tmp_path), CLOCK).is_valid(head)
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


def test_the_file_is_private(tmp_path: Path) -> None:
    """Mode 0600 whatever the umask."""
    before = os.umask(0)
    try:
        cache, _ = started(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / FILE_NAME).st_mode) == 0o600
    cache.close()


def _link(path: Path) -> None:
    path.rename(path.with_name("kept"))
    path.symlink_to(path.with_name("kept"))


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _older_release(path: Path) -> None:
    """The magic and the size that 0.1.0 wrote."""
    data = b"txnreads" + path.read_bytes()[8:HEADER_BYTES]
    path.write_bytes(data.ljust(4096 + 65_536 * 16 + 256 * 1024, b"\0"))


@pytest.mark.parametrize(
    "spoil",
    [
        _link,
        _pipe,
        _older_release,
        lambda path: path.chmod(0o666),
        lambda path: path.with_name("second").hardlink_to(path),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"x" * 100_000),
    ],
    ids=["link", "pipe", "older release", "everybody writes", "second name", "empty", "foreign"],
)
def test_whatever_stands_in_its_place_is_made_anew(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    """Behind a watermark, as a file of the owner alone; what a link points to is not touched."""
    cache, head = started(tmp_path)
    cache.record_key(1, b"k", 40, 0)
    cache.close()
    head.last_timestamp, head.timestamp_mark = 50, 90
    spoil(tmp_path / FILE_NAME)
    kept = {path: path.stat() for path in tmp_path.iterdir() if path.name == "kept"}
    cache = MappedReadCache(str(tmp_path), CLOCK)
    assert not cache.is_valid(head)
    assert cache.last_issued(head) == 90
    cache.start_anew(head)
    assert blocks(cache, head, 1, b"k", 30)
    status = os.lstat(tmp_path / FILE_NAME)
    assert stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600 and status.st_nlink == 1
    assert {path: path.stat() for path in kept} == kept
    cache.close()


def test_a_directory_in_its_place_is_left_alone(tmp_path: Path) -> None:
    """It may hold anything: the error names it."""
    cache, head = started(tmp_path)
    cache.close()
    os.unlink(tmp_path / FILE_NAME)
    os.mkdir(tmp_path / FILE_NAME)
    assert not cache.is_valid(head)
    with pytest.raises(StoreUnsafe, match=FILE_NAME):
        cache.start_anew(head)


def test_a_file_that_was_cut_short_is_let_go_of(tmp_path: Path) -> None:
    """A process that has it mapped does not touch what is no more: the kernel would kill it."""
    cache, head = started(tmp_path)
    os.truncate(tmp_path / FILE_NAME, 0)
    head.timestamp_mark = 90
    cache.catch_up(head)
    assert head.last_timestamp == 90
    assert not cache.is_valid(head)
    cache.close()


def test_timestamps_issued_without_a_commit_are_known_to_all(tmp_path: Path) -> None:
    """The oracle of another process goes on after them."""
    cache, head = started(tmp_path)
    cache.note_issued(12_345)
    other = MappedReadCache(str(tmp_path), CLOCK)
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


class TestDamage:
    """Whatever byte is wrong, the file is made anew behind a watermark when the byte would be believed."""

    READS = 400
    ISSUED, MARK = 10_000, 90_000

    def _spoilt(self, directory: Path, chance: random.Random) -> tuple[MappedReadCache, Superblock]:
        """A file with reads, closed, damaged at random, and opened again."""
        cache, head = started(directory)
        for number in range(1, self.READS):
            cache.record_key(1, b"%d" % number, number, number)
            cache.record_range(2, b"%04d" % (2 * number), b"%04d" % (2 * number + 1), number, number)
        cache.note_issued(self.ISSUED)
        head.timestamp_mark = self.MARK
        cache.close()
        path = directory / FILE_NAME
        data = bytearray(path.read_bytes())
        header, slots = HEADER_BYTES, 4096 + (SLOT_BYTES << 10)
        low, high = chance.choice([(0, header), (4096, slots), (slots, len(data)), (0, len(data))])
        at = chance.randrange(low, high)
        length = chance.choice([1, 1, 8, 100, 4096])
        kind = chance.choice(["flip", "zero", "random", "move", "cut"])
        if kind == "flip":
            data[at] ^= 1 << chance.randrange(8)
        elif kind == "zero":
            data[at : at + length] = bytes(len(data[at : at + length]))
        elif kind == "random":
            data[at : at + length] = chance.randbytes(len(data[at : at + length]))
        elif kind == "move":
            source = chance.randrange(4096, slots) // SLOT_BYTES * SLOT_BYTES
            data[at : at + SLOT_BYTES] = data[source : source + len(data[at : at + SLOT_BYTES])]
        else:
            del data[at:]
        with open(path, "r+b") as file:
            file.write(data)
            file.truncate()
        return MappedReadCache(str(directory), CLOCK), head

    @pytest.mark.parametrize("seed", range(10))
    def test_no_damage_lets_a_write_pass_or_a_timestamp_through(self, tmp_path: Path, seed: int) -> None:
        """Forty files each: every read is known or covered, and the oracle goes on from what was issued or reserved."""
        chance = random.Random(seed)
        for number in range(40):
            directory = tmp_path / str(number)
            directory.mkdir()
            cache, head = self._spoilt(directory, chance)
            assert cache.last_issued(head) in (self.ISSUED, self.MARK)
            cache.catch_up(head)
            assert head.last_timestamp in (self.ISSUED, self.MARK)
            for read in range(1, self.READS):
                for table, key in ((1, b"%d" % read), (2, b"%04d" % (2 * read))):
                    assert cache.find_later_read(head, [Key(table, key)], read - 1) is not None
            if not cache.is_valid(head):
                cache.start_anew(head)
            assert not blocks(cache, head, 1, b"1", self.MARK)
            cache.close()

    def test_a_reader_that_finds_damage_condemns_the_file(self, tmp_path: Path) -> None:
        """For every process: it does not record beside bytes that it cannot believe."""
        cache, head = started(tmp_path)
        other = MappedReadCache(str(tmp_path), CLOCK)
        assert other.is_valid(head)
        with open(tmp_path / FILE_NAME, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (SLOT_BYTES << 10))
        with pytest.raises(ReadsDamaged):
            cache.record_key(1, b"k", 5, 0)
        assert not cache.is_valid(head)
        assert not other.is_valid(head)
        cache.close()
        other.close()

    def test_a_write_of_this_moment_passes_where_damage_is_found(self, tmp_path: Path) -> None:
        """Nothing later was issued: the batch that makes the file anew refuses only older transactions."""
        cache, head = started(tmp_path)
        cache.record_key(1, b"k", 5, 0)
        with open(tmp_path / FILE_NAME, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (SLOT_BYTES << 10))
        head.last_timestamp, head.timestamp_mark = 20, 90
        assert cache.find_later_read(head, [Key(1, b"k")], 20) is None
        assert blocks(cache, head, 1, b"k", 19)
        cache.close()
