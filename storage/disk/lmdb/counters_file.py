"""The file `store.metrics`: counters of events and of the durations of flushes, for monitoring.

The file is mapped, and never synced. The writer adds the events of a batch after its commit, still inside the writer
gate: so one process at a time writes, no increment is lost to a second one, and no counter is ahead of the store. A
process that is killed between commit and count loses the counts of that one batch. The counters begin at zero with each
boot, as the counters of a program do; and in a copied or restored store, whose file has a different inode, id or
incarnation. Bytes: docs/FORMAT.md.

The file is a help, not a part of the store: where it cannot be made, nothing is counted, and every commit goes on.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from struct import Struct
from typing import Final
from zlib import crc32

from storage.disk.counters import BOUNDS_NS, NO_COUNTS, Counters
from storage.disk.lmdb.directory import give_to_owner
from storage.disk.superblock import Superblock
from storage.process.clock import Clock
from storage.values.counters import COUNTERS

FILE_NAME: Final = "store.metrics"

_HEADER = Struct(">8s16s16sQQQ")  # magic, store id, boot id, incarnation, inode, wall time in milliseconds
_CRC = Struct(">I")
_MAGIC: Final = b"txnmetr1"
_BYTES: Final = 4096
_WORDS: Final = slice(128, _BYTES)
_DURATION: Final = COUNTERS
"""The word with the sum of all durations, in nanoseconds; behind it the buckets."""
_FIRST_BUCKET: Final = COUNTERS + 1
_END: Final = _FIRST_BUCKET + len(BOUNDS_NS) + 1
_LOOK_NS: Final = 1_000_000_000
"""Interval at which a process looks whether its file is still at the path, or can be made by now."""


class CountersFile:
    """The file of one store in one process that writes."""

    __slots__ = ("_clock", "_data", "_inode", "_look_ns", "_path", "_words")

    def __init__(self, directory: str, clock: Clock) -> None:
        self._path = os.path.join(directory, FILE_NAME)
        self._clock = clock
        self._data: mmap.mmap | None = None
        self._words: memoryview[int] | None = None
        self._inode = self._look_ns = 0

    def count_batch(self, events: Sequence[int], superblock: Superblock, asked_ns: int) -> None:
        """Add the events of a committed batch, inside the writer gate. Raises nothing: the batch is durable.

        Args:
            events: numbers of new events, by counter.
            asked_ns: boot time at which the writer gate was asked for.
        """
        now_ns = self._clock.boot_ns()
        if now_ns >= self._look_ns:
            self._look_ns = now_ns + _LOOK_NS
            self._attach(superblock)
        words = self._words
        if words is None:
            return
        try:
            duration_ns, bucket = now_ns - asked_ns, _FIRST_BUCKET
            for bound_ns in BOUNDS_NS:
                if duration_ns <= bound_ns:
                    break
                bucket += 1
            words[_DURATION] += duration_ns
            words[bucket] += 1
            for counter, number in enumerate(events):
                if number:
                    words[counter] += number
        except ValueError:  # A second thread has closed the handle, or a damaged counter has no room.
            self.close()

    def close(self) -> None:
        """Unmap the file."""
        words, data = self._words, self._data
        self._words = self._data = None
        if words is not None and data is not None:
            words.release()
            data.close()

    def _attach(self, superblock: Superblock) -> None:
        """Map the file at the path unless it is mapped; make it anew if it is not whole, or not of this store and boot.

        Never cut or written over: a different process may have it mapped.
        """
        try:
            if self._is_in_place():
                return
            self.close()
            descriptor = self._opened(superblock)
            try:
                data, self._inode = mmap.mmap(descriptor, _BYTES), os.fstat(descriptor).st_ino
            finally:
                os.close(descriptor)
        except (OSError, ValueError):
            return
        self._data, self._words = data, memoryview(data)[_WORDS].cast("Q")

    def _is_in_place(self) -> bool:
        """Whether the mapped file is whole, and at the path."""
        if self._data is None:
            return False
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return status.st_ino == self._inode and status.st_size == _BYTES

    def _opened(self, superblock: Superblock) -> int:
        """A descriptor of a file that counts.

        Raises:
            OSError: there is none, and none can be made.
        """
        descriptor = _open(self._path, os.O_RDWR)
        if descriptor is not None:
            if _since_ms(descriptor, self._path, superblock, self._clock) is not None:
                return descriptor
            os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        return self._made(superblock)

    def _made(self, superblock: Superblock) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            give_to_owner(descriptor, os.path.dirname(self._path))
            # A write through memory for which a full disk has no page would kill the process.
            os.posix_fallocate(descriptor, 0, _BYTES)
            inode = os.fstat(descriptor).st_ino
            header = _HEADER.pack(
                _MAGIC, superblock.store_id, self._clock.boot_id(), superblock.incarnation, inode,
                self._clock.wall_ms(),
            )  # fmt: skip
            os.pwrite(descriptor, header + _CRC.pack(crc32(header)), 0)
        except BaseException:
            os.close(descriptor)
            os.unlink(self._path)
            raise
        return descriptor


def read(directory: str, superblock: Superblock, clock: Clock) -> Counters:
    """The counters of a store; zeros where no file of this store and boot can be read."""
    path = os.path.join(directory, FILE_NAME)
    descriptor = _open(path, os.O_RDONLY)
    if descriptor is None:
        return NO_COUNTS
    try:
        since_ms = _since_ms(descriptor, path, superblock, clock)
        if since_ms is None:
            return NO_COUNTS
        data = os.pread(descriptor, _BYTES, 0)
    except OSError:
        return NO_COUNTS
    finally:
        os.close(descriptor)
    if len(data) < _BYTES:  # Cut short since the look at its size.
        return NO_COUNTS
    words = memoryview(data)[_WORDS].cast("Q")
    return Counters(since_ms, tuple(words[:COUNTERS]), words[_DURATION], tuple(words[_FIRST_BUCKET:_END]))


def _open(path: str, flags: int) -> int | None:
    """A descriptor of the file; None without a file that can be opened."""
    try:
        # Opening a pipe would wait for a writer.
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None


def _since_ms(descriptor: int, path: str, superblock: Superblock, clock: Clock) -> int | None:
    """Since when an open file counts the events of this store in this boot; None if it does not.

    Raises:
        OSError
    """
    status = os.fstat(descriptor)
    is_whole = stat.S_ISREG(status.st_mode) and status.st_size == _BYTES and status.st_blocks * 512 >= _BYTES
    is_owners = status.st_uid == os.stat(os.path.dirname(path)).st_uid
    if not (is_whole and is_owners and not status.st_mode & 0o022 and status.st_nlink == 1):
        return None
    header = os.pread(descriptor, _HEADER.size + _CRC.size, 0)
    if len(header) < _HEADER.size + _CRC.size:  # Cut short since the look at its size.
        return None
    magic, store_id, boot_id, incarnation, inode, since_ms = _HEADER.unpack_from(header)
    is_ours = (magic, store_id, boot_id, incarnation, inode) == (
        _MAGIC, superblock.store_id, clock.boot_id(), superblock.incarnation, status.st_ino,
    )  # fmt: skip
    is_sound = _CRC.unpack_from(header, _HEADER.size)[0] == crc32(header[: _HEADER.size])
    return int(since_ms) if is_ours and is_sound else None
