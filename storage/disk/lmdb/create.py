"""Creation of a store: build all files in a build directory, sync, then rename the directory to the path of the store.

An LMDB file created in place can be left unreadable by a power cut. The rename comes after the sync, so a store at its
path always has its format record on disk.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EEXIST, ENOTDIR, ENOTEMPTY
from typing import Any

from storage import faults
from storage.disk.codec import pack, seal
from storage.disk.lmdb import data_file, directory, reader_table, reserve_file
from storage.disk.lmdb.build_dir import build_directory, is_build_dir, kept_directory
from storage.disk.lmdb.lmdb_errors import refused
from storage.disk.reserve import RESERVE_BYTES
from storage.disk.schema import FORMAT_KEY, FORMAT_NUMBER, HEADS, STORE, Database
from storage.disk.superblock import Superblock, check_wall
from storage.disk.view import SUPERBLOCK_KEY
from storage.errors import AlreadyExists, InvalidValue, OutcomeUnknown, StoreInvalid, TxnctlError
from storage.process.byte_locks import check_platform
from storage.process.clock import Clock
from storage.system_errors import FAILED_HINT, refusal

_LOCK_WORDS = b"txnctl store lock\n"
_INSIDE = "store"
"""The destination that build directories are named after inside an existing directory: `.store.PID.new`."""

_IN_ORDER = (directory.LOCK, directory.LMDB_LOCK, directory.DATA)
"""The order of moves into an existing directory: first the lock file, which marks leftovers, last the data file."""


def create(path: str, clock: Clock) -> None:
    """Create an empty store; see `Store.create`."""
    check_platform()
    check_wall(clock.wall_ns())
    path = directory.resolved(path, os.path.abspath)
    with building(path) as build_dir:
        directory.check_local(build_dir, os.stat(build_dir).st_dev)
        reader_table.reserve(build_dir)
        data_file.create(build_dir, clock, _first_records)
        write_lock_file(os.path.join(build_dir, directory.LOCK))
        install(build_dir, path)
    reserve_file.Reserve(path).keep(RESERVE_BYTES)


class UnconfirmedName(OutcomeUnknown):
    """A store is in place, but the disk refused to sync the name."""


@contextmanager
def building(path: str, store: str | None = None) -> Iterator[str]:
    """Make a build directory for a store at `path`; without `install` the directory is removed at the end.

    Args:
        store: an existing store, whose owner becomes owner of the build directory; None for the user of this process.

    Raises:
        AlreadyExists, InvalidValue, StoreInvalid, NotPermitted, StoreFull, OutcomeUnknown
    """
    check_free(path)
    if store is None:
        check_outside(path)
    _make_parent(os.path.dirname(path))
    build_dir = None
    try:
        with build_directory(os.path.join(path, _INSIDE) if _is_there(path) else path, store) as build_dir:
            yield build_dir
    except OSError as error:
        raise _name_leftover(_explain(path, error), build_dir) from error
    except StoreInvalid as error:
        raise _name_leftover(error, build_dir) from error.__cause__
    except UnconfirmedName:
        raise
    except OutcomeUnknown as error:
        # A commit in the copy, which is dropped.
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        raise _name_leftover(refused(path, cause), build_dir) from error


@contextmanager
def resuming(path: str) -> Iterator[str]:
    """Make the build directory of a copy to `path`, or take over the one that an interrupted copy has left.

    The directory stays until it is installed or removed within the block.

    Raises:
        AlreadyExists, StoreInUse, InvalidValue, StoreInvalid, StoreUnsafe, NotPermitted, StoreFull, OutcomeUnknown
    """
    check_free(path)
    check_outside(path)
    _make_parent(os.path.dirname(path))
    try:
        with kept_directory(os.path.join(path, _INSIDE) if _is_there(path) else path) as build_dir:
            yield build_dir
    except OSError as error:
        raise _explain(path, error) from error


def _name_leftover(error: TxnctlError, build_dir: str | None) -> TxnctlError:
    """The error, which names the build directory where the failure did not let it be removed either."""
    try:
        is_left = build_dir is not None and not _is_missing(build_dir)
    except OSError:
        is_left = True
    if is_left:
        error.message += f"; {build_dir} is left"
        if error.hint in (None, FAILED_HINT):
            error.hint = "The next backup or restore there removes it, as does a gc of the store."
    return error


def check_free(path: str) -> None:
    """Check that `path` is free for a new store: absent, or an empty directory.

    Raises:
        AlreadyExists, StoreInvalid
    """
    try:
        is_free = not _is_there(path) or _is_free_directory(path)
    except OSError as error:
        raise refusal(f"cannot look at {path}", error) from error
    if not is_free:
        raise AlreadyExists(f"{path} exists already and was left unchanged", path=path)


def check_outside(path: str) -> None:
    """Check that no directory above `path` is a store: the two would be moved, copied and removed together.

    Raises:
        InvalidValue, StoreInvalid
    """
    place, above = os.path.realpath(path), os.path.realpath(os.path.dirname(path))
    while place != above:
        if _has_store(above):
            raise InvalidValue(
                f"{path} lies inside the store {above}; nothing was changed",
                hint="Choose a path outside of every store.",
            )
        place, above = above, os.path.dirname(above)


def _has_store(path: str) -> bool:
    try:
        return all(_is_there(os.path.join(path, name)) for name in (directory.DATA, directory.LOCK))
    except OSError as error:
        raise refusal(f"cannot look into {path}", error) from error


def install(build_dir: str, path: str) -> None:
    """Sync the files of a finished store to disk, then rename the build directory to `path`.

    Raises:
        UnconfirmedName, AlreadyExists, OSError
    """
    for file in os.listdir(build_dir):
        os.chmod(os.path.join(build_dir, file), 0o600)
        _sync(os.path.join(build_dir, file))
    _sync(build_dir)
    if os.path.dirname(build_dir) == path:
        _fill(build_dir, path)
        return
    faults.reach("store.create.before_rename")
    os.rename(build_dir, path)
    faults.reach("store.create.after_rename")
    _sync_name(os.path.dirname(path), path)


def _sync_name(parent: str, path: str) -> None:
    """Sync the directory that a store was put into. The store stays: another process may have opened it meanwhile.

    Raises:
        UnconfirmedName
    """
    try:
        _sync(parent)
    except OSError as error:
        raise UnconfirmedName(
            f"{path} was made, but the disk did not confirm its name: {error.strerror}",
            hint="Use the store, or remove it and try again; a power cut may remove it.",
        ) from error


def _fill(build_dir: str, path: str) -> None:
    """Move the files into an existing directory: a mount point or a current directory cannot be replaced by a rename.

    The data file comes last, because a directory with a data file is a store. Files left by a killed builder are
    replaced.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_there(os.path.join(path, directory.DATA)):
            raise AlreadyExists(f"another process created {path} meanwhile; nothing was changed", path=path)
        os.fchmod(descriptor, 0o700)
        for name in _IN_ORDER:
            built, target = os.path.join(build_dir, name), os.path.join(path, name)
            if not _is_there(built):
                with suppress(FileNotFoundError):
                    os.unlink(target)
                continue
            _give(built, path)
            if name == directory.DATA:
                faults.reach("store.create.before_rename")
            os.rename(built, target)
        faults.reach("store.create.after_rename")
        _sync_name(path, path)
    finally:
        os.close(descriptor)


def _give(file: str, store: str) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        directory.give_to_owner(descriptor, store)
    finally:
        os.close(descriptor)


def _make_parent(parent: str) -> None:
    """Make the directories above a store, and sync their names: the store would be lost with any of them."""
    missing, place = [], parent
    try:
        while _is_missing(place):
            missing.append(place)
            place = os.path.dirname(place)
        for place in reversed(missing):
            with suppress(FileExistsError):  # a second builder made the directory meanwhile
                os.mkdir(place)
        if not stat.S_ISDIR(os.stat(parent).st_mode):
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), parent)
        for place in missing:
            _sync(os.path.dirname(place))
    except NotADirectoryError:
        raise StoreInvalid(f"cannot create a store below {parent}: a part of the path is a file") from None
    except OSError as error:
        raise _explain(parent, error) from error


def _is_missing(path: str) -> bool:
    """Whether nothing is at `path`.

    Raises:
        OSError: the disk does not say, or a part of the path is a file.
    """
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    return False


def _is_there(path: str) -> bool:
    """Whether something is at `path` that this user can see.

    Raises:
        OSError: the disk does not say, where `os.path.lexists` would answer that nothing is there.
    """
    try:
        return not _is_missing(path)
    except (NotADirectoryError, PermissionError):
        return False


def _is_free_directory(path: str) -> bool:
    """Whether `path` is a directory without files, except build directories and leftovers of killed builders.

    Raises:
        OSError: the disk does not say.
    """
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return False
    names = {name for name in os.listdir(path) if not is_build_dir(name, _INSIDE)}
    return not names or (
        names <= {directory.LOCK, directory.LMDB_LOCK, reserve_file.FILE_NAME}
        and _is_lock_file(os.path.join(path, directory.LOCK))
    )


def _is_lock_file(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_LOCK_WORDS)) == _LOCK_WORDS
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        return False


def _explain(path: str, error: OSError) -> StoreInvalid | AlreadyExists:
    """Translate an error of the operating system at `path` into an error of storage."""
    if error.errno in (ENOTEMPTY, EEXIST):
        return AlreadyExists(f"another process created {path} meanwhile; nothing was changed", path=path)
    return refusal(f"cannot write a store at {path}", error)


def _first_records(clock: Clock) -> dict[Database, dict[bytes, bytes]]:
    store_id = os.urandom(16)
    formats: list[Any] = [FORMAT_NUMBER, store_id, clock.wall_ms()]
    return {
        STORE: {FORMAT_KEY: seal(STORE, FORMAT_KEY, pack(formats))},
        HEADS: {SUPERBLOCK_KEY: seal(HEADS, SUPERBLOCK_KEY, Superblock(store_id, clock).encode())},
    }


def write_lock_file(path: str) -> None:
    """Write the lock file (`process/lock_file.py`): a constant text, because the locks are in the kernel."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, _LOCK_WORDS.ljust(64))
        directory.give_to_owner(descriptor, os.path.dirname(path))
    finally:
        os.close(descriptor)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
