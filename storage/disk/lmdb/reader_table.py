"""LMDB's reader table (`lock.mdb`): made whole by a writer, and done without by a reader.

LMDB maps the table, and a page of the map that finds no room on a full disk kills the process. So a writer allocates
every byte of the table before LMDB maps it. A reader makes nothing: where the table is missing or cannot be written, as
in a backup or on a read-only mount, LMDB is opened without it. Writers do not see such an *unlisted* reader, and would
reuse the pages of its views: bytes 2 and 3 of the lock file keep unlisted readers and writers apart.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from storage.disk.lmdb import directory
from storage.errors import StoreFull, StoreInUse, StoreInvalid
from storage.limits import READERS_MAX
from storage.process.clock import Clock
from storage.process.identity import describe, started
from storage.process.lock_file import FILE_NAME, LockFile, processes_with
from storage.process.writer_gate import OnWait
from storage.system_errors import DENIED, FULL, refusal

_HEADER_BYTES: Final = 128
_SLOT_BYTES: Final = 64
_BLOCK_BYTES: Final = 512
"""The unit of `st_blocks`, on every file system."""
_PAUSE_S: Final = 0.002


def secure(
    path: str, locks: LockFile, clock: Clock, *, read_only: bool, timeout_s: float, on_wait: OnWait | None
) -> bool:
    """Return whether LMDB shall use the reader table, after keeping unlisted readers and writers apart.

    A table that is missing or too short is made anew, for a writer.

    Args:
        timeout_s: seconds to wait for unlisted readers or for writers to close the store.

    Raises:
        StoreInUse: unlisted readers and writers met.
        WriterBusy, StoreFull, NotPermitted, TooManyFiles, StoreInvalid
    """
    if not read_only:
        _wait(path, clock, timeout_s, locks.begin_writing, "is read without LMDB's reader table")
        _make_if_missing(path, locks, timeout_s, on_wait)
        return True
    try:
        if _allocate(path):
            return True
    except OSError as error:
        if error.errno not in (*DENIED, *FULL):
            raise _refused(path, error) from error
    _wait(path, clock, timeout_s, locks.begin_unlisted_reading, "has no reader table to be used, and is open")
    return False


def reserve(path: str) -> None:
    """Make a new reader table in the directory `path`, with every byte allocated.

    Raises:
        OSError
    """
    descriptor = os.open(_file(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        directory.give_to_owner(descriptor, path)
        os.posix_fallocate(descriptor, 0, _HEADER_BYTES + READERS_MAX * _SLOT_BYTES)
    except OSError:
        with suppress(OSError):
            os.unlink(_file(path))
        raise
    finally:
        os.close(descriptor)


def _file(path: str) -> str:
    return os.path.join(path, directory.LMDB_LOCK)


def _make_if_missing(path: str, locks: LockFile, timeout_s: float, on_wait: OnWait | None) -> None:
    try:
        if _allocate(path):
            return
        try:
            # Inside the gate one writer makes the table, and the next one finds it.
            locks.gate.enter(timeout_s, on_wait)
            if not _allocate(path):
                reserve(path)
        finally:
            locks.gate.leave()
    except OSError as error:
        raise _refused(path, error) from error


def _allocate(path: str) -> bool:
    """Allocate the holes of the table, as a copy of files may leave; False if there is no table.

    A table with a slot or more is never made longer: processes that have it mapped would not see the new slots.

    Raises:
        OSError: the table cannot be opened for writing, or there is no room.
    """
    try:
        descriptor = os.open(_file(path), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        status = os.fstat(descriptor)
        if status.st_size < _HEADER_BYTES + _SLOT_BYTES:
            return False
        if status.st_blocks * _BLOCK_BYTES < status.st_size:
            os.posix_fallocate(descriptor, 0, status.st_size)
        return True
    finally:
        os.close(descriptor)


def _wait(path: str, clock: Clock, timeout_s: float, begin: Callable[[], bool], state: str) -> None:
    began_ns = clock.boot_ns()
    while not begin():
        if clock.boot_ns() - began_ns >= timeout_s * 1e9:
            pids = processes_with(os.path.join(path, FILE_NAME))
            holders = [describe(pid, started(pid)) for pid in pids]
            raise StoreInUse(
                f"{path} {state} in {', '.join(holders) or 'another process'}",
                hint="Try again when the store is closed there.",
                holders=holders,
            )
        clock.sleep(_PAUSE_S)


def _refused(path: str, error: OSError) -> StoreInvalid:
    refused = refusal(f"cannot write {_file(path)}", error)
    if isinstance(refused, StoreFull):
        refused.hint = "Free some space. Reading needs no such file."
    return refused
