"""Received marks: the last message that each consumer gave to its application, shared by all processes.

One mapped file in the store's directory, touched without a commit and never synced: the kernel keeps the mark of a
process that is killed, and only a power cut may lose it. Each consumer writes a slot of its own, twice in turn, so that
a process killed while it writes leaves the mark before. A mark names the window of messages that was delivered with
it; without a mark of that window, none of its messages counts as received. So a count may be short by one window, and
is never high (docs/decisions/0004). Bytes: docs/FORMAT.md.

Behind the marks stands the *quiet time* of each consumer (docs/decisions/0075): the time of the last acknowledgement,
or of the first delivery after the last acknowledgement. Half of one has a wrong checksum, and counts as none.

The file is a help, not a part of the store: where it cannot be made or read, consumers work without marks.
"""

from __future__ import annotations

import mmap
import os
from struct import Struct
from typing import Final
from zlib import crc32

from storage.disk.lmdb.directory import give_to_owner
from storage.disk.superblock import Superblock
from storage.values.position import MessageId

FILE_NAME: Final = "received.marks"
SLOTS: Final = 2048

_MARK = Struct(">QQQQq")  # consumer, window, ledger, entry, batch index
_CRC = Struct(">I")
_COPY_BYTES: Final = 48
_MARKS_BYTES: Final = SLOTS * 2 * _COPY_BYTES

_QUIET = Struct(">Qq")  # consumer, boot time: before the boot in tests with a clock of their own
_QUIET_BYTES: Final = 24
_BYTES: Final = _MARKS_BYTES + SLOTS * _QUIET_BYTES


class MarksFile:
    """The mapped file of one store in one process."""

    __slots__ = ("_map", "_path", "_salt", "_turns")

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, FILE_NAME)
        self._map: mmap.mmap | None = None
        self._salt = 0
        self._turns: dict[int, int] = {}

    def close(self) -> None:
        """Unmap the file."""
        if self._map is not None:
            self._map.close()
            self._map = None

    def prepare(self, superblock: Superblock) -> bool:
        """Map the file, made if need be; whether consumers of this process can write marks."""
        if self._map is None:
            self._salt = _salt_of(superblock)
            self._map = self._opened(os.O_CREAT)
        return self._map is not None

    def note(self, consumer_id: int, window: int, last: MessageId) -> None:
        """Write the mark of a consumer: the last message that its application receives. Without effect if closed.

        Args:
            window: the number of the window that the message was delivered with.
        """
        if self._map is None:
            return
        turn = self._turns[consumer_id] = 1 - self._turns.get(consumer_id, 0)
        mark = _MARK.pack(consumer_id, window, *last)
        at = _slot(consumer_id) + turn * _COPY_BYTES
        self._map[at : at + _MARK.size + _CRC.size] = mark + _CRC.pack(crc32(mark, self._salt))

    def last(self, superblock: Superblock, consumer_id: int, window: int) -> MessageId | None:
        """The last message of a window that a consumer gave to its application; None if no mark names the window."""
        data = self._map or self._opened(0)
        if data is None:
            return None
        salt, at = _salt_of(superblock), _slot(consumer_id)
        latest: MessageId | None = None
        for copy in (data[at : at + _COPY_BYTES], data[at + _COPY_BYTES : at + 2 * _COPY_BYTES]):
            consumer, known, *last = _MARK.unpack_from(copy)
            is_whole = _CRC.unpack_from(copy, _MARK.size)[0] == crc32(copy[: _MARK.size], salt)
            if is_whole and (consumer, known) == (consumer_id, window):
                latest = max(latest or MessageId(*last), MessageId(*last))
        if data is not self._map:
            data.close()
        return latest

    def note_quiet(self, consumer_id: int, since_ns: int) -> None:
        """Write since when a consumer acknowledges nothing, in boot time. Without effect if closed."""
        if self._map is not None:
            noted, at = _QUIET.pack(consumer_id, since_ns), _quiet_slot(consumer_id)
            self._map[at : at + _QUIET.size + _CRC.size] = noted + _CRC.pack(crc32(noted, self._salt))

    def quiet_since_ns(self, superblock: Superblock, consumer_id: int) -> int | None:
        """Since when a consumer has acknowledged nothing, in boot time; None where that is not known."""
        data = self._map or self._opened(0)
        if data is None:
            return None
        salt, at = _salt_of(superblock), _quiet_slot(consumer_id)
        noted = data[at : at + _QUIET_BYTES]
        if data is not self._map:
            data.close()
        if len(noted) < _QUIET_BYTES or _CRC.unpack_from(noted, _QUIET.size)[0] != crc32(
            noted[: _QUIET.size], salt
        ):
            return None
        consumer, since_ns = _QUIET.unpack_from(noted)
        return int(since_ns) if consumer == consumer_id else None

    def _opened(self, flags: int) -> mmap.mmap | None:
        """The file mapped; None if it is absent, of other users, or cannot be made."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if status.st_mode & 0o022 or status.st_nlink != 1:
                return None
            if flags & os.O_CREAT and status.st_size < _BYTES:
                os.fchmod(descriptor, 0o600)
                give_to_owner(descriptor, os.path.dirname(self._path))
                # A write through memory for which a full disk has no page would kill the process.
                os.posix_fallocate(descriptor, 0, _BYTES)
            # A file of an earlier release has the marks alone.
            length = min(os.fstat(descriptor).st_size, _BYTES)
            return mmap.mmap(descriptor, length) if length >= _MARKS_BYTES else None
        except OSError:
            return None
        finally:
            os.close(descriptor)


def _slot(consumer_id: int) -> int:
    return consumer_id % SLOTS * 2 * _COPY_BYTES


def _quiet_slot(consumer_id: int) -> int:
    return _MARKS_BYTES + consumer_id % SLOTS * _QUIET_BYTES


def _salt_of(superblock: Superblock) -> int:
    """Marks of a different store, or of an earlier incarnation, are not this store's."""
    return crc32(superblock.store_id + superblock.incarnation.to_bytes(8, "big"))
