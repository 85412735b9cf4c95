"""What serializable transactions have read, shared by all processes of the machine (K2-3SI's read cache).

One mapped file in the store's directory, touched inside the writer gate only and never synced: what it knows does not
survive a reboot, and need not. It belongs to one store, incarnation, boot and generation. Whoever finds it absent,
foreign or left half-changed by a process that was killed starts it anew, in a batch that first raises the durable
watermark to the last timestamp issued: every transaction that might contradict a forgotten read is then refused.

Keys are remembered in a table of fixed size by hash, each slot with the latest reader of any of its keys; a range
that finds no room any more is forgotten by raising the file's own watermark. Both can only refuse too much. The file
also has the last timestamp that was issued without a commit.

Invariant 18: the read time of a key or gap never falls. Bytes: docs/FORMAT.md.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from struct import Struct
from typing import Final
from zlib import crc32

from storage import faults
from storage.disk.superblock import Superblock
from storage.errors import StoreFull, StoreUnsafe
from storage.process.clock import Clock

FILE_NAME: Final = "reads.cache"

_IDENTITY = Struct(">8s16sQ16sQQ")  # magic, store id, incarnation, boot id, inode, generation
_MAGIC: Final = b"txnreads"
_DIRTY_AT: Final = 64
_ISSUED_AT: Final = 72
_WATERMARK_AT: Final = 80
_RANGES_AT: Final = 88
_CHANGES_AT: Final = 96
_U64 = Struct(">Q")
_SLOT = Struct(">QQ")  # timestamp, transaction
_SLOTS_FROM: Final = 4096
SLOTS: Final = 1 << 16
_RANGE = Struct(">QQQHHB")  # table, timestamp, transaction, bytes of start and end, whether there is an end
_RANGE_BYTES: Final = 1024
_RANGES_FROM: Final = _SLOTS_FROM + SLOTS * _SLOT.size
RANGES_MAX: Final = 256
_BYTES: Final = _RANGES_FROM + RANGES_MAX * _RANGE_BYTES

Range = tuple[int, int, int, bytes, bytes | None]
"""Table, timestamp, transaction (0 if it has no number yet), first key, the key after the last (None: no end)."""


class ReadCache:
    """The file of one store as one process has it mapped. Every call is made inside the writer gate."""

    __slots__ = ("_changes", "_clock", "_descriptor", "_identified", "_identity", "_map", "_path", "_ranges")

    def __init__(self, directory: str, clock: Clock) -> None:
        self._clock = clock
        self._path = os.path.join(directory, FILE_NAME)
        self._map: mmap.mmap | None = None
        self._descriptor = -1
        self._identity = b""
        self._identified: tuple[int, bytes] | None = None
        self._ranges: list[Range] = []
        self._changes = -1

    def close(self) -> None:
        """Let go of the file."""
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._identified = None

    @property
    def is_attached(self) -> bool:
        """Whether this process has the file mapped."""
        return self._map is not None

    def is_valid(self, head: Superblock) -> bool:
        """Whether the file is there, ours, of this boot and generation, and whole."""
        if not head.read_generation:
            return False
        # The boot is that of the clock: the head's is the last one in which somebody wrote.
        identified = (head.read_generation, self._clock.boot_id())
        if self._identified != identified:
            # Only now need the file be looked at: whoever finds it gone begins another generation.
            if not self._attach():
                return False
            self._identity = self._identify(head, os.fstat(self._descriptor).st_ino)
            self._identified, self._changes = identified, -1
        data = self._map
        assert data is not None, "an identified file is mapped"
        return data[: _IDENTITY.size] == self._identity and not data[_DIRTY_AT]

    def _identify(self, head: Superblock, inode: int) -> bytes:
        boot_id = self._clock.boot_id()
        return _IDENTITY.pack(_MAGIC, head.store_id, head.incarnation, boot_id, inode, head.read_generation)

    def _attach(self) -> bool:
        """Map the file if it is there; one that was removed since is let go of."""
        if self._map is not None:
            if os.fstat(self._descriptor).st_nlink:
                return True
            self.close()
        try:
            self._open(os.O_RDWR)
        except FileNotFoundError:
            return False
        return self._map is not None

    def _open(self, flags: int) -> None:
        try:
            descriptor = os.open(self._path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreUnsafe(
                f"{self._path} cannot be used: {error.strerror}", hint="Remove it; it is made again."
            ) from error
        try:
            if flags & os.O_CREAT:
                os.fchmod(descriptor, 0o600)
                # Writing through memory where a full disk has no page for it would kill the process.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(descriptor, 0, _BYTES)
                else:
                    os.pwrite(descriptor, bytes(_BYTES), 0)
            status = os.fstat(descriptor)
            if status.st_mode & 0o022 or status.st_nlink != 1:
                raise StoreUnsafe(
                    f"{self._path} may be written by others", hint="Remove it; it is made again."
                )
            if status.st_size == _BYTES:
                self._map = mmap.mmap(descriptor, _BYTES)
                self._descriptor, descriptor = descriptor, -1
        except OSError as error:
            raise StoreFull(f"no room for {self._path}: {error.strerror}", hint="Free some space.") from error
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def catch_up(self, head: Superblock) -> None:
        """At the start of a batch: the oracle goes on after what was issued without a commit."""
        if head.read_generation:
            if self._map is not None and not os.fstat(self._descriptor).st_nlink:
                self.close()
            issued = self.issued if self.is_valid(head) else head.timestamp_mark
            if issued > head.last_timestamp:
                head.last_timestamp = issued

    def peek_issued(self, head: Superblock) -> int:
        """The last timestamp issued without a commit, outside the gate and for reading only; 0 if there is none."""
        if not head.read_generation:
            return 0
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            data = os.pread(descriptor, _ISSUED_AT + _U64.size, 0)
            inode = os.fstat(descriptor).st_ino
        finally:
            os.close(descriptor)
        wanted = self._identify(head, inode)
        return int(_U64.unpack_from(data, _ISSUED_AT)[0]) if data[: _IDENTITY.size] == wanted else 0

    @property
    def issued(self) -> int:
        """The last timestamp issued without a commit."""
        assert self._map is not None, "the file was found valid"
        return int(_U64.unpack_from(self._map, _ISSUED_AT)[0])

    def note_issued(self, timestamp: int) -> None:
        """A timestamp was issued without a commit."""
        assert self._map is not None and timestamp > self.issued, "timestamps grow"
        _U64.pack_into(self._map, _ISSUED_AT, timestamp)

    def start_anew(self, head: Superblock) -> None:
        """Within a batch: forget every read, which is safe once the watermark that this raises is committed.

        The file names a generation that counts only from that commit on. Before the first one nothing was ever read.
        """
        head.last_timestamp = max(head.last_timestamp, head.timestamp_mark)
        if head.read_generation:
            head.read_watermark = head.last_timestamp
        head.read_generation += 1
        head.changes += 1
        if not self._attach():
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            self._open(os.O_RDWR | os.O_CREAT | os.O_EXCL)
        data = self._map
        assert data is not None, "a file of the right size is mapped"
        data[_DIRTY_AT] = 1
        data[_IDENTITY.size : _DIRTY_AT] = bytes(_DIRTY_AT - _IDENTITY.size)
        data[: _IDENTITY.size] = self._identify(head, os.fstat(self._descriptor).st_ino)
        data[_DIRTY_AT + 1 :] = bytes(_BYTES - _DIRTY_AT - 1)
        _U64.pack_into(data, _ISSUED_AT, head.last_timestamp)
        data[_DIRTY_AT] = 0
        self._identified = None

    def record_key(self, table_id: int, key: bytes, timestamp: int, txn: int) -> None:
        """A transaction reads a key, there or not."""
        data, at = self._map, _slot(table_id, key)
        assert data is not None, "the file was found valid"
        if _U64.unpack_from(data, at)[0] < timestamp:
            data[_DIRTY_AT] = 1
            faults.reach("read_cache.half_changed")
            _SLOT.pack_into(data, at, timestamp, txn)
            data[_DIRTY_AT] = 0

    def record_range(self, table_id: int, start: bytes, end: bytes | None, timestamp: int, txn: int) -> None:
        """A transaction reads all keys from `start` on below `end`, and that there are no others.

        It takes the place of a range within it that nobody read later: one that is read on, or again.
        """
        data, ranges = self._map, self._load_ranges()
        assert data is not None, "the file was found valid"
        place = len(ranges)
        for index, (table, before, _, first, after) in enumerate(ranges):
            if table != table_id:
                continue
            if before >= timestamp and _is_within((start, end), (first, after)):
                return
            if before <= timestamp and _is_within((first, after), (start, end)):
                place = index
                break
        data[_DIRTY_AT] = 1
        if place == RANGES_MAX:
            ranges = self._forget(ranges)
            place = len(ranges)
        self._put_range(place, (table_id, timestamp, txn, start, end))
        faults.reach("read_cache.half_changed")
        _U64.pack_into(data, _RANGES_AT, max(len(ranges), place + 1))
        _U64.pack_into(data, _CHANGES_AT, _U64.unpack_from(data, _CHANGES_AT)[0] + 1)
        data[_DIRTY_AT] = 0
        self._changes = -1

    def _forget(self, ranges: list[Range]) -> list[Range]:
        """The newer three quarters of the ranges; the watermark stands for the rest."""
        assert self._map is not None, "the file was found valid"
        kept = sorted(ranges, key=lambda each: each[1])
        forgotten, kept = kept[: RANGES_MAX // 4], kept[RANGES_MAX // 4 :]
        watermark = max(_U64.unpack_from(self._map, _WATERMARK_AT)[0], forgotten[-1][1])
        _U64.pack_into(self._map, _WATERMARK_AT, watermark)
        for place, each in enumerate(kept):
            self._put_range(place, each)
        return kept

    def _put_range(self, place: int, each: Range) -> None:
        table_id, timestamp, txn, start, end = each
        assert self._map is not None, "the file was found valid"
        header = _RANGE.pack(table_id, timestamp, txn, len(start), len(end or b""), end is not None)
        record = header + start + (end or b"")
        at = _RANGES_FROM + place * _RANGE_BYTES
        self._map[at : at + len(record)] = record

    def _load_ranges(self) -> list[Range]:
        data = self._map
        assert data is not None, "the file was found valid"
        changes = _U64.unpack_from(data, _CHANGES_AT)[0]
        if changes != self._changes:
            count = _U64.unpack_from(data, _RANGES_AT)[0]
            self._ranges = [_range_at(data, place) for place in range(count)]
            self._changes = changes
        return self._ranges

    def watermark(self, head: Superblock) -> int:
        """Writes of transactions with a timestamp below this are refused."""
        assert self._map is not None, "the file was found valid"
        return max(head.read_watermark, int(_U64.unpack_from(self._map, _WATERMARK_AT)[0]))

    def ranges_after(self, timestamp: int) -> list[Range]:
        """Ranges read by transactions with a later timestamp."""
        return [each for each in self._load_ranges() if each[1] > timestamp]

    def reader_of(self, table_id: int, key: bytes) -> tuple[int, int]:
        """Timestamp and number of the latest reader of a key (or of one that shares its slot); 0 for none."""
        assert self._map is not None, "the file was found valid"
        found: tuple[int, int] = _SLOT.unpack_from(self._map, _slot(table_id, key))
        return found


def _is_within(inner: tuple[bytes, bytes | None], outer: tuple[bytes, bytes | None]) -> bool:
    """Whether all keys of one range (first, after the last) are in another."""
    (start, end), (first, after) = inner, outer
    return start >= first and (after is None or (end is not None and end <= after))


def _slot(table_id: int, key: bytes) -> int:
    return _SLOTS_FROM + (crc32(key, table_id & 0xFFFF_FFFF) & (SLOTS - 1)) * _SLOT.size


def _range_at(data: mmap.mmap, place: int) -> Range:
    at = _RANGES_FROM + place * _RANGE_BYTES
    table_id, timestamp, txn, start_bytes, end_bytes, has_end = _RANGE.unpack_from(data, at)
    at += _RANGE.size
    start = data[at : at + start_bytes]
    end = data[at + start_bytes : at + start_bytes + end_bytes] if has_end else None
    return (table_id, timestamp, txn, start, end)
