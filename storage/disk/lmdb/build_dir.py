"""The build directory of a store, beside its destination: `.NAME.PID.new`.

The builder holds a kernel lock (flock) on the build directory, and the kernel drops the lock with the process. So a
build directory without a lock belongs to a dead builder, and the next builder removes the directory. The pid in the
name proves nothing, because the kernel reuses pids. After locking, builder and remover both check that the name still
leads to the locked directory: a directory may have been removed, and made again, between opening and locking.

A copy of records goes on after an interrupt, so its directory is kept: `.NAME.copy`, with the same lock. Only `store
gc` removes such a directory, where a store has come to the destination, or nothing was written for a week.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from storage.disk.lmdb import counters_file, read_cache_file, received_marks, reserve_file
from storage.disk.lmdb.directory import DATA, FILES, give_to_owner
from storage.errors import StoreInUse, StoreUnsafe

_OURS: Final = {
    *FILES, counters_file.FILE_NAME, read_cache_file.FILE_NAME, received_marks.FILE_NAME, reserve_file.FILE_NAME
}  # fmt: skip
_COPY: Final = ".copy"
_COPY_KEPT_NS: Final = 7 * 86_400 * 1_000_000_000
_ANY: Final = re.compile(r"\..+\.[0-9]+\.new", re.DOTALL)


@contextmanager
def build_directory(destination: str, store: str | None = None) -> Iterator[str]:
    """Make an empty, locked directory beside `destination`; without a rename the directory is removed at the end.

    Build directories of dead builders beside `destination` are removed first, whatever they were to become.

    Args:
        store: an existing store, whose owner becomes owner of the build directory; None for the user of this process.

    Raises:
        OSError: the directory cannot be made.
    """
    parent, name = os.path.split(destination)
    remove_leftovers(parent, name)
    path = os.path.join(parent, f".{name}.{os.getpid()}.new")
    descriptor = _make(path)
    try:
        if store is not None:
            give_to_owner(descriptor, store)
        yield path
    finally:
        _remove(descriptor, path)
        os.close(descriptor)


@contextmanager
def kept_directory(destination: str) -> Iterator[str]:
    """Lock the directory of a copy beside `destination` within the block; it is made if missing, and stays.

    Raises:
        StoreInUse: another process is copying there.
        StoreUnsafe: another user could change the directory.
        OSError: the directory cannot be made.
    """
    parent, name = os.path.split(destination)
    path = os.path.join(parent, f".{name}{_COPY}")
    descriptor = _take(path)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise StoreUnsafe(
                f"{path} belongs to another user, or may be written by other users "
                f"(mode {stat.S_IMODE(status.st_mode):04o})",
                hint="Remove it, if it is the rest of a copy.",
            )
        yield path
    finally:
        os.close(descriptor)


def _take(path: str) -> int:
    """Open and lock the directory of a copy, which is made if missing; return its descriptor."""
    while True:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        try:
            descriptor = _open(path)
        except FileNotFoundError:
            continue  # A second copy was installed, or removed its directory.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StoreInUse(f"another process is copying into {path}", hint="Wait for its end.") from None
        if _has_name(descriptor, path):
            return descriptor
        os.close(descriptor)


def remove_left_copies(parent: str, wall_ns: int) -> None:
    """Remove the directories of interrupted copies in `parent` that nobody will go on with.

    These are the ones whose destination is a store by now, and those into which nothing was written for a week.
    """
    for entry in os.listdir(parent):
        if not (entry.startswith(".") and entry.endswith(_COPY)):
            continue
        path = os.path.join(parent, entry)
        is_there = os.path.lexists(os.path.join(parent, entry[1 : -len(_COPY)], DATA))
        with suppress(OSError):
            written_ns = max(os.stat(os.path.join(path, name)).st_mtime_ns for name in os.listdir(path))
            if is_there or written_ns < wall_ns - _COPY_KEPT_NS:
                _remove_if_dead(path, may_be_empty=False)


def _make(path: str) -> int:
    """Make a directory and lock it; return its descriptor."""
    while True:
        os.mkdir(path, 0o700)
        try:
            descriptor = _locked(path)
        except FileNotFoundError:
            continue  # A second builder removed the directory before the lock was taken.
        except OSError:
            with suppress(OSError):
                os.rmdir(path)
            raise
        if descriptor is not None:
            return descriptor


def _locked(path: str) -> int | None:
    """Open and lock a directory; None if a second builder has removed the name meanwhile."""
    descriptor = _open(path)
    has_name = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        has_name = _has_name(descriptor, path)
    finally:
        if not has_name:
            os.close(descriptor)
    return descriptor if has_name else None


def _remove(descriptor: int, path: str) -> None:
    """Remove the open directory, if the path still leads there; what the disk refuses is left to the next builder."""
    with suppress(OSError):
        if _has_name(descriptor, path):
            shutil.rmtree(path, ignore_errors=True)
    # Inside an existing directory all files were moved away: the empty one goes even if one call was refused.
    with suppress(OSError):
        os.rmdir(path)


def is_build_dir(name: str, destination: str) -> bool:
    """Whether `name` is the name of a build directory for `destination`."""
    return re.fullmatch(rf"\.{re.escape(destination)}(\.[0-9]+\.new|\{_COPY})", name) is not None


def remove_leftovers(parent: str, name: str | None = None, *, inside_store: bool = False) -> None:
    """Remove the build directories of dead builders in `parent`, as far as permissions allow.

    An empty directory is removed only inside a store, or if it is named after the destination `name`: elsewhere any
    user may have made an empty one.
    """
    for entry in os.listdir(parent):
        if _ANY.fullmatch(entry):
            is_ours = inside_store or (name is not None and is_build_dir(entry, name))
            _remove_if_dead(os.path.join(parent, entry), may_be_empty=is_ours)


def _remove_if_dead(path: str, *, may_be_empty: bool) -> None:
    try:
        descriptor = _open(path)
    except OSError:
        return  # The path was removed meanwhile, is no directory, or belongs to a different user.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Only files of a store prove that a builder made this directory: a user may have chosen the same name.
        files = set(os.listdir(path))
        if _has_name(descriptor, path) and files <= _OURS and (files or may_be_empty):
            shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return  # The builder lives.
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _has_name(descriptor: int, path: str) -> bool:
    """Whether `path` leads to the open directory."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
