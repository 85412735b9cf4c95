"""The read cache: the latest readers of keys and ranges, shared by all processes of the machine (K2-3SI).

One mapped file in the store's directory, touched inside the writer gate only and never synced, as its content need not
survive a reboot. The file belongs to one store, incarnation, boot and generation. A process that finds the file absent,
foreign or half-changed by a killed process starts a new generation, in a batch that first raises the durable watermark
to the last issued timestamp: every transaction that might contradict a forgotten read is then refused.

Keys live in a hash table of fixed size, each slot with the latest reader of any of its keys. Ranges beyond the room for
them are forgotten by raising the file's own watermark. Both can only refuse too much. The file also holds the last
timestamp that was issued without a commit.

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
from storage.actions import Hint
from storage.disk.lmdb_errors import FREE_SPACE
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
"""Table, timestamp, transaction (0 before a number is issued), first key, the key after the last (None: no end)."""


class ReadCache:
    """The mapped file of one store in one process. Every call is made inside the writer gate."""

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
        """Unmap and close the file."""
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

    def is_valid(self, superblock: Superblock) -> bool:
        """Whether the file exists, is whole, and belongs to this store, boot and generation."""
        if not superblock.read_generation:
            return False
        # The boot is the clock's: the superblock names the boot of the last write.
        identified = (superblock.read_generation, self._clock.boot_id())
        if self._identified != identified:
            # A lost file begins a new generation, so only a new generation makes another look necessary.
            if not self._attach():
                return False
            self._identity = self._identify(superblock, os.fstat(self._descriptor).st_ino)
            self._identified, self._changes = identified, -1
        data = self._map
        assert data is not None, "an identified file is mapped"
        return data[: _IDENTITY.size] == self._identity and not data[_DIRTY_AT]

    def drop_removed(self) -> None:
        """Unmap a file that was removed, so that the cache is not valid: its reads are forgotten at the next write."""
        if self._map is not None and not os.fstat(self._descriptor).st_nlink:
            self.close()

    def _identify(self, superblock: Superblock, inode: int) -> bytes:
        boot_id = self._clock.boot_id()
        return _IDENTITY.pack(
            _MAGIC, superblock.store_id, superblock.incarnation, boot_id, inode, superblock.read_generation
        )

    def _attach(self) -> bool:
        """Map the file if it exists, and unmap a file that was removed meanwhile."""
        self.drop_removed()
        if self._map is not None:
            return True
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
                f"{self._path} cannot be opened: {error.strerror}",
                hint="Remove the file; the next writer makes a new one.",
            ) from error
        try:
            if flags & os.O_CREAT:
                os.fchmod(descriptor, 0o600)
                # A write through memory for which a full disk has no page would kill the process.
                os.posix_fallocate(descriptor, 0, _BYTES)
            status = os.fstat(descriptor)
            if status.st_mode & 0o022 or status.st_nlink != 1:
                raise StoreUnsafe(
                    f"{self._path} may be written by other users",
                    hint="Remove the file; the next writer makes a new one.",
                )
            if status.st_size == _BYTES:
                self._map = mmap.mmap(descriptor, _BYTES)
                self._descriptor, descriptor = descriptor, -1
        except OSError as error:
            raise StoreFull(
                f"no room for {self._path}: {error.strerror}",
                hint=Hint("Free some space: `{}` tells how.", FREE_SPACE),
            ) from error
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def catch_up(self, superblock: Superblock) -> None:
        """Move the timestamp oracle past timestamps issued without a commit, at the start of a batch.

        Called where the store has a generation of the read cache; without one no timestamp was issued so.
        """
        self.drop_removed()
        issued = self.issued if self.is_valid(superblock) else superblock.timestamp_mark
        if issued > superblock.last_timestamp:
            superblock.last_timestamp = issued

    def last_issued(self, superblock: Superblock) -> int:
        """The last timestamp issued, with or without a commit, read outside the gate.

        Where the file is lost, the timestamps issued without a commit are not known: the reserved mark is above them.
        """
        if not superblock.read_generation:
            return superblock.last_timestamp
        issued = self._peek_issued(superblock)
        return max(superblock.last_timestamp, superblock.timestamp_mark if issued is None else issued)

    def _peek_issued(self, superblock: Superblock) -> int | None:
        """The last timestamp issued without a commit; None if the file is lost."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            data = os.pread(descriptor, _ISSUED_AT + _U64.size, 0)
            inode = os.fstat(descriptor).st_ino
        finally:
            os.close(descriptor)
        is_ours = data[: _IDENTITY.size] == self._identify(superblock, inode)
        return int(_U64.unpack_from(data, _ISSUED_AT)[0]) if is_ours else None

    @property
    def issued(self) -> int:
        """The last timestamp issued without a commit."""
        assert self._map is not None, "the file is valid"
        return int(_U64.unpack_from(self._map, _ISSUED_AT)[0])

    def note_issued(self, timestamp: int) -> None:
        """Record a timestamp that is issued without a commit."""
        assert self._map is not None and timestamp > self.issued, "timestamps grow"
        # One copy of eight bytes: `pack_into` stores byte after byte, and `last_issued` is not inside the gate.
        self._map[_ISSUED_AT : _ISSUED_AT + _U64.size] = _U64.pack(timestamp)

    def start_anew(self, superblock: Superblock) -> None:
        """Start a new generation within a batch, which forgets every read and raises the watermark.

        The new generation is valid once the batch, and with it the watermark, is committed. Before the first generation
        there were no reads to forget.
        """
        superblock.last_timestamp = max(superblock.last_timestamp, superblock.timestamp_mark)
        if superblock.read_generation:
            superblock.read_watermark = superblock.last_timestamp
        superblock.read_generation += 1
        superblock.changes += 1
        if not self._attach():
            with suppress(FileNotFoundError):
                os.unlink(self._path)
            self._open(os.O_RDWR | os.O_CREAT | os.O_EXCL)
        data = self._map
        assert data is not None, "a file of the right size is mapped"
        data[_DIRTY_AT] = 1
        data[_IDENTITY.size : _DIRTY_AT] = bytes(_DIRTY_AT - _IDENTITY.size)
        data[: _IDENTITY.size] = self._identify(superblock, os.fstat(self._descriptor).st_ino)
        data[_DIRTY_AT + 1 :] = bytes(_BYTES - _DIRTY_AT - 1)
        _U64.pack_into(data, _ISSUED_AT, superblock.last_timestamp)
        data[_DIRTY_AT] = 0
        self._identified = None

    def record_key(self, table_id: int, key: bytes, timestamp: int, txn: int) -> None:
        """Record that a transaction reads a key, present or absent."""
        data, at = self._map, _slot(table_id, key)
        assert data is not None, "the file is valid"
        if _U64.unpack_from(data, at)[0] < timestamp:
            data[_DIRTY_AT] = 1
            faults.reach("read_cache.half_changed")
            _SLOT.pack_into(data, at, timestamp, txn)
            data[_DIRTY_AT] = 0

    def record_range(self, table_id: int, start: bytes, end: bytes | None, timestamp: int, txn: int) -> None:
        """Record that a transaction reads all keys from `start` on below `end`, the gaps between keys included.

        The new range replaces an older or equally old range within it: a scan that goes on, or runs again.
        """
        data, ranges = self._map, self._load_ranges()
        assert data is not None, "the file is valid"
        position = len(ranges)
        for index, (table, before, _, first, after) in enumerate(ranges):
            if table != table_id:
                continue
            if before >= timestamp and _is_within((start, end), (first, after)):
                return
            if before <= timestamp and _is_within((first, after), (start, end)):
                position = index
                break
        data[_DIRTY_AT] = 1
        if position == RANGES_MAX:
            ranges = self._forget(ranges)
            position = len(ranges)
        self._put_range(position, (table_id, timestamp, txn, start, end))
        faults.reach("read_cache.half_changed")
        _U64.pack_into(data, _RANGES_AT, max(len(ranges), position + 1))
        _U64.pack_into(data, _CHANGES_AT, _U64.unpack_from(data, _CHANGES_AT)[0] + 1)
        data[_DIRTY_AT] = 0
        self._changes = -1

    def _forget(self, ranges: list[Range]) -> list[Range]:
        """Drop the oldest quarter of the ranges, which the raised watermark covers; return the ranges kept."""
        assert self._map is not None, "the file is valid"
        kept = sorted(ranges, key=lambda read: read[1])
        forgotten, kept = kept[: RANGES_MAX // 4], kept[RANGES_MAX // 4 :]
        watermark = max(_U64.unpack_from(self._map, _WATERMARK_AT)[0], forgotten[-1][1])
        _U64.pack_into(self._map, _WATERMARK_AT, watermark)
        for position, read in enumerate(kept):
            self._put_range(position, read)
        return kept

    def _put_range(self, position: int, read: Range) -> None:
        table_id, timestamp, txn, start, end = read
        assert self._map is not None, "the file is valid"
        header = _RANGE.pack(table_id, timestamp, txn, len(start), len(end or b""), end is not None)
        record = header + start + (end or b"")
        at = _RANGES_FROM + position * _RANGE_BYTES
        self._map[at : at + len(record)] = record

    def _load_ranges(self) -> list[Range]:
        data = self._map
        assert data is not None, "the file is valid"
        changes = _U64.unpack_from(data, _CHANGES_AT)[0]
        if changes != self._changes:
            count = _U64.unpack_from(data, _RANGES_AT)[0]
            self._ranges = [_range_at(data, position) for position in range(count)]
            self._changes = changes
        return self._ranges

    def watermark(self, superblock: Superblock) -> int:
        """The timestamp below which writes of transactions are refused."""
        assert self._map is not None, "the file is valid"
        return max(superblock.read_watermark, int(_U64.unpack_from(self._map, _WATERMARK_AT)[0]))

    def ranges_after(self, timestamp: int) -> list[Range]:
        """The ranges read by transactions with a later timestamp."""
        return [read for read in self._load_ranges() if read[1] > timestamp]

    def reader_of(self, table_id: int, key: bytes) -> tuple[int, int]:
        """Timestamp and number of the latest reader of a key, or of a key in the same slot; 0 for none."""
        assert self._map is not None, "the file is valid"
        reader: tuple[int, int] = _SLOT.unpack_from(self._map, _slot(table_id, key))
        return reader


def _is_within(inner: tuple[bytes, bytes | None], outer: tuple[bytes, bytes | None]) -> bool:
    """Whether `outer` contains all keys of `inner`; a range is its first key and the key after its last."""
    (start, end), (first, after) = inner, outer
    return start >= first and (after is None or (end is not None and end <= after))


def _slot(table_id: int, key: bytes) -> int:
    return _SLOTS_FROM + (crc32(key, table_id & 0xFFFF_FFFF) & (SLOTS - 1)) * _SLOT.size


def _range_at(data: mmap.mmap, position: int) -> Range:
    at = _RANGES_FROM + position * _RANGE_BYTES
    table_id, timestamp, txn, start_bytes, end_bytes, has_end = _RANGE.unpack_from(data, at)
    at += _RANGE.size
    start = data[at : at + start_bytes]
    end = data[at + start_bytes : at + start_bytes + end_bytes] if has_end else None
    return (table_id, timestamp, txn, start, end)
