"""Creating a store: built aside, synced, then renamed into place, or moved into an empty directory that is there.

LMDB's own creation does not survive a power cut, so nobody ever sees a store before its format
record is on disk.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from storage import faults
from storage.disk import data_file, directory as place
from storage.disk.build_dir import directory, is_aside
from storage.disk.codec import pack, seal
from storage.disk.schema import FORMAT_NUMBER, HEADS, STORE, Database
from storage.disk.superblock import Superblock
from storage.disk.view import STORE_HEAD_KEY
from storage.errors import AlreadyExists, NotPermitted, StoreFull, StoreInvalid
from storage.limits import READERS_MAX
from storage.process.byte_locks import check_platform
from storage.process.clock import Clock

_LOCK_WORDS = b"txnctl store lock\n"
_INSIDE = "store"
"""The name of what is built inside a directory that was there."""

_IN_ORDER = (place.LOCK, place.LMDB_LOCK, place.DATA)
"""How files are moved there: first the one that shows whose they are, last the one that makes it a store."""

_READER_TABLE_BYTES = 64 * READERS_MAX + 128


def create(path: str, clock: Clock) -> None:
    """Create an empty store; see `Store.create`."""
    check_platform()
    path = place.resolved(path, os.path.abspath)
    with building(path) as aside:
        place.check_local(aside, os.stat(aside).st_dev)
        _reserve(os.path.join(aside, place.LMDB_LOCK))
        data_file.create(aside, clock, _first_records)
        write_lock_file(os.path.join(aside, place.LOCK))
        install(aside, path)


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
        with directory(os.path.join(path, _INSIDE) if os.path.isdir(path) else path, store) as aside:
            yield aside
    except OSError as error:
        raise _explain(path, error) from error


def check_free(path: str) -> None:
    """That a store may be made at `path`: nothing is there, or an empty directory.

    Raises:
        AlreadyExists
    """
    if os.path.lexists(path) and not _is_free_directory(path):
        raise AlreadyExists(f"there is something at {path} already; it was left as it is", path=path)


def install(aside: str, path: str) -> None:
    """Put a finished store where it belongs, with everything in it on disk before."""
    for file in os.listdir(aside):
        os.chmod(os.path.join(aside, file), 0o600)
        _sync(os.path.join(aside, file))
    _sync(aside)
    if os.path.dirname(aside) == path:
        _fill(aside, path)
        return
    faults.reach("store.create.before_rename")
    os.rename(aside, path)
    faults.reach("store.create.after_rename")
    _sync(os.path.dirname(path))


def _fill(aside: str, path: str) -> None:
    """Move the files into a directory that was there: it may be mounted, or somebody's current directory.

    The data file comes last, and makes it a store. What a killed one left before that is replaced.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.lexists(os.path.join(path, place.DATA)):
            raise AlreadyExists(f"somebody else created {path} meanwhile; it was left as it is", path=path)
        os.fchmod(descriptor, 0o700)
        for name in _IN_ORDER:
            built, target = os.path.join(aside, name), os.path.join(path, name)
            if not os.path.exists(built):
                with suppress(FileNotFoundError):
                    os.unlink(target)
                continue
            _give(built, path)
            if name == place.DATA:
                faults.reach("store.create.before_rename")
            os.rename(built, target)
        faults.reach("store.create.after_rename")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _give(file: str, store: str) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        place.give_to_owner(descriptor, store)
    finally:
        os.close(descriptor)


def _make_parent(parent: str) -> None:
    try:
        os.makedirs(parent, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StoreInvalid(f"cannot create a store below {parent}: something on the way is a file") from None
    except OSError as error:
        raise _explain(parent, error) from error


def _is_free_directory(path: str) -> bool:
    """Whether it is a directory with nothing in it but what others build there, or killed ones left of that."""
    if not os.path.isdir(path) or os.path.islink(path):
        return False
    found = {name for name in os.listdir(path) if not is_aside(name, _INSIDE)}
    return not found or (
        found <= {place.LOCK, place.LMDB_LOCK} and _is_lock_file(os.path.join(path, place.LOCK))
    )


def _is_lock_file(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_LOCK_WORDS)) == _LOCK_WORDS
    except OSError:
        return False


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
        HEADS: {STORE_HEAD_KEY: seal(HEADS, STORE_HEAD_KEY, Superblock(store_id, clock).encode())},
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
        os.write(descriptor, _LOCK_WORDS.ljust(64))
        place.give_to_owner(descriptor, os.path.dirname(path))
    finally:
        os.close(descriptor)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
