"""The lock file of a store: the bytes and the lock that each byte carries, and the lock on the whole store.

    byte 0         the writer gate (writer_gate.py): its holder may begin a store transaction
    byte 1         the store lock: shared by every process with the store open, exclusive for compacting and upgrading
    byte 2         shared by every unlisted reader: a process that reads without LMDB's reader table
    byte 3         shared by every writer: a process with the store open for writing
    byte 2^16 + s  slot s of the queue before the gate (gate_queue.py): locked as long as its process lives
    byte 2^20 + n  lease n (liveness.py): locked as long as the process of the lease lives; numbers are never reused
    byte 2^40 + t  timestamp t (open_timestamps.py): locked while a transaction of timestamp t is open without a record

A forked child inherits the descriptor, and would keep the locks of a dead parent alive: so the child closes the
descriptor at once. The content of the file is a hint: a text, the process that passed the gate last, and the words that
waiting processes sleep on (wake_page.py).
"""

from __future__ import annotations

import os
from typing import Final

from storage.errors import NotAStore, StoreInUse
from storage.process import machine
from storage.process.byte_locks import ByteLocks
from storage.process.clock import Clock
from storage.process.liveness import ByteLeases
from storage.process.open_timestamps import ByteTimestamps
from storage.process.wake_page import WakePage
from storage.process.writer_gate import WriterGate
from storage.system_errors import refusal

FILE_NAME: Final = "store.lock"
_STORE_BYTE: Final = 1
_UNLISTED_BYTE: Final = 2
_WRITERS_BYTE: Final = 3


class LockFile:
    """The open lock file of one store in one process.

    Attributes:
        gate: the writer gate.
        page: the words that processes sleep on.
        leases: the leases of processes; a locked lease proves that its process lives.
        open_timestamps: the timestamps of open transactions without a record.
    """

    __slots__ = ("_locks", "gate", "leases", "open_timestamps", "page")

    def __init__(self, path: str, clock: Clock, *, writable: bool) -> None:
        self._locks = ByteLocks(path, writable=writable)
        self.page = WakePage(path)
        self.gate = WriterGate(self._locks, clock, self.page)
        self.leases = ByteLeases(self._locks)
        self.open_timestamps = ByteTimestamps(self._locks, clock)

    def close(self) -> None:
        """Close the file, which drops the gate, the store lock, and every lease and timestamp of this process."""
        self.page.close()
        self._locks.close()

    def begins_round(self, subscription_id: int, now_ns: int) -> bool:
        """Whether to look at all consumers of a subscription now (`Locks`)."""
        return self.page.begins_round(subscription_id, now_ns)

    def share_store(self) -> None:
        """Take the store lock shared, as every process with the store open.

        Raises:
            StoreInUse: a process holds the store lock exclusively.
        """
        if not self._locks.take_shared(_STORE_BYTE):
            raise StoreInUse(
                "the store is being compacted, upgraded or restored", hint="Try again when that is done."
            )

    def own_store(self) -> bool:
        """Take the store lock exclusively; return False if a second process has the store open."""
        return self._locks.take_exclusive(_STORE_BYTE)

    def begin_unlisted_reading(self) -> bool:
        """Count this process as an unlisted reader; return False, and do not count it, if there is a writer.

        Each side takes its own byte before it looks at the byte of the other side, so two that meet both notice.
        """
        return self._enter_side(_UNLISTED_BYTE, _WRITERS_BYTE)

    def end_unlisted_reading(self) -> None:
        """Count this process as an unlisted reader no longer, if it is counted."""
        self._locks.release(_UNLISTED_BYTE)

    def begin_writing(self) -> bool:
        """Count this process as a writer; return False, and do not count it, if there is an unlisted reader."""
        return self._enter_side(_WRITERS_BYTE, _UNLISTED_BYTE)

    def _enter_side(self, own_byte: int, other_byte: int) -> bool:
        is_entered = self._locks.take_shared(own_byte) and not self._locks.is_taken(other_byte)
        if not is_entered:
            self._locks.release(own_byte)
        return is_entered


def open_locks(path: str, clock: Clock, *, read_only: bool) -> LockFile:
    """Open the lock file of the store at `path`.

    Raises:
        NotAStore, NotPermitted, TooManyFiles, StoreInvalid
    """
    lock_path = os.path.join(path, FILE_NAME)
    try:
        return LockFile(lock_path, clock, writable=not read_only)
    except FileNotFoundError:
        raise NotAStore(f"{path} is not a whole store: {FILE_NAME} is missing") from None
    except OSError as error:
        raise refusal(f"cannot open {lock_path}", error) from None


def processes_with(path: str) -> list[int]:
    """Return the pids of other processes with the lock file open, as far as /proc shows descriptors to this user."""
    lock_status, pids = os.stat(path), []
    for pid in machine.pids():
        if pid == os.getpid():
            continue
        try:
            with os.scandir(f"{machine.PROC}/{pid}/fd") as descriptors:
                if any(_is_same_file(descriptor, lock_status) for descriptor in descriptors):
                    pids.append(pid)
        except OSError:
            continue
    return pids


def _is_same_file(descriptor: os.DirEntry[str], lock_status: os.stat_result) -> bool:
    try:
        status = descriptor.stat()
    except OSError:
        return False  # The descriptor was closed after the listing.
    return os.path.samestat(status, lock_status)
