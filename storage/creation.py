"""Creating a store: built aside, synced, then renamed into place.

LMDB's own creation does not survive a power cut, so nobody ever sees a store before its format
record is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from storage import environment, faults, place
from storage.aside import directory
from storage.clock import Clock
from storage.codec import pack, seal
from storage.errors import AlreadyExists, NotPermitted, StoreFull, StoreInvalid
from storage.lease import FILE_NAME, check_platform
from storage.limits import READERS_MAX
from storage.schema import FORMAT_NUMBER, HEADS, STORE, Database
from storage.store_head import StoreHead
from storage.view import STORE_HEAD_KEY

_READER_TABLE_BYTES = 64 * READERS_MAX + 128


def create(path: str, clock: Clock) -> None:
    """Create an empty store; see `Store.create`."""
    check_platform()
    with building(os.path.abspath(path)) as aside:
        place.check_local(aside, os.stat(aside).st_dev)
        _reserve(os.path.join(aside, place.LMDB_LOCK))
        environment.create(aside, clock, _first_records)
        write_lock_file(os.path.join(aside, FILE_NAME))
        install(aside, os.path.abspath(path))


@contextmanager
def building(path: str, store: str | None = None) -> Iterator[str]:
    """An empty directory in which to build what `install` puts at `path`; gone at the end if it does not.

    Args:
        store: the store to whose owner it belongs; None for who runs this.

    Raises:
        AlreadyExists, StoreInvalid, NotPermitted, StoreFull
    """
    check_free(path)
    _make_parent(os.path.dirname(path))
    try:
        with directory(path, store) as aside:
            yield aside
    except OSError as error:
        raise _explain(path, error) from error


def check_free(path: str) -> None:
    """That a store may be made at `path`: nothing is there, or an empty directory.

    Raises:
        AlreadyExists
    """
    if os.path.lexists(path) and not _is_empty_directory(path):
        raise AlreadyExists(f"there is something at {path} already; it was left as it is", path=path)


def install(aside: str, path: str) -> None:
    """Rename a finished directory to where it belongs, with everything in it on disk before."""
    for file in os.listdir(aside):
        os.chmod(os.path.join(aside, file), 0o600)
        _sync(os.path.join(aside, file))
    _sync(aside)
    faults.reach("store.create.before_rename")
    os.rename(aside, path)
    faults.reach("store.create.after_rename")
    _sync(os.path.dirname(path))


def _make_parent(parent: str) -> None:
    try:
        os.makedirs(parent, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StoreInvalid(f"cannot create a store below {parent}: something on the way is a file") from None
    except OSError as error:
        raise _explain(parent, error) from error


def _is_empty_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)


def _explain(path: str, error: OSError) -> StoreInvalid | AlreadyExists:
    """What the operating system refused at `path`, as an error of ours."""
    import errno

    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return NotPermitted(f"cannot write a store at {path}: {error.strerror}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFull(f"no room for a store at {path}: {error.strerror}")
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        return AlreadyExists(f"somebody else created {path} meanwhile; it was left as it is", path=path)
    return StoreInvalid(f"cannot write a store at {path}: {error.strerror}")


def _first_records(clock: Clock) -> dict[Database, dict[bytes, bytes]]:
    store_id = os.urandom(16)
    formats: list[Any] = [FORMAT_NUMBER, store_id, clock.wall_ms()]
    return {
        STORE: {b"format": seal(STORE, b"format", pack(formats))},
        HEADS: {STORE_HEAD_KEY: seal(HEADS, STORE_HEAD_KEY, StoreHead(store_id, clock).encode())},
    }


def _reserve(path: str) -> None:
    """Room for LMDB's reader table: it writes to it through memory, where a full disk would kill the process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, _READER_TABLE_BYTES)
    finally:
        os.close(descriptor)


def write_lock_file(path: str) -> None:
    """The file that lease.py locks, empty but for a word to whoever opens it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, b"txnctl store lock\n".ljust(64))
    finally:
        os.close(descriptor)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
